"""Limits of money and tokens that workers share."""

import asyncio
from contextlib import closing

import pytest
from sqlalchemy import update

from engine.command import ended, kept, run, start
from engine.paid_server import billed, cost, paid_server, paid_suite
from pennyweight.engine.budget import GrantAnswer
from pennyweight.engine.sharing.grants import Grants
from pennyweight.store import lease
from pennyweight.store.shared_runs import join, put_up
from pennyweight.store.store import Store
from pennyweight.store.tables import WORKER
from pennyweight.suite.values import Limits

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


class AnswersGetLost(Store):
    """A store whose first answer to each question never arrives, although it was committed."""

    def patiently(self, ask, patience=None):
        ask(False)
        return super().patiently(ask, patience)


def test_a_grant_whose_answer_got_lost_is_in_the_ledger_once(store_address):
    async def check(store):
        put_up(store, "r", "plan", {"a": 10})
        grants = Grants(store, "r", join(store, "r"), Limits(usd=1.5, tokens=1000))
        assert (await grants.ask(lambda: (0.0, 0), 1.0, 100))[0] is GrantAnswer.GRANTED
        held = store.spent("r")
        assert (held["held_usd"], held["held_tokens"]) == (grants.usd, grants.tokens) == (1.0, 100)

    with closing(AnswersGetLost(store_address)) as store:
        asyncio.run(check(store))


def test_what_a_dead_worker_holds_is_not_waited_for(store_address):
    async def asked(grants):
        return (await grants.ask(lambda: (0.0, 0.0), 1.0, 0))[0]

    async def check(store):
        put_up(store, "r", "plan", {"a": 10})
        ids = [join(store, "r") for _ in range(3)]
        first, second, third = (Grants(store, "r", id_, Limits(usd=1.5)) for id_ in ids)
        assert [await asked(first), await asked(second)] == [GrantAnswer.GRANTED, GrantAnswer.LATER]
        with store.engine.begin() as connection:  # its machine vanishes
            old = WORKER.c.beat - lease.STALE - 1
            connection.execute(update(WORKER).where(WORKER.c.id == ids[0]).values(beat=old))
        assert [await asked(second), await asked(third)] == [GrantAnswer.NONE] * 2

    with closing(Store(store_address)) as store:
        asyncio.run(check(store))
