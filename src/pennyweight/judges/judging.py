"""Judge the attempts of a run: a separate phase, resumable, within the limits of the run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pennyweight.engine.batches.pending import in_lane
from pennyweight.engine.budget import Budget, CallTooLargeError, ExhaustedError
from pennyweight.engine.execution import lose, model_of
from pennyweight.engine.limiter import MAX_CALLS, ClosedError
from pennyweight.engine.pace import Pace, paced
from pennyweight.engine.preflight import unenforceable
from pennyweight.engine.resume import held
from pennyweight.engine.tally import Tally
from pennyweight.engine.workforce import Workforce, recorded
from pennyweight.errors import StoreError, UsageError
from pennyweight.judges.judge import Judge, JudgedAttempt, JudgingContext, ValidJudgment
from pennyweight.judges.prompt import JudgedCase, messages
from pennyweight.models.model import Model
from pennyweight.models.prices import Prices
from pennyweight.record import KEY, AttemptKey
from pennyweight.scoring.consensus import disagree
from pennyweight.store.bills import make_latest
from pennyweight.store.cells import json_cell
from pennyweight.store.lanes.batches import open_subjects
from pennyweight.store.store import JUDGMENT_COLUMNS, Row, Store, StoredRun
from pennyweight.stored_runs.transcript import asked_of, calls_of, turns_of
from pennyweight.suite.values import Judging, Limits, Price

_READ = {*KEY, "status", "input", "messages", "target", "response", "tool_calls", "work"}
_JSON: dict[str, Any] = {"messages": [dict], "tool_calls": [dict], "work": dict}
_KNOWN = {*KEY, "judge", "fingerprint", "status", "score", "at"}
_STATUS, _NAME = JUDGMENT_COLUMNS.index("status"), JUDGMENT_COLUMNS.index("judge")

Progress = Callable[[Tally, Budget, list[Row]], None]
"""Called after each commit."""


@dataclass(frozen=True, slots=True)
class JudgingJob:
    """A run to judge, with its limits and prices, and where progress is reported."""

    run: StoredRun
    store: Store
    limits: Limits
    prices: Mapping[str, Price]
    progress: Progress
    record: Path | None = None
    """The file that the judges' replies are recorded to."""
    began: float | None = None
    """When the run began, for a limit of seconds that includes its attempts."""
    deadline: float | None = None
    """Seconds after which judges that are asked in batches are asked live."""


@dataclass(frozen=True, slots=True)
class JudgingResult:
    """How judging ended."""

    tally: Tally
    invalid: dict[str, int]
    """How many judgments of each judge are invalid: no reply could be used."""
    unjudged: int
    """How many attempts have no valid judgment."""
    interrupted: bool
    usd: float | None = None
    """The cost of judging; None if unknown."""

    @property
    def valid(self) -> int:
        """How many valid judgments were made."""
        return self.tally.done - self.tally.failed - sum(self.invalid.values())

    @property
    def exit_code(self) -> int:
        """What `pennyweight judge` exits with."""
        if self.interrupted:
            return 130
        if self.tally.waits:
            return 0
        return 4 if self.tally.stop_reason or self.tally.errors or self.unjudged else 0


class _StoppedError(Exception):
    """No other judge is asked: the run was interrupted, or a limit was reached."""


def check_judging(judging: Judging, limits: Limits, prices: Mapping[str, Price]) -> None:
    """Raise UsageError for a judge that cannot be called or a cost limit without a price."""
    judges = (*judging.judges, *judging.more)
    for judge in judges:
        model_of(judge)
    unknown = Prices(prices).unknown(judges, limited=True)
    if limits.usd is not None and unknown:
        raise UsageError(unenforceable({f"the judge {name}": why for name, why in unknown.items()}))


