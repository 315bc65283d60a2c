"""The declaration of agents: their commands, their workspaces and how these are checked."""

from __future__ import annotations

from pennyweight.schema.kinds import AnyOf, Flag, ListOf, MapOf, Null, Number, OneOf, Text
from pennyweight.schema.structs import Field, Struct

_WORD = Text("text")
_COUNT = Number(1, whole=True)
_PATH = Text("a path", one_line=True)
_PATHS = ListOf(_PATH, "a list of paths")
_NAMES = ListOf(_PATH, "a list of names")
_LINE = Text("a shell command", filled=True)
_COMMAND = AnyOf((_LINE, ListOf(_WORD, "a list of words", some=True)))
_COMMANDS = AnyOf((Null(), _LINE, ListOf(_COMMAND, "a list of commands")))

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

_KB = Number(1, 1_000_000, whole=True)

CAPS = Struct(
    "caps",
    (
        Field(
            "output_kb", _KB, "Kilobytes stored of each output: its start and end.", default=1024
        ),
        Field("disk_mb", _COUNT, "Megabytes that workspace, home and /tmp may grow.", default=1024),
        Field("files", _COUNT, "The number of files that may be added.", default=50_000),
    ),
    {"output": "output_kb", "disk": "disk_mb", "size": "disk_mb", "bytes": "disk_mb"},
)

READERS = ("text", "claude-code", "codex", "gemini")

COMMAND = (
    Field(
        "command",
        _COMMAND,
        "The command of an agent: a list of words, or a shell command. {prompt} stands for the "
        "prompt (or its file), {system} for the system text, {NAME} for a setting. A word that "
        "begins with ./ is a path relative to the suite, which the agent may read.",
    ),
    Field(
        "prompt",
        OneOf(("argument", "file", "stdin")),
        "How the prompt is passed to the command.",
        default="argument",
    ),
    Field("env", _NAMES, "The environment variables that the command may see."),
    Field("timeout", Number(0, above=True), "Seconds after which it is stopped.", default=600),
    Field(
        "sandbox",
        OneOf(("bubblewrap", "container", "none")),
        "The sandbox in which it runs.",
        default="bubblewrap",
    ),
    Field("image", _PATH, "The image of the container."),
    Field("network", Flag(), "Whether it may use the network.", default=False),
    Field("read", _PATHS, "Files and folders outside the workspace that it may read."),
    Field(
        "output",
        AnyOf((OneOf(READERS), OUTPUT)),
        "How its output is read: the name of a format, or JSON paths.",
        default="text",
    ),
    Field("caps", CAPS, "Limits of the output and files of one attempt."),
)
"""The keys of a subject that is a command."""

COMMAND_ONLY = tuple((f.name, "command") for f in COMMAND if f.name != "command")

WORKSPACE = Struct(
    "workspace",
    (
        Field("copy", _PATH, "A folder that is copied for each attempt."),
        Field("git", _PATH, "A git repository; each attempt starts with the files of one commit."),
        Field("commit", _PATH, "The commit, a tag or a branch.", default="HEAD"),
    ),
    {"folder": "copy", "path": "copy", "repo": "git", "repository": "git", "ref": "commit"},
    either=("copy", "git"),
    only_with=(("commit", "git"),),
)

FILE = Struct(
    "a file",
    (Field("from", _PATH, "The file or folder to copy there.", required=True),),
    {"file": "from", "path": "from", "source": "from", "copy": "from"},
)

_FILES = AnyOf((Null(), MapOf(AnyOf((Null(), Text("text"), FILE)))))

FILES = Field("files", _FILES, "Files of the workspace: the path of each, and its text or source.")

WORK = (
    Field(
        "workspace",
        AnyOf((Null(), _PATH, WORKSPACE)),
        "The initial workspace: a folder that is copied, or a commit. Empty if missing.",
    ),
    Field("verify", _COMMANDS, "Commands run after the agent; the attempt passes if all succeed."),
    Field("keep", _COMMANDS, "Commands that must still succeed if they did before the agent."),
    Field("verify_files", _FILES, "Files for verify and keep only; the agent does not see them."),
)
"""The keys about the workspace, in a suite and in a task."""
