"""One process makes a run at a time; what died is taken over at once, what is silent later."""

import json
import subprocess
import sys

import pytest
from sqlalchemy import update

from pennyweight.store import lease
from pennyweight.store.lease import STALE, Lease, Owner
from pennyweight.store.store import Store
from pennyweight.store.tables import RUN as TABLE
from store.samples import RUN, call, record, rows, run


@pytest.fixture
def made(store):
    store.add_run(run())
    return store


def other(**changed):
    """An owner that is another process, on another machine unless told."""
    values = {**json.loads(Owner.here().text), "machine": "elsewhere", "token": "other"}
    return json.dumps({**values, **changed})


def a_dead_process():
    code = "from pennyweight.store.lease import Owner; print(Owner.here().text)"
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def age(store, seconds):
    """Make the last sign of life older."""
    with store.engine.begin() as connection:
        connection.execute(update(TABLE).values(beat=TABLE.c.beat - seconds))


def test_a_run_that_is_held_is_not_taken(made):
    mine, theirs = Owner.here().text, Owner.here().text
    assert made.take(RUN, mine)
    assert made.take(RUN, mine)
    assert not made.take(RUN, theirs)
    assert not made.beat(RUN, theirs)
    assert made.holder(RUN).text == mine
    made.release(RUN, theirs)
    assert made.beat(RUN, mine)
    made.release(RUN, mine)
    assert made.holder(RUN) is None
    assert made.take(RUN, theirs)


def test_a_silent_owner_elsewhere_loses_the_run(made):
    mine, theirs = Owner.here().text, other()
    assert made.take(RUN, theirs)
    age(made, STALE - 10)
    assert not made.take(RUN, mine)
    assert made.beat(RUN, theirs)
    age(made, STALE + 10)
    assert made.take(RUN, mine)
    assert not made.beat(RUN, theirs)


def test_a_process_of_this_machine_that_died_is_taken_over_at_once(made):
    assert made.take(RUN, a_dead_process())
    assert made.take(RUN, Owner.here().text)


def test_a_number_that_another_process_has_now_is_no_sign_of_life(made):
    assert made.take(RUN, json.dumps({**json.loads(Owner.here().text), "started": "1"}))
    assert made.take(RUN, Owner.here().text)


def test_there_is_no_lease_on_a_run_that_is_not_there(store):
    assert not store.take("none", Owner.here().text)


def test_a_run_is_made_while_its_owner_is_heard_of(made):
    assert not made.is_made(RUN)
    assert made.take(RUN, other())
    assert made.is_made(RUN)
    age(made, STALE + 10)
    assert not made.is_made(RUN)
    assert made.take(RUN, a_dead_process())
    assert not made.is_made(RUN)


def test_who_lost_a_run_writes_only_its_calls(made, monkeypatch):
    told = []
    assert made.take(RUN, Owner.here().text, lambda: told.append(1))
    age(made, STALE + 1)
    other_store = Store(made.address)
    assert other_store.take(RUN, other())
    other_store.write([record("a", response="theirs")], [call("a")])
    monkeypatch.setattr(lease, "FRESH", 0.0)
    made.write([record("a", response="mine"), record("b")], [call("a"), call("b")])
    made.set_run(RUN, status="stopped")
    assert [(r["task_id"], r["response"]) for r in rows(made)] == [("a", "theirs")]
    assert made.spent(RUN)["calls"] == 3
    assert made.find(RUN).status == "running"
    assert told == [1]
    other_store.set_run(RUN, status="done")
    assert made.find(RUN).status == "done"
    other_store.close()


def test_who_was_silent_and_has_its_run_still_goes_on(made, monkeypatch):
    mine = Owner.here().text
    assert made.take(RUN, mine)
    age(made, STALE + 1)
    monkeypatch.setattr(lease, "FRESH", 0.0)
    made.write([record("a")], [])
    assert len(rows(made)) == 1
    assert not Store(made.address).take(RUN, other())  # writing was a sign of life


def test_a_sign_of_life_is_fresh_for_a_while(monkeypatch):
    now = 100.0
    monkeypatch.setattr(lease, "clock", lambda: now)
    held = Lease("me")
    assert held.is_fresh
    now = 100.0 + lease.FRESH
    assert not held.is_fresh
    held.heard(now - 1)
    assert held.is_fresh
    held.lose()
    assert not held.is_fresh
