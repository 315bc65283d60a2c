"""The engine: one event loop that makes attempts and hands their records to the writer."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from assay.models.failure import CallError
from assay.models.model import Message, Request, Settings, Usage
from assay.run.budget import Amount, Budget, ExhaustedError
from assay.run.limiter import MOST, Limiter
from assay.run.writer import Writer
from assay.store.store import CALL_COLUMNS, RECORD_COLUMNS
from assay.suite.plan import fingerprint_of, messages, settings, tokens_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from assay.models.model import Model, Reply
    from assay.run.prices import Prices
    from assay.store.store import Row, Store
    from assay.suite.plan import Attempt
    from assay.suite.values import Suite

SETTINGS = frozenset(f.name for f in fields(Settings))
TEXTS = ("error", "model", "input", "target", "category", "capability", "response", "reasoning")
"""The columns whose text comes from outside as it is."""
TRIES = 6
OUTPUT_TOKENS = 4096
"""The output reserved for a call whose settings set no limit."""


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
class Call:
    """One attempt made ready: what is sent, to whom, and the most it may take."""

    attempt: Attempt
    model: Model
    request: Request
    turns: list[dict[str, str]]
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
            model.account: Limiter(fixed if isinstance(fixed, int) else None, model.limit)
            for model in models.values()
        }
        self._settings: dict[tuple[str, str], Settings] = {}

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

    async def _work(self, attempts: Iterator[Attempt]) -> None:
        for attempt in attempts:
            if self.tally.stopping:
                return
            call = self._ready(attempt)
            try:
                await self._attempt(call)
            except ExhaustedError as error:
                self.tally.exhausted = str(error)
                self.stop()
                return

    def _ready(self, attempt: Attempt) -> Call:
        turns = messages(self.suite, attempt)
        options = settings(self.suite, attempt)
        chosen = self._chosen(attempt, options)
        request = Request(
            tuple(Message(t["role"], t["content"]) for t in turns), chosen, attempt.number
        )
        tokens = tokens_of(turns)
        output = chosen.max_tokens or OUTPUT_TOKENS
        most = Amount(
            self.prices.cost(attempt.subject, Usage(2 * tokens, output)), 2 * tokens + output
        )
        mark = fingerprint_of(attempt, options, turns)
        return Call(attempt, self.models[attempt.subject.name], request, turns, mark, most)

    def _chosen(self, attempt: Attempt, options: Mapping[str, Any]) -> Settings:
        """Give the settings of a call; what no wire format knows by name goes as it is."""
        side = attempt.subject.name, attempt.tier.name
        if side not in self._settings:
            known = {n: v for n, v in options.items() if n in SETTINGS}
            rest = {n: v for n, v in options.items() if n not in SETTINGS}
            known["extra"] = {**known.get("extra", {}), **rest}
            if self.suite.confidence == "logprobs":
                known["logprobs"] = True
            self._settings[side] = Settings.of(known)
        plain = self._settings[side]
        if attempt.seed is None or plain.seed is not None:
            return plain
        return replace(plain, seed=attempt.seed)

    async def _attempt(self, call: Call) -> None:
        """Make one attempt, trying again where that can help, and hand over its record."""
        limiter = self.limiters[call.model.account]
        began, start = time.monotonic(), time.time()
        for tries in range(1, TRIES + 1):
            await limiter.enter()
            try:
                if self.tally.stopping and tries == 1:
                    return
                await self.budget.reserve(call.most)
                used = Amount(0.0, 0)
                sent = time.monotonic()
                try:
                    reply = await call.model.call(call.request)
                    used = self._used(call, reply)
                finally:
                    self.budget.settle(call.most, used)
            except CallError as error:
                limiter.failed(error)
                waited = (time.monotonic() - sent) * 1000
                row = self._ledger_row(call, error.kind, None, waited)
                if error.retryable and tries < TRIES and not self.tally.stopping:
                    self.tally.retries += 1
                    await self.writer.put(None, [row])
                    limiter.leave()
                    await self._pause(error, tries)
                    continue
                record = self._row(call, start, began, tries, error=error)
                await self.writer.put(record, [row])
                limiter.leave()
                return
            except BaseException:
                limiter.leave()
                raise
            limiter.leave()
            limiter.succeeded()
            row = self._ledger_row(call, "ok", reply, reply.latency_ms)
            await self.writer.put(self._row(call, start, began, tries, reply), [row])
            return

    async def _pause(self, error: CallError, tries: int) -> None:
        longest = min(0.25 * 2**tries, 20.0)
        await asyncio.sleep(error.retry_after or self.jitter.uniform(longest / 2, longest))

    def _used(self, call: Call, reply: Reply) -> Amount:
        usage = reply.usage
        tokens = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
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
        usage = reply.usage if reply else Usage()
        values = {
            "run": self.run,
            "kind": "attempt",
            "subject": attempt.subject.name,
            "tier": attempt.tier.name,
            "task_id": attempt.task.id,
            "attempt": attempt.number,
            "model": call.model.name,
            "status": status,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost_usd": self._cost(call, reply) if reply else None,
            "latency_ms": latency,
            "at": time.time(),
        }
        return tuple(values[name] for name in CALL_COLUMNS)

    def _row(
        self,
        call: Call,
        start: float,
        began: float,
        tries: int,
        reply: Reply | None = None,
        error: CallError | None = None,
    ) -> Row:
        task, usage = call.attempt.task, reply.usage if reply else Usage()
        price = self.prices.of(call.attempt.subject)
        whole = (time.monotonic() - began) * 1000
        values: dict[str, Any] = {
            "run": self.run,
            "subject": call.attempt.subject.name,
            "tier": call.attempt.tier.name,
            "task_id": task.id,
            "attempt": call.attempt.number,
            "fingerprint": call.fingerprint,
            "status": reply.status if reply else "error",
            "error": str(error) if error else None,
            "error_kind": error.kind if error else None,
            "model": reply.model if reply else None,
            "input": task.input,
            "messages": json.dumps(call.turns),
            "target": task.target,
            "category": task.category,
            "capability": task.capability,
            "seed": call.request.settings.seed,
            "wait_ms": whole - (reply.latency_ms or 0.0) if reply else whole,
            "tries": tries,
            "input_price": price.input if price else None,
            "output_price": price.output if price else None,
            "started": start,
            "ended": time.time(),
            "pass_score": task.pass_score,
            "extra": json.dumps(dict(task.extra), default=str) if task.extra else None,
        }
        if reply:
            values |= {
                "response": reply.text,
                "reasoning": reply.reasoning,
                "tool_calls": _json(reply.tool_calls),
                "logprobs": _json(reply.logprobs),
                "finish": reply.finish,
                "truncated": reply.truncated,
                "refused": reply.refused,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "cached_tokens": usage.cached_tokens,
                "reasoning_tokens": usage.reasoning_tokens,
                "latency_ms": reply.latency_ms,
                "duration_seconds": None if reply.latency_ms is None else reply.latency_ms / 1000,
                "cost_usd": self._cost(call, reply),
                "passed": reply.passed,
                "work": json.dumps(reply.work) if reply.work else None,
            }
        for name in TEXTS:
            if (text := values.get(name)) is not None:
                values[name] = _storable(text)
        return tuple(map(values.get, RECORD_COLUMNS))


def _storable(value: str) -> str:
    """Replace what no database takes as text: NUL, and halves of surrogate pairs."""
    if value.isascii() and "\0" not in value:
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _json(items: Any) -> str | None:
    if not items:
        return None
    plain = [i if isinstance(i, tuple) else {n: getattr(i, n) for n in i.__slots__} for i in items]
    return json.dumps(plain)
