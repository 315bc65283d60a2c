"""The numbers behind charts as plain data: part of a digest."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from pennyweight.scoring.estimates import Value


class ChartRow(TypedDict):
    """A value with its interval, and the filter or the two sides that select its records."""

    name: str
    value: float
    low: float | None
    high: float | None
    n: int
    filter: NotRequired[dict[str, Any]]
    pair: NotRequired[list[str]]
    cost: NotRequired[float]
    tokens: NotRequired[float]
    frontier: NotRequired[bool]


class RowChart(TypedDict):
    """Estimates or paired differences of one metric."""

    metric: str
    rows: list[ChartRow]


class Bin(TypedDict):
    """The records between two values of a measure."""

    low: float
    high: float
    n: NotRequired[int]
    said: NotRequired[float]
    right: NotRequired[float]
    wrong: NotRequired[int]


class SourceBins(TypedDict):
    """A source of confidence, and how often answers were right in each bin of it."""

    source: str
    bins: list[Bin]


class BinChart(TypedDict):
    """Right and wrong answers by the length of the chain of thought."""

    bins: list[Bin]


class Histogram(BinChart):
    """The distribution of a measure."""

    measure: str
    filter: dict[str, list[str]]
    """What else the records of the bins have in common."""
    p50: float
    p95: float


class AnswerCount(TypedDict):
    """How often an answer was given, how often it was right, and its spellings."""

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


class RepeatsPoint(TypedDict):
    """Values for one k: each the value and the ends of its interval."""

    k: int
    pass_at_k: list[Value]
    pass_hat_k: list[Value]
    n: int


class RepeatsCurve(TypedDict):
    """The chance that one of k attempts passes, and that all of them do, by k."""

    points: list[RepeatsPoint]
    sides: int


class SideBin(TypedDict):
    """The records of a side in a range of a measure: the share that is right, with its interval."""

    low: float
    high: float | None
    n: int
    at: float
    """The mean of the measure in the bin."""
    right: float
    ends: list[float]


class SideBins(TypedDict):
    """The bins of one side."""

    name: str
    filter: dict[str, Any]
    bins: list[SideBin]


class SideSpread(TypedDict):
    """The distribution of a measure on one side: its 5, 25, 50, 75 and 95 % quantiles."""

    name: str
    filter: dict[str, Any]
    n: int
    quantiles: list[float]


class SideCurve(TypedDict):
    """The chance that one of k attempts passes, and that all of them do, by k, on one side."""

    name: str
    filter: dict[str, Any]
    points: list[RepeatsPoint]


class CategoryCell(TypedDict):
    """The records of one side in one category: the share that is right, or the mean score."""

    name: str
    filter: dict[str, Any]
    category: str
    value: float
    n: int


class SideCharts(TypedDict):
    """Charts with one panel or row for each side; None if there is nothing to draw."""

    reliability: list[SideBins] | None
    thinking: list[SideBins] | None
    latency: list[SideSpread] | None
    tokens: list[SideSpread] | None
    categories: list[CategoryCell] | None
    repeats: list[SideCurve] | None
    sides: int


class ChartData(TypedDict):
    """The numbers behind each chart; None if there is nothing to draw."""

    sides: RowChart | None
    differences: RowChart | None
    frontier: RowChart | None
    categories: RowChart | None
    reliability: list[Bin] | None
    thought: BinChart | None
    answers: list[AnswerCount] | None
    latency: Histogram | None
    tokens: Histogram | None
    coverage: Coverage | None
    repeats: RepeatsCurve | None
    sources: list[SourceBins] | None
    thinking: RowChart | None
    each: SideCharts | None
    """Charts of each side by itself; None if there is one side."""
