"""Budgets are hard: what is in flight is reserved, so their sum never passes the limit."""

import asyncio
import random

import pytest

from pennyweight.engine.budget import (
    FIRST_CALLS,
    Amount,
    Budget,
    CallTooLargeError,
    ExhaustedError,
    Reservation,
    ceiling,
)
from pennyweight.engine.ending import CallTooLarge, Limit, LimitReached
from pennyweight.suite.values import Limits

M = ("attempt", "m")
KNOWN = {M: Amount(None, None)}
"""A subject whose usage is known, so that its calls need not wait for the first ones."""


async def reserved(budget: Budget, usd: float | None, tokens: int | None) -> Reservation:
    return await budget.reserve(M, Amount(usd, tokens))


async def spend(budget: Budget, calls: int, most: Amount, seed: int = 1) -> int:
    """Make calls, 64 at a time, each taking some of what it reserved; gives how many passed."""
    rng = random.Random(seed)
    places, made, over = asyncio.Semaphore(64), 0, False

    async def call() -> None:
        nonlocal made, over
        async with places:
            if over:
                return
            try:
                reservation = await budget.reserve(M, most)
            except ExhaustedError:
                over = True
                return
            await asyncio.sleep(rng.random() / 1000)
            share = rng.random()
            used = Amount((most.usd or 0.0) * share, int((most.tokens or 0) * share))
            budget.settle(reservation, used)
            made += 1
            assert budget.usd <= (budget.limits.usd or 1e9)
            assert budget.tokens <= (budget.limits.tokens or 1e9)

    await asyncio.gather(*(call() for _ in range(calls)))
    return made


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limits", [Limits(usd=0.5), Limits(tokens=5000)])
def test_64_in_flight_never_pass_the_limit_and_come_near_it(limits: Limits, seed: int) -> None:
    budget = Budget(limits)
    made = asyncio.run(spend(budget, 2000, Amount(0.01, 100), seed))
    assert 50 <= made < 2000  # the limit is 50 calls at their most
    if limits.usd:
        assert 0.5 - 0.01 <= budget.usd <= 0.5
    else:
        assert 5000 - 100 <= budget.tokens <= 5000


def test_all_may_use_everything_they_reserved() -> None:
    async def main() -> None:
        budget = Budget(Limits(usd=1.0), largest=dict(KNOWN))
        several = [await reserved(budget, 1.0 / 64, 1) for _ in range(64)]
        for one in several:
            budget.settle(one, Amount(1.0 / 64, 1))
        assert budget.usd == pytest.approx(1.0)
        with pytest.raises(ExhaustedError) as caught:
            await reserved(budget, 0.001, 1)
        reason = caught.value.reason
        assert isinstance(reason, LimitReached)
        assert (reason.limit, reason.maximum, reason.next_call) == (Limit.USD, 1.0, 1.0 / 64)
        assert reason.spent == pytest.approx(1.0)

    asyncio.run(main())


def test_who_finds_too_little_waits_for_others_to_end() -> None:
    async def main() -> None:
        budget = Budget(Limits(tokens=100))
        first = await reserved(budget, None, 80)
        waiting = asyncio.create_task(reserved(budget, None, 80))
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.settle(first, Amount(None, 5))
        await asyncio.wait_for(waiting, 10)

    asyncio.run(main())


def test_a_call_that_alone_is_too_much_is_refused_at_once() -> None:
    budget = Budget(Limits(tokens=100))
    with pytest.raises(CallTooLargeError) as caught:
        asyncio.run(reserved(budget, None, 101))
    assert caught.value.reason == CallTooLarge(Limit.TOKENS, 100, 101)


def test_a_reply_that_does_not_say_what_it_took_counts_as_the_most() -> None:
    async def main() -> None:
        budget = Budget(Limits(usd=1.0, tokens=100))
        for _ in range(2):
            budget.settle(await reserved(budget, 0.4, 40), Amount(None, None))
        assert (budget.usd, budget.tokens) == (0.0, 0)  # nothing is known to be spent
        with pytest.raises(ExhaustedError):
            await reserved(budget, 0.4, 40)

    asyncio.run(main())


def test_what_is_only_set_aside_is_said() -> None:
    async def main() -> None:
        budget = Budget(Limits(usd=300.0, tokens=900))
        for _ in range(6):
            budget.settle(await reserved(budget, 48.0, 100), Amount(0.0, 0))
            budget.hold(M, Amount(48.0, 100))
        with pytest.raises(ExhaustedError) as caught:
            await reserved(budget, 48.0, 100)
        assert caught.value.reason == LimitReached(Limit.USD, 300.0, 0.0, 288.0, 48.0)
        with pytest.raises(ExhaustedError) as caught:
            await reserved(budget, 0.0, 400)
        assert caught.value.reason == LimitReached(Limit.TOKENS, 900, 0, 600, 400)

    asyncio.run(main())


