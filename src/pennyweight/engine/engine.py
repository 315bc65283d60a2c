"""The engine: one event loop that makes attempts and passes their records to the writer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from pennyweight.engine.attempt_queues import AttemptQueue, AttemptQueues
from pennyweight.engine.batches.pending import UnansweredError, collected
from pennyweight.engine.budget import Amount, Budget, CallTooLargeError, ExhaustedError, ceiling
from pennyweight.engine.calls import (
    NOTHING_USED,
    CallResult,
    CutError,
    LateError,
    call_once,
    call_row,
    cost_of,
    used_of,
)
from pennyweight.engine.conversations import Conversation, sum_known
from pennyweight.engine.limiter import ClosedError, Limiter
from pennyweight.engine.resume import key_of, task_columns
from pennyweight.engine.tally import Tally
from pennyweight.engine.workforce import Workforce
from pennyweight.models.model import Lane, Message, Model, Reply, Request, Settings, Usage
from pennyweight.models.prices import Prices
from pennyweight.models.reply_memory import ReplyScope
from pennyweight.store.bills import Payer
from pennyweight.store.store import RECORD_COLUMNS, Row, Store
from pennyweight.suite.exam import TaskDigests
from pennyweight.suite.plan import (
    Attempt,
    conversation,
    fingerprint_of,
    most_calls,
    settings,
    side_mark,
    work_of,
)
from pennyweight.suite.scenarios import LATER
from pennyweight.suite.values import LoadedSuite
from pennyweight.text.safe import storable

NO_REPLY = Reply("")
OUTPUT_TOKENS = 4096
"""The output reserved for a call whose settings set no limit."""
_in_order_of_records: Callable[[dict[str, Any]], Row] = itemgetter(*RECORD_COLUMNS)


@dataclass(frozen=True, slots=True)
class PreparedSide:
    """What all attempts of one subject in one tier share."""

    model: Model
    limiter: Limiter
    settings: Settings
    output: int
    """The maximum number of output tokens of a call."""
    sent: int
    """The maximum number of tokens sent besides the messages: tools, a schema, extra fields."""
    mark: str
    payer: Payer
    """Whose largest call counts for the reservations."""


@dataclass(frozen=True, slots=True)
class Call:
    """A prepared attempt: what is sent, to which model, and how much it may use."""

    attempt: Attempt
    side: PreparedSide
    request: Request
    turns: str
    fingerprint: str
    one: Amount
    """The maximum of one call."""
    calls: int = 1
    """The maximum number of calls; more than 1 in a conversation."""
    conversation: Conversation | None = None
    rows: list[Row] = field(default_factory=list)
    """The ledger rows of a conversation's calls that are not written yet."""
    bills: list[tuple[Reply, float | None]] = field(default_factory=list)
    """Each reply in a conversation, and its cost."""

    def take_rows(self, last: Row | None = None) -> list[Row]:
        """Return the rows to write, once."""
        taken = [*self.rows, last] if last else [*self.rows]
        self.rows.clear()
        return taken


