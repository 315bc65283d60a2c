"""Waiting for batches that are out."""

import time
from contextlib import closing

import pytest

import pennyweight
from batch_serving import batch_server, batch_suite
from pennyweight.api.lanes.collect import collect
from pennyweight.engine.batches import waiting
from pennyweight.errors import StoreError
from pennyweight.store.lanes.batches import first_submission
from pennyweight.store.store import Store


@pytest.mark.parametrize(
    "read", ["first_submission", "out_batches", "batches_of", "set_batch"], ids=str
)
def test_a_database_that_restarts_is_waited_for(read, tmp_path, monkeypatch):
    real, failed = getattr(waiting, read), []

    def restarting(*given, **values):
        if not failed:
            failed.append(read)
            raise StoreError("The server is restarting.", transient=True)
        return real(*given, **values)

    class Watch(pennyweight.Watcher):
        def waiting(self, out, pause):
            server.control(hold=False)

    monkeypatch.setattr(waiting, read, restarting)
    with batch_server(tmp_path) as server, closing(Store(str(tmp_path / "s.db"))) as store:
        server.control(hold=True)
        pennyweight.run(batch_suite(tmp_path, server), store=store)
        run = collect(store=store, wait=True, deadline=3600, poll=0.01, watch=Watch())
        assert (run.status, failed) == ("done", [read])


def test_it_ends_when_another_process_has_collected_all(tmp_path):
    class Watch(pennyweight.Watcher):
        def waiting(self, out, pause):
            if out.batches:
                server.control(hold=False)
                assert collect(store=str(tmp_path / "s.db"), wait=True, poll=0.01).status == "done"

    with batch_server(tmp_path) as server, closing(Store(str(tmp_path / "s.db"))) as store:
        server.control(hold=True)
        pennyweight.run(batch_suite(tmp_path, server), store=store)
        assert collect(store=store, wait=True, poll=0.01, watch=Watch()).status == "done"


def test_a_deadline_that_comes_during_a_collection_holds(tmp_path):
    class Slow(pennyweight.Watcher):
        def waiting(self, out, pause):
            pytest.fail("The deadline came before the wait began.")

        def begin(self, phase):
            time.sleep(0.6)

    with batch_server(tmp_path) as server, closing(Store(str(tmp_path / "s.db"))) as store:
        server.control(hold=True)
        pennyweight.run(batch_suite(tmp_path, server), store=store)
        out = first_submission(store, store.runs()[0].id)
        late = time.time() - out + 0.3
        run = collect(store=store, wait=True, deadline=late, poll=60, watch=Slow())
        assert run.status == "done"
        assert set(run.records()["lane"]) == {"live"}
