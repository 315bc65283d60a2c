"""Sides compared on the same tasks: tiers, subjects, runs or files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight.define import MEASURES, METRICS
from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.scoring import tiers
from pennyweight.scoring.estimates import Estimate
from pennyweight.scoring.groups import GROUP
from pennyweight.scoring.pairs import MEASURED, PAIRED, Compared, Overlap, Pair, Units
from pennyweight.scoring.pipeline import Scoring
from pennyweight.scoring.scores import Group, json_value
from pennyweight.sources.loader import FILE
from pennyweight.text.format import estimate, probability

if TYPE_CHECKING:
    from pennyweight.sources.source import Source


SIDE = "\0side"

SOURCE = "source"
"""The name that compares several sources with each other, in place of a column."""

ASKED = ("tier", "subject")
"""The columns that tell sides apart when nothing was said, the first that can."""

MAX_SIDES = 100

_HELP = "--by COLUMN says what to compare; several sources are compared with each other."


@dataclass(frozen=True, slots=True)
class Sides:
    """The columns that distinguish the sides of a comparison, or the sources themselves."""

    columns: tuple[str, ...]
    sources: tuple[str, ...] = ()
    """The name of each source, where sources are sides."""
    origins: tuple[str, ...] = ()
    """What the user named for each side, where sources are sides."""
    side_of: tuple[int, ...] = ()
    """Which side each source belongs to: the files of a folder are one side."""
    runs: bool = False
    """Whether the records are those of runs, which have every column."""

    @classmethod
    def of(cls, sources: Sequence[Source], by: str | Sequence[str] | None) -> Sides:
        """Read what was asked for; several sources, or runs, are sides by themselves."""
        columns = (by,) if isinstance(by, str) else tuple(dict.fromkeys(by or ()))
        runs = any(source.run_id is not None for source in sources)
        origins = tuple(dict.fromkeys(source.origin for source in sources))
        alone = columns in {(), ("run",), (SOURCE,)} and all(origins)
        if alone and len(sources) > 1:
            names = [source.name for source in sources]
            if same := next((s for s in sources if names.count(s.name) > 1), None):
                what = f"{same.origin} is named twice"
                raise UsageError(f"{what}; a comparison needs two that differ.")
        if not alone or len(origins) < 2:
            return cls(columns, runs=runs)
        short = [Path(name).name or name for name in origins]
        titles = short if len(set(short)) == len(short) else list(origins)
        side_of = tuple(origins.index(source.origin) for source in sources)
        return cls(columns, tuple(titles), origins, side_of, runs)

    @property
    def grouped(self) -> list[str]:
        """The columns that records are grouped by while they are read."""
        return [FILE] if self.sources else list(self.columns)

    def named(self, frame: pl.DataFrame) -> tuple[tuple[str, ...], pl.DataFrame]:
        """Add the side of each record, null where it has none; also return the columns used."""
        if not frame.height:
            raise InputError(["There are no records to compare."])
        columns, side = self.columns, None
        if self.sources:
            names = {source: self.sources[side] for source, side in enumerate(self.side_of)}
            side = pl.col(FILE).replace_strict(names, default=None, return_dtype=pl.String)
            if columns == ("run",):
                side = pl.coalesce(pl.col("run").cast(pl.String), side)
            columns = columns or ("run",)
        elif not columns:
            columns = (_first(frame),)
        if side is None:
            parts = [pl.col(name).cast(pl.String) for name in columns]
            side = pl.concat_str(parts, separator=" / ")
        named = frame.with_columns(side.alias(SIDE))
        found = [name for name in named[SIDE].unique().to_list() if name is not None]
        order = [n for n in self.sources if n in found]
        order += sorted((n for n in found if n not in order), key=_natural)
        if len(order) < 2:
            what = ", ".join(columns)
            only = f": {order[0]!r}" if order else ""
            raise UsageError(f"There is only one side to compare by {what}{only}. {_HELP}")
        if len(order) > MAX_SIDES:
            what = ", ".join(columns)
            raise UsageError(
                f"{what} has {len(order):,} values; at most {MAX_SIDES} can be compared."
            )
        kept = named.drop_nulls(SIDE).with_columns(pl.col(SIDE).cast(pl.Enum(order)))
        return columns, kept

    def baseline(self, wanted: str | None, names: Sequence[str]) -> str:
        """Find the side that the others are compared with."""
        if wanted is None:
            return "T0" if "T0" in names else names[0]
        if wanted in names:
            return wanted
        for name, origin in zip(self.sources, self.origins, strict=True):
            if wanted in {origin, Path(origin).stem} and name in names:
                return name
        listed = f"The sides are {', '.join(names[:12])}{' …' if len(names) > 12 else ''}."
        raise UsageError(f"--baseline: {unknown('Side', wanted, names, listed)}")


def _first(frame: pl.DataFrame) -> str:
    for name in ASKED:
        if frame[name].drop_nulls().n_unique() > 1:
            return name
    raise UsageError(f"The records have neither several tiers nor several subjects. {_HELP}")


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort T2 before T10."""
    parts = re.findall(r"\d+|\D+", name)
    return [(int(p) if p.isascii() and p.isdigit() else -1, p) for p in parts]


