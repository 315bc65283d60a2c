"""How tables, pages and sentences show metrics, measures and columns.

Numbers are written by `text/format.py`; this module adds the units that the catalogue declares.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache

from pennyweight.catalogue import MEASURES, METRICS
from pennyweight.scoring.estimates import Estimate
from pennyweight.text.format import MISSING, count, difference, estimate, quantity
from pennyweight.text.notation import DOLLARS, SHARE, unit_word
from pennyweight.text.safe import clean

COLUMN_UNITS = {
    "latency_ms": "ms",
    "ttft_ms": "ms",
    "wait_ms": "ms",
    "duration_seconds": "seconds",
    "cost_usd": DOLLARS,
    "judge_cost_usd": DOLLARS,
    "prob_correct": SHARE,
    "impl_rate": SHARE,
}
"""Units of columns of a record."""


def unit_of(name: str) -> str:
    """Return the unit of a metric, a measure or a column; an unknown one has none."""
    found = METRICS.get(name) or MEASURES.get(name)
    return (found.unit if found else "") or COLUMN_UNITS.get(name, "")


def heading(name: str) -> str:
    """Write the name of a measure or a column above its values, which have units.

    >>> heading("latency_ms"), heading("prompt_tokens")
    ('latency', 'prompt tokens')
    """
    return re.sub("_(ms|seconds|usd)$", "", name).replace("_", " ")


def estimate_cells(
    name: str, e: Estimate, *, narrow: bool = False, others: Iterable[Estimate] = ()
) -> tuple[str, str]:
    """Write a metric's value and its interval.

    In a narrow cell the interval does not repeat the unit, and small amounts have fewer digits.
    `others` are the values of the same row, so that all its times have one unit.
    """
    unit = unit_of(name)
    if isinstance(e.value, str):
        return clean(e.value), f"{e.low} to {e.high}" if isinstance(e.low, str) else ""
    known = (other.value for other in others if isinstance(other.value, float))
    largest = max(filter(math.isfinite, known), default=0.0)
    if e.value is None or not isinstance(e.low, float) or not isinstance(e.high, float):
        return quantity(e.value, unit, largest=largest), ""
    return estimate(e.value, e.low, e.high, unit, bare=narrow, largest=largest)


def skewed_line(names: Sequence[str]) -> list[str]:
    """Say which means a few tasks decide, if any.

    >>> skewed_line(["cost_usd_mean"])
    ['A few tasks decide cost_usd_mean: its interval may be too narrow; more tasks help.']
    """
    if not names:
        return []
    listed = " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])
    whose = "their intervals" if names[1:] else "its interval"
    return [f"A few tasks decide {listed}: {whose} may be too narrow; more tasks help."]


FEW_TASKS = 29
"""From this many tasks on, a kind that is one task in ten is among them with 95 % probability."""


def unseen_line(tasks: int) -> list[str]:
    """Say what the intervals of amounts do not allow for, if there are few tasks.

    >>> unseen_line(20)[0][:74]
    'With 20 tasks, a kind of task that makes up 14 % of all may be missing: in'
    """
    if not 1 < tasks < FEW_TASKS:
        return []
    kind = f"a kind of task that makes up {100 * (1 - 0.05 ** (1 / tasks)):.0f} % of all"
    unseen = f"With {tasks} tasks, {kind} may be missing"
    return [f"{unseen}: intervals of costs, times and tokens do not allow for it."]


def is_amount(name: str) -> bool:
    """Whether a metric is of what attempts use: costs, times, tokens."""
    return name in METRICS and METRICS[name].range == (0, None)


def difference_cells(
    name: str,
    value: float | None,
    low: float | None,
    high: float | None,
    *,
    bare: bool = False,
    largest: float = 0.0,
) -> tuple[str, str]:
    """Write the difference of two sides in a metric, and its interval.

    `largest` is the largest value of the same metric, so that all its times have one unit.

    >>> difference_cells("accuracy", 0.15625, -0.027, 0.335)
    ('+15.6 points', '−2.7 to +33.5 points')
    """
    unit = unit_of(name)
    if value is None or low is None or high is None:
        return difference(value, unit), ""
    return estimate(value, low, high, unit, signed=True, bare=bare, largest=largest)


def measured(name: str, value: Hashable) -> str:
    """Write the value of a measure or column of one record.

    >>> measured("latency_ms", 5410.0), measured("correct", True), measured("cost_usd", None)
    ('5,410 ms', 'yes', '—')
    """
    return cell(value, unit_of(name))


@lru_cache(4_096, typed=True)
def cell(value: Hashable, unit: str = "") -> str:
    """Write a value of any type; a whole number of something, such as tokens, as a count.

    >>> cell(1_234), cell(0.25, "share"), cell("a"), cell(False), cell(33.0, "tokens")
    ('1,234', '25.0 %', 'a', 'no', '33')
    """
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and unit_word(unit) and float(value).is_integer():
        return count(int(value))
    if isinstance(value, float) or (isinstance(value, int) and unit):
        return quantity(value, unit)
    return count(value) if isinstance(value, int) else str(value)
