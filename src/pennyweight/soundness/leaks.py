"""Tasks that show their own target to whoever is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pennyweight.soundness.replies import Replies
from pennyweight.suite.plan import variables
from pennyweight.suite.templates import variables_of
from pennyweight.suite.values import LoadedSuite, Task
from pennyweight.text.matching import targets

MIN_LETTERS = 4
"""Shorter targets may be anywhere in a text."""
MAX_QUOTED_SHARE = 0.5
"""If more tasks have their target in the input, it is quoted from there by design."""
MIN_QUOTED = 3
_SAID = r"(?:answer|solution|result|correct|expected|target|gold|key|output|label)"
_BEFORE = rf"(?i)\b{_SAID}\b(?:\s+(?:is|was|would be|should be))?\s*[:=]?\s*[\"'(\[*_`]*"
_AFTER = r"(?![\w])(?!\s*(?:[,/|]|or\b|and\b))"


@dataclass(frozen=True, slots=True)
class Leak:
    """Where a task shows its target."""

    task: Task
    where: str
    shown: str


@dataclass(frozen=True, slots=True)
class Leaks:
    """The tasks that show their targets, and how many are meant to be answered by quoting."""

    found: tuple[Leak, ...]
    quoted: tuple[Task, ...] = ()
    """The tasks that have their target in the input where that is so by design."""


def leaks(replies: Replies, tasks: Sequence[Task]) -> Leaks:
    """Find the tasks that show their target, as whole words."""
    suite = replies.suite
    used = _used(suite)
    certain = [leak for task in tasks if (leak := _stated(replies, task, used))]
    known = {leak.task.id for leak in certain}
    able = [task for task in tasks if _is_searched(replies, task)]
    inside = [task for task in able if task.id not in known and _place(task.input, task.target)]
    if len(inside) >= MIN_QUOTED and len(inside) > MAX_QUOTED_SHARE * len(able):
        return Leaks(tuple(certain), tuple(inside))
    plain = [Leak(task, "input", _around(task.input, task.target or "")) for task in inside]
    return Leaks((*certain, *plain))


def _used(suite: LoadedSuite) -> frozenset[str]:
    """Return the names that the prompts use."""
    texts = [t for tier in suite.tiers for t in (tier.prompt, tier.system) if t]
    texts += [turn.content for tier in suite.tiers for turn in tier.messages]
    return frozenset().union(*map(variables_of, texts))


def _stated(replies: Replies, task: Task, used: frozenset[str]) -> Leak | None:
    """Find a place that says what the target is, or a column that is the target."""
    for answer in _answers(replies, task):
        for where, text in _parts(task, used):
            if where not in {"input", "context"} and _same(text, answer):
                return Leak(task, f"the column {where}, which the prompt shows", text)
            found = re.search(_BEFORE + re.escape(answer) + _AFTER, text, re.IGNORECASE)
            if found:
                return Leak(task, where, found[0])
    return None


def _answers(replies: Replies, task: Task) -> list[str]:
    """Return the ways to write a target that may be stated in a task."""
    match = replies.suite.match
    if task.target is None or "regex" in {match.kind, match.each}:
        return []
    if replies.choices(task):
        return [task.target] if len(task.target) >= MIN_LETTERS else []
    several = targets(task.target, match.separator) if match.kind == "any_of" else [task.target]
    return [one.strip() for one in several if one.strip()]


def _parts(task: Task, used: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a task that are shown, each with the name of its column."""
    values = variables(task)
    for name in ("input", "context", *sorted(used - {"input", "context", "examples", "choices"})):
        text = values.get(name)
        if isinstance(text, str) and (name in used or name == "input"):
            yield name, text
    for turn in task.before:
        yield "an earlier turn", turn.content


def _same(text: str, answer: str) -> bool:
    return text.strip().casefold() == answer.casefold() and len(answer) >= MIN_LETTERS


def _is_searched(replies: Replies, task: Task) -> bool:
    """Whether a target would not be in an input by chance: a longer text that is not a choice."""
    target = (task.target or "").strip()
    letters = sum(sign.isalpha() for sign in target)
    if letters < MIN_LETTERS or replies.choices(task):
        return False
    return not replies.is_label(task)


def _place(text: str, target: str | None) -> re.Match[str] | None:
    words = re.escape((target or "").strip())
    return re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE)


def _around(text: str, target: str) -> str:
    """Return the target in its input with a few words around it."""
    found = _place(text, target)
    if not found:
        return target
    start, end = max(0, found.start() - 30), min(len(text), found.end() + 30)
    return " ".join(f"{'…' * (start > 0)}{text[start:end]}{'…' * (end < len(text))}".split())