def test_what_was_spent_before_counts() -> None:
    with pytest.raises(ExhaustedError) as caught:
        asyncio.run(reserved(Budget(Limits(usd=1.0), 0.95, 0), 0.1, 1))
    assert caught.value.reason == LimitReached(Limit.USD, 1.0, 0.95, next_call=0.1)


def test_time_runs_out_even_for_who_waits() -> None:
    async def main() -> None:
        budget = Budget(Limits(seconds=60, tokens=10))
        await reserved(budget, None, 10)
        budget.started -= 61
        with pytest.raises(ExhaustedError) as caught:
            await reserved(budget, None, 10)
        reason = caught.value.reason
        assert isinstance(reason, LimitReached)
        assert (reason.limit, reason.maximum) == (Limit.SECONDS, 60)
        assert reason.spent >= 61

    asyncio.run(main())


def test_no_limit_is_no_limit() -> None:
    async def main() -> None:
        budget = Budget(Limits())
        for _ in range(1000):
            await reserved(budget, 1e6, 10**9)

    asyncio.run(main())


def test_the_ceiling_holds_for_every_script() -> None:
    turn = {"role": "user", "content": "漢字かな交じり文"}
    assert ceiling([turn]) >= len(turn["content"].encode())
    tool = {"name": "f", "parameters": {"type": "object"}}
    assert ceiling([turn], [tool]) > ceiling([turn]) + 30


@pytest.mark.parametrize(
    ("limits", "used", "reason"),
    [
        (Limits(usd=0.5), Amount(0.6, 5), LimitReached(Limit.USD, 0.5, 0.6, next_call=0.6)),
        (Limits(tokens=5), Amount(0.6, 7), LimitReached(Limit.TOKENS, 5, 7, next_call=7)),
    ],
)
def test_an_agent_that_says_afterwards_what_it_took_ends_at_the_limit(
    limits: Limits, used: Amount, reason: LimitReached
) -> None:
    async def main() -> None:
        budget = Budget(limits)
        budget.settle(await reserved(budget, None, None), used)
        with pytest.raises(ExhaustedError) as caught:
            await reserved(budget, None, None)
        assert caught.value.reason == reason

    asyncio.run(main())


def test_few_calls_are_in_flight_until_one_has_reported_its_usage() -> None:
    async def main() -> None:
        budget = Budget(Limits(usd=1.0))
        first = [await reserved(budget, 0.01, 1) for _ in range(FIRST_CALLS)]
        waiting = [asyncio.create_task(reserved(budget, 0.01, 1)) for _ in range(5)]
        await asyncio.sleep(0)
        budget.settle(first.pop(), Amount(0.0, 0))  # refused: nothing is known yet
        await asyncio.sleep(0.001)
        assert sum(task.done() for task in waiting) == 1
        budget.settle(first.pop(), Amount(0.01, 1))
        await asyncio.wait_for(asyncio.gather(*waiting), 10)
        other = asyncio.create_task(budget.reserve(("judge", "j"), Amount(0.01, 1)))
        await asyncio.sleep(0)
        assert other.done(), "another payer begins by itself"

    asyncio.run(main())


def test_a_call_that_used_more_raises_the_reservations_of_all_others() -> None:
    async def main() -> None:
        budget = Budget(Limits(usd=1.0), largest=dict(KNOWN))
        first = [await reserved(budget, 0.01, 10) for _ in range(4)]
        budget.settle(first.pop(), Amount(0.2, 900))
        assert (budget.usd, budget.held_usd) == (0.2, pytest.approx(3 * 0.2))
        await reserved(budget, 0.01, 10)  # 0.2 spent, 0.6 in flight, 0.2 for this one
        late = asyncio.create_task(reserved(budget, 0.01, 10))
        await asyncio.sleep(0.001)
        assert not late.done()
        for one in first:
            budget.settle(one, Amount(0.01, 10))
        await asyncio.wait_for(late, 10)

    asyncio.run(main())


def test_a_conversation_reserves_the_largest_call_for_each_of_its_calls() -> None:
    async def main() -> None:
        budget = Budget(Limits(usd=9.0), largest={M: Amount(0.5, 90)})
        reservation = await budget.reserve(M, Amount(0.1, 10), 4)
        assert (reservation.usd, reservation.tokens) == (2.0, 360)
        budget.spend(M, Amount(0.1, 10), Amount(1.0, 100))
        assert (reservation.usd, reservation.tokens) == (4.0, 400)
        budget.settle(reservation, Amount(0.0, 0))
        assert (budget.usd, budget.held_usd) == (1.0, 0.0)

    asyncio.run(main())
