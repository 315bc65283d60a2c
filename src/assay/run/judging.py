"""Judge the attempts of a run: a phase of its own, resumable, within the run's budgets."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.judge.consensus import disagree
from assay.judge.prompt import Case, messages
from assay.run.asking import KEY, Brief, Desk, Judge, Known
from assay.run.budget import Budget, ExhaustedError
from assay.run.engine import Tally
from assay.run.execute import model_of
from assay.run.limiter import MOST, Limiter
from assay.run.prices import Prices
from assay.run.writer import Writer
from assay.store.connect import StoreError
from assay.store.store import JUDGMENT_COLUMNS, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from assay.models.model import Model
    from assay.run.asking import Key
    from assay.store.store import Row, Run
    from assay.suite.values import Judging, Limits, Price, Subject

_READ = (*KEY, "status", "input", "messages", "target", "response", "work")
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


class _Judgments(Store):
    """A store whose records are judgments, for the writer."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.address)
        self._engine = store.engine

    def write(self, records: Sequence[Row], calls: Sequence[Row]) -> None:
        self.write_judgments(records, calls)


class _StoppedError(Exception):
    """No further judge is asked: the run was interrupted, or another worker ran out of budget."""


def check_judging(judging: Judging, limits: Limits, prices: Mapping[str, Price]) -> None:
    """Refuse a judge that cannot be called, and a limit of money that could not be kept."""
    judges = (*judging.judges, *judging.more)
    for judge in judges:
        model_of(judge)
    unknown = Prices(prices).unknown(judges)
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

    `began` is when the run began, for a limit of seconds that holds for all of it.
    """
    check_judging(judging, limits, prices)
    before = store.find(run.id)
    settings = {**before.settings, "judge": judging.plain()}
    store.set_run(run.id, status="running", settings=settings)
    models = {s.name: model_of(s, limits.timeout) for s in (*judging.judges, *judging.more)}
    recorder = None
    if record is not None:
        from assay.models.replay import Recorder  # noqa: PLC0415

        recorder = Recorder(record)
        models = {name: recorder.wrap(model) for name, model in models.items()}
    spent = store.spent(run.id)
    budget = Budget.of(limits, spent, began)
    bench = Bench(run.id, judging, models, store, Prices(prices), budget, watch)
    status = "stopped"
    try:
        interrupted = asyncio.run(bench.sit(limits))
        if not (interrupted or bench.tally.exhausted):
            status = "failed" if bench.tally.errors else _settled(before)
    finally:
        store.set_run(run.id, status=status)
        if recorder:
            recorder.close()
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
    tally: Tally = field(default_factory=lambda: Tally(0))
    invalid: dict[str, int] = field(default_factory=dict)
    unjudged: int = 0
    judges: tuple[Judge, ...] = ()
    more: tuple[Judge, ...] = ()

    async def sit(self, limits: Limits) -> bool:
        """Judge until all is done or it is interrupted; says whether it was."""
        fixed = limits.concurrency if isinstance(limits.concurrency, int) else None
        limiters = {m.account: Limiter(fixed, m.limit, m.account) for m in self.models.values()}
        writer = Writer(_Judgments(self.store), self._committed)
        try:
            rubric = self.judging.rubric
            desk = Desk(self.run, rubric, self.prices, self.budget, self.tally, writer)

            def ready(subjects: Sequence[Subject]) -> tuple[Judge, ...]:
                models = [(s, self.models[s.name]) for s in subjects]
                return tuple(Judge.of(s, m, limiters[m.account], desk) for s, m in models)

            self.judges, self.more = ready(self.judging.judges), ready(self.judging.more)
            todo = list(self._todo())
            most = sum(x.most if x.adapts else int(x.limit) for x in limiters.values())
            return await self._together(iter(todo), max(1, min(most, MOST, len(todo))))
        finally:
            await writer.close()
            for model in self.models.values():
                await model.close()

    async def _together(self, todo: Iterator[Brief], workers: int) -> bool:
        """Work side by side; the first Ctrl-C ends it in good order, the second at once."""
        tasks = [asyncio.ensure_future(self._work(todo)) for _ in range(workers)]
        main = asyncio.gather(*tasks)
        signals = 0

        def interrupt() -> None:
            nonlocal signals
            signals += 1
            self.tally.stopping = True
            if signals > 1:
                main.cancel()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, interrupt)
        try:
            await main
        except BaseException as error:
            self.tally.stopping = True  # what is under way is paid for: it is ended and written
            if isinstance(error, asyncio.CancelledError | StoreError):
                for task in tasks:
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if not (signals and isinstance(error, asyncio.CancelledError)):
                raise
        return signals > 0

    def _todo(self) -> Iterator[Brief]:
        """Find the attempts that lack a judgment; counts the judgments to be made."""
        known = self._known()
        for frame in self.store.records(self.run):
            for row in frame.select(_READ).iter_rows(named=True):
                if row["status"] == "error" or row["response"] is None:
                    continue
                key = row["subject"], row["tier"], row["task_id"], row["attempt"]
                asked = messages(self.judging.rubric, _case(row))
                text = "\0".join(m.content for m in asked).encode("utf-8", "replace")
                digest = hashlib.blake2b(text, digest_size=12).hexdigest()
                brief = Brief(key, asked, digest, known.get(key, {}))
                missing = sum(not judge.stands(brief) for judge in self.judges)
                if missing or self._lacks_more(brief):
                    self.tally.total += missing
                    yield brief

    def _known(self) -> dict[Key, dict[str, Known]]:
        found: dict[Key, dict[str, Known]] = {}
        table = self.store.judgments(self.run)
        for *key, judge, mark, status, score in table.select(
            *KEY, "judge", "fingerprint", "status", "score"
        ).iter_rows():
            found.setdefault(tuple(key), {})[judge] = Known(mark, status, score)
        return found

    def _lacks_more(self, brief: Brief) -> bool:
        """Whether judges whose judgments stand disagree, and others were not asked yet."""
        stand = [brief.known[j.subject.name].score for j in self.judges if j.stands(brief)]
        scores = [score for score in stand if score is not None]
        if not disagree(scores, self.judging.disagreement):
            return False
        return not all(judge.stands(brief) for judge in self.more)

    def _committed(self, rows: list[Row]) -> None:
        for row in rows:
            self.tally.done += 1
            if row[_STATUS] == "error":
                self.tally.errors["error"] = self.tally.errors.get("error", 0) + 1
            elif row[_STATUS] == "invalid":
                self.invalid[row[_NAME]] = self.invalid.get(row[_NAME], 0) + 1
        self.watch(self.tally, self.budget, rows)

    async def _work(self, todo: Iterator[Brief]) -> None:
        for brief in todo:
            try:
                await self._attempt(brief)
            except _StoppedError:
                return
            except ExhaustedError as error:
                self.tally.exhausted = str(error)
                self.tally.stopping = True
                return

    async def _attempt(self, brief: Brief) -> None:
        """Ask all judges about one attempt, and more of them where they disagree."""
        given = [await self._opinion(brief, judge) for judge in self.judges]
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
        return await judge.opinion(brief)


def _case(row: Mapping[str, Any]) -> Case:
    """Take from a record what a judge sees: never the subject, the tier or its system text."""
    turns = json.loads(row["messages"] or "[]")
    users = [t["content"] for t in turns if t.get("role") == "user"]
    done = json.loads(row["work"] or "{}")
    task = users[-1] if users else row["input"] or ""
    return Case(task, row["response"] or "", row["target"], done.get("diff"))
