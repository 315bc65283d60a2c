"""The attempts that a worker takes, while the database and other workers come and go."""

import asyncio
import threading
from contextlib import closing

import pytest

from engine.serving import suite
from pennyweight.api.sharing.work import put_up, work
from pennyweight.engine.execution import open_suite
from pennyweight.engine.limiter import Limiter
from pennyweight.engine.sharing import leased_attempts
from pennyweight.engine.sharing.leased_attempts import LeasedAttempts
from pennyweight.engine.sharing.plan import plans_of
from pennyweight.engine.sharing.worker import Worker
from pennyweight.errors import StoreError
from pennyweight.store.shared_runs import left, live_workers, made
from pennyweight.store.store import Store


def leased(path, store, run_id):
    """The attempts of a new worker."""
    return LeasedAttempts(Worker(store, run_id, lambda: None), plans_of(open_suite(path)))


def test_a_database_that_restarts_while_a_worker_begins_is_waited_for(postgresql, tmp_path):
    path = suite(tmp_path, "http://127.0.0.1:9", tasks=4)
    with closing(Store(postgresql.database())) as store:
        run, _ = put_up(path, store=store)

        async def check():
            attempts, limiter = leased(path, store, run.id), Limiter(3)
            postgresql.stop(at_once=True)
            back = threading.Timer(1.0, postgresql.start)
            back.start()
            attempts.begin({"m": limiter}, lambda: None)
            await asyncio.sleep(0)
            back.join()
            await attempts.close()
            return limiter.limit

        assert asyncio.run(check()) == 3


def test_a_database_that_restarts_while_a_worker_takes_what_others_left(
    store_address, tmp_path, monkeypatch
):
    path, told = suite(tmp_path, "http://127.0.0.1:9", tasks=4), []

    def away_once(*arguments):
        if not told:
            told.append("the server is restarting")
            raise StoreError(told[0], "s", transient=True)
        return made(*arguments)

    monkeypatch.setattr(leased_attempts, "made", away_once)
    with closing(Store(store_address)) as store:
        run, _ = put_up(path, store=store)

        async def check():
            first, second = leased(path, store, run.id), leased(path, store, run.id)
            (mine, _), _ = await first.claim(["m"], 2), await first.close()
            again, _ = await second.claim(["m"], 2)
            await second.close()
            return mine, again

        mine, again = asyncio.run(check())
        assert told
        assert [a.task.id for a in mine] == [a.task.id for a in again]


def test_a_worker_that_cannot_begin_leaves(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise StoreError("the table is damaged", "s")

    path = suite(tmp_path, "http://127.0.0.1:9", tasks=4)
    with closing(Store(str(tmp_path / "s.db"))) as store:
        run, _ = put_up(path, store=store)
        monkeypatch.setattr(leased_attempts, "places", broken)
        with pytest.raises(StoreError, match="damaged"):
            work(run.id, store=store, suite=path, progress=False)
        assert live_workers(store, run.id) == 0
    assert not [thread for thread in threading.enumerate() if thread.name == "worker"]


def test_a_worker_without_places_gives_back_what_it_has_not_begun(store_address, tmp_path):
    path = suite(tmp_path, "http://127.0.0.1:9", tasks=4, limits="{concurrency: 1}")
    with closing(Store(store_address)) as store:
        run, _ = put_up(path, store=store)

        async def check():
            one, limiter = leased(path, store, run.id), Limiter(1)
            (queue,) = one.queues({"m": limiter}, lambda _: "m")
            one.begin({"m": limiter}, lambda: None)
            assert await queue.more()  # it has a portion, and a place
            other = leased(path, store, run.id)
            while other.worker.id > one.worker.id:  # the first of them gets the only place
                await other.close()
                other = leased(path, store, run.id)
            for beat in one.worker.beats:
                beat()
            while (await other.claim(["m"], 1))[1].left:  # all but what the first one holds
                await asyncio.sleep(0.05)
            assert (limiter.limit, queue.take(), queue.take(ahead=True)) == (0, None, None)
            assert left(store, run.id) == 4
            await other.close()
            for beat in one.worker.beats:
                beat()
            assert await queue.more()
            assert queue.take() is not None
            await one.close()

        asyncio.run(asyncio.wait_for(check(), 60))
