"""`kill -9` at every step of a batch: nothing is submitted twice, nothing paid for is lost."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from batch_serving import DIALECTS, batch_server, batch_suite
from engine.batches.driver import STEPS
from pennyweight.api.lanes.collect import collect
from pennyweight.engine.batches import inbox
from pennyweight.store.lanes.batches import batches_of, out_batches, set_batch
from pennyweight.store.store import Store

TASKS = 7


def killed_at(step, address, *command):
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("driver.py"), step, *map(str, command)],
        env={**os.environ, "PENNYWEIGHT_STORE": address},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, (done.returncode, done.stderr)


def after_all(address, server):
    """Collect until everything is there; check records, ledger and submissions."""
    with closing(Store(address)) as store:
        run = collect("latest", wait=True, poll=0.01, store=store)
        assert run.status == "done"
        assert not out_batches(store)
        assert {b.state for b in batches_of(store, run.id, ("ended", "dropped", "out"))} >= {
            "ended"
        }
        rows = run.records().to_dicts()
        assert len(rows) == len({row["task_id"] for row in rows}) == TASKS
        assert {row["response"] for row in rows} == {str(2 + 3 * i) for i in range(TASKS)}
        spent = store.spent(run.id)
        assert spent["calls"] == TASKS
        assert spent["usd"] == pytest.approx(sum(row["cost_usd"] for row in rows))
        assert spent["held_usd"] is spent["held_tokens"] is None
    assert server.submissions() == [TASKS]
    assert server.log()["live"] == 0


OTHERS = ("submitting", "submitted", "results")
CASES = [("openai", step) for step in STEPS]
CASES += [(dialect, step) for dialect in DIALECTS[1:] for step in OTHERS]


@pytest.mark.parametrize(("dialect", "step"), CASES)
def test_nothing_is_submitted_twice_and_nothing_is_lost(dialect, step, tmp_path, monkeypatch):
    monkeypatch.setattr(inbox, "SETTLING", 0.0)
    address = str(tmp_path / "store.db")
    with batch_server(tmp_path) as server:
        path = batch_suite(tmp_path, server, dialect, TASKS)
        if STEPS[step][0] == "outbox":
            killed_at(step, address, "run", path)
        else:
            with closing(Store(address)) as store:
                from pennyweight import run

                assert run(path, store=store).is_waiting
            killed_at(step, address, "collect")
        after_all(address, server)


def test_on_postgresql_too(store_address, tmp_path, monkeypatch):
    monkeypatch.setattr(inbox, "SETTLING", 0.0)
    with batch_server(tmp_path) as server:
        path = batch_suite(tmp_path, server, "openai", TASKS)
        killed_at("submitted", store_address, "run", path)
        killed_at("results", store_address, "collect", "latest")
        after_all(store_address, server)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("step", ["create", "created", "results"])
def test_a_connection_that_breaks(dialect, step, tmp_path, monkeypatch):
    """The provider has the batch or not: only its list tells."""
    monkeypatch.setattr(inbox, "SETTLING", 0.0)
    address = str(tmp_path / "store.db")
    with batch_server(tmp_path) as server, closing(Store(address)) as store:
        path = batch_suite(tmp_path, server, dialect, TASKS)
        from pennyweight import run
        from pennyweight.models.failure import CallError

        server.control(die=step)
        run(path, store=store)
        if step == "results":
            with pytest.raises(CallError, match="broke off"):
                collect("latest", store=store)
        after_all(address, server)


def test_a_batch_that_is_not_listed_yet_is_not_given_up(tmp_path):
    """Right after a submission a provider may not list the batch: it is waited for."""
    address = str(tmp_path / "store.db")
    with batch_server(tmp_path) as server, closing(Store(address)) as store:
        path = batch_suite(tmp_path, server, "openai", TASKS)
        killed_at("submitting", address, "run", path)
        assert collect("latest", store=store).is_waiting
        assert server.submissions() == []
        assert [batch.state for batch in batches_of(store, store.find("latest").id)] == [
            "submitting"
        ]


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_a_clock_that_was_ahead_hides_no_batch(dialect, tmp_path, monkeypatch):
    monkeypatch.setattr(inbox, "SETTLING", -1e6)
    address = str(tmp_path / "store.db")
    with batch_server(tmp_path) as server:
        path = batch_suite(tmp_path, server, dialect, TASKS)
        killed_at("submitted", address, "run", path)
        with closing(Store(address)) as store:
            (batch,) = batches_of(store, store.find("latest").id)
            set_batch(store, batch.id, at=batch.at + 14 * 3600)
        after_all(address, server)


def test_a_nameless_batch_that_runs_may_be_ours(tmp_path, monkeypatch):
    """Anthropic keeps no names, so a running batch of the same size is waited for."""
    monkeypatch.setattr(inbox, "SETTLING", 0.0)
    address = str(tmp_path / "store.db")
    with batch_server(tmp_path) as server, closing(Store(address)) as store:
        server.control(hold=True)
        path = batch_suite(tmp_path, server, "anthropic", TASKS)
        killed_at("submitted", address, "run", path)
        assert collect("latest", store=store).is_waiting
        assert server.submissions() == [TASKS]
        server.control(hold=False)
        after_all(address, server)


def test_a_foreign_batch_of_the_same_size_is_not_ours(tmp_path, monkeypatch):
    monkeypatch.setattr(inbox, "SETTLING", 0.0)
    with batch_server(tmp_path) as server:
        path = batch_suite(tmp_path, server, "anthropic", TASKS)
        others, address = str(tmp_path / "others.db"), str(tmp_path / "store.db")
        with closing(Store(others)) as store:
            from pennyweight import run

            run(path, store=store)
        killed_at("submitting", address, "run", path)
        with closing(Store(address)) as store:
            assert collect("latest", wait=True, poll=0.01, store=store).status == "done"
        assert server.submissions() == [TASKS, TASKS]
