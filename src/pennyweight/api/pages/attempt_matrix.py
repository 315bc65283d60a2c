"""The attempts at a task as a matrix of sides and attempts, to move in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pennyweight.api.pages.task_attempts import TaskAttempts
from pennyweight.record import AttemptKey, verdict_word

Href = Callable[[AttemptKey], str]
"""Returns where an attempt is shown."""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """An attempt in the matrix; `good` is None where nothing decides it."""

    href: str
    good: bool | None
    failed: bool
    current: bool
    reply: str
    """The letter of its reply, where replies are compared."""
    title: str
    keys: tuple[str, ...] = ()
    """The keys that lead to it."""


@dataclass(frozen=True, slots=True)
class AttemptMatrix:
    """Sides by attempts."""

    numbers: tuple[int, ...]
    rows: tuple[tuple[str, str, tuple[MatrixCell | None, ...]], ...]
    more: bool
    count: int


def attempt_matrix(
    found: TaskAttempts, at: AttemptKey, href: Href, letters: Mapping[AttemptKey, str] | None = None
) -> AttemptMatrix:
    """Arrange the attempts at a task; `letters` names the reply of each, if replies are shown."""
    order = [row for side in found.sides.values() for _, row in sorted(side.items())]
    keys = _moves([(key_of(at.run, row), _good(row)) for row in order], at)
    rows = tuple(
        (subject, tier, tuple(
            _cell(side[n], at, href, letters or {}, keys) if n in side else None
            for n in found.numbers
        ))
        for (subject, tier), side in found.sides.items()
    )  # fmt: skip
    return AttemptMatrix(tuple(found.numbers), rows, found.more, len(order))


def key_of(run: str, row: Mapping[str, Any]) -> AttemptKey:
    """Return the key of a row that does not name its run."""
    return AttemptKey(run, row["subject"], row["tier"], row["task_id"], row["attempt"])


def _good(row: Mapping[str, Any]) -> bool | None:
    """Whether an attempt is right or passed; what failed is neither."""
    if row["status"] != "ok":
        return None
    return None if row["passed"] is None else bool(row["passed"])


def _moves(
    order: list[tuple[AttemptKey, bool | None]], at: AttemptKey
) -> dict[AttemptKey, tuple[str, ...]]:
    """Return the keys that lead to attempts from the current one, going round."""
    here = next((n for n, (key, _) in enumerate(order) if key == at), 0)
    onward = [order[(here + n) % len(order)] for n in range(1, len(order))]
    leads: dict[str, AttemptKey] = {}
    if onward:
        leads |= {"j": onward[0][0], "k": onward[-1][0]}
    for name, wanted in (("r", True), ("w", False)):
        if to := next((key for key, good in onward if good is wanted), None):
            leads[name] = to
    found: dict[AttemptKey, tuple[str, ...]] = {}
    for name, to in leads.items():
        found[to] = (*found.get(to, ()), name)
    return found


def _cell(
    row: Mapping[str, Any],
    at: AttemptKey,
    href: Href,
    letters: Mapping[AttemptKey, str],
    keys: Mapping[AttemptKey, tuple[str, ...]],
) -> MatrixCell:
    key, good, failed = key_of(at.run, row), _good(row), row["status"] != "ok"
    word = row["status"] if failed else verdict_word(row) or "not decided"
    where = f"{row['subject']}, {row['tier']}, attempt {row['attempt']}"
    letter = letters.get(key, "")
    title = f"{where}: {word}" + (f", reply {letter}" if letter else "")
    return MatrixCell(href(key), good, failed, key == at, letter, title, keys.get(key, ()))


def letter_of(number: int) -> str:
    """Return the name of a distinct reply.

    >>> letter_of(0), letter_of(27)
    ('A', '28')
    """
    return chr(ord("A") + number) if number < 26 else str(number + 1)
