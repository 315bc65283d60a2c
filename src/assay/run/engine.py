"""The engine: one event loop that makes attempts and hands their records to the writer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections import deque
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from assay.models.failure import CallError
from assay.models.model import Message, Reply, Request, Settings, Usage
from assay.run.budget import Amount, Budget, ExhaustedError, TooMuchError, ceiling
from assay.run.limiter import LONGEST_PAUSE, ClosedError, Limiter
from assay.run.turns import most_calls
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
NOTHING_USED, NOT_KNOWN = Amount(0.0, 0), Amount(None, None)
_NO_LIMIT = contextlib.nullcontext()
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


@dataclass(frozen=True, slots=True)
class Made:
    """What came of one call: a reply or an error, what it used, and how long it took."""

    used: Amount
    took_ms: float
    reply: Reply | None = None
    error: CallError | None = None

    @property
    def kind(self) -> str | None:
        """What kind of error it was."""
        return self.error.kind if self.error else None


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
        tasks = [
            asyncio.create_task(self._work(queue))
            for limiter, queue in self._queues(attempts)
            for _ in range(max(1, min(limiter.places, self.tally.total)))
        ]
        loop = asyncio.get_running_loop()
        left = self.budget.left
        timer = None if left is None else loop.call_later(left, self.out_of_time)
        try:
            await asyncio.gather(*tasks)
        except BaseException as error:
            self.stop()  # what is under way is paid for: it is ended and written
            if isinstance(error, asyncio.CancelledError) or self.writer.error:
                for task in tasks:
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        finally:
            if timer:
                timer.cancel()
            await self.writer.close()

    def _queues(self, attempts: Iterator[Attempt]) -> Iterator[tuple[Limiter, Iterator[Attempt]]]:
        """Deal attempts out to their accounts, so that one that is paused holds up no other."""
        dealt: dict[str, deque[Attempt]] = {account: deque() for account in self.limiters}

        def queue(account: str) -> Iterator[Attempt]:
            own = dealt[account]
            while True:
                while not own:
                    attempt = next(attempts, None)
                    if attempt is None:
                        return
                    dealt[self.models[attempt.subject.name].account].append(attempt)
                yield own.popleft()

        for account, limiter in self.limiters.items():
            yield limiter, queue(account)

    def stop(self) -> None:
        """Begin no new attempt; those under way are ended and written."""
        self.tally.stopping = True
        for limiter in self.limiters.values():
            limiter.close()
        self.budget.wake()

    def out_of_time(self) -> None:
        """Stop because the time is over."""
        self.tally.exhausted = "The budget of time is used up."
        self.stop()

    async def _work(self, attempts: Iterator[Attempt]) -> None:
        for attempt in attempts:
            if self.tally.stopping:
                return
            call = self._ready(attempt)
            try:
                await self._attempt(call)
            except ClosedError as error:  # other accounts go on
                self.tally.exhausted = self.tally.exhausted or str(error) or None
            except TooMuchError as error:  # smaller ones go on
                self.tally.exhausted = f"Task {attempt.task.id} {error}."
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
        calls = most_calls(attempt.task.turns)
        if calls > 1:  # each call also sends what was said before
            tokens, output = calls * (tokens + calls * output), calls * output
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
                made = await self._called(call)
                row = self._ledger_row(call, made)
                if made.reply:
                    limiter.succeeded()
                    await self.writer.put(self._row(call, start, began, tries, made), [row])
                    return
                error = made.error
                assert error is not None
                limiter.failed(error)
                if not error.retryable or tries == TRIES or self.tally.stopping:
                    await self.writer.put(self._row(call, start, began, tries, made), [row])
                    return
                await self.writer.put(None, [row])
            finally:
                limiter.leave()
            self.tally.retries += 1
            await limiter.rest(_pause(error, tries, self.jitter))

    async def _called(self, call: Call) -> Made:
        """Call once, within the budget; what may have been paid for stays set aside."""
        await self.budget.reserve(call.most)
        used, began = NOTHING_USED, time.monotonic()
        try:
            if self.tally.stopping:
                raise ClosedError
            left = self.budget.left
            async with asyncio.timeout(left) if left is not None else _NO_LIMIT:
                reply = await call.side.model.call(call.request)
            used = self._used(call, reply)
            return Made(used, (time.monotonic() - began) * 1000, reply)
        except TimeoutError:
            error = CallError("timeout", "The time of the run was over before the answer came.")
        except CallError as wrong:
            error = wrong
        finally:
            self.budget.settle(call.most, used)
        if error.perhaps_paid:
            used = NOT_KNOWN
            self.budget.hold(call.most)
        return Made(used, (time.monotonic() - began) * 1000, error=error)

    def _used(self, call: Call, reply: Reply) -> Amount:
        prompt, completion = reply.usage.prompt_tokens, reply.usage.completion_tokens
        tokens = None if prompt is None or completion is None else prompt + completion
        return Amount(self._cost(call, reply), tokens)

    def _cost(self, call: Call, reply: Reply) -> float | None:
        """What a reply cost: by its own account, else by its tokens."""
        if reply.cost_usd is not None:
            return reply.cost_usd
        return self.prices.cost(call.attempt.subject, reply.usage)

    def _ledger_row(self, call: Call, made: Made) -> Row:
        attempt, reply, used = call.attempt, made.reply, made.used
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
                "status": "ok" if reply else made.kind,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "cost_usd": used.usd if reply else None,
                "latency_ms": reply.latency_ms if reply else made.took_ms,
                "at": time.time(),
                "held_usd": call.most.usd if used.usd is None else None,
                "held_tokens": call.most.tokens if used.tokens is None else None,
            }
        )

    def _row(
        self,
        call: Call,
        start: float,
        began: float,
        tries: int,
        made: Made,
    ) -> Row:
        """Write the record down, in the order of the columns; NO_REPLY stands for an error."""
        reply, error = made.reply, made.error
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
                "wait_ms": (time.monotonic() - began) * 1000 - (made.took_ms if reply else 0.0),
                "tries": tries,
                "cost_usd": made.used.usd if reply else None,
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
