"""Score records: every metric with its interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight.api.sharing.ray_partitions import ray_partitions
from pennyweight.api.sources import Given, is_rematched, rematched, resolve, runs_of
from pennyweight.catalogue import MEASURES, METRICS, declare_scores
from pennyweight.errors import UsageError
from pennyweight.scoring.estimands import Estimand
from pennyweight.scoring.large.scores import LargeScores
from pennyweight.scoring.large.spill import Spill
from pennyweight.scoring.per_task import PerTask, PerTaskResult
from pennyweight.scoring.pipeline import ScoreRequest, Scoring
from pennyweight.scoring.scores import Scores
from pennyweight.sources.log_source import TOOL_PASSED, differing_verdicts
from pennyweight.sources.source import FileSource, Source
from pennyweight.stored_runs.imported import is_imported
from pennyweight.suite.narrowing import part_words
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.matching import MatchRule

if TYPE_CHECKING:
    from pennyweight.scorers.declaration import Scorer
    from pennyweight.scorers.loader import Named
    from pennyweight.scoring.comparison import Comparison
    from pennyweight.scoring.labelled import LabelledRun
    from pennyweight.store.store import Store

    Scorers = Named | Sequence[Named]

_LOOKED_AT = 20
"""The files of a folder or pattern that are looked at for doubtful columns."""


@dataclass(frozen=True, slots=True, repr=False)
class ScoredRecords(Scores):
    """Scores that know their records."""

    sources: tuple[Source, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    """How the sources were read: columns, bad records, and the rules of answers."""

    def records(self) -> pl.DataFrame:
        """Return every record with its measures."""
        return measured_frame(self.sources, **self.reading)

    def failures(self) -> pl.DataFrame:
        """Return the records that did not pass, and those that could not be made."""
        return not_passed(self.records())

    def _repr_html_(self) -> str:
        from pennyweight.render.notebook import scores_html  # noqa: PLC0415
        from pennyweight.render.scores import score_error_lines  # noqa: PLC0415

        notes = [
            f"run {r.run_id} has {r.narrowed}." for r in unfinished(self.sources) if r.narrowed
        ]
        return scores_html(self, [*notes, *score_error_lines(self.score_errors)])

    def compare(self, by: str | Sequence[str] | None = None, **options: Any) -> Comparison:
        """Compare sides of the same records, as `pennyweight.compare` does."""
        from pennyweight.api.compare import compare  # noqa: PLC0415

        given = {"confidence": self.confidence, **self.reading, **options}
        return compare(self.sources, by=by, **given)


def score(
    source: Given,
    *,
    by: str | Sequence[str] | None = (),
    metrics: str | Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    map: Mapping[str, str] | None = None,  # noqa: A002
    where: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    per_task: str | Path | None = None,
    prices: str | Path | None = None,
    checks: str | Path | None = None,
    scorers: Scorers = (),
    answer: str | None = None,
    match: str | None = None,
    scorer: str | None = None,
    filter: str | None = None,  # noqa: A002
    weight: str = "records",
    estimand: str = "tasks-like-these",
    store: str | Store | None = None,
    overview: bool = False,
    on: str | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> ScoredRecords:
    """Compute metrics of records, each with its interval.

    `source` is a path, a folder, `-`, a run (its id, a unique prefix, `latest`), several of them,
    a Polars or pandas frame or an iterable of dicts. `by` names columns to group by; None shows
    each subject, tier, data set and tool by itself. `metrics` are the metrics to compute (default:
    all). `map` names the foreign column behind a column of the record.
    `where` leaves out records with other values, such as `{"tier": "T1", "passed": "false"}`.
    `per_task` names a file (JSONL or Parquet) that gets every record with its measures. `prices`
    and `checks` name a price list and a suite by which runs are priced and checked again. `scorers`
    are functions, names or files (`scorers.py`) that score the records now; their files may also
    declare metrics and measures. `answer`
    and `match` are rules such as `last_number` and `numeric=0.01`, in place of those of a run's
    suite, or of the verdict in another tool's log; `scorer` and `filter` choose among the scores of
    such a log. With `weight="tasks"`, means count each task once, however often it was attempted.
    With `estimand="these-tasks"`, intervals are about these tasks alone, not tasks like these.
    With `overview`, only the metrics that a default table may show are computed, which is quicker.
    `on="ray"` (or `ray://HOST:PORT`) measures the files of a table on a Ray cluster. Other keywords
    are options of metrics, such as `positive="yes"`.

    >>> score([{"answer": "4", "target": "4"}, {"answer": "5", "target": "4"}])["accuracy"].value
    0.5
    """
    scorers = named_scorers(scorers)
    sides = by is None
    by = [by] if isinstance(by, str) else list(dict.fromkeys(by or ()))
    options |= rules(answer, match)
    found = rematched(resolve(source, store, scorer=scorer, filter=filter), options)
    sources, unpriced = rescored(found, [*by, *(where or ())], prices=prices, checks=checks)
    _refuse_overwriting(sources, per_task)
    means = Estimand.of(weight, estimand)
    brief = overview and not (metrics or options)  # of the options, all metrics tell mistakes
    request = ScoreRequest(
        metrics, confidence, seed, map, skip_bad, progress, options, means, where or {}, brief
    )
    sources, failed = scored(sources, scorers, request, checks)
    verdicts = (TOOL_PASSED,) if any(is_rematched(one) for one in found) else ()
    work = Scoring.of(sources, request, by, everything=per_task is not None, also=verdicts)
    alone = "--per-task" if per_task is not None else "--scorers" if scorers else ""
    elsewhere = None if on is None else ray_partitions(on, sources, by, alone)
    with PerTask.open(per_task) as sink, Spill.open(by) as spill:
        measured = work.measure(sources, sink, spill, elsewhere)
        by = measured.sides if sides else by
        if measured.spilled:
            groups, about = LargeScores(work, spill, by).score(), spill.frame([*verdicts, "passed"])
        else:
            groups, about = work.score(measured.frame, by)[0], measured.frame
        if sink:
            sink.finish(measured.doubles)
    people: Sequence[LabelledRun] = ()
    if not (overview or where) and runs_of(sources):
        from pennyweight.api.review import labelled_runs  # noqa: PLC0415 - files have no labels

        people = labelled_runs(sources, confidence)
    return ScoredRecords(
        groups=groups,
        confidence=confidence,
        left_out=measured.left_out,
        problems=tuple(measured.loaded.problems),
        unused=measured.unused,
        unpriced=unpriced,
        score_errors=failed,
        estimand=means,
        sources=tuple(sources),
        reading={
            "map": map,
            "where": where,
            "skip_bad": skip_bad,
            "answer": answer,
            "match": match,
        },
        notes=differing_verdicts(about) if verdicts else (),
        people=tuple(people),
        errors=str(work.options.get("errors", "exclude")),
    )


def per_task_results(
    source: Given,
    *,
    map: Mapping[str, str] | None = None,  # noqa: A002
) -> list[PerTaskResult]:
    """Return what each record of a source gives, as plain values.

    >>> per_task_results([{"answer": "4", "target": "4", "cot": "2 + 2"}])[0].cot_tokens
    3
    """
    fields = list(PerTaskResult.__dataclass_fields__)
    return [PerTaskResult(**row) for row in measured_rows(source, fields, map=map)]


def measured_frame(
    source: Given, *, store: str | Store | None = None, **reading: Any
) -> pl.DataFrame:
    """Return every record with its measures, as `per_task` writes them."""
    with TemporaryDirectory(prefix="pennyweight-records-") as folder:
        path = Path(folder, "records.parquet")
        score(source, metrics="pass_rate", per_task=path, store=store, **reading)
        return pl.read_parquet(path) if path.exists() else pl.DataFrame()


def not_passed(records: pl.DataFrame) -> pl.DataFrame:
    """Return the records that did not pass, and those that could not be made."""
    if records.is_empty():
        return records
    wrong = pl.col("passed").eq_missing(other=False)
    if "status" in records.columns:
        wrong = wrong | pl.col("status").eq_missing("error")
    return records.filter(wrong)


def measured_rows(
    source: Given,
    columns: Sequence[str],
    *,
    map: Mapping[str, str] | None = None,  # noqa: A002
    store: str | Store | None = None,
) -> list[dict[str, Any]]:
    """Return some columns and measures of each record."""
    sources = resolve(source, store)
    scoring = Scoring.of(sources, ScoreRequest("pass_rate", map=map), also=columns)
    return scoring.measure(sources).frame.select(columns).to_dicts()


def rescored(
    sources: list[Source],
    by: Sequence[str] = (),
    *,
    prices: str | Path | None = None,
    checks: str | Path | None = None,
) -> tuple[list[Source], tuple[str, ...]]:
    """Have runs grouped by columns of their tasks, and priced and checked by other files.

    The second value names the subjects for which `prices` has no price; their cost stays.
    """
    runs = runs_of(sources)
    if prices is not None and not runs:
        raise UsageError("--prices applies to runs; a file keeps the cost it has.")
    if checks is not None and len(runs) < len(sources):
        raise UsageError("--checks applies to runs; a file keeps what was observed in it.")
    if not runs:
        return sources, ()
    from pennyweight.stored_runs.price_list import PriceList  # noqa: PLC0415
    from pennyweight.suite.loader import load_suite  # noqa: PLC0415

    listed = PriceList.read(str(prices)) if prices is not None else None
    suite = load_suite(str(checks)) if checks is not None else None
    again: dict[int, Source] = {
        id(run): replace(run, task_columns=tuple(by), prices=listed or run.prices,
                         checks=suite or run.checks)
        for run in runs
    }  # fmt: skip
    unpriced = [
        name
        for run in (runs if listed else ())
        for name in run.run.sides["subject"]
        if listed and name not in listed.of(run.run)
    ]
    return [again.get(id(one), one) for one in sources], tuple(dict.fromkeys(unpriced))


def scored(
    sources: list[Source],
    scorers: Scorers,
    request: ScoreRequest,
    checks: str | Path | None = None,
) -> tuple[list[Source], Mapping[str, tuple[int, str]]]:
    """Score records now, by scorers or those of the suite that `checks` names.

    Also return how often each scorer failed, and with which error first.
    """
    named = named_scorers(scorers)
    suite = runs_of(sources)[0].checks if checks is not None else None
    own = suite.scorers if suite else ()
    if not named and not own:
        return sources, {}
    from pennyweight.scorers.loader import find_scorers  # noqa: PLC0415
    from pennyweight.stored_runs.scores import scored_now  # noqa: PLC0415

    found, errors = scored_now(sources, find_scorers([*own, *named]), request)
    declare_scores(column for source in found for column in source.score_columns())
    return found, errors


def named_scorers(scorers: Scorers) -> tuple[Scorer, ...]:
    """Find the scorers that a person names, and load the metrics and checks in their files.

    It is called before anything names a metric.
    """
    named = [scorers] if isinstance(scorers, str | Path) or callable(scorers) else list(scorers)
    if not named:
        return ()
    from pennyweight.scorers.loader import find_scorers  # noqa: PLC0415

    found = find_scorers(named)
    for one in found:
        if one.question:
            raise UsageError(
                f"{one.name} asks a judge, which only a run does: add it to 'scorers:' of its "
                "suite, then 'pennyweight run --resume RUN'."
            )
    return found


def doubtful(
    sources: Sequence[Source],
    map: Mapping[str, str],  # noqa: A002
    answer: str | None = None,
) -> Iterator[str]:
    """Yield what looks wrong in the first records of files, such as latencies in seconds."""
    from pennyweight.sources.doubts import doubts  # noqa: PLC0415
    from pennyweight.sources.source import FileSource  # noqa: PLC0415

    mapped = {name for theirs in map.values() for name in theirs.split(",")}
    seen: Counter[str] = Counter()
    for source in sources:
        seen[source.origin] += 1
        few = seen[source.origin] <= _LOOKED_AT
        if few and isinstance(source, FileSource) and source.rereadable:
            found = doubts(Path(source.name), mapped, answer)
            yield from (f"{source.name}: {what}" for what in found)


def rules(answer: str | None, match: str | None) -> dict[str, Any]:
    """Read the rules that replace those of a run's suite, as options of measures."""
    options: dict[str, Any] = {}
    if answer is not None or match is not None:
        options["match_verified"] = True
    if answer is not None:
        options["answer_rule"] = AnswerRule.parse(answer)
    if match is not None:
        options["match_rule"] = MatchRule.parse(match)
        if missing := options["match_rule"].missing():
            raise UsageError(missing)
    return options


