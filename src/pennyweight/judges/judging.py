"""Judge the attempts of a run: a phase of its own, resumable, within the run's budgets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pennyweight.engine.budget import Budget, ExhaustedError, TooMuchError
from pennyweight.engine.execution import lose, model_of
from pennyweight.engine.interrupts import Stopping
from pennyweight.engine.limiter import MOST, ClosedError, Limiter
from pennyweight.engine.resume import held
from pennyweight.engine.tally import Tally
from pennyweight.engine.writer import Writer
from pennyweight.errors import UsageError
from pennyweight.judges.judge import Brief, Desk, Judge, Known
from pennyweight.judges.prompt import Case, messages
from pennyweight.models.prices import Prices
from pennyweight.record import KEY, AttemptKey
from pennyweight.runs.transcript import asked_of, calls_of, turns_of
from pennyweight.scoring.consensus import disagree
from pennyweight.store.bills import renew
from pennyweight.store.connection import StoreError
from pennyweight.store.store import JUDGMENT_COLUMNS, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pennyweight.judges.judge import Knowledge
    from pennyweight.models.model import Model
    from pennyweight.store.store import Row, Run
    from pennyweight.suite.values import Judging, Limits, Price, Subject

_READ = {*KEY, "status", "input", "messages", "target", "response", "tool_calls", "work"}
_KNOWN = {*KEY, "judge", "fingerprint", "status", "score", "at"}
_STATUS, _NAME = JUDGMENT_COLUMNS.index("status"), JUDGMENT_COLUMNS.index("judge")


@dataclass(frozen=True, slots=True)
class Judged:
    """How judging ended."""

    tally: Tally
    invalid: dict[str, int]
    """How many replies of each judge were of no use to the end."""
    unjudged: int
    """How many attempts were left without any valid judgment."""
    interrupted: bool
    usd: float | None = None
    """What it cost, as far as that is known."""

    @property
    def valid(self) -> int:
        """How many valid judgments were made."""
        return self.tally.done - sum(self.tally.errors.values()) - sum(self.invalid.values())


class _Judgments(Store):
    """A store whose records are judgments, for the writer."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.address)
        self._engine, self.leases, self._file = store.engine, store.leases, store._file

    def write(self, records: Sequence[Row], calls: Sequence[Row]) -> None:
        self.write_judgments(records, calls)


class _StoppedError(Exception):
    """No further judge is asked: the run was interrupted, or another worker ran out of budget."""


def check_judging(judging: Judging, limits: Limits, prices: Mapping[str, Price]) -> None:
    """Refuse a judge that cannot be called, and a limit of money that could not be kept."""
    judges = (*judging.judges, *judging.more)
    for judge in judges:
        model_of(judge)
    unknown = Prices(prices).unknown(judges, limited=True)
    if limits.usd is not None and unknown:
        raise UsageError(
            f"limits.usd cannot be kept: the price of the judge {', '.join(unknown)} is not known. "
            "Say it under 'prices' (0 if nothing is charged), or limit tokens instead."
        )


def judge_run(
    run: Run,
    judging: Judging,
    store: Store,
    *,
    limits: Limits,
    prices: Mapping[str, Price],
    watch: Callable[[Tally, Budget, list[Row]], None],
    record: Path | None = None,
    began: float | None = None,
) -> Judged:
    """Judge the attempts of a run that have no valid judgment yet.

    `began` is when the run began, for a limit of seconds that holds for all of it. Judges who were
    asked before stay those who count until one of the new ones has given a valid judgment.
    """
    check_judging(judging, limits, prices)
    benches: list[Bench] = []

    def lost() -> None:
        for bench in benches:
            bench.lose()

    with held(store, run.id, lost):
        return _judge(run, judging, store, limits, prices, watch, record, began, benches)


def _judge(
    run: Run,
    judging: Judging,
    store: Store,
    limits: Limits,
    prices: Mapping[str, Price],
    watch: Callable[[Tally, Budget, list[Row]], None],
    record: Path | None,
    began: float | None,
    benches: list[Bench],
) -> Judged:
    """Judge a run that this process holds."""
    before = store.find(run.id)
    settings = {**before.settings, "judge": judging.plain()}
    store.set_run(run.id, status="running")

    def adopt() -> None:
        store.set_run(run.id, settings=settings)

    models = {s.name: model_of(s, limits.timeout) for s in (*judging.judges, *judging.more)}
    recorder = None
    if record is not None:
        from pennyweight.models.replay import Recorder  # noqa: PLC0415

        recorder = Recorder(record)
        models = {name: recorder.wrap(model) for name, model in models.items()}
    spent = store.spent(run.id)
    budget = Budget.of(limits, spent, began)
    known = Prices.with_models(prices, models)
    bench = Bench(run.id, judging, models, store, known, budget, watch, adopt)
    benches.append(bench)
    status = "stopped"
    try:
        if not before.settings.get("judge"):
            bench.count()
        interrupted = asyncio.run(bench.sit(limits))
        if not (interrupted or bench.tally.exhausted):
            status = "failed" if bench.tally.errors else _settled(before)
    except BaseException as error:
        patience = 0.0 if isinstance(error, StoreError) else None  # it was waited for already
        with contextlib.suppress(StoreError):
            store.set_run(run.id, patience=patience, status=status)
        raise
    finally:
        if recorder:
            recorder.close()
    store.set_run(run.id, status=status, ended=time.time())
    paid = store.spent(run.id)["usd"]
    usd = None if paid is None else paid - (spent["usd"] or 0.0)
    return Judged(bench.tally, bench.invalid, bench.unjudged, interrupted, usd)


