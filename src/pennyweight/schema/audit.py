"""Collect what a suite uses while it is read: its files, and functions, which are not loaded.

A suite of unknown origin is read in this way before a person decides whether to trust it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from pennyweight.errors import InputError

_USES: ContextVar[list[str] | None] = ContextVar("uses", default=None)


@contextmanager
def audited() -> Iterator[list[str]]:
    """Collect what a suite uses while the block reads it."""
    uses: list[str] = []
    token = _USES.set(uses)
    try:
        yield uses
    finally:
        _USES.reset(token)


def is_audited() -> bool:
    """Whether a suite is only read, so that no code of it may be loaded."""
    return _USES.get() is not None


def note_use(what: str) -> None:
    """Note what a suite uses, such as "read the file tasks.jsonl", if it is audited."""
    uses = _USES.get()
    if uses is not None and what not in uses:
        uses.append(what)


def note_file(what: str, path: str | Path) -> None:
    """Note that a suite uses a file. An audit does not read pipes, which could make it wait."""
    note_use(what)
    at = Path(path)
    if is_audited() and at.exists() and not (at.is_file() or at.is_dir()):
        raise InputError([f"{path}: is not a file."])