NEEDED = ("pass_rate", "accuracy", "cost_usd_mean", "cost_of_pass", "composite_median", "grade")
"""The metrics that a comparison always has."""


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One side: its scores, and its composite score against the baseline's."""

    name: str
    group: Group
    tier_uplift: float | None
    composite_difference: float | None
    attempts: int = 0
    unpriced: int = 0

    def __getitem__(self, metric: str) -> Estimate:
        return self.group[metric]

    def number(self, metric: str) -> float | None:
        """Return the value of a metric, where it is a number."""
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
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison."""

    by: tuple[str, ...]
    baseline: str
    confidence: float
    sides: tuple[ComparedSide, ...]
    across: tiers.Across
    steps: tuple[tiers.Step, ...]
    dominated: tuple[tiers.Dominated, ...]
    pairs: tuple[Pair, ...]
    tested: tuple[str, ...] = ()
    """The metrics that are means over records; only these are compared task by task."""
    overlaps: tuple[Overlap, ...] = field(default=(), repr=False)
    without_side: int = 0
    left_out: int = 0
    problems: tuple[str, ...] = field(default=(), repr=False)
    unused: tuple[str, ...] = field(default=(), repr=False)
    unpriced: tuple[str, ...] = ()

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

    def pair(self, b: str, metric: str, a: str | None = None) -> Pair | None:
        """Find the comparison of a side with the baseline, or with another one."""
        wanted = (a or self.baseline, b, metric)
        return next((p for p in self.pairs if (p.a, p.b, p.metric) == wanted), None)

    def overlap(self, a: str, b: str) -> Overlap | None:
        """Find what two sides have in common, whichever is named first."""
        return next((one for one in self.overlaps if {one.a, one.b} == {a, b}), None)

    @property
    def comparisons(self) -> int:
        """How many tests the adjusted p-values take into account."""
        return sum(pair.p is not None for pair in self.pairs)

    @property
    def level(self) -> float:
        """Below which a p-value counts."""
        return 1 - self.confidence

    def to_dict(self) -> dict[str, Any]:
        """Return what `pennyweight compare --format json` prints."""
        across, ends = asdict(self.across), {"start": "from", "end": "to"}
        if self.across.frontier:
            across["frontier"]["cost_of_pass"] = json_value(self.across.frontier.cost_of_pass)
        return {
            "baseline": self.baseline,
            "by": list(self.by),
            "confidence": self.confidence,
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
        }


def compare(
    sources: Sequence[Source],
    *,
    by: str | Sequence[str] | None = None,
    baseline: str | None = None,
    all_pairs: bool = False,
    metrics: str | Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    map: Mapping[str, str] | None = None,  # noqa: A002
    skip_bad: bool = False,
    progress: Callable[[int], None] | None = None,
    titles: Mapping[str, str] | None = None,
    **options: Any,
) -> Comparison:
    """Compare sides on common tasks; `api/compare.py` says what the parameters mean.

    `titles` gives sides other names in the result.
    """
    sides = Sides.of(sources, by)
    metrics = [metrics] if isinstance(metrics, str) else metrics
    wanted = [*dict.fromkeys((*metrics, *NEEDED))] if metrics else None
    also = {*ASKED, "run", "correct", *MEASURED}
    work = Scoring.of(sources, sides.grouped, wanted, confidence, seed, map, options, also=also)
    measured = work.measure(sources, progress=progress, skip_bad=skip_bad)
    columns, frame = sides.named(measured.frame)
    groups, frame = work.score(frame, [SIDE])
    names = [str(group.group[SIDE]) for group in groups]
    base = sides.baseline(baseline, names)
    if titles:
        names, base = [titles.get(name, name) for name in names], titles.get(base, base)
    named = measured.loaded.filled & set(work.plan.wanted.mapped.sources["passed"])
    compared = _compared(work, frame, metrics, decided=bool(named) and not sides.runs)
    others = [name for name in ASKED if name not in columns]
    units = Units.of(frame, compared, others)
    first = names.index(base)
    which = [(first, g) for g in range(len(names)) if g != first]
    if all_pairs:
        which += [pair for pair in combinations(range(len(names)), 2) if first not in pair]
    priced = _priced(frame, len(names))
    made = tuple(
        _side(name, group, groups[first], *priced[i])
        for i, (name, group) in enumerate(zip(names, groups, strict=True))
    )
    further, dominated = tiers.steps(
        [(s.name, s.number("cost_usd_mean"), s.number("pass_rate")) for s in made]
    )
    named_together = [(one.start, one.end) for one in further]
    named_together += [(one.by, one.name) for one in dominated]
    overlaps = {pair: units.overlap(names, *pair) for pair in which}
    for a, b in ((names.index(a), names.index(b)) for a, b in named_together):
        if (a, b) not in overlaps and (b, a) not in overlaps:
            overlaps[a, b] = units.overlap(names, a, b)
    return Comparison(
        by=columns,
        baseline=base,
        confidence=confidence,
        sides=made,
        across=_across(made),
        steps=tuple(further),
        dominated=tuple(dominated),
        pairs=tuple(units.pairs(names, which, overlaps, confidence, seed)),
        tested=tuple(one.name for one in compared),
        overlaps=tuple(overlaps.values()),
        without_side=measured.frame.height - frame.height,
        left_out=measured.left_out,
        problems=tuple(measured.loaded.problems),
        unused=measured.unused,
    )


def _compared(
    work: Scoring, frame: pl.DataFrame, metrics: Sequence[str] | None, *, decided: bool
) -> list[Compared]:
    """List what is compared; passing is called accuracy where only answers decide it."""
    names = list(metrics or PAIRED)
    same = pl.col("passed").eq_missing(pl.col("correct")).all()
    if not metrics and not decided and frame.select(same).item():
        names[0] = "accuracy"
    if not metrics and _same_time(frame):
        names.remove("duration_seconds")
    found = [Compared.of(name, frame.schema, work.options) for name in names]
    return [one for one in found if one]


def _same_time(frame: pl.DataFrame) -> bool:
    """Whether the durations are the latencies in seconds, so that one of them suffices."""
    if not {"latency_ms", "duration_seconds"} <= set(frame.columns):
        return False
    seconds = pl.col("latency_ms").cast(pl.Float64) / 1000
    apart = (seconds - pl.col("duration_seconds")).abs() > 1e-3 * seconds.abs() + 1e-3
    timed = frame.filter(pl.col("duration_seconds").is_not_null())
    return not timed.select(apart.fill_null(value=True).any()).item()


def _priced(frame: pl.DataFrame, sides: int) -> list[tuple[int, int]]:
    """Count each side's attempts, and those of them without a cost."""
    fine = frame.filter(pl.col("status").ne_missing("error"))
    counted = fine.group_by(GROUP).agg(
        pl.len().alias("attempts"), pl.col("cost_usd").null_count().alias("unpriced")
    )
    found = {group: (attempts, unpriced) for group, attempts, unpriced in counted.iter_rows()}
    return [found.get(side, (0, 0)) for side in range(sides)]


def _side(name: str, group: Group, baseline: Group, attempts: int, unpriced: int) -> ComparedSide:
    own, base = (g["composite_median"].value for g in (group, baseline))
    assert not isinstance(own, str)
    assert not isinstance(base, str)
    return ComparedSide(
        name, group, tiers.uplift(own, base), tiers.difference(own, base), attempts, unpriced
    )


def _across(sides: Sequence[ComparedSide]) -> tiers.Across:
    def medians(measure: str) -> list[float | None]:
        found = [side.group.statistics[measure] for side in sides]
        return [None if one is None else one.median for one in found]

    return tiers.Across(
        pass_rate_variance=tiers.variance(medians("passed")),
        cost_variance=tiers.variance(medians("cost_usd")),
        cost_delta=tiers.delta(medians("cost_usd")),
        frontier=tiers.frontier({side.name: side.number("cost_of_pass") for side in sides}),
    )
