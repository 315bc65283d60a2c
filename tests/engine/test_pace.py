"""Requests and tokens in a minute, of one process and of several workers."""

import asyncio
import random
import selectors
from bisect import bisect_left
from contextlib import closing
from types import SimpleNamespace

import pytest

from engine.command import ended, kept, run, start
from engine.counting_server import counting_server
from engine.serving import suite
from pennyweight.engine import pace
from pennyweight.engine.limiter import ClosedError
from pennyweight.engine.pace import OwnTurns, paced
from pennyweight.models.model import Message, Model, Reply, Request, Usage
from pennyweight.store.lanes.turns import take_turns
from pennyweight.store.shared_runs import LostLeaseError, put_up
from pennyweight.store.store import Store
from pennyweight.suite.values import Limits

HELLO = Request((Message("user", "hello"),))


class Clock:
    """A clock that only waiting moves."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(pace.time, "monotonic", lambda: self.now)

        async def wait_for(waiting, seconds):
            waiting.close()
            self.now += seconds
            raise TimeoutError

        monkeypatch.setattr(pace.asyncio, "wait_for", wait_for)


class Noting(Model):
    """A model that notes when it is called, and what it used."""

    name, account = "m", "a"

    def __init__(self, clock, tokens=100):
        self.clock, self.tokens, self.times = clock, tokens, []

    async def call(self, request):
        self.times.append(self.clock.now)
        return Reply("4", usage=Usage(self.tokens // 2, self.tokens - self.tokens // 2))


def most_in_a_minute(times, amount=1.0):
    """The most that is in any 60 s."""
    ends = (bisect_left(times, start + 60) for start in times)
    return max(end - i for i, end in enumerate(ends)) * amount


@pytest.mark.parametrize("limit", [1, 7, 60, 500, 1200])
def test_no_minute_has_more_requests_than_its_limit(limit, monkeypatch):
    clock = Clock(monkeypatch)
    model = Noting(clock)

    async def calls():
        own, _ = paced({"m": model}, Limits(requests_per_minute=limit))
        for i in range(3 * limit):
            if i == limit:
                clock.now += 37.3  # a pause saves nothing up
            await own["m"].call(HELLO)

    asyncio.run(calls())
    assert 0.9 * limit <= most_in_a_minute(model.times) <= limit
    assert clock.now - 1000 < 3 * 62 + 40


def test_tokens_are_those_that_calls_report(monkeypatch):
    clock = Clock(monkeypatch)
    model = Noting(clock, 100)

    async def calls():
        own, _ = paced({"m": model}, Limits(tokens_per_minute=6000))
        for _ in range(180):
            await own["m"].call(HELLO)

    asyncio.run(calls())
    assert 0.8 * 6000 <= most_in_a_minute(model.times, 100) <= 6000


class Waiting(selectors.DefaultSelector):
    """A selector that lets a clock jump to the next timer."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def select(self, timeout=None):
        self.clock.now += timeout or 0.0
        return super().select(0)


class Varied(Model):
    """A model whose calls take long and use much less than the largest of them, or as much."""

    name, account = "m", "a"

    def __init__(self, clock, sent, seconds):
        self.clock, self.sent, self.seconds = clock, sent, seconds
        self.draw = random.Random(1)

    async def call(self, request):
        used = self.draw.randint(100, 900)
        self.sent.append((self.clock.now, used))
        await asyncio.sleep(self.seconds)
        return Reply("4", usage=Usage(used, 0))


@pytest.mark.parametrize("workers", [1, 4, 10])
@pytest.mark.parametrize("seconds", [0.5, 5.0])
def test_no_minute_of_several_workers_has_more_tokens_than_the_limit(workers, seconds, monkeypatch):
    clock, limit, sent, turns = SimpleNamespace(now=1000.0), 100_000, [], OwnTurns()
    monkeypatch.setattr(pace.time, "monotonic", lambda: clock.now)  # the loop's clock too

    async def caller(model):
        while clock.now < 1200:
            await model.call(HELLO)

    async def calls():
        limits = Limits(tokens_per_minute=limit)
        model = Varied(clock, sent, seconds)
        own = [paced({"m": model}, limits, turns.take)[0]["m"] for _ in range(workers)]
        await asyncio.gather(*(caller(model) for model in own for _ in range(20)))

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(Waiting(clock))) as runner:
        runner.run(calls())
    most = max(sum(n for at, n in sent if begin <= at < begin + 60) for begin, _ in sent)
    assert 0.7 * limit < most <= limit


def test_a_call_larger_than_a_minute_waits_a_minute(monkeypatch):
    clock = Clock(monkeypatch)
    model = Noting(clock, 100)

    async def calls():
        own, _ = paced({"m": model}, Limits(tokens_per_minute=10))
        for _ in range(3):
            await own["m"].call(HELLO)

    asyncio.run(calls())
    assert clock.now - 1000 > 10 * 60  # 200 tokens before the third, at 10 a minute


def test_a_run_that_stops_does_not_wait():
    async def calls():
        own, paces = paced({"m": Noting(None)}, Limits(requests_per_minute=1))
        own["m"]._model.clock = type("Now", (), {"now": 0})
        await own["m"].call(HELLO)
        waiting = asyncio.create_task(own["m"].call(HELLO))
        await asyncio.sleep(0.01)
        paces[0].close()
        with pytest.raises(ClosedError):
            await waiting

    asyncio.run(calls())


def test_without_a_limit_nothing_changes():
    model = Noting(None)
    assert paced({"m": model}, Limits()) == ({"m": model}, [])


def test_turns_follow_each_other(store_address):
    own = OwnTurns()
    assert asyncio.run(own.take("k", 10_000, 2)) == 0
    assert asyncio.run(own.take("k", 1, 2)) == pytest.approx(5000, abs=300)
    with closing(Store(store_address)) as store:
        put_up(store, "r", "plan", {"a": 10})
        assert take_turns(store, "r", "k", 10_000, 2) == 0
        assert take_turns(store, "r", "k", 2_000, 2) == pytest.approx(5000, abs=300)
        assert take_turns(store, "r", "k", 2_000, 2) == pytest.approx(6000, abs=300)
        assert take_turns(store, "r", "other", 20, 2) == 0
        with pytest.raises(LostLeaseError):
            take_turns(store, "gone", "k", 1, 2)


def test_workers_together_keep_the_rate_and_the_concurrency(postgresql, tmp_path):
    """120 calls at 600 a minute are spread over 12 s, whoever makes them."""
    address, per_minute, tasks = postgresql.database(), 600, 120
    with counting_server(0.15) as (server, noted):
        limits = f"{{concurrency: 4, requests_per_minute: {per_minute}}}"
        path = suite(tmp_path, server, tasks=tasks, limits=limits)
        assert run(address, "run", path, "--on", "workers")[0] == 0
        workers = [start(address, "work", "--suite", path) for _ in range(3)]
        said = [ended(worker) for worker in workers]
        assert [code for code, _ in said] == [0, 0, 0], said
        state = noted()
    times = sorted(state["times"])
    assert len(times) == tasks == len(kept(address)[0])
    assert state["most"] <= 4
    # Alone with the concurrency it takes a third of that; each worker by itself would do the same.
    assert times[-1] - times[0] >= 0.7 * tasks / (per_minute / 60)
