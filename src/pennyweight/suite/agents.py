"""Subjects that are commands: their words, and what the words stand for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.suite.values import Agent, Caps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pennyweight.suite.values import Subject, Tier

PLACE = re.compile(r"(?<!\$)\{([a-z_]+)\}")
"""A place in a command that is filled in, such as {prompt}; ${this} is the shell's own."""

OWN = frozenset({"prompt", "system"})
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LINE_PATH = re.compile(r"(?<!\S)\./[^\s'\"|;&<>]+")
_GIVEN = ("prompt", "timeout", "sandbox", "image", "network", "output")


def read_agent(table: Mapping[str, Any], folder: Path, tell: Callable[[str, str], None]) -> Agent:
    """Make an agent of the keys of a subject; paths beside the suite become absolute."""
    given = table["command"]
    shell = isinstance(given, str)
    words = [given] if shell else list(given)
    found: list[str] = []
    words = [_with_paths(word, folder, found, line=shell) for word in words]
    if not words[0].strip():
        tell("command", "the command is empty.")
    for name in table.get("env", ()):
        if not _VARIABLE.fullmatch(name):
            what = "write its name alone: values, and keys above all, do not belong into a suite."
            tell("env", f"{name[:40]!r} is not the name of a variable; {what}")
    read = [folder / name for name in table.get("read", ())]
    for path in read:
        if not path.exists():
            tell("read", f"{str(path)!r} is not there.")
    paths = table.get("output", {})
    for name, path in paths.items() if isinstance(paths, dict) else ():
        if steps(path) is None:
            what = "write it as in $.usage.tokens[0]"
            tell("output", f"{path!r} (for {name}) is not a JSON path; {what}.")
    if (table.get("sandbox") == "container") != ("image" in table):
        tell("sandbox", "'sandbox: container' and 'image' (what it runs) belong together.")
    model = str(table.get("model", ""))
    return Agent(
        command=tuple(words),
        shell=shell,
        env=tuple(table.get("env", ())),
        read=(*found, *(str(path.absolute()) for path in read)),
        caps=Caps(**table.get("caps", {})),
        serves=model if model.startswith("local/") else None,
        **{key: table[key] for key in _GIVEN if key in table},
    )


def _with_paths(word: str, folder: Path, found: list[str], *, line: bool) -> str:
    """Write a path that begins with ./ in full, and note it as one that may be read."""

    def full(path: str) -> str:
        at = (folder / path).absolute()
        if not at.exists():
            return path
        found.append(str(at))
        return str(at)

    if line:
        return _LINE_PATH.sub(lambda match: full(match[0]), word)
    return full(word) if word.startswith("./") else word


def agent_name(agent: Agent) -> str:
    """Name an agent after its command."""
    first = agent.command[0].split()[:1] if agent.shell else agent.command[:1]
    return Path(first[0]).name if first else "command"


def places(words: Sequence[str]) -> list[str]:
    """List what a command leaves to be filled in."""
    return list(dict.fromkeys(name for word in words for name in PLACE.findall(word)))


def unset(
    subjects: Iterable[Subject], tiers: Sequence[Tier], settings: Mapping[str, Any]
) -> Iterable[tuple[Subject, str]]:
    """Find what commands use and a tier does not set."""
    for subject in subjects:
        for tier in tiers if subject.agent else ():
            known = {*settings, *subject.settings, *tier.settings, *OWN}
            for name in places(subject.agent.command) if subject.agent else ():
                if name not in known:
                    where = f"set it in tier {tier.name}, or write it into a script if it is meant"
                    what = f"{{{name}}} stands for a setting that is not there; {where} literally."
                    yield subject, what


_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[(-?\d+)\]|\[['\"]([^'\"]+)['\"]\]")


def steps(path: str) -> list[str | int] | None:
    """Part a JSON path into its steps; None for what is none.

    >>> steps("$.usage.tokens[-1]"), steps("result"), steps("$..x")
    (['usage', 'tokens', -1], ['result'], None)
    """
    rest = path.removeprefix("$")
    found: list[str | int] = []
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if not match:
            return None
        name, position, quoted = match.groups()
        found.append(int(position) if position else name or quoted)
        at = match.end()
    return found