def judge_run(job: JudgingJob, judging: Judging) -> JudgingResult:
    """Judge the attempts of a run that have no valid judgment yet.

    Earlier judges keep deciding until a new one has given a valid judgment.
    """
    run, store, limits = job.run, job.store, job.limits
    check_judging(judging, limits, job.prices)
    sessions: list[JudgingSession] = []

    def lost() -> None:
        for session in sessions:
            session.lose()

    def adopt() -> None:
        store.set_run(run.id, settings=settings)

    with held(store, run.id, lost):
        before = store.find(run.id)
        settings = {**before.settings, "judge": judging.plain()}
        store.set_run(run.id, status="running")
        models = {s.name: model_of(s, limits.timeout) for s in (*judging.judges, *judging.more)}
        spent = store.spent(run.id)
        budget = Budget.of(limits, store, run.id, job.began)
        try:
            with recorded(models, job.record) as own:
                prices = Prices.with_models(job.prices, own)
                session = JudgingSession(job, judging, own, prices, budget, adopt)
                sessions.append(session)
                if not before.settings.get("judge"):
                    session.adopt_once()
                interrupted = session.run()
        except BaseException as error:
            patience = 0.0 if isinstance(error, StoreError) else None  # it was waited for already
            with contextlib.suppress(StoreError):
                store.set_run(run.id, patience=patience, status="stopped")
            raise
        if interrupted or session.tally.stop_reason:
            status = "waiting" if session.tally.waits and not interrupted else "stopped"
        elif session.tally.errors:
            status = "failed"
        else:
            status = "stopped" if before.status == "running" else before.status
        store.set_run(run.id, status=status, ended=time.time())
        paid = store.spent(run.id)["usd"]
        usd = None if paid is None else paid - (spent["usd"] or 0.0)
        return session.result(usd, interrupted=interrupted)


