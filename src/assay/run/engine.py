"""The engine: one event loop that makes attempts and hands their records to the writer."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from assay.models.failure import CallError
from assay.models.model import Message, Reply, Request, Settings, Usage
from assay.run.budget import Amount, Budget, ExhaustedError, ceiling
from assay.run.limiter import LONGEST_PAUSE, MOST, ClosedError, Limiter
from assay.run.writer import Writer
from assay.store.store import CALL_COLUMNS, RECORD_COLUMNS
from assay.suite.plan import fingerprint_of, messages, settings, side_mark, work_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from assay.models.model import Model
    from assay.run.prices import Prices
    from assay.store.store import Row, Store
    from assay.suite.plan import Attempt
    from assay.suite.values import Price, Suite

SETTINGS = frozenset(f.name for f in fields(Settings))
NOTHING = Usage()
NO_REPLY = Reply("")
TRIES = 6
OUTPUT_TOKENS = 4096
"""The output reserved for a call whose settings set no limit."""
_in_order_of_records: Callable[[dict[str, Any]], Row] = itemgetter(*RECORD_COLUMNS)
_in_order_of_calls: Callable[[dict[str, Any]], Row] = itemgetter(*CALL_COLUMNS)


@dataclass(slots=True)
class Tally:
    """What has happened so far, for the progress."""

    total: int
    done: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    retries: int = 0
    exhausted: str | None = None
    stopping: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """What all attempts of one subject in one tier share."""

    model: Model
    limiter: Limiter
    settings: Settings
    mark: str
    price: Price | None


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt made ready: what is sent, to whom, and the most it may take."""

    attempt: Attempt
    side: Side
    request: Request
    turns: str
    fingerprint: str
    most: Amount


