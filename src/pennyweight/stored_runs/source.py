"""Runs as sources: the records of a run, scored by the rules of its suite."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight.measures.answer import VERIFY
from pennyweight.metrics.scores import ScoreColumn
from pennyweight.record import KEY_IN_RUN, TASK_PREFIX
from pennyweight.scoring.pooling import FOREIGN
from pennyweight.sources.chunks import Rows
from pennyweight.sources.parsing import Names
from pennyweight.sources.source import Rerun, Source
from pennyweight.stored_runs.grading import grading_digest
from pennyweight.stored_runs.imported import NEEDED, is_imported, unpacked
from pennyweight.suite.narrowing import Narrowing, fewer_words
from pennyweight.text.confidence import read_logprobs
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.matching import MatchRule

if TYPE_CHECKING:
    from pennyweight.store.store import RunSettings, Store, StoredRun
    from pennyweight.stored_runs.price_list import PriceList
    from pennyweight.suite.values import LoadedSuite


@dataclass(frozen=True, slots=True)
class RunScores:
    """Scores of the records of a run, as `store.scores.scores_of` returns them."""

    frame: pl.DataFrame
    columns: tuple[ScoreColumn, ...]


@dataclass(frozen=True, slots=True)
class RunSource(Source):
    """The records of one run."""

    run: StoredRun
    store: Store
    prices: PriceList | None = None
    """Reprices its records."""
    checks: LoadedSuite | None = None
    """Another suite, whose behaviours and checks replace those of the run."""
    task_columns: tuple[str, ...] = ()
    """Further columns of the tasks that records are grouped by."""
    scored: RunScores | None = None
    """Scores in place of those that are stored."""
    rematch: bool = False
    """Whether answers are compared again, in place of the verdicts that were imported."""
    labels: bool = True
    """Whether people's labels of the records are read."""
    tasks: frozenset[str] = frozenset()
    """The tasks whose records are read; all of them if none is named."""

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"run {self.run.id}"

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.run.id

    @property
    def planned(self) -> int | None:
        """How many attempts each subject has in each tier, if the suite is run in full.

        A log does not say what was planned: its sides may have different tasks.
        """
        if is_imported(self.run.settings):
            return None
        sides = math.prod(map(len, self.run.sides.values()))
        made, settings = self.run.attempts // max(1, sides), self.run.settings
        narrowing = Narrowing.stored(settings)
        tasks, runs = settings.get("tasks", 0), settings.get("runs", 1)
        if not narrowing.is_part(tasks, runs):
            return made
        return max(tasks, narrowing.of_tasks or 0) * max(runs, narrowing.of_runs or 0)

    @property
    def narrowed(self) -> str:
        """What part of its suite it has, in words."""
        return fewer_words(self.run.settings)

    @property
    def sides(self) -> Mapping[str, Sequence[str]]:
        """The subjects and tiers of its suite; a log need not have each subject in each tier."""
        return {} if is_imported(self.run.settings) else self.run.sides

    @property
    def required(self) -> tuple[str, ...]:
        """The scenarios that must pass, whether they were tried or not."""
        from pennyweight.store.verdicts import scenarios_of  # noqa: PLC0415

        scenarios = scenarios_of(self.store, self.run.id).items()
        return tuple(task for task, text in scenarios if json.loads(text).get("required"))

    @property
    def rerun(self) -> Rerun | None:
        """How its tasks are tried again, if it has a suite."""
        if is_imported(self.run.settings):
            return None
        return Rerun(self.run.created, f"pennyweight run --resume {self.run.id}")

    @property
    def decides(self) -> bool:
        """Whether a suite says what decides each record; the records of a log say it themselves."""
        return not is_imported(self.run.settings)

    def score_columns(self) -> Sequence[ScoreColumn]:
        """Return the scores of its records."""
        if self.scored is not None:
            return self.scored.columns
        stored = self.run.settings.get("scores") or {}
        return [ScoreColumn.of(name, given) for name, given in stored.items()]

    def frames(self, names: Names | frozenset[str] | None = None) -> Iterator[pl.DataFrame]:
        """Read the records, or some of their columns, with all that was said about them."""
        if not self.labels or (names is not None and "person_right" not in names):
            return self._scored(names)
        from pennyweight.store.remarks import record_verdicts  # noqa: PLC0415

        said = record_verdicts(self.store, self.run.id)
        if not said:
            return self._scored(names)
        from pennyweight.scoring.labelled import Label, label_frame  # noqa: PLC0415

        labels = label_frame(Label(one.key[1:], one.who, one.verdict, one.draws) for one in said)
        right = pl.when("drawn").then(pl.col("label") == 1).alias("person_right")
        labels = labels.select(*KEY_IN_RUN, right)
        frames = self._scored(None if names is None else frozenset({*names, *KEY_IN_RUN}))
        return (
            f.join(
                labels.cast({n: f.schema[n] for n in KEY_IN_RUN}),
                on=KEY_IN_RUN,
                how="left",
                maintain_order="left",
            )
            for f in frames
        )

    def _scored(self, names: Names | frozenset[str] | None) -> Iterator[pl.DataFrame]:
        """Read the records with what was observed and scored."""
        if not self.score_columns() or (names is not None and "scores" not in names):
            return self._observed(names)
        scores = self.scored.frame if self.scored else None
        if scores is None:
            from pennyweight.store.scores import scores_of  # noqa: PLC0415

            scores = scores_of(self.store, self.run.id)
        key = [*KEY_IN_RUN, "fingerprint"]
        wanted = None if names is None else frozenset({*names, *key})
        frames = self._observed(wanted)
        return (f.join(scores, on=key, how="left", maintain_order="left") for f in frames)

    def _observed(self, names: Names | frozenset[str] | None) -> Iterator[pl.DataFrame]:
        """Read the records with the observed behaviours."""
        from pennyweight.schema.user_code import suite_folder  # noqa: PLC0415
        from pennyweight.stored_runs.observations import FILLED, NEEDED, Observer  # noqa: PLC0415

        observer = None
        if names is None or any(name in names for name in FILLED):
            observer = Observer.of(self.run, self.store, self.checks)
        if observer is None:
            yield from self._judged(names)
            return
        wanted = None if names is None else {*names, *NEEDED}
        with suite_folder(Path(self.checks.path if self.checks else self.run.path).parent):
            for frame in self._judged(wanted):
                yield observer.add(frame)

    def _judged(self, names: Names | Set[str] | None) -> Iterator[pl.DataFrame]:
        """Read the records with the judges' scores."""
        if "judge" not in self.run.settings:
            return self._billed(names)
        from pennyweight.stored_runs.panel import NEEDED, Panel  # noqa: PLC0415

        panel = Panel.of(self.run, self.store)
        frames = self._frames(None if names is None else {*names, *NEEDED})
        return frames if panel is None else (panel.join(frame) for frame in frames)

    def _billed(self, names: Names | Set[str] | None) -> Iterator[pl.DataFrame]:
        """Read the records with the cost of judges that were only asked about sentences."""
        if names is not None and "judge_cost_usd" not in names:
            return self._frames(names)
        from pennyweight.store.bills import judging_costs  # noqa: PLC0415

        bills = judging_costs(self.store, self.run.id)
        if bills.is_empty():
            return self._frames(names)
        frames = self._frames(None if names is None else {*names, *KEY_IN_RUN})
        return (f.join(bills, on=KEY_IN_RUN, how="left", maintain_order="left") for f in frames)

    def _frames(self, names: Names | Set[str] | None) -> Iterator[pl.DataFrame]:
        """Read the records a few thousand at a time, repriced if there is a price list."""
        settings = self.run.settings
        frames = self._priced(names)
        if "verified" in settings and (names is None or "matched_by" in names):
            wanted = None if names is None else {*names, *KEY_IN_RUN}
            frames = (mark_verified(frame, settings) for frame in self._priced(wanted))
        if names is None or "grading_digest" in names:
            grading = pl.lit(grading_digest(settings), dtype=pl.String).alias("grading_digest")
            if not is_imported(settings):
                return (frame.with_columns(grading) for frame in frames)
        return frames

    def _priced(self, names: Names | Set[str] | None) -> Iterator[pl.DataFrame]:
        if is_imported(self.run.settings):
            wanted = None if names is None else {*names, *NEEDED}
            frames = self.store.records(self.run.id, wanted, self.tasks)
            return (unpacked(frame, rematch=self.rematch) for frame in frames)
        if self.prices is None:
            return self.store.records(self.run.id, names, self.tasks)
        from pennyweight.stored_runs.price_list import priced  # noqa: PLC0415

        prices = self.prices.of(self.run)
        frames = self.store.records(self.run.id, None, self.tasks)
        return (priced(frame, prices) for frame in frames)

    def chunks(self, names: Names) -> Iterator[Rows]:
        """Yield the records in chunks."""
        first = 1
        own = is_imported(self.run.settings)  # its log says what each record belongs to
        further = self.task_columns or "context" in names or "choices" in names or own
        wanted = None if names.all else frozenset((*names, "extra")) if further else names
        for read in self.frames(wanted):
            self._check_logprobs(read)
            frame = self.with_task_columns(read)
            if "suite" in names and "suite" not in frame.columns and not own:
                frame = frame.with_columns(pl.lit(self.run.suite).alias("suite"))
            yield Rows(self.name, frame.lazy(), range(first, first + frame.height))
            first += frame.height

    def _check_logprobs(self, frame: pl.DataFrame) -> None:
        """Raise an error for log-probabilities of another form, if the suite scores by them."""
        if self.run.settings.get("confidence") != "logprobs" or "logprobs" not in frame.columns:
            return
        from pennyweight.store.cells import damaged  # noqa: PLC0415

        for text in frame["logprobs"].drop_nulls():
            if read_logprobs(text) is None:
                raise damaged(f"logprobs of a record is {text!r:.60}, which is no list of pairs")

    def with_task_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Add the further columns of the tasks, which records store as JSON."""
        if "extra" not in frame.columns:
            return frame
        names = [*self.task_columns, *(FOREIGN if is_imported(self.run.settings) else ())]
        names += [
            name
            for name in ("context", "choices")
            if frame["extra"].str.contains(f'"{name}"', literal=True).any()
        ]
        missing = [name for name in dict.fromkeys(names) if name not in frame.columns]
        if not missing:
            return frame
        from pennyweight.store.cells import json_cell  # noqa: PLC0415

        what = "extra of a record"
        extras = [json_cell(text, dict, what) if text else {} for text in frame["extra"]]
        found = {name: [_written(own_column(name, extra)) for extra in extras] for name in missing}
        return frame.with_columns(
            pl.Series(name, values, dtype=pl.String)
            for name, values in found.items()
            if any(value is not None for value in values)
        )

    def options(self) -> dict[str, Any]:
        """Return the scoring options of its suite."""
        settings = self.run.settings
        if is_imported(settings):
            return dict.fromkeys(("answer_rule", "match_rule", "confidence_from"))
        return {
            "answer_rule": AnswerRule.of(settings),
            "match_rule": MatchRule.stored(settings.get("match", {})),
            "confidence_from": settings.get("confidence"),
        }


def own_column(name: str, extra: Mapping[str, Any]) -> Any:
    """Return a column of a task; `task_subject` is `subject`, if that is another one in records.

    >>> own_column("task_subject", {"subject": "law"}), own_column("level", {"level": 3})
    ('law', 3)
    """
    return extra.get(name, extra.get(name.removeprefix(TASK_PREFIX)))


def mark_verified(frame: pl.DataFrame, settings: RunSettings) -> pl.DataFrame:
    """Mark the records that a command verified: their answers are not compared with targets."""
    verified = settings.get("verified")
    if verified is None:
        return frame
    by_command = pl.col("subject").is_in(verified["subjects"])
    by_command &= ~pl.col("task_id").is_in(verified["other_tasks"])
    return frame.with_columns(pl.when(by_command).then(pl.lit(VERIFY)).alias("matched_by"))


def _written(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