class Engine:
    """Makes the attempts of a run."""

    def __init__(
        self,
        suite: LoadedSuite,
        run: str,
        models: Mapping[str, Model],
        store: Store,
        prices: Prices,
        budget: Budget,
        tally: Tally,
        committed: Callable[[list[Row]], None],
    ) -> None:
        self.suite, self.run, self.models = suite, run, models
        self.prices, self.budget, self.tally = prices, budget, tally
        self.workforce = Workforce(
            run, models.values(), suite.limits, budget, tally, store.write, committed
        )
        self.writer, self.limiters = self.workforce.writer, self.workforce.limiters
        self._sides: dict[tuple[str, str], PreparedSide] = {}
        self._digests = TaskDigests(suite)

    async def make(self, attempts: AttemptQueues) -> None:
        """Make all attempts, until stopped, at a limit, or unable to write."""
        self.workforce.wakes.append(attempts.wake)
        try:
            attempts.begin(self.limiters, self.workforce.stop)
            self.writer.companions = attempts.companions
            queues = attempts.queues(self.limiters, lambda name: self.models[name].account)
            await self.workforce.run(
                self._work(queue)
                for queue in queues
                for _ in range(max(1, min(queue.limiter.places, self.tally.total)))
            )
        finally:
            try:
                await self.workforce.close()
            finally:
                await attempts.close()

    async def _work(self, queue: AttemptQueue) -> None:
        ahead: list[tuple[Attempt, Call | None]] = []

        def look_ahead() -> None:
            """Prepare the next attempt; an error in it is raised when its turn comes."""
            attempt = None if self.tally.stopping else queue.take(ahead=True)
            if attempt is None:
                return
            try:
                ahead.append((attempt, self._ready(attempt, self._side(attempt))))
            except Exception:
                ahead.append((attempt, None))

        while not self.tally.stopping:
            attempt, call = ahead.pop() if ahead else (queue.take(), None)
            if attempt is None:
                if not await queue.more():
                    return
                continue
            try:
                await self._attempt(attempt, call, look_ahead)
                queue.made(attempt)
            except ClosedError as error:  # other accounts continue
                self.tally.set_reason(self.tally.stop_reason or error.reason)
                queue.failed(attempt, all_of_it=True)
            except CallTooLargeError as error:  # smaller calls continue
                self.tally.set_reason(replace(error.reason, task=attempt.task.id))
                queue.failed(attempt)
            except ExhaustedError as error:
                self.tally.set_reason(error.reason)
                self.workforce.exhaust()

    def _ready(self, attempt: Attempt, side: PreparedSide) -> Call:
        turns = conversation(attempt.tier, attempt.task)
        chosen = side.settings
        if attempt.seed is not None and chosen.seed is None:
            chosen = replace(chosen, seed=attempt.seed)
        work = work_of(attempt)
        messages = tuple([Message(t["role"], t["content"]) for t in turns])
        label = f"{attempt.tier.name}\0{attempt.task.id}"
        request = Request(messages, chosen, attempt.number, work, label)
        tokens, output = ceiling(turns) + side.sent, side.output
        script = attempt.task.turns
        calls = most_calls(script)
        if calls > 1:  # each call also sends the earlier turns and the results of tools
            tokens += calls * (output + ceiling([t for t in turns if t["role"] == LATER]))
        prices = self.prices.in_lane("batch" if side.model.in_batches else "live")
        cost = prices.most(attempt.subject, tokens, output)
        text = json.dumps(turns)
        mark = fingerprint_of(side.mark, attempt.seed, text, work)
        one = Amount(cost, tokens + output)
        if not script:
            return Call(attempt, side, request, text, mark, one)
        rows: list[Row] = []
        bills: list[tuple[Reply, float | None]] = []

        def paid(reply: Reply) -> None:
            if reply.lane == "batch":  # the ledger has it since it was collected
                bills.append((reply, cost_of(self.prices, attempt.subject, reply)))
                return
            used = used_of(self.prices, attempt.subject, reply)
            self.budget.spend(side.payer, one, used)
            bills.append((reply, used.usd))
            rows.append(self._ledger_row(call, CallResult(used, reply.latency_ms or 0.0, reply)))

        room = tokens - side.sent if self.budget.is_limited else None
        talk = Conversation(side.model, request, paid, room, output)
        call = Call(attempt, side, request, text, mark, one, calls, talk, rows, bills)
        return call

    def _side(self, attempt: Attempt) -> PreparedSide:
        """Return what the attempts of a side share."""
        subject, tier = attempt.subject, attempt.tier.name
        if side := self._sides.get((subject.name, tier)):
            return side
        options = settings(self.suite, attempt)
        chosen = Settings.from_suite(options)
        if self.suite.confidence == "logprobs":
            chosen = replace(chosen, logprobs=True)
        model = self.models[subject.name]
        side = self._sides[subject.name, tier] = PreparedSide(
            model,
            self.limiters[model.account],
            chosen,
            model.most_output(chosen) or OUTPUT_TOKENS,
            ceiling((), [*chosen.tools, *filter(None, (chosen.schema, chosen.extra))]),
            side_mark(attempt, options),
            ("attempt", subject.name),
        )
        return side

    async def _attempt(
        self, attempt: Attempt, call: Call | None, meanwhile: Callable[[], None]
    ) -> None:
        """Make one attempt, with retries where they can help, and pass its record to the writer.

        Its prompt is prepared when it has a place, or while the previous record is written: an
        attempt that waits holds no prompt. The place is released when the record is committed,
        unless there are hundreds of places (see `Limiter.spare`).
        """
        side = self._side(attempt)
        began, start = time.monotonic(), time.time()
        prepared = call

        async def once() -> tuple[CallResult, list[Row]]:
            nonlocal prepared
            if prepared is None:
                if self.tally.stopping:
                    raise ClosedError
                prepared = self._ready(attempt, side)
            return await self._called(prepared)

        async def finish(result: CallResult, rows: list[Row], tries: int) -> None:
            assert prepared is not None
            row = self._row(prepared, start, began, tries, result)
            if result.reply:
                spare = side.limiter.spare
                await self.writer.put(row, rows, meanwhile, spare, then=result.release)
            else:
                await self.writer.put(row, rows, then=result.release)

        if side.model.in_batches:
            try:
                with ReplyScope():
                    await finish(*await once(), 1)
                return
            except UnansweredError as late:
                prepared, side = None, replace(side, model=late.live)
        await self.workforce.answered(side.model, once, finish)

    async def _called(self, call: Call) -> tuple[CallResult, list[Row]]:
        """Call once, within the budget; return the result and the rows of the ledger."""
        conversation = call.conversation
        model = conversation or call.side.model
        if call.side.model.in_batches:
            key = key_of(self.run, call.attempt)
            return await collected(
                model, call.request, self.budget, call.side.payer, call.one, key, call.calls
            ), []

        def used(reply: Reply) -> Amount:
            """Return what is not counted yet: a finished conversation has counted every reply."""
            if conversation and conversation.ended:
                return NOTHING_USED
            return used_of(self.prices, call.attempt.subject, reply)

        try:
            result = await call_once(
                model,
                call.request,
                call.side.payer,
                call.one,
                self.budget,
                self.tally,
                used,
                call.calls,
            )
        except (CutError, LateError) as cut:
            self.workforce.cut += call.take_rows(self._ledger_row(call, cut.result))
            raise
        except BaseException:  # such as a recording that cannot be written
            self.workforce.cut += call.take_rows()
            raise
        is_counted = result.reply and conversation
        return result, call.take_rows(None if is_counted else self._ledger_row(call, result))

    def _ledger_row(self, call: Call, result: CallResult) -> Row:
        key = key_of(self.run, call.attempt)
        most = self.budget.maximum(call.side.payer, call.one)
        return call_row("attempt", key, call.side.model.name, result, most)

    def _row(self, call: Call, start: float, began: float, tries: int, result: CallResult) -> Row:
        """Return the record, in the order of the columns."""
        attempt, error = call.attempt, result.error
        reply = result.reply or NO_REPLY
        task, usage, latency = attempt.task, reply.usage, reply.latency_ms
        cost, took = result.used.usd, result.took_ms
        if reply.lane == "batch":  # it was counted when it was collected
            cost = cost_of(self.prices, attempt.subject, reply)
        answered = result.reply is not None
        is_usable = answered and reply.status != "error"
        if call.conversation and answered:  # includes what was answered in an earlier try
            cost, took = sum_known([usd for _, usd in call.bills]), latency or took
        if not answered:  # what was billed before it failed was spent all the same
            billed = [usd for _, usd in call.bills] + [result.used.usd] * bool(result.usage)
            cost = sum_known(billed) if billed else None
        usages: list[Usage] = [usage]
        lanes: list[Lane] = []
        if call.bills:
            usages = [one.usage for one, _ in call.bills]
            if any(one.lane != reply.lane for one, _ in call.bills):  # it ended after a deadline
                lanes = [one.lane for one, _ in call.bills]
        price = self.prices.in_lane(reply.lane).used(attempt.subject, usages, lanes)
        spent = took if latency is None else min(took, latency)
        waited = (time.monotonic() - began) * 1000 - (spent if answered else 0.0)
        return _in_order_of_records(
            {
                "run": self.run,
                "subject": attempt.subject.name,
                "tier": attempt.tier.name,
                "task_id": task.id,
                "attempt": attempt.number,
                "fingerprint": call.fingerprint,
                "status": reply.status if answered else "error",
                "error": storable(str(error) if error else reply.error),
                "error_kind": error.recorded_kind if error else reply.reported,
                "model": storable(reply.model),
                "input": storable(task.input),
                "messages": call.turns,
                **task_columns(task, self._digests.of(task)),
                "response": storable(reply.text) if is_usable else None,
                "reasoning": storable(reply.reasoning),
                "tool_calls": _json(reply.tool_calls) if reply.tool_calls else None,
                "logprobs": _json(reply.logprobs) if reply.logprobs else None,
                "finish": storable(reply.finish),
                "truncated": reply.truncated if is_usable else None,
                "refused": reply.refused if is_usable else None,
                "seed": call.request.settings.seed,
                "temperature": call.request.settings.temperature,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "cached_tokens": usage.cached_tokens,
                "cache_write_tokens": usage.cache_write_tokens,
                "reasoning_tokens": usage.reasoning_tokens,
                "latency_ms": latency,
                "ttft_ms": reply.ttft_ms,
                "wait_ms": None if reply.lane == "batch" else waited,
                "lane": "batch" if call.side.model.in_batches else reply.lane,
                "tries": tries,
                "cost_usd": cost,
                "input_price": price.input if price else None,
                "output_price": price.output if price else None,
                "cached_input_price": price.cached_input if price else None,
                "cache_write_price": price.cache_write if price else None,
                "price_source": price.origin if price else None,
                "duration_seconds": None if latency is None else latency / 1000,
                "started": start,
                "ended": time.time(),
                "passed": reply.passed,
                "work": json.dumps(reply.work) if reply.work else None,
            }
        )


def _json(items: Any) -> str:
    plain = [i if isinstance(i, tuple) else {n: getattr(i, n) for n in i.__slots__} for i in items]
    return json.dumps(plain)