@dataclass(slots=True)
class JudgingSession:
    """Takes the attempts of a run one by one and asks each judge about them."""

    job: JudgingJob
    judging: Judging
    models: Mapping[str, Model]
    prices: Prices
    budget: Budget
    adopt: Callable[[], None] | None = None
    """Makes these judges decide in place of earlier ones; called at the first judgment."""
    tally: Tally = field(default_factory=lambda: Tally(0))
    invalid: dict[str, int] = field(default_factory=dict)
    unjudged: int = 0
    judges: tuple[Judge, ...] = ()
    more: tuple[Judge, ...] = ()
    judgments: dict[AttemptKey, dict[tuple[str, str], ValidJudgment]] = field(default_factory=dict)
    workforce: Workforce | None = None
    paces: Sequence[Pace] = ()
    higher_is_better: bool = True

    def run(self) -> bool:
        """Ask the judges, those of the batch lane by batches; return whether it was interrupted."""
        job, judges = self.job, (*self.judging.judges, *self.judging.more)
        self.models, self.paces = paced(self.models, job.limits)
        before = open_subjects(job.store, job.run.id, "judge")
        if not any(in_lane(judge, job.limits) or judge.name in before for judge in judges):
            return asyncio.run(self.work())
        from pennyweight.engine.batches.lane import BatchLane  # noqa: PLC0415 - most runs need none

        lane = BatchLane.of(
            job.store, job.run.id, "judge", judges, self.models, self.prices, job.limits,
            job.deadline,
        )  # fmt: skip
        lane.collect()
        self.models = lane.wrapped(self.models)
        self.budget = Budget.of(job.limits, job.store, job.run.id, job.began)
        interrupted = asyncio.run(self.work())
        lane.close(self.tally, is_cut=interrupted)
        return interrupted

    async def work(self) -> bool:
        """Judge until everything is judged or it is interrupted; return whether it was."""
        workforce = self.workforce = Workforce(
            self.job.run.id, self.models.values(), self.job.limits, self.budget, self.tally,
            self.job.store.write_judgments, self._committed,
        )  # fmt: skip
        workforce.wakes += [pace.close for pace in self.paces]
        try:
            context = JudgingContext(
                self.judging.rubric, self.prices, workforce, self.higher_is_better
            )
            self.judges, self.more = (
                tuple(Judge.of(s, self.models[s.name], context) for s in subjects)
                for subjects in (self.judging.judges, self.judging.more)
            )
            count = self._plan()
            places = sum(limiter.places for limiter in workforce.limiters.values())
            todo = (attempt for attempt in self.attempts() if self._incomplete(attempt))
            workforce.stopping.listen()
            workers = max(1, min(places, MAX_CALLS, count))
            await workforce.run(self._work(todo) for _ in range(workers))
            return workforce.stopping.signals > 0
        finally:
            try:
                await workforce.close()
            finally:
                for model in self.models.values():
                    await model.close()
                workforce.stopping.leave()

    def result(self, usd: float | None = None, *, interrupted: bool) -> JudgingResult:
        """Return how judging ended."""
        unjudged = 0 if self.tally.waits else self.unjudged
        return JudgingResult(self.tally, self.invalid, unjudged, interrupted, usd)

    def lose(self) -> None:
        """Stop at once, because another process has taken the run over; called from any thread."""
        lose(self.tally, self.workforce.stopping if self.workforce else None)

    def adopt_once(self) -> None:
        """Make these judges decide, if that has not happened yet."""
        if self.adopt:
            self.adopt()
            self.adopt = None

    def panel(self, task: str) -> tuple[Judge, ...]:
        """Return the judges that are asked about a task."""
        return self.judges if task else ()

    def _plan(self) -> int:
        """Count the missing judgments; return how many attempts lack one. Stores no prompts."""
        for row in self.job.store.judgments(self.job.run.id, _KNOWN).iter_rows(named=True):
            if row["status"] == "ok":
                judgment = ValidJudgment(row["score"], row["at"])
                key = row["judge"], row["fingerprint"]
                self.judgments.setdefault(AttemptKey.of(row), {})[key] = judgment
        incomplete, any_valid = 0, False
        outdated: list[tuple[AttemptKey, str, str]] = []
        for attempt in self.attempts():
            panel = self.panel(attempt.key.task_id)
            missing = _missing(panel, attempt)
            self.tally.total += missing
            incomplete += self._incomplete(attempt)
            any_valid |= missing < len(panel)
            outdated += [
                (attempt.key, judge.subject.name, judge.fingerprint(attempt))
                for judge in (*panel, *self.more)
                if judge.outdated(attempt)
            ]
        make_latest(self.job.store, outdated)
        if any_valid or not incomplete:
            self.adopt_once()
        return incomplete

    def attempts(self) -> Iterator[JudgedAttempt]:
        """Yield the attempts that judges are asked about, reading some at a time."""
        for frame in self.job.store.records(self.job.run.id, _READ):
            for row in frame.iter_rows(named=True):
                panel = self.panel(row["task_id"])
                if panel and row["status"] != "error" and row["response"] is not None:
                    key = AttemptKey.of(row)
                    prompt = messages(panel[0].context.rubric, case_of(row))
                    yield JudgedAttempt.of(key, prompt, self.judgments.get(key, {}))

    def _incomplete(self, attempt: JudgedAttempt) -> bool:
        """Whether a judgment is missing, or others disagree and more judges are to be asked."""
        known = [judge.judgment(attempt) for judge in self.panel(attempt.key.task_id)]
        if None in known:
            return True
        scores = [one.score for one in known if one and one.score is not None]
        differ = disagree(scores, self.judging.disagreement)
        return differ and _missing(self.more, attempt) > 0

    def _committed(self, rows: list[Row]) -> None:
        for row in () if self.tally.lost else rows:  # a lost run stores none
            self.tally.done += 1
            if row[_STATUS] == "error":
                self.tally.errors["error"] = self.tally.errors.get("error", 0) + 1
            elif row[_STATUS] == "invalid":
                self.invalid[row[_NAME]] = self.invalid.get(row[_NAME], 0) + 1
            else:
                self.adopt_once()
        with contextlib.suppress(Exception):  # a broken screen must not end what is paid for
            self.job.progress(self.tally, self.budget, rows)

    async def _work(self, todo: Iterator[JudgedAttempt]) -> None:
        for attempt in todo:
            try:
                await self._judge(attempt)
            except _StoppedError:
                return
            except CallTooLargeError as error:  # others may still be small enough
                task = attempt.key.task_id
                self.tally.set_reason(replace(error.reason, task=task, judging=True))
            except ExhaustedError as error:
                self.tally.set_reason(error.reason)
                return

    async def _judge(self, attempt: JudgedAttempt) -> None:
        """Ask all judges about one attempt, and more of them if they disagree."""
        scores = await self._scores(self.panel(attempt.key.task_id), attempt)
        if disagree(scores, self.judging.disagreement):
            self.tally.total += _missing(self.more, attempt)
            scores += await self._scores(self.more, attempt)
        self.unjudged += not scores

    async def _scores(self, judges: Iterable[Judge], attempt: JudgedAttempt) -> list[float]:
        scores: list[float] = []
        for judge in judges:
            if self.tally.stopping and _missing([judge], attempt):
                raise _StoppedError
            try:
                score = await judge.score(attempt)
            except ClosedError as error:
                if self.tally.stopping:
                    raise _StoppedError from error
                self.tally.set_reason(error.reason)  # the other judges are still asked
                continue
            except CallTooLargeError:
                raise
            except ExhaustedError as error:
                judge.context.workforce.exhaust()
                if self.tally.stopping:
                    raise
                self.tally.set_reason(error.reason)
                continue
            scores += [score] if score is not None else []
        return scores


def _missing(judges: Iterable[Judge], attempt: JudgedAttempt) -> int:
    """Count the judges that have not given a valid judgment of an attempt."""
    return sum(judge.judgment(attempt) is None for judge in judges)


def case_of(row: Mapping[str, Any]) -> JudgedCase:
    """Return what a judge sees of a record: never the subject, the tier or the system prompt."""
    for column, shape in _JSON.items():
        if row.get(column):
            json_cell(row[column], shape, f"{column} of a record")
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
