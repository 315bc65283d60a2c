"""One process makes a run at a time; what died is taken over at once, what is silent later."""

import json
import subprocess
import sys

import pytest
from sqlalchemy import update

from assay.store.lease import STALE, Owner
from assay.store.tables import RUN as TABLE
from store.samples import RUN, run


@pytest.fixture
def made(store):
    store.add_run(run())
    return store


def other(**changed):
    """An owner that is another process, on another machine unless told."""
    values = {**json.loads(Owner.here().text), "machine": "elsewhere", "token": "other"}
    return json.dumps({**values, **changed})


def a_dead_process():
    code = "from assay.store.lease import Owner; print(Owner.here().text)"
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
