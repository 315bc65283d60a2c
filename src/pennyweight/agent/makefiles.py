"""The files that make reads besides its makefiles: those that they include, or that `-f` names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath

MAKEFILES = ("makefile", "Makefile", "GNUmakefile", "*.mk")
_MOST = 50
"""The most files that are searched for others."""
_MOST_BYTES = 1_000_000
_INCLUDE = re.compile(r"(?m)^ *[-s]?include[ \t]+([^#\n]+)")
_NAMED = re.compile(r"(?<!\S)(?:-f\s*|--(?:make)?file[=\s]\s*)['\"]?([^\s'\"]+)")
_VARIABLE = re.compile(r"\$\([^()]*\)|\$\{[^{}]*\}|\$.")


def make_inputs(
    initial: Path, hidden: Mapping[str, bytes], path: str, commands: str
) -> tuple[str, ...]:
    """Return patterns of files that make reads if it is called in a folder above a path.

    `hidden` are the files that a check adds to the initial workspace.
    """
    found = [name for line in _NAMED.findall(commands) for name in _patterns(line)]
    for folder in PurePosixPath(path).parents:
        texts = tuple(
            (name, content)
            for name, content in hidden.items()
            if PurePosixPath(name).parent == folder and _is_makefile(name, found)
        )
        found += _included(initial / folder, texts, tuple(found))
    return tuple(dict.fromkeys(found))


def _is_makefile(name: str, named: list[str] | tuple[str, ...]) -> bool:
    return any(fnmatchcase(PurePosixPath(name).name, one) for one in (*MAKEFILES, *named))


@lru_cache(maxsize=256)
def _included(
    folder: Path, hidden: tuple[tuple[str, bytes], ...], named: tuple[str, ...]
) -> tuple[str, ...]:
    waiting = [content for _, content in hidden]
    if folder.is_dir():
        waiting += [_content(one) for one in folder.iterdir() if _is_makefile(one.name, named)]
    found: list[str] = []
    for content in waiting:
        text = content.decode("utf-8", "replace").replace("\\\n", " ")
        for line in _INCLUDE.findall(text):
            new = [name for name in _patterns(line) if name not in found]
            found += new
            waiting += [_content(folder / name) for name in new if len(waiting) < _MOST]
    return tuple(found)


def _patterns(line: str) -> list[str]:
    """Return names as patterns; a name that consists of variables alone could be any file."""
    while (short := _VARIABLE.sub("*", line)) != line:
        line = short
    names = (re.sub(r"^(?:\*?\.{0,2}/)+", "", name) for name in line.split())
    return [name for name in names if name.strip("*./")]


def _content(path: Path) -> bytes:
    if path.is_symlink() or not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(_MOST_BYTES)
