"""Make one call within a budget, and write down for the ledger what came of it.

Attempts and judges are called alike: what a call may take is set aside before it is sent, and what
may have been paid for stays set aside.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pennyweight.engine.budget import Amount, Budget, ExhaustedError
from pennyweight.engine.ending import Limit, LimitReached
from pennyweight.engine.limiter import LONGEST_PAUSE, ClosedError
from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError
from pennyweight.models.model import Model, Reply, Request, Usage
from pennyweight.record import AttemptKey
from pennyweight.store.store import CALL_COLUMNS, Row

if TYPE_CHECKING:
    from pennyweight.engine.tally import Tally
    from pennyweight.models.prices import Prices
    from pennyweight.suite.values import Subject

NOTHING = Usage()
NOTHING_USED, NOT_KNOWN = Amount(0.0, 0), Amount(None, None)
_NO_LIMIT = contextlib.nullcontext()
_in_order: Callable[[dict[str, Any]], Row] = itemgetter(*CALL_COLUMNS)


@dataclass(frozen=True, slots=True)
class Made:
    """What came of one call: a reply or an error, what it used, and how long it took."""

    used: Amount
    took_ms: float
    reply: Reply | None = None
    error: CallError | None = None

    @property
    def usage(self) -> Usage | None:
        """The tokens that were paid for, also by an answer that was of no use."""
        if self.reply:
            return self.reply.usage
        return self.error.usage if self.error else None

    @property
    def kind(self) -> str | None:
        """What kind of error it was."""
        return self.error.kind if self.error else None


class LateError(ExhaustedError):
    """The run's time was over before the answer came: not a failed attempt, so no record."""

    def __init__(self, made: Made, reason: LimitReached) -> None:
        self.made = made
        super().__init__(reason)


class CutError(asyncio.CancelledError):
    """A call was cancelled under way; carries what its row of the ledger needs."""

    def __init__(self, made: Made) -> None:
        self.made = made
        super().__init__()


async def called(
    model: Model,
    request: Request,
    most: Amount,
    budget: Budget,
    tally: Tally,
    used_by: Callable[[Reply], Amount],
    one: Amount | None = None,
) -> Made:
    """Call once, within the budget; what may have been paid for stays set aside.

    That is `most`, or `one` where the model makes several calls for it.
    """
    await budget.reserve(most)
    used, began = NOTHING_USED, time.monotonic()
    try:
        if tally.stopping:
            raise ClosedError
        left = budget.left
        async with asyncio.timeout(left) if left is not None else _NO_LIMIT:
            reply = await model.call(request)
        used = used_by(reply)
        return Made(used, (time.monotonic() - began) * 1000, reply)
    except TimeoutError:
        budget.hold(one or most)
        said = CallError("timeout", "The time of the run was over before the answer came.")
        late = Made(NOT_KNOWN, (time.monotonic() - began) * 1000, error=said)
        raise LateError(late, budget.reached(Limit.SECONDS)) from None
    except CallError as wrong:
        error = wrong
        if error.usage:
            used = used_by(Reply("", usage=error.usage))
    except UsageError as wrong:  # a subject that cannot start; others can
        error = CallError("not_found", str(wrong), sent=False)
    except asyncio.CancelledError:
        budget.hold(one or most)  # it was sent: nobody knows what it took
        said = CallError("cancelled", "The run was stopped before the answer came.")
        raise CutError(Made(NOT_KNOWN, (time.monotonic() - began) * 1000, error=said)) from None
    finally:
        budget.settle(most, used)
    if error.perhaps_paid and not error.usage:
        used = NOT_KNOWN
        budget.hold(one or most)
    return Made(used, (time.monotonic() - began) * 1000, error=error)


def used_of(prices: Prices, subject: Subject, reply: Reply) -> Amount:
    """Say what a reply took; what is known by half is not known."""
    prompt, completion = reply.usage.prompt_tokens, reply.usage.completion_tokens
    tokens = None if prompt is None or completion is None else prompt + completion
    return Amount(cost_of(prices, subject, reply), tokens)


def cost_of(prices: Prices, subject: Subject, reply: Reply) -> float | None:
    """Say what a reply cost: by its own account, else by its tokens."""
    return prices.cost(subject, reply.usage) if reply.cost_usd is None else reply.cost_usd


def call_row(kind: str, key: AttemptKey, model: str, made: Made, most: Amount) -> Row:
    """Write a call down, in the order of the ledger's columns."""
    reply, used = made.reply, made.used
    usage = made.usage or NOTHING
    return _in_order(
        {
            "run": key.run,
            "kind": kind,
            "subject": key.subject,
            "tier": key.tier,
            "task_id": key.task_id,
            "attempt": key.attempt,
            "model": model,
            "status": "ok" if reply else made.kind,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost_usd": used.usd if made.usage else None,
            "latency_ms": reply.latency_ms if reply else made.took_ms,
            "at": time.time(),
            "held_usd": most.usd if used.usd is None else None,
            "held_tokens": most.tokens if used.tokens is None else None,
        }
    )


def pause(error: CallError, tries: int, jitter: random.Random) -> float:
    """Say how long to wait before the next try: as told, else longer each time."""
    if error.retry_after:
        return min(error.retry_after, LONGEST_PAUSE)
    longest = min(0.25 * 2**tries, 20.0)
    return jitter.uniform(longest / 2, longest)
