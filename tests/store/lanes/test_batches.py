"""What the store says of batches: each change is made once, and only by who holds the run."""

from contextlib import closing
from functools import partial

import pytest

from pennyweight.engine.budget import Amount
from pennyweight.engine.calls import CallResult, call_row, reserved_row
from pennyweight.engine.execution import new_run, open_suite
from pennyweight.record import AttemptKey
from pennyweight.store.lanes.batches import (
    BatchRequest,
    RunLostError,
    SettledRequest,
    StoredBatch,
    add_batch,
    add_requests,
    batches_of,
    begin_submission,
    drop_batch,
    end_batch,
    forget_replies,
    make_ready,
    mark_told,
    note_handle,
    request_states,
    settle_requests,
)
from pennyweight.store.lease import release_run, take_run
from pennyweight.store.store import Store

HELD = Amount(0.5, 50)


@pytest.fixture
def store(store_address):
    with closing(Store(store_address)) as opened:
        yield opened


@pytest.fixture
def run(store, tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("suite: s\ntasks: [{id: a, input: hi}]\nsubjects: [ollama/m]\n")
    made = new_run(open_suite(path))
    store.add_run(made)
    assert take_run(store, made.id, '{"token": "ours"}')
    return made.id


def a_batch(run, state="preparing", requests=3):
    usd, tokens = HELD.usd * requests, HELD.tokens * requests
    return StoredBatch(
        "b", run, "attempt", "m", state, requests=requests, held_usd=usd, held_tokens=tokens, at=1.0
    )


def requests_of(run, state="out", number=3):
    return [
        BatchRequest(AttemptKey(run, "m", "T0", f"t{i}", 1), f"r{i}", "b", state, 1, 0.5, 50)
        for i in range(number)
    ]


def held_row(batch):
    return reserved_row(batch.run, batch.held_usd, batch.held_tokens)


def release(run, usd, tokens):
    return reserved_row(run, -usd, -tokens)


def settled(requests):
    result = CallResult(Amount(None, None), 0.0)
    return [
        SettledRequest(one, "{}", call_row("attempt", one.key, "m", result, HELD))
        for one in requests
    ]


def submitted(store, run, state="out"):
    batch = a_batch(run)
    add_batch(store, batch)
    make_ready(store, batch, requests_of(run, state), held_row(batch))
    begin_submission(store, batch, 2.0)
    note_handle(store, "b", "handle")
    return batch


def test_a_reply_that_two_collect_is_in_the_ledger_once(store, run):
    batch = submitted(store, run)
    answered = settled(requests_of(run, "answered"))
    settle_requests(store, batch, answered[:2], partial(release, run))
    settle_requests(store, batch, answered, partial(release, run))
    settle_requests(store, batch, answered, partial(release, run))
    spent = store.spent(run)
    assert (spent["calls"], spent["held_usd"], spent["held_tokens"]) == (3, 1.5, 150)  # of calls
    assert {state for state, _ in request_states(store, run).values()} == {"answered"}


@pytest.mark.parametrize("state", ["out", "answered", "failed", "refused"])
def test_only_errors_are_told(state, store, run):
    submitted(store, run, state)
    mark_told(store, run, ["r0", "r2"])
    told = "told" if state in {"failed", "refused"} else state
    states = {id_: now for id_, (now, _) in request_states(store, run).items()}
    assert states == {"r0": told, "r1": state, "r2": told}


def test_a_batch_that_was_dropped_stays_dropped(store, run):
    batch = a_batch(run)
    add_batch(store, batch)
    add_requests(store, batch, requests_of(run))
    drop_batch(store, batch)
    with pytest.raises(RunLostError):
        add_requests(store, batch, requests_of(run))
    with pytest.raises(RunLostError):
        make_ready(store, batch, requests_of(run), held_row(batch))
    with pytest.raises(RunLostError):
        begin_submission(store, batch, 3.0)
    note_handle(store, "b", "handle")
    assert batches_of(store, run) == []
    assert request_states(store, run) == {}
    assert store.spent(run)["held_usd"] is None


CHANGES = {
    "add": add_batch,
    "requests": lambda store, batch: add_requests(store, batch, requests_of(batch.run)),
    "ready": lambda store, batch: make_ready(store, batch, [], held_row(batch)),
    "submission": lambda store, batch: begin_submission(store, batch, 3.0),
    "settle": lambda store, batch: settle_requests(
        store, batch, settled(requests_of(batch.run, "answered")), partial(release, batch.run)
    ),
    "end": lambda store, batch: end_batch(store, batch, None),
    "drop": lambda store, batch: drop_batch(store, batch, [held_row(batch)]),
    "told": lambda store, batch: mark_told(store, batch.run, ["r0"]),
    "forget": lambda store, batch: forget_replies(store, batch.run, "attempt", ["m"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_who_lost_the_run_changes_none_of_its_batches(change, store, run):
    submitted(store, run)
    before = batches_of(store, run), request_states(store, run), store.spent(run)
    with closing(Store(store.address)) as other:
        release_run(other, run, '{"token": "ours"}')
        assert take_run(other, run, '{"token": "theirs"}')
    with pytest.raises(RunLostError):
        CHANGES[change](store, a_batch(run))
    assert (batches_of(store, run), request_states(store, run), store.spent(run)) == before
    assert store.leases[run].lost
