"""How many calls are under way: as many as help, fewer when told, none while it is of no use."""

import asyncio
import resource
from collections.abc import Coroutine
from typing import Any

import pytest

from pennyweight.engine import limiter as module
from pennyweight.engine.ending import AccountClosed, ClosedBecause
from pennyweight.engine.limiter import START, ClosedError, Limiter
from pennyweight.models.failure import CallError, Kind


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "time", found)
    return found


def error(kind: Kind, retry_after: float | None = None) -> CallError:
    return CallError(kind, f"It is {kind}.", retry_after=retry_after)


def rounds(limiter: Limiter, clock: Clock, seconds: float, most: int = 10_000) -> None:
    """Answer some windows of calls, each call taking so long, at most `most` at a time."""

    async def main() -> None:
        for _ in range(8):
            calls = int(max(16, 2 * limiter.limit)) + 1
            served = min(int(limiter.limit), most)
            limiter.in_flight = int(limiter.limit)
            for _ in range(calls):
                clock.now += seconds / served
                limiter.succeeded()

    asyncio.run(main())


def test_a_fixed_number_stays(clock: Clock) -> None:
    limiter = Limiter(5)
    rounds(limiter, clock, 0.1)
    limiter.failed(error("rate_limit"))
    assert limiter.limit == 5


def test_never_more_than_a_model_has_places(clock: Clock) -> None:
    assert Limiter(64, most=8).limit == 8
    limiter = Limiter(None, most=12)
    rounds(limiter, clock, 0.1)
    assert limiter.limit == 12


def test_it_grows_while_more_calls_get_more_done(clock: Clock) -> None:
    limiter = Limiter(None)
    rounds(limiter, clock, 0.1)
    assert limiter.limit > 8 * START


def test_it_stops_growing_where_that_no_longer_helps(clock: Clock) -> None:
    limiter = Limiter(None)
    rounds(limiter, clock, 0.1, most=16)
    assert START < limiter.limit < 32


def test_it_shrinks_once_for_all_calls_that_were_under_way(clock: Clock) -> None:
    limiter = Limiter(None)
    limiter.limit, limiter.in_flight = 100.0, 100
    for _ in range(100):
        limiter.failed(error("rate_limit"))
        limiter.in_flight -= 1
    assert limiter.limit == pytest.approx(70)
    limiter.in_flight = 70
    limiter.failed(error("rate_limit"))
    assert limiter.limit == pytest.approx(49)


def test_it_never_shrinks_to_nothing(clock: Clock) -> None:
    limiter = Limiter(None)
    for _ in range(50):
        limiter.in_flight = 1
        limiter.failed(error("rate_limit"))
    assert limiter.limit == 1


def test_other_failures_do_not_shrink_it(clock: Clock) -> None:
    limiter = Limiter(None)
    for kind in ("connection", "timeout", "malformed", "bad_request"):
        limiter.failed(error(kind))
    assert limiter.limit == START


def paused(limiter: Limiter, clock: Clock) -> float:
    """Say how long nobody is let in."""
    return max(0.0, limiter.paused_until - clock.now)


def test_retry_after_pauses_everybody(clock: Clock) -> None:
    limiter = Limiter(4)
    limiter.failed(error("rate_limit", 7.0))
    assert paused(limiter, clock) == 7.0
    limiter.failed(error("rate_limit", 2.0))
    assert paused(limiter, clock) == 7.0


def test_a_server_that_is_down_gets_longer_pauses_until_it_answers(clock: Clock) -> None:
    limiter = Limiter(4)
    pauses = []
    for _ in range(12):
        clock.now += 100
        limiter.failed(error("server"))
        pauses.append(paused(limiter, clock))
        limiter._in_row = 0  # so that patience does not end here
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == pytest.approx((0.2, 30.0))
    limiter.succeeded()
    clock.now += 100
    limiter.failed(error("server"))
    assert paused(limiter, clock) == pytest.approx(0.2)


@pytest.mark.parametrize("kind", ["rate_limit", "connection", "timeout"])
def test_an_account_that_answers_nobody_is_paused_longer_each_time(
    kind: Kind, clock: Clock
) -> None:
    limiter = Limiter(4)
    limiter.failed(error(kind))
    pauses = []
    for _ in range(5):
        clock.now += 40
        limiter.failed(error(kind))
        pauses.append(paused(limiter, clock))
    assert pauses == pytest.approx([0.4, 0.8, 1.6, 3.2, 6.4])