def _settled(run: Run) -> str:
    """Give the status of a run that was judged to the end: what its attempts say."""
    return "stopped" if run.status == "running" else run.status


@dataclass(slots=True)
class Bench:
    """Where the judges sit: takes the attempts one by one and asks each judge about them."""

    run: str
    judging: Judging
    models: Mapping[str, Model]
    store: Store
    prices: Prices
    budget: Budget
    watch: Callable[[Tally, Budget, list[Row]], None]
    adopt: Callable[[], None] | None = None
    """Makes these judges those who count; called once, when there is something to count."""
    tally: Tally = field(default_factory=lambda: Tally(0))
    invalid: dict[str, int] = field(default_factory=dict)
    unjudged: int = 0
    judges: tuple[Judge, ...] = ()
    more: tuple[Judge, ...] = ()
    known: dict[AttemptKey, Knowledge] = field(default_factory=dict)
    limiters: dict[str, Limiter] = field(default_factory=dict)
    stopping: Stopping | None = None

    async def sit(self, limits: Limits) -> bool:
        """Judge until all is done or it is interrupted; says whether it was."""
        fixed = limits.concurrency if isinstance(limits.concurrency, int) else None
        self.limiters = {
            m.account: Limiter(fixed, m.limit, m.account) for m in self.models.values()
        }
        writer = Writer(_Judgments(self.store), self._committed)
        cut: list[Row] = []
        try:
            rubric = self.judging.rubric
            desk = Desk(self.run, rubric, self.prices, self.budget, self.tally, writer, cut)

            def ready(subjects: Sequence[Subject]) -> tuple[Judge, ...]:
                models = [(s, self.models[s.name]) for s in subjects]
                return tuple(Judge.of(s, m, self.limiters[m.account], desk) for s, m in models)

            self.judges, self.more = ready(self.judging.judges), ready(self.judging.more)
            wanting = self._plan()
            most = sum(limiter.places for limiter in self.limiters.values())
            return await self._together(self._todo(), max(1, min(most, MOST, wanting)))
        finally:
            try:
                if cut and not writer.error:
                    await writer.put(None, cut)
            finally:
                try:
                    await writer.close()
                finally:
                    for model in self.models.values():
                        await model.close()

    async def _together(self, todo: Iterator[Brief], workers: int) -> bool:
        """Work side by side; the first Ctrl-C ends it in good order, the second at once."""
        tasks = [asyncio.ensure_future(self._work(todo)) for _ in range(workers)]
        stopping = self.stopping = Stopping(self.tally, self.stop, lambda: tasks)
        stopping.listen()
        if self.tally.stopping:
            self.stop()
        left = self.budget.left
        loop = asyncio.get_running_loop()
        timer = None if left is None else loop.call_later(left, self._out_of_time)
        try:
            await asyncio.gather(*tasks)
        except BaseException as error:
            self.stop()  # what is under way is paid for: it is ended and written
            cancelled = isinstance(error, asyncio.CancelledError)
            if isinstance(error, StoreError) or (cancelled and not stopping.is_cut):
                for task in tasks:
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if not (cancelled and stopping.is_cut):
                raise
        finally:
            if timer:
                timer.cancel()
        return stopping.signals > 0

    def lose(self) -> None:
        """Stop at once, since another process has the run now; called from any thread."""
        lose(self.tally, [self.stopping] if self.stopping else ())

    def stop(self) -> None:
        """Ask nobody else; what is under way is ended and written."""
        self.tally.stopping = True
        for limiter in self.limiters.values():
            limiter.close()
        self.budget.wake()

    def _out_of_time(self) -> None:
        self.tally.exhausted = "The budget of time is used up."
        self.stop()

    def count(self) -> None:
        """Make these judges those who count."""
        if self.adopt:
            self.adopt()
            self.adopt = None

    def panel(self, task: str) -> tuple[Judge, ...]:
        """Say who is asked about a task; nobody if nothing is to be asked about it."""
        return self.judges if task else ()

    def _plan(self) -> int:
        """Count what is to be asked; says of how many attempts. Keeps no prompt."""
        self.known = self._knowledge()
        wanting, standing = 0, False
        older: list[tuple[AttemptKey, str, str]] = []
        for brief in self.briefs():
            panel = self.panel(brief.key.task_id)
            missing = sum(not judge.stands(brief) for judge in panel)
            self.tally.total += missing
            wanting += self._wanting(brief)
            standing |= missing < len(panel)
            older += [
                (brief.key, judge.subject.name, judge.fingerprint(brief))
                for judge in (*panel, *self.more)
                if judge.outdated(brief)
            ]
        renew(self.store, older)
        if standing or not wanting:
            self.count()
        return wanting

    def _todo(self) -> Iterator[Brief]:
        """Find the attempts that lack a judgment, as the workers want them."""
        return (brief for brief in self.briefs() if self._wanting(brief))

    def briefs(self) -> Iterator[Brief]:
        """Give the attempts that judges are asked about, some at a time."""
        for row in self._rows():
            panel = self.panel(row["task_id"])
            if panel:
                key = AttemptKey.of(row)
                asked = messages(panel[0].desk.rubric, case_of(row))
                yield Brief.of(key, asked, self.known.get(key, {}))

    def _rows(self) -> Iterator[dict[str, Any]]:
        for frame in self.store.records(self.run, _READ):
            for row in frame.iter_rows(named=True):
                if row["status"] != "error" and row["response"] is not None:
                    yield row

    def _knowledge(self) -> dict[AttemptKey, Knowledge]:
        """Find the valid judgments that are there."""
        found: dict[AttemptKey, Knowledge] = {}
        table = self.store.judgments(self.run, _KNOWN)
        for row in table.iter_rows(named=True):
            if row["status"] == "ok":
                said = Known(row["score"], row["at"])
                found.setdefault(AttemptKey.of(row), {})[row["judge"], row["fingerprint"]] = said
        return found

    def _wanting(self, brief: Brief) -> bool:
        """Whether a judge is to be asked: one who was not yet, or more since others disagree."""
        stand = [judge.standing(brief) for judge in self.panel(brief.key.task_id)]
        if None in stand:
            return True
        scores = [one.score for one in stand if one and one.score is not None]
        if not disagree(scores, self.judging.disagreement):
            return False
        return not all(judge.stands(brief) for judge in self.more)

    def _committed(self, rows: list[Row]) -> None:
        for row in () if self.tally.lost else rows:  # those were not kept
            self.tally.done += 1
            if row[_STATUS] == "error":
                self.tally.errors["error"] = self.tally.errors.get("error", 0) + 1
            elif row[_STATUS] == "invalid":
                self.invalid[row[_NAME]] = self.invalid.get(row[_NAME], 0) + 1
            else:
                self.count()
        self.watch(self.tally, self.budget, rows)

    async def _work(self, todo: Iterator[Brief]) -> None:
        for brief in todo:
            try:
                await self._attempt(brief)
            except _StoppedError:
                return
            except TooMuchError as error:  # smaller ones go on
                self.tally.exhausted = f"Judging task {brief.key.task_id} {error}."
            except ExhaustedError as error:
                self.tally.exhausted = str(error)
                self.stop()
                return

    async def _attempt(self, brief: Brief) -> None:
        """Ask all judges about one attempt, and more of them where they disagree."""
        given = [await self._opinion(brief, judge) for judge in self.panel(brief.key.task_id)]
        scores = [score for score in given if score is not None]
        if disagree(scores, self.judging.disagreement):
            self.tally.total += sum(not judge.stands(brief) for judge in self.more)
            scores += [
                score
                for judge in self.more
                if (score := await self._opinion(brief, judge)) is not None
            ]
        self.unjudged += not scores

    async def _opinion(self, brief: Brief, judge: Judge) -> float | None:
        if self.tally.stopping and not judge.stands(brief):
            raise _StoppedError
        try:
            return await judge.opinion(brief)
        except ClosedError as error:
            if self.tally.stopping:
                raise _StoppedError from error
            self.tally.exhausted = str(error)  # the others are asked all the same
            return None


def case_of(row: Mapping[str, Any]) -> Case:
    """Take from a record what a judge sees: never the subject, the tier or its system text."""
    users = [text for role, text in asked_of(row) if role == "user"]
    done = json.loads(row["work"] or "{}")
    task = users[-1] if users else row["input"] or ""
    talk = turns_of(row)
    if talk and talk[0] == ("user", task):
        talk = talk[1:]
    calls = None if talk else "\n".join(calls_of(row.get("tool_calls"))) or None
    return Case(
        task, row["response"] or "", row["target"], done.get("diff"), tuple(talk), calls=calls
    )
