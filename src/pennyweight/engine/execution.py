"""Execute a suite: find the attempts to make, make them, and store how that ended."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pennyweight.engine.budget import Budget
from pennyweight.engine.ending import TakenOver
from pennyweight.engine.engine import Engine
from pennyweight.engine.interrupts import Stopping
from pennyweight.engine.resume import begin, held, place_of, settings_of
from pennyweight.engine.tally import Tally
from pennyweight.engine.workforce import recorded
from pennyweight.errors import StoreError, UsageError
from pennyweight.models.model import Model
from pennyweight.models.prices import Prices
from pennyweight.models.providers import find
from pennyweight.schema.user_code import suite_folder
from pennyweight.store.store import RECORD_COLUMNS, Row, Spending, Store, StoredRun
from pennyweight.stored_runs.code_checks import run_code_checks
from pennyweight.stored_runs.observations import save_suite_scenarios
from pennyweight.suite.definition import GivenSuite
from pennyweight.suite.loader import load_suite
from pennyweight.suite.narrowing import Narrowing
from pennyweight.suite.plan import Attempt, count
from pennyweight.suite.values import LoadedSuite, Subject

STATUS, ERROR_KIND = RECORD_COLUMNS.index("status"), RECORD_COLUMNS.index("error_kind")
Watch = Callable[[Tally, Budget, list[Row]], None]
"""Receives the records that were just committed; called from the writer's thread."""


@dataclass(frozen=True, slots=True)
class AttemptsResult:
    """How a run ended."""

    run: StoredRun
    tally: Tally
    spent: Spending
    interrupted: bool
    broken: int = 0
    """How many of the suite's own checks raised an error."""
    score_errors: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """How often each scorer failed, and with which error first."""

    @property
    def missing(self) -> int:
        """How many attempts were not made, or failed."""
        return self.tally.missing


def check_subject(subject: Subject) -> str | None:
    """Return what is wrong with a subject's model, address or key; None if nothing is."""
    try:
        model_of(subject)
    except UsageError as error:
        return str(error)
    return None


def model_of(subject: Subject, timeout: float | None = None, *, keyless: bool = False) -> Model:
    """Return the model of a subject; a `keyless` one only shows what would be sent."""
    if subject.agent:
        from pennyweight.agent.command import CommandAgent  # noqa: PLC0415

        return CommandAgent(subject.name, subject.agent)
    where, key = subject.base_url, subject.key_env
    return find(
        subject.model, base_url=where, key_env=key, timeout=timeout, folder=subject.folder,
        keyless=keyless,
    )  # fmt: skip


def open_suite(
    path: GivenSuite,
    text: str | None = None,
    by: Sequence[str] = (),
    narrowing: Narrowing | None = None,
) -> LoadedSuite:
    """Load a suite, and check its models, their settings and the columns to group by."""
    from pennyweight.engine.preflight import mistakes  # noqa: PLC0415

    return load_suite(path, text, check_subject, lambda suite: mistakes(suite, by), narrowing)


def new_run(suite: LoadedSuite) -> StoredRun:
    """Return a new run with everything needed to repeat it."""
    moment = datetime.now(UTC)
    return StoredRun(
        id=f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}",
        suite=suite.name,
        path=place_of(suite),
        text=suite.text,
        data_hash=suite.data_hash,
        status="running",
        attempts=count(suite),
        created=moment.timestamp(),
        ended=None,
        settings=settings_of(suite),
    )


def execute(
    suite: LoadedSuite,
    run: StoredRun,
    store: Store,
    *,
    watch: Watch,
    record: Path | None = None,
    began: float | None = None,
) -> AttemptsResult:
    """Make the attempts of a stored run that have no good record yet.

    `began` is when the run began, for a limit in seconds that covers several phases.
    """
    execution = _Execution(suite, run, store, watch, record, began, Tally(count(suite)))
    with held(store, run.id, execution.lose):
        return execution.complete()


def lose(tally: Tally, stopping: Stopping | None) -> None:
    """Stop at once because another process has the run now."""
    tally.stop_reason, tally.stopping = TakenOver(), True
    if stopping:
        stopping.lose()


@dataclass(slots=True)
class _Execution:
    """Makes the attempts of a run that this process holds."""

    suite: LoadedSuite
    run: StoredRun
    store: Store
    watch: Watch
    record: Path | None
    began: float | None
    tally: Tally
    engine: Engine | None = None

    def lose(self) -> None:
        """Stop at once because another process has the run now; called from any thread."""
        lose(self.tally, self.engine.workforce.stopping if self.engine else None)

    def complete(self) -> AttemptsResult:
        """Make the attempts and store how that ended."""
        suite, run, store, tally = self.suite, self.run, self.store, self.tally
        todo, tally.total = begin(run, suite, store)
        save_suite_scenarios(suite, run, store)
        models = {s.name: model_of(s, suite.limits.timeout) for s in suite.subjects}
        try:
            with recorded(models, self.record) as recording:
                interrupted = asyncio.run(self._make(recording, iter(todo)))
        except BaseException as error:
            patience = 0.0 if isinstance(error, StoreError) else None  # it has been waited for
            with contextlib.suppress(StoreError):
                store.set_run(run.id, patience=patience, status="failed", ended=time.time())
            raise
        whole = tally.done == tally.total and not tally.errors
        status = "done" if whole else "stopped" if interrupted or tally.stop_reason else "failed"
        store.set_run(run.id, status=status, ended=time.time())
        broken = 0 if tally.lost else run_code_checks(suite, run, store)
        failed = {} if tally.lost else self._score()
        run = replace(run, status=status)
        return AttemptsResult(run, tally, store.spent(run.id), interrupted, broken, failed)

    def _score(self) -> Mapping[str, tuple[int, str]]:
        """Run the scorers of the suite; also remove the scores of those that it no longer has."""
        run = self.store.find(self.run.id)
        if not self.suite.scorers and not run.settings.get("scores"):
            return {}
        from pennyweight.stored_runs.scores import run_scorers  # noqa: PLC0415 - it loads all of scoring

        with suite_folder(Path(self.suite.path).parent):
            return run_scorers(self.suite.scorers, run, self.store)

    async def _make(self, models: Mapping[str, Model], todo: Iterator[Attempt]) -> bool:
        """Run the engine until it ends; return whether a signal interrupted it."""
        prices = Prices.with_models(self.suite.prices, models)
        budget = Budget.of(self.suite.limits, self.store, self.run.id, self.began)
        tally = self.tally

        def committed(rows: list[Row]) -> None:
            for row in () if tally.lost else rows:  # a run that was lost accepts no records
                tally.done += 1
                if row[STATUS] == "error":
                    kind = row[ERROR_KIND]
                    tally.errors[kind] = tally.errors.get(kind, 0) + 1
            with contextlib.suppress(Exception):  # a broken display must not end a paid run
                self.watch(tally, budget, rows)

        engine = self.engine = Engine(
            self.suite, self.run.id, models, self.store, prices, budget, tally, committed
        )
        committed([])
        engine.workforce.stopping.listen()
        try:
            await engine.make(todo)
        finally:
            for model in models.values():
                await model.close()
            engine.workforce.stopping.leave()
        return engine.workforce.stopping.signals > 0
