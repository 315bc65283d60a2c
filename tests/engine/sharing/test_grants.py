"""Limits of money and tokens that workers share."""

import asyncio
import json
from contextlib import closing

import pytest
from sqlalchemy import update

from engine.command import ended, kept, run, start
from engine.paid_server import billed, cost, paid_server, paid_suite
from pennyweight.engine.budget import Amount, Budget, ExhaustedError, GrantAnswer
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


def test_what_a_worker_gives_back_is_for_the_others(store_address):
    async def check(store):
        put_up(store, "r", "plan", {"a": 10})
        limits = Limits(usd=10.0, tokens=1000)
        mine, other = (Budget(limits) for _ in range(2))
        for budget in (mine, other):
            budget.grants = Grants(store, "r", join(store, "r"), limits)
        call = await mine.reserve(("attempt", "m"), Amount(4.0, 400))
        mine.settle(call, Amount(1.0, 100))  # the ledger does not have it yet
        asked = await other.grants.ask(lambda: (0.0, 0), 5.9, 500)
        assert asked[0] is GrantAnswer.GRANTED
        await other.give_back()
        await other.give_back()
        assert (other.grants.usd, other.grants.tokens) == (0.0, 0)
        assert store.spent("r")["held_usd"] == pytest.approx(4.0)
        assert (await mine.grants.ask(lambda: (1.0, 100), 5.0, 500))[0] is GrantAnswer.GRANTED
        await mine.give_back()
        assert store.spent("r")["held_usd"] == pytest.approx(4.0)
        mine.release(call)
        await mine.give_back()
        assert not store.spent("r")["held_usd"]
        # a call asks for what was given back
        again = await other.reserve(("attempt", "m"), Amount(5.0, 500))
        assert (again.usd, other.grants.usd) == (5.0, 5.0)
        await other.grants.close()
        await other.give_back()  # too late: what is left is given back with the last records
        assert other.grants.usd == 5.0

    with closing(Store(store_address)) as store:
        asyncio.run(check(store))


def test_what_calls_cost_is_waited_for_until_the_ledger_has_it(store_address):
    async def check(store):
        put_up(store, "r", "plan", {"a": 10})
        limits = Limits(usd=10.0)
        budget = Budget(limits, grants=Grants(store, "r", join(store, "r"), limits))
        call = await budget.reserve(("attempt", "m"), Amount(8.0, 1))
        next_one = asyncio.create_task(budget.reserve(("attempt", "m"), Amount(8.0, 1)))
        budget.settle(call, Amount(1.0, 1))
        done, _ = await asyncio.wait([next_one], timeout=1.0)
        assert not done  # the ledger holds 8 dollars, and 2 are left
        budget.release(call)
        assert (await next_one).usd == 8.0

    with closing(Store(store_address)) as store:
        asyncio.run(check(store))


def test_a_worker_that_is_stopped_while_others_hold_money_reached_no_limit(store_address):
    async def check(store):
        put_up(store, "r", "plan", {"a": 10})
        limits = Limits(usd=10.0)
        mine, other = (Budget(limits) for _ in range(2))
        for budget in (mine, other):
            budget.grants = Grants(store, "r", join(store, "r"), limits)
        await other.reserve(("attempt", "m"), Amount(8.0, 1))
        waiting = asyncio.create_task(mine.reserve(("attempt", "m"), Amount(8.0, 1)))
        await asyncio.sleep(0.1)
        mine.wake()
        with pytest.raises(ExhaustedError) as stopped:
            await waiting
        assert stopped.value.reason is None

    with closing(Store(store_address)) as store:
        asyncio.run(check(store))


BOT = """
import time

def answer(text):
    time.sleep(0.1)
    return {"text": "4", "usage": {"prompt_tokens": 5, "completion_tokens": 5}}
"""


def test_the_last_call_gets_what_idle_workers_do_not_need(postgresql, tmp_path):
    """It may cost more than is left beside what the others were granted for their next calls."""
    (tmp_path / "bot.py").write_text(BOT)
    tasks = [{"id": f"t{i:02}", "input": f"{i}?"} for i in range(30)]
    tasks.append({"id": "zz", "input": "x" * 900})
    bot, limits = "python:bot:answer", {"concurrency": 2, "usd": 1.14}
    price = {bot: {"input": 1000.0, "output": 10.0}}
    text = {"suite": "s", "tasks": tasks, "subjects": [bot], "prices": price, "limits": limits}
    path = tmp_path / "suite.yaml"
    path.write_text(json.dumps(text))
    address = postgresql.database()
    assert run(address, "run", path, "--on", "workers")[0] == 0
    workers = [start(address, "work", "--suite", path) for _ in range(2)]
    said = [ended(worker) for worker in workers]
    assert [code for code, _ in said] == [0, 0], said
    rows, spent = kept(address)
    assert len(rows) == spent["calls"] == 31
    assert not spent["held_usd"]


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
