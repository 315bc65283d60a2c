"""A store that cannot take more: the run stops at once and says so, and goes on afterwards."""

import asyncio
import itertools
import os
import re
import resource
import subprocess
import threading
from contextlib import closing

import pytest

from engine.command import kept, run
from engine.serving import calls, server, suite
from pennyweight.engine import writer as writer_module
from pennyweight.engine.calls import reserved_row
from pennyweight.engine.writer import Writer
from pennyweight.errors import StoreError
from pennyweight.store import store as module
from pennyweight.store.store import Store
from store.samples import RUN, call, record

TASKS, FLYING, SPACE = 300, 8, 400_000


@pytest.fixture
def small_disk(tmp_path):
    """A file system with little space, where one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if (
        os.getuid()
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SPACE}", "tmpfs", folder],
            check=False,
            capture_output=True,
        ).returncode
    ):
        pytest.skip("this user may not mount file systems")
    yield folder
    subprocess.run(["umount", folder], check=True)


def stops_and_goes_on(folder, address, reason, limited, make_room):
    with server(0.005) as slow:
        path = suite(folder, slow, tasks=TASKS, limits=f"{{concurrency: {FLYING}}}")
        code, said = run(address, "run", path, **limited)
        assert code == 4, said
        assert reason in said
        assert "'pennyweight run --resume'" in said
        assert "Traceback" not in said
        rows, spent = kept(address)
        assert 0 < len(rows) == spent["calls"] < TASKS
        assert calls(slow) <= len(rows) + FLYING  # it made no more calls that it could not keep
        lost = int(re.search(r"repeated on resume: (\d+) response", said)[1])
        assert calls(slow) - len(rows) <= lost <= FLYING
        make_room()
        code, said = run(address, "run", "--resume")
        assert code == 0, said
        again, spent = kept(address)
        assert len(again) == spent["calls"] == TASKS
        assert [row for row in again if row in rows] == rows
        assert calls(slow) <= TASKS + FLYING


def test_a_file_that_may_not_grow_stops_the_run_which_can_be_resumed(tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (SPACE, SPACE))

    address = str(tmp_path / "store.db")
    stops_and_goes_on(tmp_path, address, "cannot be used", {"preexec_fn": limit}, lambda: None)


def test_a_full_disk_stops_the_run_which_can_be_resumed(tmp_path, small_disk):
    def make_room():
        subprocess.run(["mount", "-o", "remount,size=50m", small_disk], check=True)

    address = str(small_disk / "store.db")
    stops_and_goes_on(tmp_path, address, "disk is full", {}, make_room)


def test_a_read_only_store_stops_the_run_before_the_first_call(store_address, tmp_path):
    with closing(Store(store_address)) as store:
        store.remove("none")  # opens it, which makes it
    if "://" in store_address:
        address = f"{store_address}?options=-cdefault_transaction_read_only%3Don"
    else:
        address = f"sqlite:///file:{store_address}?mode=ro&uri=true"
    with server() as at:
        code, said = run(address, "run", suite(tmp_path, at))
        assert code == 4, said
        assert "cannot be used" in said
        assert calls(at) == 0


def test_what_no_database_takes_as_text_is_replaced(store_address, tmp_path):
    (tmp_path / "odd.py").write_text(r"def answer(text): return 'a\0b\ud800c ☃'")
    path = tmp_path / "suite.yaml"
    path.write_text("suite: odd\ntasks: [{id: a, input: hi}]\nsubjects: ['python:odd:answer']\n")
    code, said = run(store_address, "run", path, cwd=tmp_path)
    assert code == 0, said
    assert [row["response"] for row in kept(store_address)[0]] == ["a\ufffdb?c ☃"]


def test_a_run_that_ended_leaves_all_of_it_in_one_file(tmp_path):
    address = str(tmp_path / "store.db")
    with server() as at:
        assert run(address, "run", suite(tmp_path, at, tasks=20))[0] == 0
    assert {path.name for path in tmp_path.iterdir()} == {"suite.yaml", "store.db"}
    moved = tmp_path / "moved.db"
    moved.write_bytes((tmp_path / "store.db").read_bytes())
    assert len(kept(str(moved))[0]) == 20


async def put(writer, *tasks):
    return await asyncio.gather(
        *(writer.put(record(t), [call(t)]) for t in tasks), return_exceptions=True
    )


def test_what_is_put_is_committed_when_put_returns(store_address):
    heard = []

    async def main():
        writer = Writer(store.write, heard.extend)
        await put(writer, "a", "b")
        await writer.put(None, [call("c", status="server")])
        with closing(Store(store_address)) as other:
            assert (len(other.attempts(RUN)), other.spent(RUN)["calls"]) == (2, 3)
        await writer.close()

    with closing(Store(store_address)) as store:
        asyncio.run(main())
    assert sorted(heard) == [record("a"), record("b")]


def test_who_may_go_on_before_the_commit_does_and_nobody_else(tmp_path, monkeypatch):
    waits, write = threading.Event(), Store.write

    def slow(*given):
        assert waits.wait(20)
        write(*given)

    async def main():
        writer = Writer(store.write, lambda _: None)
        for task in "ab":
            await asyncio.wait_for(writer.put(record(task), [call(task)], None, 2), 5)
        third = asyncio.create_task(writer.put(record("c"), [call("c")], None, 2))
        done, _ = await asyncio.wait([third], timeout=0.2)
        assert not done
        waits.set()
        await third
        await asyncio.wait_for(writer.put(record("d"), [call("d")], None, 2), 5)
        await writer.close()

    monkeypatch.setattr(Store, "write", slow)
    with closing(Store(str(tmp_path / "store.db"))) as store:
        asyncio.run(main())
        assert len(store.attempts(RUN)) == store.spent(RUN)["calls"] == 4


def test_records_wait_for_those_that_are_worth_as_long_as_a_write_takes(monkeypatch):
    written, clock = [], itertools.count(step=1000)
    monkeypatch.setattr(writer_module, "monotonic", lambda: next(clock))  # a write takes 1000 s
    monkeypatch.setattr(writer_module, "LONGEST_HOLD", 1000)

    async def main():
        writer = Writer(lambda records, _: written.append(len(records)), lambda _: None)
        await put(writer, "first")
        writer.companions = lambda: 4
        early = asyncio.create_task(put(writer, "a", "b"))
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert written == [1]
        await put(writer, "c", "d")
        await early
        writer.companions = lambda: 0
        await put(writer, "e", "f")
        await writer.close()

    asyncio.run(main())
    assert written == [1, 4, 2]


def test_a_record_whose_companions_do_not_come_is_written(tmp_path):
    async def main():
        writer = Writer(store.write, lambda _: None)
        writer.companions = lambda: 16
        await asyncio.wait_for(put(writer, "a"), 20)
        await asyncio.wait_for(put(writer, "b"), 20)
        await writer.close()

    with closing(Store(str(tmp_path / "store.db"))) as store:
        asyncio.run(main())
        assert len(store.attempts(RUN)) == 2


def test_what_is_committed_is_not_said_to_be_lost_when_its_listener_fails(tmp_path):
    def listener(_):
        raise StoreError("It cannot be noted.")

    async def main():
        writer = Writer(store.write, listener)
        await put(writer, "a")
        with pytest.raises(StoreError, match=r"^It cannot be noted\.$"):
            await writer.close()

    with closing(Store(str(tmp_path / "store.db"))) as store:
        asyncio.run(main())
        assert len(store.attempts(RUN)) == 1


def test_a_put_that_is_cancelled_is_written_all_the_same(tmp_path):
    async def main():
        writer = Writer(store.write, lambda _: None)
        task = asyncio.create_task(writer.put(record("a"), []))
        await asyncio.sleep(0)
        task.cancel()
        await writer.close()

    with closing(Store(str(tmp_path / "store.db"))) as store:
        asyncio.run(main())
        assert len(store.attempts(RUN)) == 1


def test_all_who_wait_are_told_and_what_was_not_kept_is_counted(tmp_path):
    async def main():
        writer = Writer(store.write, lambda _: None)
        told = await put(writer, "a", "b", "c")
        assert {type(t) for t in told} == {StoreError}
        assert {type(t) for t in await put(writer, "d")} == {StoreError}
        with pytest.raises(StoreError, match="repeated on resume: 4 responses"):
            await writer.close()

    with closing(Store(str(tmp_path / "store.db"))) as store:
        with store.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE pennyweight_record")
        asyncio.run(main())


def test_every_call_that_was_not_stored_is_counted(tmp_path):
    async def main():
        writer = Writer(store.write, lambda _: None)
        talk = asyncio.gather(
            writer.put(record("a"), [call("a"), call("a"), call("a")]),  # a conversation
            writer.put(None, [call("b")]),  # a call that is tried again
            writer.put(None, [reserved_row(RUN, 1.0, 5)]),
            return_exceptions=True,
        )
        assert {type(t) for t in await talk} == {StoreError}
        with pytest.raises(StoreError, match="resume: 6 responses, 2 of them still in flight"):
            await writer.close(in_flight=2)

    with closing(Store(str(tmp_path / "store.db"))) as store:
        with store.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE pennyweight_record")
        asyncio.run(main())


def test_what_was_let_go_before_its_commit_is_counted_when_it_cannot_be_kept(tmp_path):
    async def main():
        writer = Writer(store.write, lambda _: None)
        for task in "abc":
            await writer.put(record(task), [call(task)], None, 10)
        with pytest.raises(StoreError, match="repeated on resume: 3 responses"):
            await writer.close()

    with closing(Store(str(tmp_path / "store.db"))) as store:
        with store.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE pennyweight_record")
        asyncio.run(main())


def test_a_database_that_stays_away_is_not_waited_for_for_ever(postgresql, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    with closing(Store(postgresql.database())) as store:
        store.write([record("a")], [])
        postgresql.stop(at_once=True)
        try:
            with pytest.raises(StoreError, match="refused"):
                store.write([record("b")], [])
        finally:
            postgresql.start()
        assert len(store.attempts(RUN)) == 1
