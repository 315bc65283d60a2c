"""Columns of tasks that nothing uses although they look as if they decided the result."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from pennyweight.suite.values import Task

_MEDIA = re.compile(
    r"(image|img|picture|photo|audio|video)s?(_?(url|path|file|base64|b64|[0-9]+))?"
)
"""What models are not sent."""
_TARGET_WORDS = frozenset(
    {
        *("expected", "answer", "answers", "target", "targets", "gold", "golden", "correct"),
        *("solution", "truth", "ideal", "verdict", "outcome", "label", "labels"),
    }
)
_WORD = re.compile(r"[A-Za-z][a-z]*|[A-Z]+")


def overlooked(
    tasks: Sequence[Task],
    shown: Collection[str],
    columns: Mapping[str, str],
    *,
    inline: bool,
    decided: bool,
) -> Iterator[str]:
    """Yield each column that holds what is not sent, or that is probably the target.

    `shown` are the columns that prompts use, `columns` those that the suite maps. `decided` if
    something else than targets decides whether an attempt is right.
    """
    names = dict.fromkeys(name for task in tasks for name in task.extra)
    unused = [name for name in names if name not in shown and columns.get(name) != name]
    for name in filter(lambda name: _MEDIA.fullmatch(name.lower()), unused):
        if (task := _first(tasks, name, bool)) is not None:
            yield (
                f"task {task.id!r} has {name!r}, which is not sent: models get text only. "
                f"{_own(name, inline=inline)}"
            )
    if decided or any(task.target is not None or task.scenario for task in tasks):
        return
    likely = [name for name in unused if _TARGET_WORDS & {w.lower() for w in _WORD.findall(name)}]
    for name in likely[:1]:
        if _first(tasks, name, lambda value: value not in (None, "")) is not None:
            rename = "rename it to 'target'" if inline else _mapped("target", name)
            yield (
                f"no task has a target, but {name!r} looks like one: {rename}. "
                f"{_own(name, inline=inline)}"
            )


def _first(tasks: Sequence[Task], name: str, has: Callable[[Any], bool]) -> Task | None:
    return next((task for task in tasks if has(task.extra.get(name))), None)


def _mapped(field: str, column: str) -> str:
    return f"'columns: {{{field}: {column}}}' (--map {field}={column})"


def _own(name: str, *, inline: bool) -> str:
    if inline:
        return "If it is a column of your own, rename it, or put it under 'input:'."
    return f"If it is a column of your own, list it: {_mapped(name, name)}."
