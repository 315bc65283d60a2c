"""Subjects that are commands: their declaration, their words, and the placeholders in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pennyweight.errors import UsageError
from pennyweight.schema.kinds import AnyOf, Flag, ListOf, MapOf, Null, Number, OneOf, Text
from pennyweight.schema.structs import Field, Struct, with_defaults
from pennyweight.suite.values import Agent, Caps, Subject, Tier
from pennyweight.text.scanning import json_path

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
            ("cached_tokens", "the input tokens that were read from a cache"),
            ("cache_write_tokens", "the input tokens that were written to a cache"),
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
    with_defaults(
        Caps,
        Field("output_kb", _KB, "Kilobytes stored of each output: its start and end."),
        Field("disk_mb", _COUNT, "Megabytes that workspace, home and /tmp may grow."),
        Field("files", _COUNT, "The number of files that may be added."),
        Field("memory_mb", _COUNT, "Megabytes of memory that its processes may use together."),
        Field("processes", _COUNT, "The number of processes at the same time."),
        Field("cpu_seconds", _COUNT, "Seconds of CPU time that its processes may use together."),
    ),
    {
        **dict.fromkeys(("disk", "size", "bytes"), "disk_mb"),
        "output": "output_kb",
        "memory": "memory_mb",
        "pids": "processes",
        "cpu": "cpu_seconds",
    },
)

READERS = ("text", "claude-code", "codex", "gemini")

COMMAND = with_defaults(
    Agent,
    Field(
        "command",
        _COMMAND,
        "The command of an agent: a list of words, or a shell command. {prompt} stands for the "
        "prompt (or its file), {system} for the system text, {NAME} for a setting. A word that "
        "begins with ./ is a path relative to the suite, which the agent may read.",
    ),
    Field(
        "prompt", OneOf(("argument", "file", "stdin")), "How the prompt is passed to the command."
    ),
    Field("env", _NAMES, "The environment variables that the command may see."),
    Field("timeout", Number(0, above=True), "Seconds after which it is stopped."),
    Field("sandbox", OneOf(("bubblewrap", "container", "none")), "The sandbox in which it runs."),
    Field("image", _PATH, "The image of the container."),
    Field("network", Flag(), "Whether it may use the network."),
    Field("read", _PATHS, "Files and folders outside the workspace that it may read."),
    Field(
        "output",
        AnyOf((OneOf(READERS), OUTPUT)),
        "How its output is read: the name of a format, or JSON paths.",
    ),
    Field("caps", CAPS, "Limits of the output, files, memory and processes of one attempt."),
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
    Field(
        "answer_paths",
        AnyOf((Null(), _PATHS)),
        "The files that count as the agent's answer, as paths or patterns such as src/*.py. All "
        "others are as before when verify and keep run. Default: all files but those that "
        "configure interpreters and test runners.",
    ),
    Field(
        "verify_in",
        OneOf(("fresh", "workspace")),
        "Where verify and keep run: in a fresh copy of the initial workspace with the agent's "
        "answer, or in the workspace as the agent left it.",
        default="fresh",
    ),
    Field(
        "verify_before",
        OneOf(("fails", "any")),
        "How verify ends in the initial workspace, in which it is run before any agent begins: it "
        "has to start and to fail there, or anything is right.",
        default="fails",
    ),
)
"""The keys about the workspace, in a suite and in a task."""

_SOLUTION = Struct(
    "solution",
    (
        Field("reply", Text("text"), "The reply, with the answer where the suite looks for it."),
        Field("files", _FILES, "Files that solve the task: the path of each, and its text."),
        Field("patch", Text("a diff or a path"), "A diff that solves it, or a file with one."),
        Field("command", _COMMANDS, "Commands that solve it, run after files and patch."),
    ),
    {"text": "reply", "response": "reply", "diff": "patch", "commands": "command"},
    either=("reply", "files", "patch", "command"),
)
SOLUTION = Field(
    "solution",
    AnyOf((Null(), Text("text"), _SOLUTION)),
    "What solves the task, for `pennyweight audit`: a reply, or what an agent would do in its "
    "workspace. Runs do not use it.",
)
SOLUTION_KEYS = frozenset(field.name for field in _SOLUTION.fields)

PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+)\}")
"""A placeholder in a command, such as {prompt}; ${this} belongs to the shell."""

BUILT_IN = frozenset({"prompt", "system"})
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LINE_PATH = re.compile(r"(?<!\S)\./[^\s'\"|;&<>]+")


def read_agent(table: Mapping[str, Any], folder: Path, tell: Callable[[str, str], None]) -> Agent:
    """Read the keys of a subject as an agent; paths relative to the suite become absolute."""
    command = table["command"]
    shell = isinstance(command, str)
    given = [command] if shell else command
    paths: list[str] = []
    words = [_with_paths(word, folder, paths, line=shell) for word in given]
    if not words[0].strip():
        tell("command", "the command is empty.")
    for name in table.get("env", ()):
        if not _VARIABLE.fullmatch(name):
            what = "Write only the name: values, above all keys, do not belong in a suite."
            tell("env", f"{name[:40]!r} is not the name of an environment variable. {what}")
    read = [folder / name for name in table.get("read", ())]
    for place in read:
        if not place.exists():
            tell("read", f"{str(place)!r} does not exist.")
    output = table.get("output", {})
    for name, path in output.items() if isinstance(output, dict) else ():
        try:
            json_path(path, whole=True)
        except UsageError as error:
            tell("output", f"{name}: {error}")
    if (table.get("sandbox") == "container") != ("image" in table):
        tell("sandbox", "'sandbox: container' requires 'image', and 'image' requires it.")
    model = str(table.get("model", ""))
    values = {f.name: table[f.name] for f in COMMAND if f.name in table} | {
        "command": tuple(words),
        "shell": shell,
        "env": tuple(table.get("env", ())),
        "read": (*paths, *(str(path.absolute()) for path in read)),
        "caps": Caps(**table.get("caps", {})),
        "serves": model if model.startswith("local/") else None,
    }
    return Agent(**values)


def _with_paths(word: str, folder: Path, paths: list[str], *, line: bool) -> str:
    """Make a path that begins with ./ absolute, and add it to those that may be read."""

    def full(path: str) -> str:
        at = (folder / path).absolute()
        if not at.exists():
            return path
        paths.append(str(at))
        return str(at)

    if line:
        return _LINE_PATH.sub(lambda match: full(match[0]), word)
    return full(word) if word.startswith("./") else word


def agent_name(agent: Agent) -> str:
    """Return the default name of an agent: that of its program."""
    first = agent.command[0].split()[:1] if agent.shell else agent.command[:1]
    return Path(first[0]).name if first else "command"


def placeholders(words: Sequence[str]) -> list[str]:
    """Return the names of the placeholders in a command, each once."""
    return list(dict.fromkeys(name for word in words for name in PLACEHOLDER.findall(word)))


def unset(
    subjects: Iterable[Subject], tiers: Sequence[Tier], settings: Mapping[str, Any]
) -> Iterable[tuple[Subject, str]]:
    """Yield the placeholders of commands that some tiers do not set."""
    for subject in subjects:
        for name in placeholders(subject.agent.command) if subject.agent else ():
            known = {*settings, *subject.settings, *BUILT_IN}
            unset_in = [t.name for t in tiers if name not in known and name not in t.settings]
            if unset_in:
                yield (
                    subject,
                    f"{{{name}}} is a setting that {', '.join(unset_in)} does not have. Set it "
                    "there; if the braces are meant literally, put the command in a script.",
                )
