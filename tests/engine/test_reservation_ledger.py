"""Limits of money hold: whatever is killed, and whatever the provider adds to a call."""

import asyncio
import random
import signal
import time

import pytest

from engine.command import ended, kept, run, start
from engine.paid_server import billed, cost, paid_server, paid_suite
from pennyweight.engine.budget import FIRST_CALLS
from pennyweight.engine.reservation_ledger import ReservationLedger

HONEST = [(22, 100)]
"""The tokens of a call that uses what it may use."""


def wait_for(condition, process, seconds=60.0):
    end = time.monotonic() + seconds
    while process.poll() is None and not condition() and time.monotonic() < end:
        time.sleep(0.002)


def test_ten_kills_spend_no_more_than_the_limit(store_address, tmp_path):
    rng, limit = random.Random(3), 0.25  # about 79 calls
    with paid_server(0.02, HONEST) as address:
        arguments = ["run", paid_suite(tmp_path, address, usd=limit, concurrency=8)]
        for _ in range(10):
            until = billed(address)[0] + rng.randint(1, 12)
            process = start(store_address, *arguments)
            wait_for(lambda n=until: billed(address)[0] >= n, process)
            process.send_signal(signal.SIGKILL)
            ended(process)
            time.sleep(0.05)  # what was sent arrives
            rows, spent = kept(store_address)
            counted = (spent.get("usd") or 0.0) + (spent.get("held_usd") or 0.0)
            assert counted >= billed(address)[1] - 1e-9, "the ledger knows what may be spent"
            assert (spent.get("calls") or 0) == len(rows)
            arguments = ["run", "--resume"]
        code, said = run(store_address, "run", "--resume")
        assert code == 4, said
        assert "Cost limit reached" in said
        calls, total = billed(address)
        assert limit / 2 < total <= limit
        assert calls > 40


def test_a_run_that_ends_by_itself_reserves_nothing(store_address, tmp_path):
    with paid_server(0.0, HONEST) as address:
        suite = paid_suite(tmp_path, address, tasks=40, usd=5.0, concurrency=8)
        code, said = run(store_address, "run", suite)
        assert code == 0, said
        rows, spent = kept(store_address)
        assert (len(rows), spent["calls"], spent["unpriced"]) == (40, 40, 0)
        assert (spent["held_usd"], spent["held_tokens"]) == (None, None)
        assert spent["usd"] == pytest.approx(billed(address)[1])


def test_ctrl_c_leaves_no_reservation(store_address, tmp_path):
    with paid_server(0.05, HONEST) as address:
        path = paid_suite(tmp_path, address, usd=5.0, concurrency=8)
        process = start(store_address, "run", path)
        wait_for(lambda: billed(address)[0] > 20, process)
        process.send_signal(signal.SIGINT)
        code, said = ended(process)
        assert code == 130, said
        _, spent = kept(store_address)
        assert spent["held_usd"] is None
        assert spent["usd"] == pytest.approx(billed(address)[1])


@pytest.mark.parametrize("usage", [(22, 2000), (5000, 100), (5000, 2000)])
def test_a_provider_that_adds_to_each_call_exceeds_the_limit_by_the_first_calls_at_most(
    tmp_path, usage
):
    """Thinking of 20 × max_tokens, a hidden system prompt, and both."""
    address_of_store, limit = str(tmp_path / "s.db"), 0.5
    with paid_server(0.01, [usage]) as address:
        path = paid_suite(tmp_path, address, usd=limit, concurrency=64)
        code, said = run(address_of_store, "run", path)
        assert code == 4, said
        total = billed(address)[1]
        assert limit - cost(*usage) <= total <= max(limit, FIRST_CALLS * cost(*usage)) + 1e-9


def test_the_largest_overshoot_is_what_calls_in_flight_use_beyond_their_reservations(tmp_path):
    """Spent ≤ limit + n · (C − S): n calls in flight, C the largest, S the largest seen before."""
    small, large = (22, 100), (22, 2000)
    limit, places = 0.5, 16
    with paid_server(0.05, [small] * 40 + [large]) as address:
        path = paid_suite(tmp_path, address, usd=limit, concurrency=places)
        code, said = run(str(tmp_path / "s.db"), "run", path)
        assert code == 4, said
        total = billed(address)[1]
        assert limit - cost(*large) <= total
        assert total <= limit + places * (cost(*large) - cost(*small)) + 1e-9


def test_a_resumed_run_knows_the_largest_call(store_address, tmp_path):
    usage = (22, 4000)
    with paid_server(0.2, [usage]) as address:
        process = start(
            store_address, "run", paid_suite(tmp_path, address, usd=0.5, concurrency=16)
        )
        wait_for(lambda: billed(address)[0] > 2 * FIRST_CALLS, process)
        process.send_signal(signal.SIGKILL)
        ended(process)
        assert run(store_address, "run", "--resume")[0] == 4
        assert billed(address)[1] <= 0.5


def test_calls_that_begin_together_are_written_together():
    async def main():
        written = []

        async def write(usd, tokens):
            written.append((usd, tokens))
            await asyncio.sleep(0.001)

        ledger = ReservationLedger(write)
        await asyncio.gather(*(ledger.add(1.0, 10) for _ in range(50)))
        assert written == [(50.0, 500)]
        for _ in range(200):  # a steady number of calls writes nothing
            ledger.release(1.0, 10)
            await ledger.add(1.0, 10)
        assert (len(written), ledger.usd, ledger.tokens) == (1, 50.0, 500)
        ledger.grow(2.0, 0)
        await ledger.close()
        assert written[1:] == [(2.0, 0)]

    asyncio.run(main())


def test_a_reservation_that_cannot_be_written_stops_the_call():
    async def main():
        async def write(usd, tokens):
            raise OSError("disk full")

        ledger = ReservationLedger(write)
        with pytest.raises(OSError, match="disk full"):
            await ledger.add(1.0, 10)
        assert ledger.usd == 0.0

    asyncio.run(main())
