"""Sides compared on the same tasks: tiers, subjects, runs or files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import combinations
from typing import Any

import polars as pl

from pennyweight import catalogue
from pennyweight.define import MEASURES, METRICS
from pennyweight.scoring import tiers
from pennyweight.scoring.digest import HEADLINES
from pennyweight.scoring.estimates import Estimate
from pennyweight.scoring.exam import EXAM, ExamMatch
from pennyweight.scoring.large.sided import SidedRecords
from pennyweight.scoring.large.spill import Spill
from pennyweight.scoring.missing import WAITING
from pennyweight.scoring.pairs import MEASURED, PAIRED, Compared, Pair, PairwiseTest
from pennyweight.scoring.pipeline import Measured, ScoreRequest, Scoring
from pennyweight.scoring.ranking import (
    CommonTasks,
    Ranking,
    board_pairs,
    board_ranking,
    primary_and_others,
)
from pennyweight.scoring.result import Result
from pennyweight.scoring.scores import Group, json_value
from pennyweight.scoring.sides import DEFAULT_COLUMNS, SIDE, Overlap, Sides
from pennyweight.sources.source import Source
from pennyweight.text.format import estimate, probability

UPLIFT = "tier_uplift"
PAIR_NUMBERS = ("mean_a", "mean_b", "difference", "low", "high", "p", "p_adjusted")
"""The numbers of a pair in a table."""
SEVERAL = 3
"""Of fewer sides a variance says nothing that their difference does not."""
NEEDED = ("pass_rate", "accuracy", "cost_usd_mean", "cost_of_pass", "composite_median", "grade")
"""The metrics that a comparison always has."""
SHOWN = (*NEEDED, *HEADLINES, *(name for name in PAIRED if name not in MEASURED))
"""The metrics of sides that a table shows, and those by which it orders them."""


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """The scores of one side, and its composite score compared with the baseline's."""

    name: str
    group: Group
    tier_uplift: float | None
    composite_difference: float | None
    attempts: int = 0
    unpriced: int = 0
    mean_uplift: float | None = None
    """The improvement of the mean composite score, which is shown where scores are yes or no."""

    def __getitem__(self, metric: str) -> Estimate:
        return self.group[metric]

    def number(self, metric: str) -> float | None:
        """Return the value of a metric if it is a number."""
        value = self.group[metric].value
        return value if isinstance(value, float) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of a side."""
        scores = self.group.to_dict()
        del scores["group"]
        return {
            "name": self.name,
            **scores,
            "grade": self.group["grade"].value,
            "tier_uplift": json_value(self.tier_uplift),
            "composite_difference": json_value(self.composite_difference),
            "mean_uplift": json_value(self.mean_uplift),
        }


@dataclass(frozen=True, slots=True)
class Comparison(Result):
    """The result of a comparison."""

    by: tuple[str, ...]
    baseline: str
    confidence: float
    sides: tuple[ComparedSide, ...]
    across: tiers.AcrossSides
    steps: tuple[tiers.Step, ...]
    dominated: tuple[tiers.Dominated, ...]
    pairs: tuple[Pair, ...]
    tested: tuple[str, ...] = ()
    """The metrics compared task by task: those that are means over records."""
    asked: tuple[str, ...] = ()
    """The metrics that were named; none if the usual ones are compared."""
    overlaps: tuple[Overlap, ...] = field(default=(), repr=False)
    without_side: int = 0
    left_out: int = 0
    problems: tuple[str, ...] = field(default=(), repr=False)
    unused: tuple[str, ...] = field(default=(), repr=False)
    unpriced: tuple[str, ...] = ()
    score_errors: Mapping[str, tuple[int, str]] = field(default_factory=dict, repr=False)
    """How often each scorer failed, and with which error first."""
    ranking: Ranking | None = None
    """The ranks of three or more sides."""
    errors: str = "exclude"
    """What errors count as: they are left out, or are `failures`."""
    common: CommonTasks | None = field(default=None, repr=False)
    """The tasks that all sides tried."""
    exam: ExamMatch | None = None
    """How far the sides took the same exam; tasks that changed are left out of everything."""

    def __getitem__(self, name: str) -> ComparedSide:
        for side in self.sides:
            if side.name == name:
                return side
        raise KeyError(name)

    def __repr__(self) -> str:
        lines = [f"{', '.join(self.by)}: {', '.join(side.name for side in self.sides)}"]
        for pair in self.pairs:
            if pair.difference is not None and pair.low is not None and pair.high is not None:
                metric = METRICS.get(pair.metric) or MEASURES.get(pair.metric)
                unit = metric.unit if metric else ""
                cells = estimate(pair.difference, pair.low, pair.high, unit, signed=True)
                p = f"p {probability(pair.p)}"
                lines.append(f"  {pair.b} − {pair.a}  {pair.metric:<20}{'  '.join((*cells, p))}")
        return "\n".join(lines)

    @property
    def compared(self) -> list[tuple[str, str]]:
        """Which sides are tested against each other."""
        return list(dict.fromkeys((pair.a, pair.b) for pair in self.pairs))

    def pair(self, b: str, metric: str, a: str | None = None) -> Pair | None:
        """Return the comparison of a side with the baseline, or with another side `a`."""
        wanted = (a or self.baseline, b, metric)
        return next((p for p in self.pairs if (p.a, p.b, p.metric) == wanted), None)

    def overlap(self, a: str, b: str) -> Overlap | None:
        """Return the tasks that two sides have in common, in either order."""
        return next((one for one in self.overlaps if {one.a, one.b} == {a, b}), None)

    @property
    def leader(self) -> str:
        """The side that is ahead in the first metric, on the tasks that sides have in common."""
        if self.ranking:
            return min(self.ranking.sides, key=lambda side: side.rank).name
        pair = next(iter(self.pairs), None)
        if len(self.sides) != 2 or not pair or not pair.difference:
            return self.baseline
        lower = getattr(METRICS.get(pair.metric), "better", None) == "lower"
        return pair.b if (pair.difference > 0) != lower else pair.a

    @property
    def comparisons(self) -> int:
        """The number of tests."""
        return sum(pair.p is not None for pair in self.pairs)

    @property
    def other_comparisons(self) -> int:
        """The number of tests apart from the primary question, which Holm's method adjusts."""
        return sum(pair.p is not None and not pair.primary for pair in self.pairs)

    @property
    def about_cost(self) -> bool:
        """Whether costs are compared: they were named, or no metric was."""
        return not self.asked or any("cost" in name for name in self.asked)

    @property
    def about_all(self) -> tuple[str, ...]:
        """The metrics that were named and have one value for all sides together."""
        names = {one.name for one in fields(tiers.AcrossSides)}
        found = [n for n in self.asked if n in METRICS and METRICS[n].across in self.by]
        return tuple(name for name in found if name in names)

    @property
    def variances(self) -> dict[str, float | None]:
        """The variances over the sides that are shown: those named, else those of several tiers.

        The median of yes or no is mostly yes or no: its variance says nothing of how often sides
        pass, so it is shown only if it is named.
        """
        both = {n: getattr(self.across, n) for n in ("pass_rate_variance", "cost_variance")}
        several = not self.asked and "tier" in self.by and len(self.sides) >= SEVERAL
        usual = ("cost_variance",) if several else ()
        return {n: value for n, value in both.items() if n in usual or n in self.asked}

    @property
    def level(self) -> float:
        """The significance level of p-values."""
        return 1 - self.confidence

    def to_polars(self) -> pl.DataFrame:
        """Return a row for each pair of sides and metric; `difference` is b minus a."""
        names = ("a", "b", "metric", *PAIR_NUMBERS, "tasks", "method")
        numbers = dict.fromkeys(PAIR_NUMBERS, pl.Float64)
        schema = {**dict.fromkeys(names, pl.String), **numbers, "tasks": pl.Int64}
        return pl.DataFrame(
            [[getattr(p, n) for n in names] for p in self.pairs], schema, orient="row"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `pennyweight compare --format json` prints."""
        across, ends = asdict(self.across), {"start": "from", "end": "to"}
        if self.across.frontier:
            across["frontier"]["cost_of_pass"] = json_value(self.across.frontier.cost_of_pass)
        return {
            "baseline": self.baseline,
            "by": list(self.by),
            "confidence": self.confidence,
            "errors": self.errors,
            "sides": [side.to_dict() for side in self.sides],
            "across": across
            | {
                "marginal": [
                    {ends.get(name, name): value for name, value in asdict(step).items()}
                    for step in self.steps
                ],
                "dominated": [asdict(one) for one in self.dominated],
            },
            "comparisons": self.comparisons,
            "pairs": [pair.to_dict() for pair in self.pairs],
            "ranking": self.ranking.to_dict() if self.ranking else None,
            "tasks": self.common.to_dict(self.baseline) if self.common else None,
            "exam": self.exam.to_dict() if self.exam else None,
        }


def compare(
    sources: Sequence[Source],
    request: ScoreRequest,
    by: Sequence[str] = (),
    baseline: str | None = None,
    *,
    all_pairs: bool = False,
    margin: float | None = None,
    titles: Mapping[str, str] | None = None,
    only: Sequence[tuple[str, str]] = (),
) -> Comparison:
    """Compare sides on common tasks; `api.compare` documents the parameters.

    `titles` maps sides to the names that they have in the result. With `only`, these pairs are
    tested, from the first side to the second, and the result has no other sides.
    """
    sides = Sides.of(sources, by)
    metrics = [request.metrics] if isinstance(request.metrics, str) else request.metrics
    catalogue.declare_scores(c for source in sources for c in source.score_columns())
    metrics = metrics and [n if n in MEASURED else catalogue.canonical(n) for n in metrics]
    wanted = [*dict.fromkeys(SHOWN)] if request.overview else None
    if metrics:
        wanted = [*dict.fromkeys((*metrics, *NEEDED))]
    also = {*DEFAULT_COLUMNS, "run", "correct", *MEASURED, *WAITING, *EXAM}
    work = Scoring.of(sources, replace(request, metrics=wanted), sides.grouped, also=also)
    with Spill.open(sides.grouped) as spill:
        found = work, work.measure(sources, spill=spill), sides, metrics, baseline
        asked: dict[str, Any] = {"all_pairs": all_pairs, "only": only, "margin": margin}
        return compare_measured(*found, titles=titles, **asked)


def compare_measured(
    work: Scoring,
    measured: Measured,
    sides: Sides,
    metrics: Sequence[str] | None,
    baseline: str | None = None,
    *,
    all_pairs: bool = False,
    only: Sequence[tuple[str, str]] = (),
    margin: float | None = None,
    titles: Mapping[str, str] | None = None,
    together: bool = False,
) -> Comparison:
    """Compare sides of records that are measured already; `metrics` names those to test.

    The first rate or score that all sides have is the primary question: its intervals and tests
    hold for all pairs of sides at once. With `together`, it is the only one that is tested.
    """
    request = work.request
    chosen_sides = {name for pair in only for name in pair}
    sided = SidedRecords.of(work, measured, sides, chosen_sides, titles)
    groups = sided.groups
    names = [str(group.group[SIDE]) for group in groups]
    base = sides.baseline(only[0][0] if only else baseline, names)
    chosen = [(names.index(a), names.index(b)) for a, b in only]
    if titles:
        names, base = [titles.get(name, name) for name in names], titles.get(base, base)
    about_all = {n for n in metrics or () if n in METRICS and METRICS[n].across in sided.columns}
    if metrics and about_all:
        rest = [name for name in metrics if name not in about_all]
        headline = sided.headline or "pass_rate"
        metrics = [*metrics, *([] if rest else [headline])]
        compared = _compared(work, sided, rest or [headline])
    else:
        compared = _compared(work, sided, metrics)
    units = sided.units(compared, [n for n in DEFAULT_COLUMNS if n not in sided.columns])
    first = names.index(base)
    which = [(first, g) for g in range(len(names)) if g != first]
    if chosen:
        which = chosen
    elif all_pairs:
        which += [pair for pair in combinations(range(len(names)), 2) if first not in pair]
    scored = tuple(
        _side(name, group, groups[first], *sided.priced[i])
        for i, (name, group) in enumerate(zip(names, groups, strict=True))
    )
    further, dominated = tiers.steps(
        [(s.name, s.number("cost_usd_mean"), s.number("pass_rate")) for s in scored]
    )
    overlaps = {pair: units.overlap(names, *pair) for pair in which}
    related = [(s.start, s.end) for s in further] + [(d.by, d.name) for d in dominated]
    for a, b in ((names.index(a), names.index(b)) for a, b in related):
        if (a, b) not in overlaps and (b, a) not in overlaps:
            overlaps[a, b] = units.overlap(names, a, b)
    common = CommonTasks.of(units, names, base)
    ranking = common.ranking(request.confidence, request.seed) if common else None
    how = request.confidence, request.seed
    tests = ranking.tests if ranking else None
    primary = common.metric if common else compared[0].name if compared else ""
    if together:
        pairs = board_pairs(units, names, which, overlaps, tests, *how)
    else:
        asked = PairwiseTest(*how, margin)
        pairs = primary_and_others(units, names, which, overlaps, primary, tests, asked)
    if ranking:
        alone = replace(units, compared=[one for one in compared if one.name == primary])
        own = [pair for pair in pairs if pair.metric == primary]
        ranking = board_ranking(ranking, alone, own, *how)
    return Comparison(
        by=sided.columns,
        baseline=base,
        confidence=request.confidence,
        sides=scored,
        across=_across(scored),
        steps=tuple(further),
        dominated=tuple(dominated),
        pairs=tuple(pairs),
        tested=tuple(one.name for one in compared),
        asked=tuple(dict.fromkeys(metrics or ())),
        overlaps=tuple(replace(o, clusters=o.clusters.clear()) for o in overlaps.values()),
        without_side=sided.without,
        left_out=measured.left_out,
        problems=tuple(measured.loaded.problems),
        unused=measured.unused,
        ranking=ranking,
        common=common,
        errors=str(work.options.get("errors", "exclude")),
        exam=sided.exam,
    )


def _compared(work: Scoring, sided: SidedRecords, metrics: Sequence[str] | None) -> list[Compared]:
    """Return what to compare; passing is called accuracy where that is the headline."""
    names = list(dict.fromkeys(metrics or PAIRED))
    if not metrics and sided.headline == "accuracy":
        names[0] = "accuracy"
    if not metrics and sided.same_time:
        names.remove("duration_seconds")
    return [c for name in names if (c := Compared.of(name, sided.schema, work.options))]


def _side(name: str, group: Group, baseline: Group, attempts: int, unpriced: int) -> ComparedSide:
    score, base = (g["composite_median"].value for g in (group, baseline))
    assert not isinstance(score, str)
    assert not isinstance(base, str)
    difference = None if score is None or base is None else score - base
    uplift = tiers.uplift(score, base)
    of_means = tiers.uplift(_mean(group), _mean(baseline))
    if UPLIFT in group.estimates and group is not baseline:
        own = replace(group[UPLIFT], value=uplift, records=group["composite_median"].records)
        group = replace(group, estimates={**group.estimates, UPLIFT: own})
    return ComparedSide(name, group, uplift, difference, attempts, unpriced, of_means)


def _mean(group: Group) -> float | None:
    found = group.statistics.get("composite_score")
    return found.mean if found else None


def _across(sides: Sequence[ComparedSide]) -> tiers.AcrossSides:
    def medians(measure: str) -> list[float | None]:
        return [s.median if (s := side.group.statistics[measure]) else None for side in sides]

    return tiers.AcrossSides(
        pass_rate_variance=tiers.variance(medians("passed")),
        cost_variance=tiers.variance(medians("cost_usd")),
        cost_delta=tiers.delta(medians("cost_usd")),
        frontier=tiers.frontier({side.name: side.number("cost_of_pass") for side in sides}),
    )
