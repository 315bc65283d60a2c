"""Tasks that are the same as others, or nearly so.

Two tasks are nearly the same if they are decided in the same way and their inputs have the same
numbers and almost the same words; words that many tasks share do not count. Candidates share one of
their rarest words, so the time grows with the number of tasks and not with that of their pairs.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pennyweight.suite.templates import variables_of
from pennyweight.suite.values import LoadedSuite, Task
from pennyweight.text.normalize import canonical_number

SIMILAR = 0.8
"""The share of words in common from which inputs are nearly the same."""
MIN_WORDS = 5
"""Inputs with fewer words of their own are only compared as a whole."""
MAX_TOGETHER = 50
"""Of more tasks that share a rare word, each is compared with the next ones only."""
_NEXT = 10
_COMMON = 0.02
_WORD = re.compile(r"\w+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Twins:
    """A task and an earlier one that is the same, or nearly."""

    task: Task
    first: Task
    kind: str
    """`same`, `near`, or `contradicts` for the same question with another target."""


def twins(suite: LoadedSuite, tasks: Sequence[Task], *, near: bool = True) -> list[Twins]:
    """Find tasks that are the same as an earlier one; with `near`, also nearly the same."""
    identity = _identity(suite)
    exact: dict[str, Task] = {}
    folded: dict[tuple[str, str], Task] = {}
    found: list[Twins] = []
    others: list[tuple[Task, str]] = []
    for task in tasks:
        question, rest = identity(task)
        grading = _grading(task)
        asked = f"{question}\0{rest}"
        first = exact.setdefault(asked, task)
        plain = " ".join(_WORD.findall(question.casefold())) or question
        alike = folded.setdefault((plain, f"{rest}\0{grading}"), task)
        if first is not task and _grading(first) == grading:
            found.append(Twins(task, first, "same"))
        elif first is not task and _contradicts(task, first):
            found.append(Twins(task, first, "contradicts"))
        elif alike is not task and near:
            found.append(Twins(task, alike, "near"))
        else:
            others.append((task, f"{rest}\0{grading}"))
    if near:
        found += _near(others)
    return found


def _identity(suite: LoadedSuite) -> Callable[[Task], tuple[str, str]]:
    """Return a function that gives the question of a task, and all else that is asked with it."""
    texts = [t for tier in suite.tiers for t in (tier.prompt, tier.system) if t]
    texts += [turn.content for tier in suite.tiers for turn in tier.messages]
    used = sorted(frozenset().union(*map(variables_of, texts)) - {"id", "name"})

    def identity(task: Task) -> tuple[str, str]:
        before = [[turn.role, turn.content] for turn in task.before]
        shown = [task.extra.get(name) for name in used]
        fields = [getattr(task, name) for name in ("category", "capability") if name in used]
        work = task.work.identity() if task.work else None
        rest: list[Any] = [before, shown, fields, task.context, task.turns, work]
        if not any([before, any(shown), fields, task.context, task.turns, work]):
            return " ".join(task.input.split()), ""
        return " ".join(task.input.split()), json.dumps(rest, sort_keys=True, default=str)

    return identity


def _grading(task: Task) -> str:
    """Return how a task is decided, as text."""
    marks = [f"{role}:{one.mark}" for role, one in task.scenario.all()] if task.scenario else []
    score = task.pass_score if marks else None
    return json.dumps([_plain(task.target or ""), task.target is None, marks, score])


def _contradicts(task: Task, other: Task) -> bool:
    """Whether two tasks with the same question have different targets."""
    if task.target is None or other.target is None or (task.work or other.work):
        return False
    return _plain(task.target) != _plain(other.target)


def _plain(text: str) -> str:
    low = text.strip().casefold()
    return canonical_number(low) if re.fullmatch(r"[+-]?[0-9]+(?:\.[0-9]+)?", low) else low


def _near(tasks: Sequence[tuple[Task, str]]) -> Iterator[Twins]:
    """Yield tasks whose words are almost those of an earlier one, decided in the same way."""
    groups: dict[tuple[str, str], list[tuple[Task, frozenset[str]]]] = defaultdict(list)
    many = Counter[str]()
    for task, rest in tasks:
        words = _WORD.findall(task.input.casefold())
        many.update(set(words))
        numbers = " ".join(sorted(w for w in words if any(c.isdigit() for c in w)))
        groups[rest, numbers].append((task, frozenset(words)))
    common = max(5, round(_COMMON * len(tasks))) if len(tasks) >= 10 else max(2, len(tasks) // 2)
    for several in groups.values():
        if len(several) > 1:
            yield from _near_in_group(several, many, common)


def _near_in_group(
    several: Sequence[tuple[Task, frozenset[str]]], many: Counter[str], common: int
) -> Iterator[Twins]:
    own = [
        sorted((w for w in words if many[w] <= common), key=lambda w: (many[w], w))
        for _, words in several
    ]
    by_word: dict[str, list[int]] = defaultdict(list)
    for place, words in enumerate(own):
        if len(words) >= MIN_WORDS:
            kept = len(words) - int(SIMILAR * len(words)) + 1  # one of these must be shared
            for word in words[:kept]:
                by_word[word].append(place)
    pairs: set[tuple[int, int]] = set()
    for places in by_word.values():
        width = len(places) if len(places) <= MAX_TOGETHER else _NEXT
        for n, first in enumerate(places):
            pairs.update((first, other) for other in places[n + 1 : n + 1 + width])
    twin: set[int] = set()
    for first, other in sorted(pairs):
        if other in twin:
            continue
        a, b = set(own[first]), set(own[other])
        if len(a & b) >= SIMILAR * len(a | b):
            twin.add(other)
            yield Twins(several[other][0], several[first][0], "near")
