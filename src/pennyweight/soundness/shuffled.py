"""With shuffled targets, right replies must pass only by chance.

Over all orders of the targets, each task gets the target of each task equally often. So the mean
rate is that over all pairs of tasks, and nothing has to be drawn; chance is the share of pairs
whose targets are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from pennyweight.soundness.audit import Chance
from pennyweight.soundness.replies import DistinctTargets, Replies, placed
from pennyweight.suite.values import Task
from pennyweight.text.extraction import AnswerRule, answer
from pennyweight.text.matching import matches
from pennyweight.text.normalize import single

MAX_TARGETS = 150
"""Different targets that are paired; more of them are thinned out evenly."""
MAX_FORMULAS = 12
"""The same where a program compares formulas."""
EXCESS = 0.2
"""The share of pairs with different targets from which matching is no longer by chance."""
MIN_TARGETS = 4
MIN_ALIKE = 5
"""Tasks from which on it is no coincidence that all have the same target."""


def chance(replies: Replies, tasks: Sequence[Task]) -> Chance | None:
    """Return how often replies pass if the targets of tasks are shuffled; None for too few."""
    suite = replies.suite
    held = [task for task in tasks if task.target is not None]
    is_choice = suite.match.kind == "choice"  # then "B. Paris" and "B. Oslo" are the same target
    forms = [replies.letter(task) if is_choice else replies.normal(task) for task in held]
    distinct = DistinctTargets.of(held, suite.match, forms)
    if len(held) < MIN_TARGETS:
        return None
    is_slow = "math" in {suite.match.kind, suite.match.each}
    step = -(-len(distinct.texts) // (MAX_FORMULAS if is_slow else MAX_TARGETS))
    chosen = range(0, len(distinct.texts), step)
    gold = [placed(distinct.texts[place], suite.answer) for place in chosen]
    firsts = first_of(held, distinct, forms)
    frame = pl.DataFrame(
        {
            "reply": [reply for reply in gold for _ in chosen],
            "target": [firsts[place] for _ in chosen for place in chosen],
            "weight": [
                distinct.counts[one] * distinct.counts[other] for one in chosen for other in chosen
            ],
            "same": [one == other for one in chosen for other in chosen],
        },
        schema_overrides={"reply": pl.String, "target": pl.String},
    )
    found = frame.select("target", "weight", "same", answer=_answered(suite.answer))
    right = matches(pl.col("answer"), pl.col("target"), suite.match).fill_null(value=False)
    table = found.select("weight", "same", right=right)
    whole, passing, same = (
        float(part["weight"].sum()) for part in (table, table.filter("right"), table.filter("same"))
    )
    return Chance(passing / whole, same / whole, len(held), len(chosen), len(distinct.texts))


def _answered(rule: AnswerRule) -> pl.Expr:
    return single(answer(pl.col("reply"), rule))


def first_of(tasks: Sequence[Task], distinct: DistinctTargets, forms: Sequence[str]) -> list[str]:
    """Return the target, as written, of the first task with each different target."""
    written: dict[str, str] = {}
    for task, form in zip(tasks, forms, strict=True):
        written.setdefault(form, task.target or "")
    return [written[normal] for normal in distinct.index_of]


def problem(found: Chance | None) -> str | None:
    """Say what is wrong if replies pass more often than by chance; None if nothing is."""
    if found is None:
        return None
    if found.of_targets == 1:
        same = "every task has the same target: one reply passes all of them"
        return same if found.tasks >= MIN_ALIKE else None
    excess = (found.rate - found.chance) / (1 - found.chance)
    if found.of_targets < MIN_TARGETS or excess <= EXCESS:
        return None
    return (
        f"with shuffled targets {found.rate:.1%} of the right replies still pass, and by chance "
        f"{found.chance:.1%} would: the match rule accepts answers of other tasks"
    ).replace("%", " %")
