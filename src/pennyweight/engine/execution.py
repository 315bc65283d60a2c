"""Carry a suite out: plan what is to be made, make it, and say how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from pennyweight.runs.code_checks import run_code_checks
from pennyweight.runs.observations import save_suite_scenarios
from pennyweight.store.store import RECORD_COLUMNS, Row, Run, Spending, Store
from pennyweight.suite.loader import load_suite
from pennyweight.suite.plan import Attempt, count
from pennyweight.suite.values import Subject, Suite

STATUS, ERROR_KIND = RECORD_COLUMNS.index("status"), RECORD_COLUMNS.index("error_kind")


@dataclass(frozen=True, slots=True)
class AttemptsResult:
    """How a run ended."""

    run: Run
    tally: Tally
    spent: Spending
    interrupted: bool
    broken: int = 0
    """How many checks of the suite's writer broke."""

    @property
    def missing(self) -> int:
        """How many attempts were not made, or failed."""
        return self.tally.missing


def check_subject(subject: Subject) -> str | None:
    """Say what is wrong with a subject's model, its address or its key."""
    try:
        model_of(subject)
    except UsageError as error:
        return str(error)
    return None


def model_of(subject: Subject, timeout: float | None = None) -> Model:
    """Find the model of a subject."""
    if subject.agent:
        from pennyweight.agent.command import CommandAgent  # noqa: PLC0415

        return CommandAgent(subject.name, subject.agent)
    where, key = subject.base_url, subject.key_env
    return find(subject.model, base_url=where, key_env=key, timeout=timeout, folder=subject.folder)


def open_suite(path: str | Path, text: str | None = None, by: Sequence[str] = ()) -> Suite:
    """Load a suite, its models and settings checked too, and the columns to group by."""
    from pennyweight.engine.preflight import mistakes  # noqa: PLC0415

    return load_suite(path, text, check_subject, lambda suite: mistakes(suite, by))


def new_run(suite: Suite) -> Run:
    """Make the entry of a new run: everything needed to repeat it."""
    moment = datetime.now(UTC)
    return Run(
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
    suite: Suite,
    run: Run,
    store: Store,
    *,
    watch: Callable[[Tally, Budget, list[Row]], None],
    record: Path | None = None,
    began: float | None = None,
) -> AttemptsResult:
    """Make the attempts of a stored run that have no good record yet.

    `began` is when the run began, for a limit of seconds that holds for all of it.
    """
    tally = Tally(count(suite))
    engines: list[Engine] = []

    def lost() -> None:
        lose(tally, [engine.workforce.stopping for engine in engines])

    with held(store, run.id, lost):
        return _execute(suite, run, store, tally, engines, watch, record, began)


def lose(tally: Tally, several: Iterable[Stopping]) -> None:
    """Stop at once, since another process has the run now."""
    tally.stop_reason, tally.stopping = TakenOver(), True
    for stopping in several:
        stopping.lose()


def _execute(
    suite: Suite,
    run: Run,
    store: Store,
    tally: Tally,
    engines: list[Engine],
    watch: Callable[[Tally, Budget, list[Row]], None],
    record: Path | None,
    began: float | None,
) -> AttemptsResult:
    """Make the attempts of a run that this process holds."""
    todo, tally.total = begin(run, suite, store)
    save_suite_scenarios(suite, run, store)
    models = {s.name: model_of(s, suite.limits.timeout) for s in suite.subjects}
    budget = Budget.of(suite.limits, store.spent(run.id), began)
    try:
        with recorded(models, record) as own:
            interrupted = asyncio.run(
                _run(suite, run, store, own, iter(todo), tally, engines, budget, watch)
            )
    except BaseException as error:
        patience = 0.0 if isinstance(error, StoreError) else None  # it was waited for already
        with contextlib.suppress(StoreError):
            store.set_run(run.id, patience=patience, status="failed", ended=time.time())
        raise
    whole = tally.done == tally.total and not tally.errors
    status = "done" if whole else "stopped" if interrupted or tally.stop_reason else "failed"
    store.set_run(run.id, status=status, ended=time.time())
    broken = 0 if tally.lost else run_code_checks(suite, run, store)
    return AttemptsResult(
        replace(run, status=status), tally, store.spent(run.id), interrupted, broken
    )


async def _run(
    suite: Suite,
    run: Run,
    store: Store,
    models: dict[str, Model],
    todo: Iterator[Attempt],
    tally: Tally,
    engines: list[Engine],
    budget: Budget,
    watch: Callable[[Tally, Budget, list[Row]], None],
) -> bool:
    """Run the engine until it ends or is interrupted; the first Ctrl-C ends it in good order."""
    prices = Prices.with_models(suite.prices, models)

    def committed(rows: list[Row]) -> None:
        for row in () if tally.lost else rows:  # those were not kept
            tally.done += 1
            if row[STATUS] == "error":
                kind = row[ERROR_KIND]
                tally.errors[kind] = tally.errors.get(kind, 0) + 1
        with contextlib.suppress(Exception):  # a broken screen must not end what is paid for
            watch(tally, budget, rows)

    engine = Engine(suite, run.id, models, store, prices, budget, tally, committed)
    engines.append(engine)
    committed([])
    engine.workforce.stopping.listen()
    try:
        await engine.make(todo)
    finally:
        for model in models.values():
            await model.close()
        engine.workforce.stopping.leave()
    return engine.workforce.stopping.signals > 0
