"""Which worker gets which attempts, on both databases."""

from dataclasses import replace

import pytest
from sqlalchemy import update

from pennyweight.errors import UsageError
from pennyweight.store import lease
from pennyweight.store.lease import Owner
from pennyweight.store.shared_runs import (
    LostLeaseError,
    claim,
    join,
    leave,
    left,
    live_workers,
    places,
    put_up,
    ranges_of,
    renew,
    shared_run,
    take_down,
)
from pennyweight.store.tables import SHARE, WORKER


@pytest.fixture
def shared(store):
    put_up(store, "r", "plan", {"a": 10, "b": 4})
    return store


def take(store, worker, size=100, subjects=("a", "b"), **known):
    got = claim(store, "r", worker, subjects, size, **known)
    portion = got.portion
    return (portion.subject, portion.first, portion.last) if portion else got.left


def silence(store, worker):
    """Let a worker's last sign of life be long ago, as if its machine had vanished."""
    with store.engine.begin() as connection:
        old = WORKER.c.beat - lease.STALE - 1
        connection.execute(update(WORKER).where(WORKER.c.id == worker).values(beat=old))


def test_attempts_are_taken_once(shared):
    one, two = join(shared, "r"), join(shared, "r")
    assert live_workers(shared, "r") == 2
    assert take(shared, one, 2) == ("a", 0, 2)
    assert take(shared, two, 2) == ("b", 0, 1)  # a quarter of what is left, so that both finish
    assert take(shared, one, 100, ["b"], held=[1]) == ("b", 1, 2)
    assert left(shared, "r") == 14


def test_the_last_attempts_are_held_by_somebody(shared):
    one, two = join(shared, "r"), join(shared, "r")
    held = []
    while (got := claim(shared, "r", one, ["a"], 3, held=held)).portion:
        held.append(got.portion.id)
    assert got.left is False  # its own are no reason to wait
    assert take(shared, two, 3, ["a"]) is True
    assert claim(shared, "r", one, ["a"], 3, done=held).left is False
    assert take(shared, two, 3, ["a"]) is False
    assert left(shared, "r") == 4


def test_a_portion_whose_confirmation_was_lost_is_given_again(shared):
    one = join(shared, "r")
    first = claim(shared, "r", one, ["a"], 100).portion
    again = claim(shared, "r", one, ["a"], 100).portion
    assert (again.id, again.first, again.last) == (first.id, 0, 10)
    assert first.is_new
    assert not again.is_new


def test_what_a_worker_gives_back_goes_to_others_and_not_to_itself(shared):
    one, two = join(shared, "r"), join(shared, "r")
    first = claim(shared, "r", one, ["b"], 100).portion
    got = claim(shared, "r", one, ["a"], 1, back=[first.id], without=[first.id])
    assert got.portion.subject == "a"
    assert claim(shared, "r", two, ["b"], 1).portion.id == first.id
    leave(shared, "r", two, ())
    assert claim(shared, "r", one, ["b"], 1).portion.id == first.id


def test_a_silent_worker_is_given_up_and_knows_it(shared):
    one, two = join(shared, "r"), join(shared, "r")
    assert take(shared, one, 100, ["b"]) == ("b", 0, 1)
    silence(shared, one)
    assert take(shared, two, 100, ["b"]) == ("b", 0, 1)
    with shared.engine.begin() as connection:
        assert not renew(shared, one, connection)
        assert renew(shared, two, connection)
    with pytest.raises(LostLeaseError):
        take(shared, one)
    with pytest.raises(LostLeaseError):
        places(shared, "r", one, 4, 0)


def test_a_silent_worker_that_writes_in_time_stays(shared):
    one, two = join(shared, "r"), join(shared, "r")
    silence(shared, one)
    with shared.engine.begin() as connection:
        assert renew(shared, one, connection)
    take(shared, two)
    assert live_workers(shared, "r") == 2


def test_a_worker_that_was_stopped_in_a_transaction_does_not_give_itself_up(shared, monkeypatch):
    one, two = join(shared, "r"), join(shared, "r")
    monkeypatch.setattr(lease, "STALE", -1.0)  # every sign of life is too old at once
    assert take(shared, one, 2) == ("a", 0, 2)
    assert places(shared, "r", one, 6, 0) == 6
    with shared.engine.begin() as connection:
        assert (renew(shared, one, connection), renew(shared, two, connection)) == (True, False)