def test_a_lost_connection_among_answers_pauses_nobody(clock: Clock) -> None:
    limiter = Limiter(4)
    for _ in range(5):
        limiter.failed(error("connection"))
        limiter.failed(CallError("timeout", "The function is late.", final=True))
        limiter.succeeded()
    assert paused(limiter, clock) == 0


def test_it_grows_again_after_a_burst_of_refusals(clock: Clock) -> None:
    limiter = Limiter(None)
    rounds(limiter, clock, 0.1)
    before = limiter.limit
    for _ in range(8):
        limiter.in_flight = 1
        limiter.failed(error("rate_limit"))
    clock.now += 60
    low = limiter.limit
    assert low < before / 10
    for _ in range(3):
        rounds(limiter, clock, 0.1)
    assert limiter.limit > 4 * low


def test_what_only_waits_for_its_account_is_not_given_up(clock: Clock) -> None:
    limiter, began = Limiter(4), clock.now
    limiter.failed(error("rate_limit"))
    assert not limiter.is_enough(error("rate_limit"), 40, began)
    clock.now += 301
    assert limiter.is_enough(error("rate_limit"), 40, began)


def test_an_outage_is_waited_for_but_no_wrong_address(clock: Clock) -> None:
    wrong, down = Limiter(4), Limiter(4)
    down.succeeded()
    began = clock.now
    for limiter in (wrong, down):
        limiter.failed(error("connection"))
    clock.now += 15
    assert not wrong.is_enough(error("connection"), 5, began)
    assert wrong.is_enough(error("connection"), 6, began)
    assert not down.is_enough(error("connection"), 6, began)
    assert not down.is_enough(error("server"), 12, began)
    assert down.is_enough(error("timeout"), 6, began)  # it may be paid each time
    clock.now += 110
    assert down.is_enough(error("connection"), 12, began)


def test_one_attempt_that_fails_among_answers_is_given_up(clock: Clock) -> None:
    limiter, began = Limiter(4), clock.now
    clock.now += 15
    limiter.succeeded()
    limiter.failed(error("server"))
    assert limiter.is_enough(error("server"), 6, began)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 30))


def test_no_more_than_the_limit_are_let_in() -> None:
    async def main() -> None:
        limiter, most = Limiter(3), 0

        async def call() -> None:
            nonlocal most
            await limiter.enter()
            most = max(most, limiter.in_flight)
            await asyncio.sleep(0.001)
            limiter.leave()

        await asyncio.gather(*(call() for _ in range(50)))
        assert (most, limiter.in_flight) == (3, 0)

    run(main())


def test_closing_sends_away_who_waits_and_who_rests() -> None:
    async def main() -> None:
        limiter = Limiter(1)
        await limiter.enter()
        waiting = [asyncio.create_task(limiter.enter()) for _ in range(3)]
        resting = asyncio.create_task(limiter.rest(250))
        await asyncio.sleep(0)
        first = AccountClosed("an account", ClosedBecause.SILENT, 600.0)
        limiter.close(first)
        limiter.close(AccountClosed("an account", ClosedBecause.REFUSED, 10))
        for one in waiting:
            with pytest.raises(ClosedError) as caught:
                await one
            assert caught.value.reason is first
        await resting
        limiter.leave()
        with pytest.raises(ClosedError):
            await limiter.enter()

    run(main())


def test_a_pause_ends_when_the_account_is_closed() -> None:
    async def main() -> None:
        limiter = Limiter(1)
        limiter.failed(error("rate_limit", 250.0))
        waiting = asyncio.create_task(limiter.enter())
        await asyncio.sleep(0)
        limiter.close()
        with pytest.raises(ClosedError):
            await waiting

    run(main())


def test_a_wait_that_is_too_long_closes_the_account(clock: Clock) -> None:
    limiter = Limiter(4, None, "OUR_KEY at example.org")
    limiter.failed(error("rate_limit", 300.0))
    assert not limiter.is_closed
    limiter.failed(error("rate_limit", 86_400.0))
    account = "OUR_KEY at example.org"
    assert limiter.reason == AccountClosed(account, ClosedBecause.LONG_WAIT, 86_400.0)


@pytest.mark.parametrize(
    ("failure", "seconds"),
    [
        (CallError("connection", "Cannot connect.", sent=False), module.UNREACHED),
        (CallError("server", "It failed.", status=500), module.UNANSWERED),
        (CallError("malformed", "It is HTML."), module.UNANSWERED),
        (CallError("rate_limit", "Too fast.", status=429), module.PATIENCE),
    ],
)
def test_what_never_answered_is_given_up_after_seconds(
    failure: CallError, seconds: float, clock: Clock
) -> None:
    limiter = Limiter(4)
    limiter.failed(failure)
    for _ in range(10):
        clock.now += seconds / 10
        assert not limiter.is_closed
        limiter.failed(failure)
    clock.now += 1
    limiter.failed(failure)
    never = AccountClosed(limiter.account, ClosedBecause.NEVER_ANSWERED, seconds, str(failure))
    assert limiter.reason == never


