"""Replies that are known to be right or wrong: what the probes of an audit try.

An answer is put where the answer rule of the suite looks for it, since elsewhere it would fail for
the wrong reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import polars as pl

from pennyweight.soundness.trial import Trial
from pennyweight.suite.choices import choice_of, choices_of, named
from pennyweight.suite.plan import conversation
from pennyweight.suite.scenarios import LATER
from pennyweight.suite.values import LoadedSuite, Task
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.matching import MatchRule, counted, targets
from pennyweight.text.normalize import normalize, single
from pennyweight.text.pattern_example import example, first_group
from pennyweight.text.scanning import json_path

REFUSAL = "I am sorry, but I cannot answer that. I do not know."
LABELS = frozenset(
    ("yes", "no", "true", "false", "none", "unknown", "other", "positive", "negative", "neutral")
)
"""Targets that may be in any text."""
MAX_OTHERS = 3
"""How many other targets are tried at a task."""


def placed(answer: str, rule: AnswerRule) -> str | None:
    """Write a reply with an answer where a rule looks for it; None if no such reply is known.

    >>> placed("42", AnswerRule()), placed("42", AnswerRule("json", "$.parts[0].answer"))
    ('FINAL_ANSWER: 42', '{"parts": [{"answer": "42"}]}')
    """
    if rule.kind == "marker":
        return f"{rule.value} {answer}"
    if rule.kind == "boxed":
        return f"\\boxed{{{answer}}}"
    if rule.kind == "choice":
        return f"Answer: {answer}"
    if rule.kind in {"regex", "last_regex"}:
        return _matching(answer, rule.value)
    if rule.kind == "json":
        value: object = answer
        for step in reversed(json_path(rule.value)):
            value = {step: value} if isinstance(step, str) else [value]
        return json.dumps(value, ensure_ascii=False)
    return answer


def _matching(answer: str, pattern: str) -> str | None:
    """Write a text in which a pattern finds an answer."""
    written = example(pattern, answer) if answer and first_group(pattern) is not None else None
    return answer if written is None else written


@dataclass(frozen=True)
class Replies:
    """Writes the replies that are tried at the tasks of a suite."""

    suite: LoadedSuite
    tasks: Sequence[Task]
    """All tasks whose targets are other answers."""
    _choices: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def gold(self, task: Task) -> list[str]:
        """Return the ways to answer a task with its target; one of them must pass."""
        answers = dict.fromkeys(self._answers(task))
        written = (placed(answer, self.suite.answer) for answer in answers)
        return list(dict.fromkeys(reply for reply in written if reply is not None))

    def _answers(self, task: Task) -> Iterator[str]:
        """Yield the ways to write the target of a task."""
        target, match = task.target or "", self.suite.match
        listed = self.choices(task)
        index = choice_of(target, listed) if listed else None
        if index is not None:
            yield named(index, "").rstrip(" .")
            yield listed[index]
            yield named(index, listed[index])
        several = targets(target, match.separator) if match.kind == "any_of" else [target]
        kind = match.each if match.kind == "any_of" else match.kind
        if kind == "verbatim" and match.ignore:
            yield shortened(target, match)
        for one in several:
            if kind == "regex":
                yield example(one) or one
            yield one
        yield from targets(target)[:1]

    def choices(self, task: Task) -> tuple[str, ...]:
        """Return the choices of a task."""
        if task.id not in self._choices:
            self._choices[task.id] = choices_of(task)
        return self._choices[task.id]

    def wrong(self, task: Task, *, answered: bool) -> Iterator[Trial]:
        """Yield replies that must fail; `answered` says that the target decides."""
        rule = self.suite.answer
        yield Trial(task, "empty", "")
        for text in self.prompts(task):
            yield Trial(task, "echo", text)
        yield Trial(task, "refusal", REFUSAL)
        if not answered:
            return
        known = {"empty": "", "refusal": REFUSAL}
        for probe, answer in (*known.items(), *self._other_answers(task)):
            reply = placed(answer, rule)
            if reply is not None and reply != known.get(probe):
                yield Trial(task, probe, reply)

    def _other_answers(self, task: Task) -> Iterator[tuple[str, str]]:
        listed = self.choices(task)
        if listed:
            right = choice_of(task.target or "", listed)
            if right is not None and len(listed) > 1:
                other = (right + 1) % len(listed)
                yield "other", named(other, "").rstrip(" .")
                yield "other", listed[other]
            letters = [named(i, "").rstrip(" .") for i in range(len(listed))]
            yield "choices", ", ".join(letters)
            yield "choices", ", ".join(listed)
            return
        for target in self.others(task):
            yield "other", shortened(target, self.suite.match)

    def prompts(self, task: Task) -> list[str]:
        """Return what the user asks, as the tiers write it."""
        texts: dict[str, None] = {}
        for tier in self.suite.tiers:
            turns = [t for t in conversation(tier, task) if t["role"] == "user"]
            if turns:
                texts[turns[-1]["content"]] = None
        return list(texts)

    def others(self, task: Task) -> list[str]:
        """Return targets of other tasks that are not the same as that of a task."""
        distinct = self.distinct
        mine = self._normal.get(task.id)
        at = distinct.index_of.get(mine or "", 0)
        found: list[str] = []
        for step in range(1, len(distinct.texts)):
            other = distinct.texts[(at + step) % len(distinct.texts)]
            if not self._is_meant(task.target or "", other):
                found.append(other)
            if len(found) == MAX_OTHERS:
                break
        return found

    def _is_meant(self, target: str, other: str) -> bool:
        """Whether another target has this one in it, word for word, where that is enough."""
        if "contains" not in {self.suite.match.kind, self.suite.match.each}:
            return False
        words, more = (re.findall(r"\w+", text.casefold()) for text in (target, other))
        spans = range(len(more) - len(words) + 1)
        return any(more[i : i + len(words)] == words for i in spans)

    def normal(self, task: Task) -> str:
        """Return the target of a task in the form in which it is the same as others or not."""
        return self._normal[task.id]

    def letter(self, task: Task) -> str:
        """Return the target of a task as its letter if it has choices, else in its usual form."""
        listed = self.choices(task)
        index = choice_of(task.target or "", listed) if listed else None
        return self.normal(task) if index is None else str(index)

    def is_label(self, task: Task) -> bool:
        """Whether the target of a task is one of a few that many tasks have."""
        normal = self._normal.get(task.id)
        if normal is None or normal in LABELS:
            return True
        return self.distinct.count_of(normal) > max(2, 0.1 * len(self._normal))

    @cached_property
    def distinct(self) -> DistinctTargets:
        """The different targets of all tasks."""
        held = [task for task in self.tasks if task.target is not None]
        return DistinctTargets.of(held, self.suite.match, normalized(held, self.suite.match))

    @cached_property
    def _normal(self) -> dict[str, str]:
        held = [task for task in self.tasks if task.target is not None]
        return dict(zip((t.id for t in held), normalized(held, self.suite.match), strict=True))


@dataclass(frozen=True, slots=True)
class DistinctTargets:
    """The different targets of some tasks, and how many tasks have each."""

    texts: tuple[str, ...]
    counts: tuple[int, ...]
    index_of: dict[str, int]
    """The place of each by its normalised form."""

    def count_of(self, normal: str) -> int:
        """Return how many tasks have a target."""
        return self.counts[self.index_of[normal]]

    @classmethod
    def of(cls, tasks: Sequence[Task], match: MatchRule, forms: Sequence[str]) -> DistinctTargets:
        """Find them by their forms; of several targets, the first is taken."""
        counts: dict[str, int] = {}
        texts: dict[str, str] = {}
        for task, normal in zip(tasks, forms, strict=True):
            counts[normal] = counts.get(normal, 0) + 1
            texts.setdefault(normal, first_target(task, match))
        index = {normal: place for place, normal in enumerate(texts)}
        return cls(tuple(texts.values()), tuple(counts.values()), index)


def first_target(task: Task, match: MatchRule) -> str:
    """Return an answer that the target of a task asks for."""
    target = task.target or ""
    several = targets(target, match.separator) if match.kind == "any_of" else [target]
    kind = match.each if match.kind == "any_of" else match.kind
    first = several[0] if several else ""
    return (example(first) or first) if kind == "regex" else first


def shortened(target: str, match: MatchRule) -> str:
    """Return a target without what its rule ignores: the last number of a worked solution, say.

    >>> shortened("3+4=7 #### 7", MatchRule("verbatim", ignore=(".*#### ",)))
    '7'
    """
    if match.kind != "verbatim" or not match.ignore:
        return target
    whole = replace(match, case=True, punctuation=True, digits=True)
    return str(pl.select(counted(pl.lit(target), whole)).item())


def normalized(tasks: Sequence[Task], match: MatchRule) -> list[str]:
    """Return the targets of tasks in the form in which they are the same or not."""
    texts = pl.Series("t", [task.target for task in tasks], dtype=pl.String)
    cell = single(pl.col("t"))
    if match.kind == "verbatim":
        form = counted(cell, match)
    else:
        form = cell.str.strip_chars() if match.kind == "text" else normalize(cell)
    return texts.to_frame().select(form).to_series().to_list()


def first_prompt(suite: LoadedSuite, task: Task) -> str:
    """Return all that is sent of a task in the first tier."""
    turns = (t["content"] for t in conversation(suite.tiers[0], task) if t["role"] != LATER)
    return "\n".join(turns)