class Engine:
    """Makes the attempts of a run that are still to be made."""

    def __init__(
        self,
        suite: Suite,
        run: str,
        models: Mapping[str, Model],
        store: Store,
        prices: Prices,
        budget: Budget,
        tally: Tally,
        committed: Callable[[list[Row]], None],
    ) -> None:
        self.suite, self.run, self.models, self.store = suite, run, models, store
        self.prices, self.budget, self.tally, self.committed = prices, budget, tally, committed
        self.jitter = random.Random(0)  # noqa: S311 - it only spreads retries out
        fixed = suite.limits.concurrency
        self.limiters = {
            model.account: Limiter(
                fixed if isinstance(fixed, int) else None, model.limit, model.account
            )
            for model in models.values()
        }
        self._sides: dict[tuple[str, str], Side] = {}

    async def make(self, attempts: Iterator[Attempt]) -> None:
        """Make all attempts; ends early when told to stop, out of budget, or unable to write."""
        self.writer = Writer(self.store, self.committed)
        workers = sum(
            int(limiter.limit) if not limiter.adapts else limiter.most
            for limiter in self.limiters.values()
        )
        workers = max(1, min(workers, MOST, self.tally.total))
        tasks = [asyncio.create_task(self._work(attempts)) for _ in range(workers)]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        finally:
            await self.writer.close()

    def stop(self) -> None:
        """Begin no new attempt; those under way are ended and written."""
        self.tally.stopping = True
        for limiter in self.limiters.values():
            limiter.close()

    async def _work(self, attempts: Iterator[Attempt]) -> None:
        for attempt in attempts:
            if self.tally.stopping:
                return
            call = self._ready(attempt)
            try:
                await self._attempt(call)
            except ClosedError as error:  # other accounts go on
                self.tally.exhausted = self.tally.exhausted or str(error) or None
            except ExhaustedError as error:
                self.tally.exhausted = str(error)
                self.stop()
                return

    def _ready(self, attempt: Attempt) -> Call:
        side = self._sides.get((attempt.subject.name, attempt.tier.name)) or self._side(attempt)
        turns = messages(self.suite, attempt)
        chosen = side.settings
        if attempt.seed is not None and chosen.seed is None:
            chosen = replace(chosen, seed=attempt.seed)
        work = work_of(attempt)
        request = Request(
            tuple(Message(t["role"], t["content"]) for t in turns), chosen, attempt.number, work
        )
        tokens = ceiling(turns, chosen.tools)
        output = chosen.max_tokens or OUTPUT_TOKENS
        cost = self.prices.cost(attempt.subject, Usage(tokens, output))
        text = json.dumps(turns)
        mark = fingerprint_of(side.mark, attempt.seed, text, work)
        return Call(attempt, side, request, text, mark, Amount(cost, tokens + output))

    def _side(self, attempt: Attempt) -> Side:
        """Work out what the attempts of a side share; settings no wire knows go as they are."""
        subject = attempt.subject
        options = settings(self.suite, attempt)
        known = {n: v for n, v in options.items() if n in SETTINGS}
        rest = {n: v for n, v in options.items() if n not in SETTINGS}
        known["extra"] = {**known.get("extra", {}), **rest}
        if self.suite.confidence == "logprobs":
            known["logprobs"] = True
        model = self.models[subject.name]
        side = self._sides[subject.name, attempt.tier.name] = Side(
            model,
            self.limiters[model.account],
            Settings.of(known),
            side_mark(attempt, options),
            self.prices.of(subject),
        )
        return side

    async def _attempt(self, call: Call) -> None:
        """Make one attempt, trying again where that can help, and hand over its record.

        Its place is given back when the record is committed: what a crash can lose is no more
        than what is under way.
        """
        limiter = call.side.limiter
        began, start = time.monotonic(), time.time()
        for tries in range(1, TRIES + 1):
            await limiter.enter()
            try:
                if self.tally.stopping and tries == 1:
                    return
                sent = time.monotonic()
                reply, error = await self._called(call)
                if reply:
                    limiter.succeeded()
                    row = self._ledger_row(call, "ok", reply, reply.latency_ms)
                    await self.writer.put(self._row(call, start, began, tries, reply), [row])
                    return
                assert error is not None
                limiter.failed(error)
                waited = (time.monotonic() - sent) * 1000
                row = self._ledger_row(call, error.kind, None, waited)
                if not error.retryable or tries == TRIES or self.tally.stopping:
                    record = self._row(call, start, began, tries, error=error)
                    await self.writer.put(record, [row])
                    return
                await self.writer.put(None, [row])
            finally:
                limiter.leave()
            self.tally.retries += 1
            await limiter.rest(_pause(error, tries, self.jitter))

    async def _called(self, call: Call) -> tuple[Reply | None, CallError | None]:
        """Call once, within the budget."""
        await self.budget.reserve(call.most)
        used = Amount(0.0, 0)
        try:
            reply = await call.side.model.call(call.request)
            used = self._used(call, reply)
        except CallError as error:
            return None, error
        finally:
            self.budget.settle(call.most, used)
        return reply, None

    def _used(self, call: Call, reply: Reply) -> Amount:
        prompt, completion = reply.usage.prompt_tokens, reply.usage.completion_tokens
        tokens = None if prompt is None or completion is None else prompt + completion
        return Amount(self._cost(call, reply), tokens)

    def _cost(self, call: Call, reply: Reply) -> float | None:
        """What a reply cost: by its own account, else by its tokens."""
        if reply.cost_usd is not None:
            return reply.cost_usd
        return self.prices.cost(call.attempt.subject, reply.usage)

    def _ledger_row(
        self, call: Call, status: str, reply: Reply | None, latency: float | None
    ) -> Row:
        attempt = call.attempt
        usage = reply.usage if reply else NOTHING
        return _in_order_of_calls(
            {
                "run": self.run,
                "kind": "attempt",
                "subject": attempt.subject.name,
                "tier": attempt.tier.name,
                "task_id": attempt.task.id,
                "attempt": attempt.number,
                "model": call.side.model.name,
                "status": status,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "cost_usd": self._cost(call, reply) if reply else None,
                "latency_ms": latency,
                "at": time.time(),
            }
        )

    def _row(
        self,
        call: Call,
        start: float,
        began: float,
        tries: int,
        reply: Reply | None = None,
        error: CallError | None = None,
    ) -> Row:
        """Write the record down, in the order of the columns; NO_REPLY stands for an error."""
        attempt, price, said = call.attempt, call.side.price, reply or NO_REPLY
        task, usage, latency = attempt.task, said.usage, said.latency_ms
        return _in_order_of_records(
            {
                "run": self.run,
                "subject": attempt.subject.name,
                "tier": attempt.tier.name,
                "task_id": task.id,
                "attempt": attempt.number,
                "fingerprint": call.fingerprint,
                "status": said.status if reply else "error",
                "error": _storable(str(error)) if error else None,
                "error_kind": error.kind if error else None,
                "model": _storable(said.model),
                "input": _storable(task.input),
                "messages": call.turns,
                "target": _storable(task.target),
                "category": _storable(task.category),
                "capability": _storable(task.capability),
                "response": _storable(said.text) if reply else None,
                "reasoning": _storable(said.reasoning),
                "tool_calls": _json(said.tool_calls),
                "logprobs": _json(said.logprobs),
                "finish": _storable(said.finish),
                "truncated": said.truncated if reply else None,
                "refused": said.refused if reply else None,
                "seed": call.request.settings.seed,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "cached_tokens": usage.cached_tokens,
                "reasoning_tokens": usage.reasoning_tokens,
                "latency_ms": latency,
                "wait_ms": (time.monotonic() - began) * 1000 - (latency or 0.0),
                "tries": tries,
                "cost_usd": self._cost(call, reply) if reply else None,
                "input_price": price.input if price else None,
                "output_price": price.output if price else None,
                "price_source": price.origin if price else None,
                "duration_seconds": None if latency is None else latency / 1000,
                "started": start,
                "ended": time.time(),
                "pass_score": task.pass_score,
                "extra": json.dumps(dict(task.extra), default=str) if task.extra else None,
                "passed": said.passed,
                "work": json.dumps(said.work) if said.work else None,
            }
        )


def _pause(error: CallError, tries: int, jitter: random.Random) -> float:
    """Say how long to wait before the next try: as told, else longer each time."""
    if error.retry_after:
        return min(error.retry_after, LONGEST_PAUSE)
    longest = min(0.25 * 2**tries, 20.0)
    return jitter.uniform(longest / 2, longest)


def _storable(value: str | None) -> str | None:
    """Replace what no database takes as text: NUL, and halves of surrogate pairs."""
    if value is None or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _json(items: Any) -> str | None:
    if not items:
        return None
    plain = [i if isinstance(i, tuple) else {n: getattr(i, n) for n in i.__slots__} for i in items]
    return json.dumps(plain)
