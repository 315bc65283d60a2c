"""The digest of records as plain data, for reports, pages and the store.

`api/pages/digest.py` computes it. The page's API returns it as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NotRequired, Required, TypedDict, cast

import polars as pl

from pennyweight.record import KEY
from pennyweight.scoring.chart_types import ChartData
from pennyweight.scoring.estimates import Value
from pennyweight.scoring.scores import Group, json_value
from pennyweight.scoring.sides import side_name

VERSION = 31
"""Changes when the format of stored digests changes."""
HEADLINES = ("accuracy", "pass_rate", "behavior_coverage", "impl_rate_mean")
"""The metrics that can be the headline of records: `headline_of` chooses."""


MEASURES = {
    "accuracy": "correct",
    "pass_rate": "passed",
    "behavior_coverage": "scenario_score",
    "impl_rate_mean": "impl_rate",
}
"""The measure behind each headline metric: its mean over the attempts is the headline."""


def counted(metric: str) -> dict[str, Any]:
    """Return the filter of the records that a headline metric counts: those that have its measure.

    >>> counted("accuracy"), counted("impl_rate_mean")
    ({'correct': 'known'}, {'impl_rate': (0, None)})
    """
    measure = MEASURES.get(metric)
    if measure is None:
        return {}
    return {measure: "known" if measure in {"correct", "passed"} else (0, None)}


class GroupDigest(TypedDict):
    """The scores of one side, or of all records."""

    group: dict[str, Any]
    name: str
    records: int
    errors: int
    tasks: int
    estimates: dict[str, tuple[Value, Value, Value, int, int]]
    """By metric: value, low, high, records, skipped."""
    skewed: list[str]
    """The metrics that a few tasks decide."""
    statistics: dict[str, Any]
    repeats: dict[str, Any] | None
    """The attempts at its tasks; None if no task was tried several times."""
    labelled: bool
    """Whether targets are labels, so that precision and recall mean something."""
    pooled: dict[str, int]
    """How many subjects, tiers, data sets or tools are averaged over, if several."""


class PairDigest(TypedDict):
    """One metric of two sides on the tasks that both tried."""

    a: str
    b: str
    metric: str
    difference: float | None
    interval: list[float | None] | None
    p: float | None
    p_adjusted: float | None
    method: str | None
    tasks: int
    detectable: float | None
    """The smallest difference that is found in 80 % of such experiments."""
    tasks_for_5_points: int | None
    missing: dict[str, Any] | None
    """The results that the sides lack, and what they could change."""
    errors_decide: bool
    """Whether the difference is significant only as long as these are left out."""


class RankDigest(TypedDict):
    """The rank of a side, from 1 for the best, and the ranks that the data leave open."""

    name: str
    rank: int
    low: int
    high: int
    frontier: float | None


class AllPairsDigest(TypedDict):
    """The tests of all pairs of sides at once."""

    sides: list[str]
    p: list[list[float]]
    """The adjusted p-value of each pair, in the order of `sides`."""
    level: float
    """The level at which single intervals agree with these tests."""
    tasks: int
    """How many tasks all sides tried, which the tests are on."""
    means: list[float]
    """The mean of each side on these tasks."""


class ComparisonDigest(TypedDict):
    """The sides compared on the same tasks, in sentences and numbers."""

    words: list[str]
    pairs: list[PairDigest]
    by: list[str]
    baseline: str
    """The side that the others are compared with."""
    gaps: list[PairDigest]
    """The headline metric of each side against the baseline; intervals agree with the ranks."""
    ranks: list[RankDigest]
    """Empty with fewer than three sides, or without tasks that all of them tried."""
    tests: AllPairsDigest | None
    """The tests behind the ranks; None where there are none."""
    common: int
    """The number of tasks that all sides tried."""


class BoardDigest(TypedDict):
    """Sides by other columns, such as all tiers of a subject together."""

    by: list[str]
    sides: list[GroupDigest]
    comparison: ComparisonDigest | None


class GridDigest(TypedDict):
    """The grid of tasks and sides: its columns, and how many tasks each filter leaves."""

    by: list[str]
    sides: list[str]
    """The names of the sides, in the order of a task's cells."""
    tasks: int
    differs: int
    wrong: int
    flaky: int


class ErrorCount(TypedDict):
    """An error, and how many attempts failed with it."""

    error: str | None
    n: int


