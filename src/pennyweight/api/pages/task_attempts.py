"""All attempts at one task of a run: a matrix of sides and attempts, and the distinct replies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pennyweight.errors import NotFoundError
from pennyweight.record import AttemptKey
from pennyweight.store import queries
from pennyweight.store.store import Store
from pennyweight.text.word_diff import MarkedWords, WordDiff

MAX_ATTEMPTS = 1_000
"""Attempts at one task that the matrix shows."""
MAX_CHARACTERS = 12_000
"""Of longer replies, the beginning and the end are shown and compared."""
MAX_REPLIES = 12
"""Distinct replies on one page."""
Side = tuple[str, str]
"""The subject and the tier."""


@dataclass(frozen=True, slots=True)
class DistinctReply:
    """A reply, and the attempts that gave it, word for word."""

    number: int
    attempts: Sequence[Mapping[str, Any]]
    pieces: MarkedWords
    marked: bool
    """Whether the differences from the first reply are marked."""

    @property
    def first(self) -> Mapping[str, Any]:
        """The first attempt that gave the reply."""
        return self.attempts[0]


@dataclass(frozen=True, slots=True)
class TaskAttempts:
    """The attempts at a task by side, and its distinct replies from the chosen one on."""

    sides: Mapping[Side, Mapping[int, Mapping[str, Any]]]
    numbers: Sequence[int]
    """The numbers of attempts, which are the columns of the matrix."""
    replies: Sequence[DistinctReply]
    distinct: int
    """How many distinct replies there are."""
    more: bool
    """Whether there are more attempts than the matrix shows."""


def task_attempts(store: Store, key: AttemptKey, *, texts: bool = True) -> TaskAttempts | None:
    """Read all attempts at the task of an attempt, whose reply is compared with the others.

    Without `texts` there are no replies.
    """
    longest = MAX_CHARACTERS if texts else 0
    found = queries.siblings(store, key.run, key.task_id, limit=MAX_ATTEMPTS + 1, longest=longest)
    if not found:
        return None
    rows = found[:MAX_ATTEMPTS]
    sides: dict[Side, dict[int, Mapping[str, Any]]] = {}
    for row in rows:
        sides.setdefault((row["subject"], row["tier"]), {})[row["attempt"]] = row
    numbers = sorted({row["attempt"] for row in rows})
    groups = _groups(store, rows, key) if texts else []
    more = len(found) > MAX_ATTEMPTS
    return TaskAttempts(sides, numbers, _replies(groups[:MAX_REPLIES]), len(groups), more)


def shown_reply(row: Mapping[str, Any] | None) -> str:
    """Return the reply of an attempt, or its two ends if it was cut when it was read."""
    text, end = (row["response"] or "", row["end"]) if row else ("", "")
    return f"{text[: len(text) - len(end)]}\n[…]\n{end}" if end else text


def first_attempt(store: Store, run: str, task: str, where: Mapping[str, str]) -> AttemptKey:
    """Find the first attempt at a task, of a subject or a tier if one is named."""
    rows = queries.siblings(store, run, task, where, limit=1, longest=0)
    if not rows:
        raise NotFoundError("There is no record of this task in this run.")
    return AttemptKey(run, *(rows[0][name] for name in ("subject", "tier", "task_id", "attempt")))


def _groups(
    store: Store, rows: Sequence[Mapping[str, Any]], chosen: AttemptKey
) -> list[Sequence[Mapping[str, Any]]]:
    """Group the attempts by their replies; the group of the chosen attempt comes first."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        cut = row["response"], row["end"], row["length"], row["error"]
        groups.setdefault(cut, []).append(row)
    exact = [one for group in groups.values() for one in _exact(store, chosen.run, group)]
    at = [getattr(chosen, name) for name in queries.ORDER]
    order = sorted(exact, key=lambda group: all(_key(row) != at for row in group))
    return list(order)


def _exact(
    store: Store, run: str, group: Sequence[Mapping[str, Any]]
) -> Iterable[Sequence[Mapping[str, Any]]]:
    """Tell replies apart that differ only in what was cut out of them."""
    if len(group) == 1 or not group[0]["end"]:
        return [group]
    apart: dict[bytes, list[Mapping[str, Any]]] = {}
    for row in group:
        text = queries.response(store, AttemptKey.of({**row, "run": run})) or ""
        apart.setdefault(sha256(text.encode("utf-8", "surrogatepass")).digest(), []).append(row)
    return apart.values()


def _key(row: Mapping[str, Any]) -> list[Any]:
    return [row[name] for name in queries.ORDER]


def _replies(groups: Sequence[Sequence[Mapping[str, Any]]]) -> list[DistinctReply]:
    """Mark what each reply has and the first one has not; in the first, what the second lacks."""
    texts = [shown_reply(group[0]) for group in groups]
    diff, shown = WordDiff(), [[(text, False)] for text in texts]
    marked = [False] * len(texts)
    for number, text in enumerate(texts[1:], 1):
        if pair := diff.mark(texts[0], text):
            shown[number], marked[number] = list(pair[1]), True
            if number == 1:
                shown[0] = list(pair[0])
    return [
        DistinctReply(n, group, shown[n], marked[n] or n == 0) for n, group in enumerate(groups)
    ]
