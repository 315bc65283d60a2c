"""The digest of records as plain data: what reports and pages show and the store keeps.

`api/digest.py` computes it. Its keys are JSON that the page's API gives out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from pennyweight.scoring.scores import Group, json_value

if TYPE_CHECKING:
    from pennyweight.scoring.estimates import Value

VERSION = 3
"""Changes when a stored digest can no longer be read."""
HEADLINES = ("accuracy", "pass_rate", "behavior_coverage", "impl_rate_mean")
"""The metrics that may stand for a whole run; the first that has a value does."""


class GroupDigest(TypedDict):
    """The scores of one side, or of all records."""

    group: dict[str, Any]
    name: str
    records: int
    errors: int
    estimates: dict[str, list[Value | int]]
    """By metric: value, low, high, records, skipped."""
    statistics: dict[str, Any]


class EstimateRow(TypedDict):
    """One estimate of a chart, and the filter that finds its records."""

    name: str
    filter: dict[str, Any]
    value: float
    low: Value
    high: Value
    n: int
    cost: NotRequired[float]
    frontier: NotRequired[bool]


class EstimateChart(TypedDict):
    """Estimates of one metric."""

    metric: str
    rows: list[EstimateRow]


class DifferenceRow(TypedDict):
    """A paired difference with its interval."""

    name: str
    pair: list[str]
    value: float
    low: float
    high: float
    n: int


class DifferenceChart(TypedDict):
    """Paired differences of one metric."""

    metric: str
    rows: list[DifferenceRow]


class ReliabilityBin(TypedDict):
    """The stated and the real share of right answers, by stated probability."""

    low: float
    high: float
    n: int
    said: float
    right: float


class ThoughtBin(TypedDict):
    """How many answers were right and wrong, by the length of the chain of thought."""

    low: float
    high: float
    right: int
    wrong: int


class ThoughtChart(TypedDict):
    """Right and wrong answers by the length of the chain of thought."""

    bins: list[ThoughtBin]


class CountBin(TypedDict):
    """How many records have a value in a bin."""

    low: float
    high: float
    n: int


class Histogram(TypedDict):
    """The distribution of a measure."""

    measure: str
    bins: list[CountBin]
    p50: float
    p95: float


class AnswerCount(TypedDict):
    """How often an answer was given, how often it was right, and how it was spelt."""

    answer: str | None
    n: int
    right: int
    spelt: list[str | None]


class CoverageCell(TypedDict):
    """The records of one category and capability."""

    category: str
    capability: str
    n: int
    passed: float | None


class Coverage(TypedDict):
    """Categories by capabilities."""

    categories: list[str]
    capabilities: list[str]
    cells: list[CoverageCell]


class ErrorCount(TypedDict):
    """Why attempts could not be made, and how many."""

    error: str | None
    n: int


class ChartData(TypedDict):
    """The numbers behind each chart; None where there is nothing to draw."""

    sides: EstimateChart | None
    differences: DifferenceChart | None
    frontier: EstimateChart | None
    categories: EstimateChart | None
    reliability: list[ReliabilityBin] | None
    thought: ThoughtChart | None
    answers: list[AnswerCount] | None
    latency: Histogram | None
    tokens: Histogram | None
    coverage: Coverage | None


class ComparisonDigest(TypedDict):
    """The sides compared on the same tasks, in sentences and numbers."""

    words: list[str]
    pairs: list[dict[str, Any]]
    by: list[str]


class RecordsDigest(TypedDict):
    """Scores, the numbers behind each chart, and the most telling records."""

    version: int
    confidence: float
    by: list[str]
    headline: str | None
    whole: GroupDigest
    sides: list[GroupDigest]
    left_out: int
    comparison: ComparisonDigest | None
    charts: ChartData
    telling: list[dict[str, Any]]
    failures: list[ErrorCount]


def group_name(group: Group) -> str:
    """Name a group by its values, such as `ours · T0`."""
    return " · ".join("—" if v is None else str(v) for v in group.group.values()) or "all"


def group_digest(group: Group) -> GroupDigest:
    """Return the scores of a group as plain data."""
    told = group.to_dict()
    return {
        "group": told["group"],
        "name": group_name(group),
        "records": group.records,
        "errors": group.errors,
        "estimates": {
            n: [json_value(e.value), json_value(e.low), json_value(e.high), e.records, e.skipped]
            for n, e in group.estimates.items()
        },
        "statistics": told["statistics"],
    }


def headline(group: Group) -> str | None:
    """Name the metric that stands for a group: the first headline metric that has a value."""
    known = (n for n in HEADLINES if n in group.estimates)
    return next((n for n in known if group[n].value is not None), None)
