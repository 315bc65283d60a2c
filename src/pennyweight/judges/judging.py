"""Judge the attempts of a run: a phase of its own, resumable, within the run's budgets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pennyweight.engine.budget import Budget, CallTooLargeError, ExhaustedError
from pennyweight.engine.execution import lose, model_of
from pennyweight.engine.limiter import MAX_CALLS, ClosedError
from pennyweight.engine.resume import held
from pennyweight.engine.tally import Tally
from pennyweight.engine.workforce import Workforce, recorded
from pennyweight.errors import StoreError, UsageError
from pennyweight.judges.judge import Brief, Desk, Judge, Knowledge, ValidJudgment
from pennyweight.judges.prompt import JudgedCase, messages
from pennyweight.models.model import Model
from pennyweight.models.prices import Prices
from pennyweight.record import KEY, AttemptKey
from pennyweight.runs.transcript import asked_of, calls_of, turns_of
from pennyweight.scoring.consensus import disagree
from pennyweight.store.bills import make_latest
from pennyweight.store.store import JUDGMENT_COLUMNS, Row, Run, Store
from pennyweight.suite.values import Judging, Limits, Price

_READ = {*KEY, "status", "input", "messages", "target", "response", "tool_calls", "work"}
_KNOWN = {*KEY, "judge", "fingerprint", "status", "score", "at"}
_STATUS, _NAME = JUDGMENT_COLUMNS.index("status"), JUDGMENT_COLUMNS.index("judge")


@dataclass(frozen=True, slots=True)
class JudgingResult:
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
        return self.tally.done - self.tally.failed - sum(self.invalid.values())

    @property
    def exit_code(self) -> int:
        """What `pennyweight judge` exits with."""
        if self.interrupted:
            return 130
        return 4 if self.tally.stop_reason or self.tally.errors or self.unjudged else 0


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
) -> JudgingResult:
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
) -> JudgingResult:
    """Judge a run that this process holds."""
    before = store.find(run.id)
    settings = {**before.settings, "judge": judging.plain()}
    store.set_run(run.id, status="running")

    def adopt() -> None:
        store.set_run(run.id, settings=settings)

    models = {s.name: model_of(s, limits.timeout) for s in (*judging.judges, *judging.more)}
    spent = store.spent(run.id)
    budget = Budget.of(limits, spent, began)
    status = "stopped"
    try:
        with recorded(models, record) as own:
            known = Prices.with_models(prices, own)
            bench = Bench(run.id, judging, own, store, known, budget, watch, adopt)
            benches.append(bench)
            if not before.settings.get("judge"):
                bench.count()
            interrupted = asyncio.run(bench.sit(limits))
        if not (interrupted or bench.tally.stop_reason):
            status = "failed" if bench.tally.errors else _settled(before)
    except BaseException as error:
        patience = 0.0 if isinstance(error, StoreError) else None  # it was waited for already
        with contextlib.suppress(StoreError):
            store.set_run(run.id, patience=patience, status=status)
        raise
    store.set_run(run.id, status=status, ended=time.time())
    paid = store.spent(run.id)["usd"]
    usd = None if paid is None else paid - (spent["usd"] or 0.0)
    return JudgingResult(bench.tally, bench.invalid, bench.unjudged, interrupted, usd)


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
    workforce: Workforce | None = None

    async def sit(self, limits: Limits) -> bool:
        """Judge until all is done or it is interrupted; return whether it was."""
        workforce = self.workforce = Workforce(
            self.models.values(), limits, self.budget, self.tally, self.store.write_judgments,
            self._committed,
        )  # fmt: skip
        try:
            desk = Desk(self.run, self.judging.rubric, self.prices, workforce)
            self.judges, self.more = (
                tuple(Judge.of(s, self.models[s.name], desk) for s in subjects)
                for subjects in (self.judging.judges, self.judging.more)
            )
            wanting = self._plan()
            places = sum(limiter.places for limiter in workforce.limiters.values())
            todo = self._todo()
            workforce.stopping.listen()
            workers = max(1, min(places, MAX_CALLS, wanting))
            await workforce.run(self._work(todo) for _ in range(workers))
            return workforce.stopping.signals > 0
        finally:
            try:
                await workforce.close()
            finally:
                for model in self.models.values():
                    await model.close()

    def lose(self) -> None:
        """Stop at once, since another process has the run now; called from any thread."""
        lose(self.tally, [self.workforce.stopping] if self.workforce else ())

    def stop(self) -> None:
        """Ask nobody else; what is under way is completed and written."""
        if self.workforce:
            self.workforce.stop()

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
        make_latest(self.store, older)
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
                said = ValidJudgment(row["score"], row["at"])
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
            except CallTooLargeError as error:  # smaller ones go on
                task = brief.key.task_id
                self.tally.set_reason(replace(error.reason, task=task, judging=True))
            except ExhaustedError as error:
                self.tally.set_reason(error.reason)
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
            self.tally.set_reason(error.reason)  # the others are asked all the same
            return None


def case_of(row: Mapping[str, Any]) -> JudgedCase:
    """Take from a record what a judge sees: never the subject, the tier or its system text."""
    users = [text for role, text in asked_of(row) if role == "user"]
    done = json.loads(row["work"] or "{}")
    task = users[-1] if users else row["input"] or ""
    talk = turns_of(row)
    if talk and talk[0] == ("user", task):
        talk = talk[1:]
    calls = None if talk else "\n".join(calls_of(row.get("tool_calls"))) or None
    return JudgedCase(
        task, row["response"] or "", row["target"], done.get("diff"), tuple(talk), calls=calls
    )
