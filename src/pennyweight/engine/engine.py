"""The engine: one event loop that makes attempts and hands their records to the writer."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pennyweight.engine.budget import Amount, Budget, CallTooLargeError, ExhaustedError, ceiling
from pennyweight.engine.calls import (
    NOTHING_USED,
    CutError,
    LateError,
    Made,
    call_row,
    called,
    cost_of,
    used_of,
)
from pennyweight.engine.conversations import Talk
from pennyweight.engine.limiter import ClosedError, Limiter
from pennyweight.engine.prepared import Call, PreparedSide
from pennyweight.engine.resume import key_of, task_columns
from pennyweight.engine.workforce import Workforce
from pennyweight.models.model import Message, Model, Reply, Request, Settings, Usage
from pennyweight.store.store import RECORD_COLUMNS, Row, Store
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
from pennyweight.suite.values import Suite
from pennyweight.text.safe import storable

if TYPE_CHECKING:
    from pennyweight.engine.tally import Tally
    from pennyweight.models.prices import Prices

SETTINGS = frozenset(f.name for f in fields(Settings))
NO_REPLY = Reply("")
OUTPUT_TOKENS = 4096
"""The output reserved for a call whose settings set no limit."""
_in_order_of_records: Callable[[dict[str, Any]], Row] = itemgetter(*RECORD_COLUMNS)


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
        self.suite, self.run, self.models = suite, run, models
        self.prices, self.budget, self.tally = prices, budget, tally
        self.workforce = Workforce(
            models.values(), suite.limits, budget, tally, store.write, committed
        )
        self.writer, self.limiters = self.workforce.writer, self.workforce.limiters
        self._sides: dict[tuple[str, str], PreparedSide] = {}

    async def make(self, attempts: Iterator[Attempt]) -> None:
        """Make all attempts; ends early when stopped, at a limit, or unable to write."""
        try:
            await self.workforce.run(
                self._work(queue)
                for limiter, queue in self._queues(attempts)
                for _ in range(max(1, min(limiter.places, self.tally.total)))
            )
        finally:
            await self.workforce.close()

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

    async def _work(self, attempts: Iterator[Attempt]) -> None:
        ahead: list[tuple[Attempt, Call | None]] = []

        def look_ahead() -> None:
            """Make the next one ready; what is wrong with it is told when its turn comes."""
            attempt = None if self.tally.stopping else next(attempts, None)
            if attempt is not None:
                ahead.append((attempt, None))
                with suppress(Exception):
                    ahead[0] = attempt, self._ready(attempt, self._side_of(attempt))

        while not self.tally.stopping:
            attempt, call = ahead.pop() if ahead else (next(attempts, None), None)
            if attempt is None:
                return
            try:
                await self._attempt(attempt, call, look_ahead)
            except ClosedError as error:  # other accounts go on
                self.tally.set_reason(self.tally.stop_reason or error.reason)
            except CallTooLargeError as error:  # smaller ones go on
                self.tally.set_reason(replace(error.reason, task=attempt.task.id))
            except ExhaustedError as error:
                self.tally.set_reason(error.reason)
                self.workforce.stop()
                return

    def _ready(self, attempt: Attempt, side: PreparedSide) -> Call:
        turns = conversation(attempt.tier, attempt.task)
        chosen = side.settings
        if attempt.seed is not None and chosen.seed is None:
            chosen = replace(chosen, seed=attempt.seed)
        work = work_of(attempt)
        said = tuple(Message(t["role"], t["content"]) for t in turns)
        label = f"{attempt.tier.name}\0{attempt.task.id}"
        request = Request(said, chosen, attempt.number, work, label)
        tokens, output = ceiling(turns) + side.sent, side.output
        script = attempt.task.turns
        calls = most_calls(script)
        if calls > 1:  # each call also sends what was said before, and what its tools gave
            tokens += calls * (output + ceiling([t for t in turns if t["role"] == LATER]))
        cost = self.prices.cost(attempt.subject, Usage(tokens, output))
        text = json.dumps(turns)
        mark = fingerprint_of(side.mark, attempt.seed, text, work)
        one = Amount(cost, tokens + output)
        if not script:
            return Call(attempt, side, request, text, mark, one, one)
        most = Amount(None if cost is None else cost * calls, (tokens + output) * calls)
        rows: list[Row] = []

        def paid(reply: Reply) -> None:
            used = used_of(self.prices, attempt.subject, reply)
            self.budget.spend(used, one)
            made = Made(used, reply.latency_ms or 0.0, reply)
            rows.append(call_row("attempt", key_of(self.run, attempt), side.model.name, made, one))

        room = tokens - side.sent if self.budget.is_limited else None
        talk = Talk(side.model, request, paid, room, output)
        return Call(attempt, side, request, text, mark, most, one, talk, rows)

    def _side_of(self, attempt: Attempt) -> PreparedSide:
        return self._sides.get((attempt.subject.name, attempt.tier.name)) or self._side(attempt)

    def _side(self, attempt: Attempt) -> PreparedSide:
        """Work out what the attempts of a side share; settings no wire knows go as they are."""
        subject = attempt.subject
        options = settings(self.suite, attempt)
        chosen = Settings.from_suite(options)
        if self.suite.confidence == "logprobs":
            chosen = replace(chosen, logprobs=True)
        model = self.models[subject.name]
        side = self._sides[subject.name, attempt.tier.name] = PreparedSide(
            model,
            self.limiters[model.account],
            chosen,
            model.most_output(chosen) or OUTPUT_TOKENS,
            ceiling((), [*chosen.tools, *filter(None, (chosen.schema, chosen.extra))]),
            side_mark(attempt, options),
            self.prices.of(subject),
        )
        return side

    async def _attempt(
        self, attempt: Attempt, call: Call | None, meanwhile: Callable[[], None]
    ) -> None:
        """Make one attempt, trying again where that can help, and hand over its record.

        It is made ready when it has a place, or while the one before it is written: who waits
        holds no prompt. Its place is given back when the record is committed, unless there are
        hundreds: what a crash can lose is what is under way, and no more than half as many again.
        """
        side = self._side_of(attempt)
        began, start = time.monotonic(), time.time()
        prepared = call

        async def once() -> tuple[Made, list[Row]]:
            nonlocal prepared
            if prepared is None:
                if self.tally.stopping:
                    raise ClosedError
                prepared = self._ready(attempt, side)
            return await self._called(prepared)

        async def finish(made: Made, rows: list[Row], tries: int) -> None:
            assert prepared is not None
            row = self._row(prepared, start, began, tries, made)
            if made.reply:
                await self.writer.put(row, rows, meanwhile, side.limiter.spare)
            else:
                await self.writer.put(row, rows)

        await self.workforce.answered(side.model, once, finish)

    async def _called(self, call: Call) -> tuple[Made, list[Row]]:
        """Call once, within the budget; gives the rows of the ledger too."""
        subject, talk = call.attempt.subject, call.talk
        try:
            if talk is None:
                made = await called(
                    call.side.model, call.request, call.most, self.budget, self.tally,
                    lambda reply: used_of(self.prices, subject, reply),
                )  # fmt: skip
                return made, [self._ledger_row(call, made)]
            made = await called(
                talk, call.request, call.most, self.budget, self.tally,
                lambda r: NOTHING_USED if talk.ended else used_of(self.prices, subject, r),
                call.one,
            )  # fmt: skip
        except (CutError, LateError) as cut:
            self.workforce.cut += call.taken_rows(self._ledger_row(call, cut.made))
            raise
        except BaseException:  # a recording that fails, say
            self.workforce.cut += call.taken_rows()
            raise
        return made, call.taken_rows(None if made.reply else self._ledger_row(call, made))

    def _ledger_row(self, call: Call, made: Made) -> Row:
        key = key_of(self.run, call.attempt)
        return call_row("attempt", key, call.side.model.name, made, call.one)

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
        cost, took = made.used.usd, made.took_ms
        if call.talk:  # also what was answered in an earlier try
            cost, took = cost_of(self.prices, attempt.subject, said), latency or took
        return _in_order_of_records(
            {
                "run": self.run,
                "subject": attempt.subject.name,
                "tier": attempt.tier.name,
                "task_id": task.id,
                "attempt": attempt.number,
                "fingerprint": call.fingerprint,
                "status": said.status if reply else "error",
                "error": storable(str(error)) if error else None,
                "error_kind": error.kind if error else None,
                "model": storable(said.model),
                "input": storable(task.input),
                "messages": call.turns,
                **task_columns(task),
                "response": storable(said.text) if reply else None,
                "reasoning": storable(said.reasoning),
                "tool_calls": _json(said.tool_calls),
                "logprobs": _json(said.logprobs),
                "finish": storable(said.finish),
                "truncated": said.truncated if reply else None,
                "refused": said.refused if reply else None,
                "seed": call.request.settings.seed,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "cached_tokens": usage.cached_tokens,
                "reasoning_tokens": usage.reasoning_tokens,
                "latency_ms": latency,
                "wait_ms": (time.monotonic() - began) * 1000 - (took if reply else 0.0),
                "tries": tries,
                "cost_usd": cost if reply else None,
                "input_price": price.input if price else None,
                "output_price": price.output if price else None,
                "price_source": price.origin if price else None,
                "duration_seconds": None if latency is None else latency / 1000,
                "started": start,
                "ended": time.time(),
                "passed": said.passed,
                "work": json.dumps(said.work) if said.work else None,
            }
        )


def _json(items: Any) -> str | None:
    if not items:
        return None
    plain = [i if isinstance(i, tuple) else {n: getattr(i, n) for n in i.__slots__} for i in items]
    return json.dumps(plain)
