"""The pipeline from records to scores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from pennyweight import catalogue
from pennyweight.define import (
    MEASURES,
    METRICS,
    Measure,
    Metric,
    dtype,
    measure_passes,
    needed_columns,
    needed_measures,
)
from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.record import BY_NAME, COLUMNS, EXPORTED, FAILED, KEY
from pennyweight.scoring.estimands import USUAL, Estimand
from pennyweight.scoring.estimates import estimates
from pennyweight.scoring.exam import REGRADED, how_to_regrade, part_words
from pennyweight.scoring.groups import GROUP, Grouped, cluster
from pennyweight.scoring.large.doubles import report_doubles, suspects, without_doubles
from pennyweight.scoring.large.spill import Spill
from pennyweight.scoring.overview import candidates
from pennyweight.scoring.per_task import PerTask
from pennyweight.scoring.pooling import COLUMNS as POOLED
from pennyweight.scoring.pooling import FOREIGN, apart, several
from pennyweight.scoring.repeats import SIDE, check_repeat_options, repeats
from pennyweight.scoring.scores import Group, Statistics
from pennyweight.scoring.selection import refuse_empty, selects
from pennyweight.sources.conversion import COUNTS, LINE, ColumnMapping, RecordConverter
from pennyweight.sources.loader import FILE, SKIP_HINT, Loaded, load
from pennyweight.sources.source import HeldSource, Source, has_verdicts
from pennyweight.stats.resample import CLUSTER
from pennyweight.text.natural_order import in_natural_order

DESCRIBED = (
    *("passed", "impl_rate", "cost_usd", "duration_seconds", "cost_of_pass", "composite_score"),
)
"""The measures of repeated runs, whose whole statistics are reported."""

LABELS = ["normalized_answer", "normalized_target", "label", "target_label", "answer_label"]
"""Measures that are only compared for equality, and so are stored as codes."""

FEW = ["run", "subject", "tier", "status"]
"""Columns with few distinct values, stored as codes to save memory."""

HAS_VERDICTS = "\0has_verdicts"
"""Whether records of the source that a record is of come with verdicts."""

_PARAMETERS = ("by", "metrics", "confidence", "seed", "map", "skip_bad", "per_task")


Take = Callable[[pl.DataFrame], pl.DataFrame]
"""Receives measured chunks one after the other."""
Elsewhere = Callable[["Scoring", Sequence[Source], Take], Loaded]
"""Measures the records of sources in other processes."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Records with their measures, without duplicate attempts, and the problems found."""

    frame: pl.DataFrame
    loaded: Loaded
    doubles: list[int]
    unused: tuple[str, ...]
    spilled: Spill | None = None
    """The records, if they are too many for memory; the frame is then empty."""

    @property
    def sides(self) -> list[str]:
        """The columns that show each side by itself; none if there is one side, or too many."""
        if self.spilled is None:
            return apart(lambda names: self.frame.select(names).unique())
        spill, parts = self.spilled, range(len(self.spilled.parts))

        def values(names: Sequence[str]) -> pl.DataFrame:
            return pl.concat(spill.read(names, n, named=True).unique() for n in parts).unique()

        return apart(values)

    @property
    def left_out(self) -> int:
        """How many bad records were left out."""
        return self.loaded.bad_records + len(self.doubles)


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """The metrics to compute, by name (all if None), and how to read and score the records."""

    metrics: str | Sequence[str] | None = None
    confidence: float = 0.95
    seed: int = 0
    map: Mapping[str, str] | None = None
    skip_bad: bool = False
    progress: Callable[[int], None] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    estimand: Estimand = USUAL
    where: Mapping[str, str] = field(default_factory=dict)
    """Values of columns or measures: other records are left out."""
    overview: bool = False
    """Whether only a default table is shown, so that all metrics means those that it may show."""

    @property
    def regraded(self) -> frozenset[str]:
        """The parts of grading that its options decide for all records, whatever graded them."""
        return frozenset(part for name, part in REGRADED.items() if name in self.options)


