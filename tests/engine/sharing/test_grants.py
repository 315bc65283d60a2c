"""Limits of money and tokens that workers share."""

import pytest

from engine.command import ended, kept, run, start
from engine.paid_server import billed, cost, paid_server, paid_suite

USAGE = (200, 50)


@pytest.mark.parametrize("limit", ["usd", "tokens"])
def test_workers_together_keep_a_limit(postgresql, tmp_path, limit):
    address = postgresql.database()
    limits = {"usd": 30 * cost(*USAGE)} if limit == "usd" else {"tokens": 30 * sum(USAGE)}
    with paid_server(0.01, [USAGE]) as paid:
        path = paid_suite(tmp_path, paid, tasks=200, concurrency=4, **limits)
        assert run(address, "run", path, "--on", "workers")[0] == 0
        workers = [start(address, "work", "--suite", path) for _ in range(3)]
        said = [ended(worker) for worker in workers]
        assert {code for code, _ in said} == {4}, said
        assert all("limit reached" in text for _, text in said), said
        calls, money = billed(paid)
        rows, spent = kept(address)
        assert len(rows) == spent["calls"] == calls
        assert spent["usd"] == pytest.approx(money)
        assert spent["held_usd"] is None
        if limit == "usd":
            assert 0.7 * limits["usd"] < money <= limits["usd"] + 1e-9
        else:
            assert 0.7 * limits["tokens"] < calls * sum(USAGE) <= limits["tokens"]
