"""Execute a suite: find the attempts to make, make them, and store how that ended."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pennyweight.engine.attempt_queues import AttemptQueues, OwnAttempts
from pennyweight.engine.batches.pending import in_lane
from pennyweight.engine.budget import Budget
from pennyweight.engine.ending import TakenOver
from pennyweight.engine.engine import Engine
from pennyweight.engine.interrupts import Stopping
from pennyweight.engine.pace import Pace, paced
from pennyweight.engine.resume import begin, held, key_of, place_of, settings_of
from pennyweight.engine.sharing.leased_attempts import LeasedAttempts
from pennyweight.engine.sharing.plan import can_share, check_plan, plans_of, put_up_plan
from pennyweight.engine.sharing.worker import Worker, loss
from pennyweight.engine.tally import Tally
from pennyweight.engine.workforce import recorded
from pennyweight.errors import StoreError, UsageError
from pennyweight.models.model import Model
from pennyweight.models.prices import Prices
from pennyweight.models.providers import find, own_address
from pennyweight.record import AttemptKey
from pennyweight.schema.user_code import suite_folder
from pennyweight.store.lanes.batches import keys_under_way, open_subjects, out_batches
from pennyweight.store.shared_runs import (
    errors_by_kind,
    failed_attempts,
    left,
    shared_run,
    take_down,
)
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
Helpers = Callable[[Tally, Callable[[], None]], bool]
"""Waits until workers have made the attempts, counting them; returns whether it was interrupted."""


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


@dataclass(frozen=True, slots=True)
class WorkResult:
    """What a worker did of a shared run."""

    run: StoredRun
    tally: Tally
    made: int
    """The attempts that this worker made."""
    errors: Mapping[str, int]
    """Those of them that failed, by the kind of the error."""
    left: int
    """The attempts that still wait for a worker, or are being made by others."""
    interrupted: bool


def check_subject(subject: Subject, *, keyless: bool = False) -> str | None:
    """Return what is wrong with a subject's model, address or key; None if nothing is.

    If `keyless`, a missing key is not wrong.
    """
    try:
        model_of(subject, keyless=keyless)
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
        subject.model, base_url=where, more_urls=subject.more_urls, key_env=key, timeout=timeout,
        folder=subject.folder, keyless=keyless,
    )  # fmt: skip


def open_suite(
    path: GivenSuite,
    text: str | None = None,
    by: Sequence[str] = (),
    narrowing: Narrowing | None = None,
    *,
    keyless: bool = False,
) -> LoadedSuite:
    """Load a suite, and check its models, their settings and the columns to group by."""
    from pennyweight.engine.preflight import mistakes  # noqa: PLC0415

    check = partial(check_subject, keyless=keyless)
    suite = load_suite(path, text, check, lambda suite: mistakes(suite, by), narrowing)
    return located(suite)


def located(suite: LoadedSuite) -> LoadedSuite:
    """Return a suite whose models know the addresses that the environment names for them."""
    judge = suite.judge
    if judge:
        judges, more = (tuple(map(_located, some)) for some in (judge.judges, judge.more))
        judge = replace(judge, judges=judges, more=more)
    return replace(suite, subjects=tuple(map(_located, suite.subjects)), judge=judge)


def _located(subject: Subject) -> Subject:
    own = None if subject.agent or subject.base_url else own_address(subject.model)
    return replace(subject, served_at=own.url) if own else subject


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
    helpers: Helpers | None = None,
    deadline: float | None = None,
    retries: bool = True,
) -> AttemptsResult:
    """Make the attempts of a stored run that have no good record yet.

    `began` is when the run began, for a limit in seconds that covers several phases. `helpers`
    make the attempts instead of this process, which waits for them. `deadline` is the number of
    seconds after which what was sent in batches is called live. Without `retries`, failed attempts
    stay as they are.
    """
    tally = Tally(count(suite))
    execution = _Execution(
        suite, run, store, watch, record, began, tally, helpers, deadline, retries
    )
    with held(store, run.id, execution.lose):
        return execution.complete()


def work(
    suite: LoadedSuite,
    run: StoredRun,
    store: Store,
    *,
    watch: Watch,
    subjects: Collection[str] = (),
    places: int | None = None,
) -> WorkResult:
    """Make attempts of a shared run, with other workers, until there are none left.

    `subjects` are those to make attempts of; none means all. `places` limits the concurrent calls.
    """
    check_plan(suite, run, store)
    execution = _Execution(suite, run, store, watch, None, None, Tally(count(suite)))
    execution.places = places
    return execution.work(subjects)


def offer(suite: LoadedSuite, run: StoredRun, store: Store) -> int:
    """Put up the attempts of a run that have no good record yet; return their number."""
    with held(store, run.id):
        todo, number = begin(run, suite, store)
        save_suite_scenarios(suite, run, store)
        put_up_plan(suite, run, store, todo, number)
    return number


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
    helpers: Helpers | None = None
    deadline: float | None = None
    retries: bool = True
    places: int | None = None
    engine: Engine | None = None
    paces: Sequence[Pace] = ()
    uses_lane: bool = False
    """Whether attempts are made in batches, or were, so that their replies are collected."""

    def lose(self) -> None:
        """Stop at once because another process has the run now; called from any thread."""
        lose(self.tally, self.engine.workforce.stopping if self.engine else None)

    def complete(self) -> AttemptsResult:
        """Make the attempts and store how that ended."""
        suite, run, store, tally = self.suite, self.run, self.store, self.tally
        goes_out = any(in_lane(subject, suite.limits) for subject in suite.subjects)
        self.uses_lane = goes_out or bool(open_subjects(store, run.id, "attempt"))
        todo, tally.total = begin(run, suite, store)
        failed = {} if self.retries else self._failed()
        if failed:
            todo = [attempt for attempt in todo if key_of(run.id, attempt) not in failed]
            tally.done, tally.errors = len(failed), dict(Counter(failed.values()))
            tally.total = len(todo) + tally.done
        save_suite_scenarios(suite, run, store)
        try:
            interrupted = self._made(todo)
        except BaseException as error:
            patience = 0.0 if isinstance(error, StoreError) else None  # it has been waited for
            with contextlib.suppress(StoreError):
                status = "waiting" if self.uses_lane and out_batches(store, [run.id]) else "failed"
                store.set_run(run.id, patience=patience, status=status, ended=time.time())
            raise
        return self._finish(interrupted)

    def _failed(self) -> dict[AttemptKey, str]:
        """Return the attempts that failed and are not being made again in a batch: their errors."""
        again = keys_under_way(self.store, self.run.id)
        failed = failed_attempts(self.store, self.run.id)
        return {key: kind for key, kind in failed.items() if key not in again}

    def _status(self, interrupted: bool) -> str:
        tally = self.tally
        if tally.done == tally.total and not tally.errors:
            return "done"
        if tally.waits and not interrupted:
            return "waiting"
        return "stopped" if interrupted or tally.stop_reason else "failed"

    def _finish(self, interrupted: bool) -> AttemptsResult:
        """Store how the run ended, and apply the suite's own checks and scorers."""
        suite, run, store, tally = self.suite, self.run, self.store, self.tally
        if not tally.lost and shared_run(store, run.id):
            self._count_all()
        status = self._status(interrupted)
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

    def _made(self, todo: Iterable[Attempt]) -> bool:
        """Make attempts, alone or with others; return whether a signal interrupted that."""
        suite, run, store = self.suite, self.run, self.store
        alone = self.record or suite.is_part or not (self.helpers or can_share(store))
        if alone or self.uses_lane:
            take_down(store, run.id)
            return self._run(lambda: OwnAttempts(todo))
        put_up_plan(suite, run, store, todo, self.tally.total)
        if self.helpers:
            return self.helpers(self.tally, self._show_all)
        return self._run(lambda: self._leased(()))

    def work(self, subjects: Collection[str]) -> WorkResult:
        """Make attempts that are up for workers."""
        before = shared_run(self.store, self.run.id)
        interrupted = self._run(lambda: self._leased(subjects))
        if self.tally.lost:
            self.tally.stop_reason = loss(self.store, self.run.id, before)
        made, errors = self.tally.done, dict(self.tally.errors)
        rest = left(self.store, self.run.id)
        if not rest and not interrupted and not self.tally.stop_reason:
            with contextlib.suppress(UsageError), held(self.store, self.run.id):
                self._finish(interrupted)  # nobody else does
        return WorkResult(self.run, self.tally, made, errors, rest, interrupted)

    def _leased(self, subjects: Collection[str]) -> LeasedAttempts:
        plans = plans_of(self.suite, subjects)
        return LeasedAttempts(Worker(self.store, self.run.id, self.lose), plans)

    def _count_all(self) -> None:
        """Count what all workers have made."""
        tally, run_id = self.tally, self.run.id
        made = sum(self.store.statuses(run_id).values())
        tally.done = max(0, made - (count(self.suite) - tally.total))
        tally.errors = errors_by_kind(self.store, run_id)

    def _show_all(self) -> None:
        """Show what all workers have made."""
        self._count_all()
        with contextlib.suppress(Exception):  # a broken display must not end a paid run
            self.watch(self.tally, Budget.of(self.suite.limits, self.store, self.run.id), [])

    def _run(self, source: Callable[[], AttemptQueues]) -> bool:
        models = {s.name: model_of(s, self.suite.limits.timeout) for s in self.suite.subjects}
        for model in models.values():
            model.limit = self.places or model.limit
        with recorded(models, self.record) as recording:
            if self.uses_lane:
                return self._in_lane(recording, source)
            return asyncio.run(self._make(recording, source))

    def _in_lane(self, models: Mapping[str, Model], source: Callable[[], AttemptQueues]) -> bool:
        """Make the attempts, those of the batch lane by collecting and submitting batches."""
        from pennyweight.engine.batches.lane import BatchLane  # noqa: PLC0415 - most runs need none

        suite, run = self.suite, self.run.id
        models, self.paces = paced(models, suite.limits)
        prices = Prices.with_models(suite.prices, models)
        lane = BatchLane.of(
            self.store, run, "attempt", suite.subjects, models, prices, suite.limits, self.deadline
        )
        lane.collect()
        interrupted = asyncio.run(self._make(lane.wrapped(models), source))
        lane.close(self.tally, is_cut=interrupted)
        return interrupted

    async def _make(self, models: Mapping[str, Model], begun: Callable[[], AttemptQueues]) -> bool:
        """Run the engine until it ends; return whether a signal interrupted it."""
        prices = Prices.with_models(self.suite.prices, models)
        budget = Budget.of(self.suite.limits, self.store, self.run.id, self.began)
        source, turns = begun(), None  # a worker shows signs of life until the engine ends
        if isinstance(source, LeasedAttempts):
            source.worker.limit(budget)
            turns = source.worker.turns
        if not self.uses_lane:
            models, self.paces = paced(models, self.suite.limits, turns)
        tally = self.tally

        def committed(rows: list[Row]) -> None:
            if not tally.lost:
                source.committed(rows)
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
        engine.workforce.wakes += [pace.close for pace in self.paces]
        committed([])
        engine.workforce.stopping.listen()
        try:
            await engine.make(source)
        finally:
            for model in models.values():
                await model.close()
            engine.workforce.stopping.leave()
        return engine.workforce.stopping.signals > 0
