"""Subjects that are commands: their words, and the placeholders in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pennyweight.errors import UsageError
from pennyweight.suite.values import Agent, Caps, Subject, Tier
from pennyweight.text.scanning import json_path

PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+)\}")
"""A placeholder in a command, such as {prompt}; ${this} belongs to the shell."""

BUILT_IN = frozenset({"prompt", "system"})
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LINE_PATH = re.compile(r"(?<!\S)\./[^\s'\"|;&<>]+")
_PLAIN_KEYS = ("prompt", "timeout", "sandbox", "image", "network", "output")


def read_agent(table: Mapping[str, Any], folder: Path, tell: Callable[[str, str], None]) -> Agent:
    """Read the keys of a subject as an agent; paths relative to the suite become absolute."""
    command = table["command"]
    shell = isinstance(command, str)
    paths: list[str] = []
    words = [
        _with_paths(word, folder, paths, line=shell) for word in ([command] if shell else command)
    ]
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
    return Agent(
        command=tuple(words),
        shell=shell,
        env=tuple(table.get("env", ())),
        read=(*paths, *(str(path.absolute()) for path in read)),
        caps=Caps(**table.get("caps", {})),
        serves=model if model.startswith("local/") else None,
        **{key: table[key] for key in _PLAIN_KEYS if key in table},
    )


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