class FailingPart(TypedDict):
    """A check or an item of the rubric: how many records failed it, of those that it decided."""

    kind: str
    name: str
    failed: int
    of: int


class TellingRecord(TypedDict, total=False):
    """A noteworthy record, and the reason; it has only the columns that the records have."""

    why: Required[str]
    task_id: str | None
    subject: str | None
    tier: str | None
    attempt: int | None
    correct: bool | None
    passed: bool | None
    impl_rate: float | None
    judgments: str
    """What the judges said, as lines."""
    prob_correct: float | None
    total_tokens: int | None
    latency_ms: float | None
    cost_usd: float | None
    input: str | None
    response: str | None
    cot: str | None
    answer: str | None
    target: str | None
    error: str | None


class RecordsDigest(TypedDict):
    """Scores, the numbers behind each chart, and the most telling records."""

    version: int
    confidence: float
    by: list[str]
    headline: str | None
    whole: GroupDigest
    sides: list[GroupDigest]
    left_out: int
    exam: list[str]
    """Which tasks are left out because they changed, and how sides are graded differently."""
    same_exam: bool
    """Whether the sides were graded alike and each has some task that did not change."""
    changed: list[str]
    """The tasks that are left out."""
    comparison: ComparisonDigest | None
    boards: list[BoardDigest]
    """The same records by subject, by tier, by columns of the tasks."""
    charts: ChartData
    telling: list[TellingRecord]
    failures: list[ErrorCount]
    errors: NotRequired[str]
    """What errors count as: they are left out, or are `failures`."""


def group_name(group: Group) -> str:
    """Name a group by its values, such as `ours · T0`."""
    values = ["—" if v is None else str(v) for v in group.group.values()]
    return side_name(values, " · ") or "all"


def group_digest(group: Group) -> GroupDigest:
    """Return the scores of a group as plain data."""
    scores = group.to_dict()
    return {
        "group": scores["group"],
        "name": group_name(group),
        "records": group.records,
        "errors": group.errors,
        "tasks": group.tasks,
        "estimates": {
            n: (json_value(e.value), json_value(e.low), json_value(e.high), e.records, e.skipped)
            for n, e in group.estimates.items()
        },
        "skewed": [n for n, e in group.estimates.items() if e.skewed],
        "statistics": scores["statistics"],
        "repeats": scores["repeats"],
        "labelled": group.labelled,
        "pooled": scores["pooled"],
    }


def headline(*groups: Group) -> str | None:
    """Return the headline metric of records, the same for all sides of a table."""
    return headline_of(*({n: g[n].value for n in HEADLINES if n in g.estimates} for g in groups))


def headline_of(*sides: Mapping[str, Value]) -> str | None:
    """Return the headline metric of sides by their values of HEADLINES.

    It is `pass_rate` if something other than the answer decides what passes: a scenario, a command,
    judges or the records themselves. Otherwise it is the first of HEADLINES that has a value.

    >>> headline_of({"accuracy": 0.5, "pass_rate": 0.5}, {"accuracy": 0.4, "pass_rate": 0.6})
    'pass_rate'
    >>> headline_of({"accuracy": 0.0, "pass_rate": 0.0, "impl_rate_mean": 0.7})
    'pass_rate'
    """
    for side in sides:
        rate = side.get("pass_rate")
        scored = any(side.get(n) is not None for n in ("behavior_coverage", "impl_rate_mean"))
        if rate is not None and (scored or rate != side.get("accuracy")):
            return "pass_rate"
    return next((n for n in HEADLINES for side in sides if side.get(n) is not None), None)


def headline_by(frame: pl.DataFrame, side: str) -> str | None:
    """Return the headline metric of measured records whose sides a column names."""
    there = {metric: column for metric, column in MEASURES.items() if column in frame.columns}
    means = (pl.col(column).cast(pl.Float64).mean().alias(m) for m, column in there.items())
    return headline_of(*frame.group_by(side).agg(*means).drop(side).iter_rows(named=True))


LONGEST = 4_000
"""The most characters of a text in a digest."""
TEXTS = ("input", "response", "reasoning", "cot", "answer", "target", "error")
VALUES = (
    *("status", "category", "capability", "correct", "passed", "prob_correct", "cot_tokens"),
    *("total_tokens", "latency_ms", "cost_usd", "scenario_score", "impl_rate", "violations"),
)
_SEARCHED = 100_000
"""The number of rows searched for a task that was solved in some attempts only."""