def test_no_answer_for_ten_minutes_closes_the_account(clock: Clock) -> None:
    limiter = Limiter(4)
    limiter.succeeded()
    for _ in range(20):
        limiter.failed(error("timeout"))
        clock.now += 31
    assert not limiter.is_closed
    limiter.failed(error("timeout"))
    reason = limiter.reason
    assert reason is not None
    assert (reason.because, reason.amount) == (ClosedBecause.SILENT, 600.0)
    assert "It is timeout." in reason.error


def test_one_answer_in_between_keeps_it_open(clock: Clock) -> None:
    limiter = Limiter(4)
    limiter.succeeded()
    for _ in range(100):
        clock.now += 60
        limiter.failed(error("connection"))
        if limiter._in_row > 8:
            limiter.succeeded()
    assert not limiter.is_closed


def test_few_failures_far_apart_keep_it_open(clock: Clock) -> None:
    limiter = Limiter(1)
    for _ in range(5):
        limiter.failed(error("timeout"))
        clock.now += 500
    assert not limiter.is_closed


def test_calls_that_fail_together_count_as_one_failure(clock: Clock) -> None:
    limiter = Limiter(64)
    limiter.in_flight = 64
    for _ in range(64):
        limiter.failed(error("server"))
        limiter.in_flight -= 1
    assert paused(limiter, clock) == pytest.approx(0.2)
    clock.now += 1
    limiter.in_flight = 64
    for _ in range(64):
        limiter.failed(error("server"))
        limiter.in_flight -= 1
    assert paused(limiter, clock) == pytest.approx(0.4)


def test_a_model_that_is_not_known_closes_no_other() -> None:
    async def main() -> None:
        limiter = Limiter(1)
        await limiter.enter("good")
        waiting = [asyncio.create_task(limiter.enter(name)) for name in ("wrong", "good")]
        await asyncio.sleep(0)
        for _ in range(10):
            limiter.failed(error("not_found"), "wrong")
        limiter.leave()
        with pytest.raises(ClosedError) as caught:
            await waiting[0]
        reason = caught.value.reason
        assert isinstance(reason, AccountClosed)
        assert (reason.model, reason.because, reason.amount) == ("wrong", ClosedBecause.REFUSED, 10)
        await waiting[1]
        assert (limiter.is_closed, limiter.in_flight) == (False, 1)

    run(main())


def test_a_paid_reply_that_makes_no_sense_is_no_silence(clock: Clock) -> None:
    limiter = Limiter(1)
    for _ in range(20):
        clock.now += 100
        limiter.failed(CallError("malformed", "What?", final=True))
    assert not limiter.is_closed


@pytest.mark.parametrize("kind", ["auth", "quota", "not_found"])
def test_ten_refusals_in_a_row_close_the_account(kind: Kind, clock: Clock) -> None:
    limiter = Limiter(4)
    for _ in range(9):
        limiter.failed(error(kind))
    limiter.failed(error("bad_request"))
    for _ in range(9):
        limiter.failed(error(kind))
    assert not limiter.is_closed
    limiter.failed(error(kind))
    assert limiter.is_closed


@pytest.mark.parametrize(("places", "spare"), [(1, 0), (64, 0), (128, 0), (256, 64), (1000, 436)])
def test_only_of_hundreds_of_places_some_are_given_on_before_a_commit(
    places: int, spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "open_files", lambda: 1000)
    assert Limiter(places).spare == spare


@pytest.mark.parametrize(
    ("limits", "places", "left"),
    [
        ((200, 200), 136, (200, 200)),
        ((256, 100_000), 1000, (4096, 100_000)),
        ((256, 600), 536, (600, 600)),
        ((10, 20), 1, (20, 20)),
        ((256, resource.RLIM_INFINITY), 1000, (4096, resource.RLIM_INFINITY)),
        ((50_000, 100_000), 1000, (50_000, 100_000)),
    ],
)
def test_as_many_files_are_allowed_as_can_be_and_no_more_calls_are_made(
    limits: tuple[int, int],
    places: int,
    left: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [limits]
    monkeypatch.setattr(resource, "getrlimit", lambda _: now[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: now.append(wanted))
    assert Limiter(1000).places == Limiter(None).places == places
    assert now[-1] == left
