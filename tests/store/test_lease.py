"""One process makes a run at a time; what died is taken over at once, what is silent later."""

import json
import subprocess
import sys

import pytest
from sqlalchemy import delete, update

from pennyweight.store import lease
from pennyweight.store.lease import (
    STALE,
    Fence,
    Lease,
    Owner,
    is_running,
    owner_of,
    release_run,
    renew_lease,
    take_run,
)
from pennyweight.store.shared_runs import join, put_up
from pennyweight.store.store import Store
from pennyweight.store.tables import RUN as TABLE
from pennyweight.store.tables import WORKER
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
    assert take_run(made, RUN, mine)
    assert take_run(made, RUN, mine)
    assert not take_run(made, RUN, theirs)
    assert not renew_lease(made, RUN, theirs)
    assert owner_of(made, RUN).text == mine
    release_run(made, RUN, theirs)
    assert renew_lease(made, RUN, mine)
    release_run(made, RUN, mine)
    assert owner_of(made, RUN) is None
    assert take_run(made, RUN, theirs)


def test_a_silent_owner_elsewhere_loses_the_run(made):
    mine, theirs = Owner.here().text, other()
    assert take_run(made, RUN, theirs)
    age(made, STALE - 10)
    assert not take_run(made, RUN, mine)
    assert renew_lease(made, RUN, theirs)
    age(made, STALE + 10)
    assert take_run(made, RUN, mine)
    assert not renew_lease(made, RUN, theirs)


def test_a_process_of_this_machine_that_died_is_taken_over_at_once(made):
    assert take_run(made, RUN, a_dead_process())
    assert take_run(made, RUN, Owner.here().text)


def test_a_number_that_another_process_has_now_is_no_sign_of_life(made):
    assert take_run(made, RUN, json.dumps({**json.loads(Owner.here().text), "started": "1"}))
    assert take_run(made, RUN, Owner.here().text)


def test_there_is_no_lease_on_a_run_that_is_not_there(store):
    assert not take_run(store, "none", Owner.here().text)


def test_a_run_is_made_while_its_owner_is_heard_of(made):
    assert not is_running(made, RUN)
    assert take_run(made, RUN, other())
    assert is_running(made, RUN)
    age(made, STALE + 10)
    assert not is_running(made, RUN)
    assert take_run(made, RUN, a_dead_process())
    assert not is_running(made, RUN)


def test_who_lost_a_run_writes_only_its_calls(made, monkeypatch):
    told = []
    assert take_run(made, RUN, Owner.here().text, lambda: told.append(1))
    age(made, STALE + 1)
    other_store = Store(made.address)
    assert take_run(other_store, RUN, other())
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


def test_a_worker_that_was_given_up_writes_only_its_calls(made):
    told = []
    put_up(made, RUN, "plan", {"a": 10})
    fence = made.fences[RUN] = Fence(join(made, RUN), lambda: told.append(1))
    made.write([record("a")], [call("a")])
    with made.engine.begin() as connection:
        connection.execute(delete(WORKER))
    for task in "bc":
        made.write([record(task)], [call(task)])
    assert [r["task_id"] for r in rows(made)] == ["a"]
    assert made.spent(RUN)["calls"] == 3
    assert (told, fence.lost) == ([1], True)


def test_who_was_silent_and_has_its_run_still_goes_on(made, monkeypatch):
    mine = Owner.here().text
    assert take_run(made, RUN, mine)
    age(made, STALE + 1)
    monkeypatch.setattr(lease, "FRESH", 0.0)
    made.write([record("a")], [])
    assert len(rows(made)) == 1
    assert not take_run(Store(made.address), RUN, other())  # writing was a sign of life


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