def option_defaults() -> dict[str, Any]:
    """Return the options of measures and metrics with their defaults."""
    declared = (*MEASURES.values(), *METRICS.values())
    return {name: default for one in declared for name, default in one.options.items()}


def _refuse_overwriting(sources: Sequence[Source], per_task: str | Path | None) -> None:
    """Raise UsageError if the file to write is one of those being read."""
    if per_task is None:
        return
    target = Path(per_task).resolve()
    if any(isinstance(s, FileSource) and Path(s.name).resolve() == target for s in sources):
        raise UsageError(f"--per-task {per_task} is one of the sources; choose another name.")


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run of which attempts are missing."""

    run_id: str
    made: int
    planned: int
    status: str
    narrowed: str = ""
    """What part of its suite it was to have, in words; empty for all of it."""


def unfinished(sources: Iterable[Source]) -> list[UnfinishedRun]:
    """Return the runs that lack attempts or tasks: no score of them covers the whole suite."""
    found = []
    for source in runs_of(sources):
        run, statuses = source.run, source.store.statuses(source.run.id)
        made = sum(statuses.values()) - statuses.get("error", 0)
        narrowed = part_words(run.settings)
        if (made < run.attempts and not is_imported(run.settings)) or narrowed:
            from pennyweight.api.runs import status_of  # noqa: PLC0415

            status = status_of(run, source.store)
            found.append(UnfinishedRun(run.id, made, run.attempts, status, narrowed))
    return found


def unanswered(sources: Iterable[Source], answer: str | None = None) -> list[str]:
    """Describe runs in which the answer rule finds hardly any answer: accuracy is meaningless."""
    runs = [run for run in runs_of(sources) if not is_imported(run.run.settings)]
    if not runs:
        return []
    from pennyweight.engine.advice import LOOKS_AT, unanswered  # noqa: PLC0415
    from pennyweight.suite.implied import is_implied  # noqa: PLC0415

    rule = AnswerRule.parse(answer) if answer is not None else None
    notes = (
        unanswered(
            source.store.records(source.run.id, LOOKS_AT),
            rule or source.options()["answer_rule"],
            asked=rule is None and is_implied(source.run.text),
        )
        for source in runs
    )
    return [note for note in notes if note]
