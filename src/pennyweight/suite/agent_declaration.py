"""The declaration of agents: commands, the workspaces they work in, and how these are checked."""

from __future__ import annotations

from pennyweight.schema.kinds import AnyOf, Flag, ListOf, MapOf, Null, Number, OneOf, Text
from pennyweight.schema.structs import Field, Struct

_WORD = Text("text")
_PATH = Text("a path", one_line=True)
_LINE = Text("a shell command", filled=True)
_COMMAND = AnyOf((_LINE, ListOf(_WORD, "a list of words", some=True)))
_COMMANDS = AnyOf(
    (
        Null(),
        _LINE,
        ListOf(_COMMAND, "a list of commands"),
    )
)

OUTPUT = Struct(
    "output",
    tuple(
        Field(name, _PATH, f"The JSON path of {what}.")
        for name, what in (
            ("text", "the final text"),
            ("prompt_tokens", "the tokens that went in"),
            ("completion_tokens", "the tokens that came out"),
            ("cached_tokens", "the tokens that were read from a cache"),
            ("reasoning_tokens", "the tokens of reasoning"),
            ("cost_usd", "the cost in US dollars"),
            ("model", "the model's name"),
        )
    ),
    {
        "response": "text", "result": "text", "input_tokens": "prompt_tokens",
        "output_tokens": "completion_tokens", "cost": "cost_usd", "total_cost_usd": "cost_usd",
    },
)  # fmt: skip

CAPS = Struct(
    "caps",
    (
        Field(
            "output_kb",
            Number(1, 1_000_000, whole=True),
            "Kilobytes kept of each output, half of its start and half of its end.",
            default=1024,
        ),
        Field(
            "disk_mb",
            Number(1, whole=True),
            "Megabytes that the workspace, the home and the temporary folder may grow by.",
            default=1024,
        ),
        Field("files", Number(1, whole=True), "Files that may be added.", default=50_000),
    ),
    {"output": "output_kb", "disk": "disk_mb", "size": "disk_mb", "bytes": "disk_mb"},
)

READERS = ("text", "claude-code", "codex", "gemini")

COMMAND = (
    Field(
        "command",
        _COMMAND,
        "The command of an agent: a list of words, or a line for the shell. {prompt} stands for "
        "the prompt (or its file), {system} for the system text, {NAME} for a setting; a word "
        "that begins with ./ is a path beside the suite, which the agent may read.",
    ),
    Field(
        "prompt",
        OneOf(("argument", "file", "stdin")),
        "How the command gets the prompt.",
        default="argument",
    ),
    Field("env", ListOf(_PATH, "a list of names"), "The variables that the command may see."),
    Field("timeout", Number(0, above=True), "Seconds until it is ended.", default=600),
    Field(
        "sandbox",
        OneOf(("bubblewrap", "container", "none")),
        "What it runs in.",
        default="bubblewrap",
    ),
    Field("image", _PATH, "The image of the container."),
    Field("network", Flag(), "Whether it may use the network.", default=False),
    Field(
        "read",
        ListOf(_PATH, "a list of paths"),
        "Files and folders outside the workspace that it may read.",
    ),
    Field(
        "output",
        AnyOf((OneOf(READERS), OUTPUT)),
        "How its output is read: a reader's name, or JSON paths.",
        default="text",
    ),
    Field("caps", CAPS, "What one attempt may leave behind."),
)
"""The keys of a subject that is a command."""

COMMAND_ONLY = tuple((f.name, "command") for f in COMMAND if f.name != "command")

WORKSPACE = Struct(
    "workspace",
    (
        Field("copy", _PATH, "A folder; each attempt gets a copy of it."),
        Field("git", _PATH, "A git repository; each attempt gets the files of one commit."),
        Field("commit", _PATH, "The commit, a tag or a branch.", default="HEAD"),
    ),
    {"folder": "copy", "path": "copy", "repo": "git", "repository": "git", "ref": "commit"},
    either=("copy", "git"),
    only_with=(("commit", "git"),),
)

FILE = Struct(
    "a file",
    (Field("from", _PATH, "The file or folder that is placed there.", required=True),),
    {"file": "from", "path": "from", "source": "from", "copy": "from"},
)

_FILES = AnyOf((Null(), MapOf(AnyOf((Null(), Text("text"), FILE)))))

FILES = Field(
    "files",
    _FILES,
    "Files placed in the workspace: a path, and its text or where it comes from.",
)

WORK = (
    Field(
        "workspace",
        AnyOf((Null(), _PATH, WORKSPACE)),
        "Where an agent begins: a folder that is copied, or a commit. An empty folder if missing.",
    ),
    Field(
        "verify",
        _COMMANDS,
        "Commands run in the workspace after the agent; the attempt passed if all succeed.",
    ),
    Field(
        "keep",
        _COMMANDS,
        "Commands that must still succeed after the agent, where they did before it.",
    ),
    Field(
        "verify_files",
        _FILES,
        "Files placed in the workspace for verify and keep alone; the agent does not see them.",
    ),
)
"""The keys about the workspace, in a suite and in a task."""