def telling(frame: pl.LazyFrame) -> list[TellingRecord]:
    """Choose noteworthy records, each with the reason; no record twice."""
    there = set(frame.collect_schema().names())
    texts = [pl.col(n).cast(pl.String).str.slice(0, LONGEST) for n in TEXTS if n in there]
    values = [pl.col(n) for n in (*KEY, *VALUES) if n in there]
    numbered = frame.with_row_index("row")
    chosen: dict[int, str] = {}
    for why, rows in _reasons(numbered, there):
        fresh = [row for row in rows if row not in chosen]
        chosen.update(dict.fromkeys(fresh[:2], why))
    if not chosen:
        return []
    picked = numbered.filter(pl.col("row").is_in(list(chosen))).select("row", *values, *texts)
    found = {row.pop("row"): row for row in picked.collect().to_dicts()}
    return [cast("TellingRecord", {"why": why, **found[n]}) for n, why in chosen.items()]


def _reasons(frame: pl.LazyFrame, there: set[str]) -> Iterator[tuple[str, list[int]]]:
    def rows(table: pl.LazyFrame, *by: str, most: bool = True) -> list[int]:
        order = table.sort(*by, "row", descending=[most] * len(by) + [False]) if by else table
        found: list[int] = order.select("row").head(4).collect()["row"].to_list()
        return found

    scored = pl.col("impl_rate").is_not_null() if "impl_rate" in there else pl.lit(value=False)
    answers = frame.filter(~scored)  # what an answer decides, not judges or a scenario
    wrong = answers.filter(~pl.col("correct"))
    if "violations" in there:
        yield "a must-not was violated", rows(frame.filter(pl.col("violations") > 0), "violations")
    if "impl_rate" in there:
        failed = frame.filter(~pl.col("passed") & scored & (pl.col("status") == "ok"))
        yield "not passed", rows(failed, "impl_rate", most=False)
    if "prob_correct" in there:
        sure = wrong.filter(pl.col("prob_correct") >= 0.5)
        yield "wrong but confident", rows(sure, "prob_correct")
        unsure = answers.filter(pl.col("correct") & (pl.col("prob_correct") < 0.5))
        yield "right but not confident", rows(unsure, "prob_correct", most=False)
    yield "right in one attempt, wrong in another", _undecided(answers, there)
    if "cot_tokens" in there:
        yield (
            "wrong after the longest reasoning",
            rows(wrong.drop_nulls("cot_tokens"), "cot_tokens"),
        )
    if {"answer", "response"} <= there:
        silent = wrong.filter(pl.col("answer").is_null() & pl.col("response").is_not_null())
        yield "no final answer found", rows(silent)
    yield "out of time or budget", rows(frame.filter(pl.col("status").is_in(["timeout", "budget"])))
    yield "attempt failed", rows(frame.filter(pl.col("status") == "error"))
    if "latency_ms" in there:
        yield "slowest", rows(frame.drop_nulls("latency_ms"), "latency_ms")[:1]
    if "cost_usd" in there:
        yield "most expensive", rows(frame.drop_nulls("cost_usd"), "cost_usd")[:1]
    yield "right", rows(answers.filter(pl.col("correct")))[:1]
    yield "passed", rows(frame.filter(pl.col("passed") & scored))[:1]


def _undecided(frame: pl.LazyFrame, there: set[str]) -> list[int]:
    """Return a right and a wrong attempt of one side at one task."""
    side = [n for n in ("run", "subject", "tier", "task_id") if n in there]
    if "task_id" not in side:
        return []
    mixed = (
        frame.drop_nulls(["correct", "task_id"])
        .head(_SEARCHED)
        .group_by(side)
        .agg(
            share=pl.col("correct").mean(),
            first=pl.col("row").filter(pl.col("correct")).min(),
            other=pl.col("row").filter(~pl.col("correct")).min(),
        )
        .filter((pl.col("share") > 0) & (pl.col("share") < 1))
        .sort((pl.col("share") - 0.5).abs(), "first")
        .head(1)
        .collect()
    )
    return [n for row in mixed.select("first", "other").iter_rows() for n in row]