@dataclass(frozen=True, slots=True)
class Scoring:
    """A checked request: its metrics, their options, and the columns they need."""

    metrics: list[Metric]
    options: dict[str, Any]
    request: ScoreRequest
    plan: _Plan

    @classmethod
    def of(
        cls,
        sources: Sequence[Source],
        request: ScoreRequest,
        by: Sequence[str] = (),
        *,
        everything: bool = False,
        also: Collection[str] = (),
    ) -> Scoring:
        """Check a request; `also` names columns to keep in addition to those grouped by."""
        names = [request.metrics] if isinstance(request.metrics, str) else request.metrics
        scores = catalogue.declare_scores(c for s in sources for c in s.score_columns())
        if not names and request.overview:
            names = [*candidates(), *scores]
        chosen = catalogue.chosen(list(names) if names else None, scores)
        options = {**_own_options(sources, request.options), **request.options}
        if weights := options.get("weights"):
            options["weights"] = {catalogue.canonical(n): w for n, w in weights.items()}
        _check_options(options)
        if request.seed < 0:
            raise UsageError(f"The seed is {request.seed}; it must not be negative.")
        if not 0 < request.confidence < 1:
            raise UsageError(
                f"The confidence is {request.confidence:g}; it must be between 0 and 1."
            )
        mapped = ColumnMapping.of(request.map or {})
        told = mapped.mapped if request.overview else ()
        plan = _Plan.of(
            *(chosen, list(by), mapped, options, request.where),
            everything=everything,
            also=also,
            told=told,
        )
        return cls(chosen, options, request, plan)

    def each(
        self, sources: Sequence[Source], take: Callable[[pl.DataFrame], pl.DataFrame]
    ) -> Loaded:
        """Pass the measured records of each chunk to a function, in order."""
        plan, sources = self.plan.knowing(sources)
        return load(sources, plan.wanted, plan.measure, take, self.request.progress)

    def measure(
        self,
        sources: Sequence[Source],
        sink: PerTask | None = None,
        spill: Spill | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> Measured:
        """Read the records and compute their measures; with `spill`, they may exceed memory.

        `elsewhere` measures them in other processes.
        """
        plan, take = self.plan, self.plan.taker(sink, spill)
        if elsewhere:
            loaded = elsewhere(self, sources, take)
        else:
            plan, sources = plan.knowing(sources)
            loaded = load(sources, plan.wanted, plan.measure, take, self.request.progress)
        skip_bad = self.request.skip_bad
        if spill and spill.finish():
            doubles = _on_disk(spill, loaded, plan, skip_bad=skip_bad)
            unused = () if any(one.options() for one in sources) else _unused(loaded, plan)
            return Measured(_no_records(plan), loaded, doubles, unused, spill)
        if spill:
            loaded.frames, spill.waiting = spill.waiting, []
        frame, doubles = _gather(loaded, plan, skip_bad=skip_bad)
        if plan.where and not frame.height:
            theirs = plan.wanted.mapping.sources
            known = {n for n in plan.where if loaded.present & {*theirs.get(n, (n,))}}
            refuse_empty(plan.where, known | loaded.present)
        unused = () if any(one.options() for one in sources) else _unused(loaded, plan)
        return Measured(frame, loaded, doubles, unused)

    def score(
        self, frame: pl.DataFrame, by: Sequence[str]
    ) -> tuple[tuple[Group, ...], pl.DataFrame]:
        """Score measured records by group; also return them with their group and cluster."""
        groups, frame = _number_groups(frame, by)
        request = self.request
        asked = self.metrics, self.options, request.confidence, request.seed, request.estimand
        found = zip(groups, estimates(frame, len(groups), *asked), strict=True)
        counted = _counted(frame, len(groups))
        labelled = bool(self.options.get("positive")) or has_labels(frame)
        repeated = repeats(frame, len(groups), self.options, self.request.confidence)
        return tuple(
            Group(g, estimates=e, repeats=repeated[i], labelled=labelled, **counted[i])
            for i, (g, e) in enumerate(found)
        ), frame


def _unused(loaded: Loaded, plan: _Plan) -> tuple[str, ...]:
    if "tool" in loaded.present:  # a log of another tool, whose columns we chose
        return ()
    mapped = plan.wanted.mapping.sources
    known = {name for column in COLUMNS for name in (column.name, *mapped[column.name])}
    known |= {*FOREIGN} | {name.split(".")[0] for name in known if name in loaded.present}
    own = EXPORTED if "fingerprint" in loaded.present else frozenset()
    return tuple(sorted(loaded.present - known - {*plan.by, *plan.where} - own))


@dataclass(frozen=True, slots=True)
class _Plan:
    """The columns to read, the measures to compute, and the columns to keep for the metrics."""

    wanted: RecordConverter
    passes: list[list[pl.Expr]]
    keep: list[str]
    used: set[str]
    """The kept columns that are needed after duplicate attempts were found."""
    by: list[str]
    where: Mapping[str, str]
    errors: str
    with_verdicts: frozenset[int] = frozenset()
    """The numbers of the sources whose records come with verdicts."""

    @classmethod
    def of(
        cls,
        metrics: Sequence[Metric],
        by: list[str],
        mapped: ColumnMapping,
        options: Mapping[str, Any],
        where: Mapping[str, str],
        *,
        everything: bool,
        also: Collection[str] = (),
        told: Collection[str] = (),
    ) -> _Plan:
        """`told` are columns that are only read so that a mistake in their names is told."""
        inputs = needed_columns(metrics, options) | {*DESCRIBED, *also, "tool"}
        behind = needed_measures([*sorted(inputs), *by, *where])
        read = {*KEY, "status", "error", *by, *where, *inputs, *told}
        read |= {n for m in behind for n in m.inputs}
        columns = [c.name for c in COLUMNS if everything or c.type != "string" or c.name in read]
        own = {*BY_NAME, *MEASURES, FILE}
        pooled = () if everything else FOREIGN
        others = [n for n in dict.fromkeys((*by, *where, *also, *pooled)) if n not in own]
        return cls(
            RecordConverter(mapped, columns, others, everything),
            measure_passes(map(_of_source, MEASURES.values() if everything else behind), options),
            sorted({*by, *KEY, "status", *inputs, *POOLED, LINE, FILE}),
            {*by, "task_id", "status", *SIDE, *inputs, *POOLED},
            by,
            where,
            options.get("errors", "exclude"),
        )

    def knowing(self, sources: Sequence[Source]) -> tuple[_Plan, list[Source]]:
        """Return the plan that knows which sources have verdicts, and sources that can be read.

        In these a missing verdict is not made up for by an answer and a target.
        """
        found: set[int] = set()
        readable = list(sources)
        for number, one in enumerate(sources):
            if not one.rereadable:
                held = tuple(one.chunks(self.wanted.names))
                readable[number] = HeldSource(held, one.name, one.may_be_empty)
            if not one.decides and has_verdicts(readable[number], self.wanted.mapping):
                found.add(number)
        return replace(self, with_verdicts=frozenset(found)), readable

    def measure(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Add the measures to the records of one chunk, and drop the long texts."""
        known = pl.col(FILE).is_in([*self.with_verdicts])
        frame = frame.with_columns(known.alias(HAS_VERDICTS))
        if self.errors == "failures":
            frame = frame.with_columns(
                pl.col("status").cast(pl.String).replace({"error": FAILED}).alias("status")
            )
        for one in self.passes:  # eagerly: planning such small steps would cost more than it saves
            frame = frame.with_columns(one)
        frame = frame.drop(HAS_VERDICTS)
        if self.errors == "failures":
            frame = _failed(frame)
        if self.where:
            frame = frame.filter(selects(column, value) for column, value in self.where.items())
        return frame if self.wanted.everything else frame.select(self.keep)

    def taker(self, sink: PerTask | None, spill: Spill | None = None) -> Take:
        """Return the function that receives measured chunks one after the other."""

        def take(frame: pl.DataFrame) -> pl.DataFrame:
            if sink:
                sink.add(frame)
            foreign = (_foreign(frame, name) for name in FOREIGN)
            frame = frame.with_columns(foreign).select(self.keep)
            few = [name for name in (*FEW, *FOREIGN) if name not in self.by or name in FEW]
            kept = frame.with_columns(pl.col(few).cast(pl.Categorical))
            return spill.take(kept) if spill else kept

        return take


def _of_source(measure: Measure) -> Measure:
    """Have `correct` decide whether an attempt passed only in sources without any verdict."""
    if measure.name != "passed":
        return measure

    def passed(*columns: pl.Expr, **options: Any) -> pl.Expr:
        inputs = dict(zip(measure.inputs, columns, strict=True))
        inputs["correct"] = pl.when(~pl.col(HAS_VERDICTS)).then(inputs["correct"])
        return measure.function(*inputs.values(), **options)

    return replace(measure, function=passed)


def _foreign(frame: pl.DataFrame, name: str) -> pl.Expr:
    """Return a column that a table may have as text; null without one that names anything."""
    there = name in frame.columns and not frame.schema[name].is_nested()
    return (pl.col(name) if there else pl.lit(None)).cast(pl.String).alias(name)


def _failed(frame: pl.DataFrame) -> pl.DataFrame:
    """Give errors the worst value of the measures that other records have."""
    failed = pl.col("status").cast(pl.String).eq_missing(FAILED)
    found = ("impl_rate", "scenario_score", "composite_score", "quality")
    columns = [n for n in ("correct", *found) if n in frame.columns and frame[n].count()]
    return frame.with_columns(
        pl.when(failed).then(pl.lit(0).cast(frame.schema[n])).otherwise(pl.col(n)).alias(n)
        for n in columns
    )


def _own_options(sources: Sequence[Source], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that runs are scored with, apart from the given ones.

    Runs that differ in them are refused.
    """
    found: dict[str, Any] = {}
    first = ""
    for source in sources:
        own = {name: value for name, value in source.options().items() if name not in given}
        differ = [name for name in own if found and own[name] != found.get(name)]
        parts = [REGRADED.get(name, name) for name in differ]
        if parts:
            what = ", ".join(map(part_words, parts))
            raise UsageError(
                f"{first} and {source.name} are graded differently: {what}. {how_to_regrade(parts)}"
            )
        first, found = (first, found) if found else (source.name, own)
    return found


def _check_options(options: Mapping[str, Any]) -> None:
    """Raise UsageError for unknown options, and for weights of unknown metrics."""
    known = {name for one in (*MEASURES.values(), *METRICS.values()) for name in one.options}
    for name in options:
        if name not in known:
            where = "'pennyweight metrics NAME' shows a metric's options."
            raise UsageError(unknown("Option", name, {*known, *_PARAMETERS}, where))
    check_repeat_options(options)
    for name in options.get("weights") or ():
        if name == "weighted_score":
            raise UsageError("weighted_score cannot be one of its own weights.")
        catalogue.metric_named(name)


def _gather(loaded: Loaded, plan: _Plan, *, skip_bad: bool) -> tuple[pl.DataFrame, list[int]]:
    """Join the chunks, and refuse or drop bad records; the second value lists dropped rows."""
    frame = pl.concat(loaded.frames) if loaded.frames else _no_records(plan)
    loaded.frames.clear()  # so that what is dropped from the whole is freed
    frame, doubles = without_doubles(frame, loaded, plan.by)
    frame = frame.drop(set(plan.keep) - plan.used)
    answered = pl.col("status").cast(pl.String).ne_missing(FAILED)  # not wrong for an error alone

    def filled(name: str) -> int:
        values = pl.col(name).filter(answered) if name == "correct" else pl.col(name)
        return int(frame.select(values.count()).item())

    _refuse(loaded, plan, frame.columns, filled, skip_bad=skip_bad)
    return frame, doubles


def _on_disk(spill: Spill, loaded: Loaded, plan: _Plan, *, skip_bad: bool) -> list[int]:
    """Refuse or drop bad records on disk; return the numbers of those that were dropped."""
    rows = suspects(spill, plan.by)
    doubles = report_doubles(rows, loaded, plan.by) if rows.height else []
    _refuse(loaded, plan, spill.schema.names(), spill.filled.__getitem__, skip_bad=skip_bad)
    spill.drop(doubles)
    return doubles


def _refuse(
    loaded: Loaded,
    plan: _Plan,
    columns: Collection[str],
    filled: Callable[[str], int],
    *,
    skip_bad: bool,
) -> None:
    """Refuse bad records, an unknown column, and targets without answers."""
    some = filled("status")
    if loaded.problem_count and not skip_bad:
        raise InputError(loaded.problems, loaded.problem_count, SKIP_HINT if some else "")
    for name in plan.by:
        names = plan.wanted.mapping.sources.get(name, (name,))
        if not some or filled(name) or name in MEASURES:
            continue
        if not loaded.present & set(names):
            known = [n for n in (*loaded.present, *BY_NAME, *MEASURES) if n != name]
            raise UsageError(unknown("--by column", name, known, "It is in none of the records."))
    if "correct" not in columns or not filled("correct") or "tool" in loaded.filled:
        return
    theirs = plan.wanted.mapping.sources
    given = loaded.filled - ({"expected"} if COUNTS & loaded.filled else set())
    there = {c for c in ("target", "answer", "response") if given & set(theirs[c])}
    if there == {"target"}:
        raise UsageError(
            "The records have targets but no answers. Name the column that holds them: "
            "--map answer=COLUMN (or response=COLUMN); --map target= scores the rest."
        )


def _no_records(plan: _Plan) -> pl.DataFrame:
    types = {n: dtype(n) for n in plan.wanted.columns}
    types |= dict.fromkeys(plan.wanted.others, pl.String)
    empty = pl.DataFrame(schema={**types, LINE: pl.UInt32, FILE: pl.UInt32})
    return plan.taker(None)(plan.measure(empty))


def _counted(frame: pl.DataFrame, groups: int) -> list[dict[str, Any]]:
    """Count the records and errors of each group, and describe the measures of repeated runs."""
    failed = pl.col("status") == "error"
    broken = pl.col("status").cast(pl.String).is_in(["error", FAILED])
    everything, scored = (Grouped(f, groups, {}, 0.0, 0) for f in (frame, frame.filter(~failed)))
    counts = everything.aggregate([pl.len().alias("records"), broken.sum().alias("errors")])
    values = [pl.col(n).drop_nulls().n_unique() for n in POOLED if n in frame.columns]
    pooled = everything.aggregate(values).fill_null(0).to_dicts()
    rows = scored.aggregate([described(name) for name in DESCRIBED]).to_dicts()
    return [
        {
            **count,
            "tasks": tasks,
            "statistics": {n: statistics_of(row) for n, row in found.items()},
            "pooled": several(values),
        }
        for count, tasks, found, values in zip(
            counts.to_dicts(), scored.tasks, rows, pooled, strict=True
        )
    ]


MOST_LABELS = 20


def has_labels(frame: pl.DataFrame) -> bool:
    """Whether targets are labels: few different ones, each of at least two tasks."""
    if "target_label" not in frame.columns:
        return False
    tasks = frame.lazy().drop_nulls("target_label").group_by("target_label")
    repeated = pl.col(CLUSTER).n_unique() >= 2
    labels = tasks.agg(repeated.alias("repeated")).collect()["repeated"]
    return 0 < len(labels) <= MOST_LABELS and labels.all()


def described(column: str) -> pl.Expr:
    """Return a struct with the fields of `Statistics`; the smallest mode on ties."""
    values = pl.col(column).cast(pl.Float64).drop_nulls()
    return pl.struct(
        median=values.median(),
        mean=values.mean(),
        mode=values.mode().min(),
        min=values.min(),
        max=values.max(),
        std_dev=pl.when(values.is_finite().all()).then(values.std(ddof=0)),
        count=values.len(),
    ).alias(column)


def statistics_of(row: dict[str, Any] | None) -> Statistics | None:
    """Return the statistics in a struct that `described` gives; None without values."""
    return Statistics(**row) if row and row["count"] else None


def _number_groups(
    frame: pl.DataFrame, by: Sequence[str]
) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """Number the groups and the clusters of records."""
    labels = [n for n in LABELS if n in frame.columns]
    frame = frame.with_columns(cluster(), pl.col(labels).cast(pl.Categorical))
    if not by:
        return [{}], frame.with_columns(pl.lit(0, dtype=pl.UInt32).alias(GROUP))
    groups = in_natural_order(frame.select(by).unique())
    numbered = groups.with_row_index(GROUP)
    frame = frame.join(numbered, on=list(by), how="left", nulls_equal=True, maintain_order="left")
    return groups.to_dicts(), frame