def test_the_concurrency_is_never_exceeded_together(shared):
    one = join(shared, "r")
    assert places(shared, "r", one, 5, 0) == 5
    two = join(shared, "r")
    first, second = sorted((one, two))
    assert places(shared, "r", two, 5, 0) == 0  # the other one uses all
    fair = {first: 3, second: 2}
    assert places(shared, "r", one, 5, 5) == fair[one]
    assert places(shared, "r", two, 5, 0) == 0  # its calls have not ended yet
    assert places(shared, "r", one, 5, fair[one]) == fair[one]
    assert places(shared, "r", two, 5, 0) == fair[two]
    leave(shared, "r", one, ())
    assert places(shared, "r", two, 5, 2) == 5
    assert places(shared, "r", two, 5, 0, most=1) == 1


def test_what_an_idle_worker_does_not_use_is_for_the_others(shared):
    first, second, third = sorted(join(shared, "r") for _ in range(3))
    assert places(shared, "r", first, 2, 0) == places(shared, "r", second, 2, 0) == 1
    assert places(shared, "r", third, 2, 0) == 0
    assert places(shared, "r", first, 2, 0, idle=True) == 0
    assert places(shared, "r", third, 2, 0) == 1
    assert places(shared, "r", third, 2, 1, idle=True) == 0  # its call has not ended yet
    assert places(shared, "r", second, 2, 1) == 1
    assert places(shared, "r", third, 2, 0, idle=True) == 0
    assert places(shared, "r", second, 2, 1) == 2
    assert places(shared, "r", first, 2, 0) == 0  # there is something to call again
    assert places(shared, "r", second, 2, 1) == 1
    assert places(shared, "r", first, 2, 0) == 1


def test_a_worker_without_places_takes_nothing_and_knows_what_is_left(shared):
    one, two = join(shared, "r"), join(shared, "r")
    look = claim(shared, "r", one, ["b"], 0)
    assert (look.portion, look.left, look.waiting) == (None, True, True)
    assert left(shared, "r") == 14
    held = []
    while (got := claim(shared, "r", two, ["b"], 9, held=held)).portion:
        held.append(got.portion.id)
    look = claim(shared, "r", one, ["b"], 0)
    assert (look.portion, look.left, look.waiting) == (None, True, False)
    assert claim(shared, "r", two, ["b"], 0, back=held).waiting
    assert claim(shared, "r", one, ["b"], 0).waiting
    leave(shared, "r", two, ())
    while (got := claim(shared, "r", one, ["b"], 9, done=held)).portion:
        held = [got.portion.id]
    look = claim(shared, "r", one, ["b"], 0)
    assert (look.portion, look.left, look.waiting) == (None, False, False)


def test_the_same_plan_goes_on_and_another_one_begins(shared):
    one = join(shared, "r")
    take(shared, one)
    assert not put_up(shared, "r", "plan", {"a": 10, "b": 4})
    assert put_up(shared, "r", "changed", {"a": 3}, {"a": [(1, 2)]})
    assert shared_run(shared, "r").plan == "changed"
    with pytest.raises(LostLeaseError):
        take(shared, one)
    assert take(shared, join(shared, "r")) == ("a", 1, 2)
    take_down(shared, "r")
    assert shared_run(shared, "r") is None
    with pytest.raises(LostLeaseError):
        join(shared, "r")


def test_a_file_is_shared_by_processes_of_one_machine_only(shared):
    join(shared, "r")
    other = replace(Owner.here(), machine="other", host="far").text
    with shared.engine.begin() as connection:
        connection.execute(update(SHARE).values(owner=other))
    if shared.engine.dialect.name == "sqlite":
        with pytest.raises(UsageError, match=r"SQLite.*far.*postgresql://"):
            join(shared, "r")
    else:
        join(shared, "r")


def test_removing_a_run_removes_what_it_shares(shared):
    join(shared, "r")
    shared.remove("r")
    assert shared_run(shared, "r") is None
    assert live_workers(shared, "r") == left(shared, "r") == 0


def test_ranges():
    assert ranges_of([], 3) == []
    assert ranges_of([4], 3) == [(4, 5)]
    assert ranges_of(range(7), 3) == [(0, 3), (3, 6), (6, 7)]
