"""Make one call within a budget, and describe its result for the ledger.

Attempts and judges share this. The maximum that a call may use is reserved before it is sent, and
stays reserved if the call may have been charged.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from pennyweight.engine.budget import Amount, Budget, ExhaustedError
from pennyweight.engine.ending import Limit, LimitReached
from pennyweight.engine.limiter import ClosedError
from pennyweight.engine.tally import Tally
from pennyweight.errors import UsageError
from pennyweight.models.failure import LONGEST_WAIT, CallError
from pennyweight.models.model import Model, Reply, Request, Usage
from pennyweight.models.prices import Prices
from pennyweight.record import AttemptKey
from pennyweight.store.bills import Payer
from pennyweight.store.store import CALL_COLUMNS, RESERVED, Row
from pennyweight.suite.values import Subject

NOTHING_USED, NOT_KNOWN = Amount(0.0, 0), Amount(None, None)
_in_order: Callable[[dict[str, Any]], Row] = itemgetter(*CALL_COLUMNS)


@dataclass(frozen=True, slots=True)
class CallResult:
    """A reply or an error, what the call used, and how long it took."""

    used: Amount
    took_ms: float
    reply: Reply | None = None
    error: CallError | None = None
    release: Callable[[], None] = lambda: None
    """To be called when the call is in the ledger: its reservation is not needed any more."""

    @property
    def usage(self) -> Usage | None:
        """The tokens that were paid for, even if the reply could not be used."""
        if self.reply:
            return self.reply.usage
        return self.error.usage if self.error else None


class LateError(ExhaustedError):
    """The run's time was over before the reply came: not a failed attempt, so no record."""

    def __init__(self, result: CallResult, reason: LimitReached) -> None:
        self.result = result
        super().__init__(reason)


class CutError(asyncio.CancelledError):
    """A call was cancelled after it was sent; carries its result for the ledger."""

    def __init__(self, result: CallResult) -> None:
        self.result = result
        super().__init__()


async def call_once(
    model: Model,
    request: Request,
    payer: Payer,
    one: Amount,
    budget: Budget,
    tally: Tally,
    used_by: Callable[[Reply], Amount],
    calls: int = 1,
) -> CallResult:
    """Call once, within the budget. What may have been charged stays reserved.

    `one` is the maximum of one call; a conversation makes several `calls`.
    """
    reservation = await budget.reserve(payer, one, calls)
    used, began = NOTHING_USED, time.monotonic()

    def release() -> None:
        budget.release(reservation)

    def failed(error: CallError, used: Amount = NOT_KNOWN) -> CallResult:
        if used is NOT_KNOWN:
            budget.hold(payer, one)
        took_ms = (time.monotonic() - began) * 1000
        return CallResult(used, took_ms, error=error, release=release)

    try:
        reply = await _sent(model, request, budget, tally)
        used = used_by(reply)
        return CallResult(used, (time.monotonic() - began) * 1000, reply, release=release)
    except TimeoutError:
        late = CallError("timeout", "The run's time was over before the reply came.")
        raise LateError(failed(late), budget.reached(Limit.SECONDS)) from None
    except CallError as wrong:
        error = wrong
        if error.usage:
            used = used_by(Reply("", usage=error.usage))
    except UsageError as wrong:  # this subject cannot start; others can
        error = CallError("not_found", str(wrong), sent=False)
    except ClosedError:  # it was not sent
        release()
        raise
    except asyncio.CancelledError:
        cut = CallError("cancelled", "The run was stopped before the reply came.")
        raise CutError(failed(cut)) from None
    finally:
        budget.settle(reservation, used)
    return failed(error, NOT_KNOWN if error.perhaps_paid and not error.usage else used)


async def _sent(model: Model, request: Request, budget: Budget, tally: Tally) -> Reply:
    if tally.stopping:
        raise ClosedError
    if (left := budget.left) is None:
        return await model.call(request)
    async with asyncio.timeout(left):
        return await model.call(request)


def used_of(prices: Prices, subject: Subject, reply: Reply) -> Amount:
    """Return what a reply used; a partly known amount is not known."""
    prompt, completion = reply.usage.prompt_tokens, reply.usage.completion_tokens
    tokens = None if prompt is None or completion is None else prompt + completion
    return Amount(cost_of(prices, subject, reply), tokens)


def cost_of(prices: Prices, subject: Subject, reply: Reply) -> float | None:
    """Return the cost of a reply: as it reports it, else by its tokens."""
    if reply.cost_usd is not None:
        return reply.cost_usd
    return prices.in_lane(reply.lane).cost(subject, reply.usage)


def call_row(kind: str, key: AttemptKey, model: str, result: CallResult, most: Amount) -> Row:
    """Return a call as a row of the ledger."""
    reply, used, usage = result.reply, result.used, result.usage
    return _in_order(
        {
            "run": key.run,
            "subject": key.subject,
            "tier": key.tier,
            "task_id": key.task_id,
            "attempt": key.attempt,
            "kind": kind,
            "model": model,
            "status": "ok" if reply else result.error.kind if result.error else kind,
            "prompt_tokens": usage and usage.prompt_tokens,
            "completion_tokens": usage and usage.completion_tokens,
            "cost_usd": used.usd if usage else None,
            "latency_ms": reply.latency_ms if reply else result.took_ms,
            "at": time.time(),
            "held_usd": most.usd if used.usd is None else None,
            "held_tokens": most.tokens if used.tokens is None else None,
        }
    )


def reserved_row(run_id: str, usd: float, tokens: int, worker: str = "") -> Row:
    """Return a row of the ledger that holds an amount for calls in flight, of a worker."""
    key = AttemptKey(run_id, "", "", "", 0)
    return call_row(RESERVED, key, worker, CallResult(NOT_KNOWN, 0.0), Amount(usd, tokens))


def pause(error: CallError, tries: int, jitter: random.Random) -> float:
    """Return how long to wait before the next try: as the provider asks, else longer each time."""
    if error.retry_after:
        return min(error.retry_after, LONGEST_WAIT)
    longest = min(0.25 * 2**tries, 20.0)
    return jitter.uniform(longest / 2, longest)
