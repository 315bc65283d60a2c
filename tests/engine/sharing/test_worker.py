"""Workers that make one run together, and are killed, stopped and late."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing

import pytest
from sqlalchemy import func, select

from engine.command import ended, kept, run, start
from engine.serving import calls, server, suite
from engine.test_kill import wait_for
from pennyweight.store.shared_runs import take_down
from pennyweight.store.store import Store
from pennyweight.store.tables import METADATA

TASKS, FLYING = 240, 6
IMPATIENT = (
    "import sys\nfrom pennyweight.store import lease\nlease.STALE = 1.5\n"
    "from pennyweight.engine.sharing import worker\nworker.HEARTBEAT = 0.3\n"
    "from pennyweight.cli import main\nsys.argv = ['pennyweight', *sys.argv[1:]]\nmain()\n"
)
"""`pennyweight` that gives a silent worker up after 1.5 s."""


def impatient(address, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, *map(str, arguments)],
        env={**os.environ, "PENNYWEIGHT_STORE": address, "COLUMNS": "80"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def put_up(address, path):
    """Put a suite up for workers."""
    code, said = run(address, "run", path, "--on", "workers")
    assert code == 0, said


def whole(address, tasks=TASKS):
    """The records and the ledger of a run that is complete, checked."""
    rows, spent = kept(address)
    assert len(rows) == len({row["task_id"] for row in rows}) == tasks
    assert spent["usd"] == pytest.approx(sum(row["cost_usd"] for row in rows))
    assert {row["status"] for row in rows} == {"ok"}
    with closing(Store(address)) as store:
        assert store.find("latest").status == "done"
    return rows, spent


def test_workers_share_the_attempts_and_the_concurrency_of_a_run(store_address, tmp_path):
    with server(0.02) as slow:
        path = suite(tmp_path, slow, tasks=TASKS, limits=f"{{concurrency: {FLYING}}}")
        put_up(store_address, path)
        workers = [start(store_address, "work", "--suite", path) for _ in range(3)]
        said = [ended(worker) for worker in workers]
        assert [code for code, _ in said] == [0, 0, 0], said
        _, spent = whole(store_address)
        assert spent["calls"] == calls(slow) == TASKS


@pytest.mark.parametrize("number", [2, 4])
def test_more_workers_than_the_concurrency_end_the_run(store_address, tmp_path, number):
    with server(0.1) as slow:
        path = suite(tmp_path, slow, tasks=40, limits="{concurrency: 1}")
        put_up(store_address, path)
        workers = [start(store_address, "work", "--suite", path) for _ in range(number)]
        said = [ended(worker) for worker in workers]
        assert [code for code, _ in said] == [0] * number, said
        _, spent = whole(store_address, 40)
        assert spent["calls"] == calls(slow) == 40


def test_the_owner_is_one_worker_among_others(postgresql, tmp_path):
    address = postgresql.database()
    with server(0.2) as slow:  # the worker has time to join
        path = suite(tmp_path, slow, tasks=TASKS, limits="{concurrency: 4}")
        owner = start(address, "run", path)
        wait_for(lambda: calls(slow) > 4, owner)
        worker = start(address, "work", "--suite", path)
        said = [ended(owner), ended(worker)]
        assert [code for code, _ in said] == [0, 0], said
        _, spent = whole(address)
        assert spent["calls"] == calls(slow) == TASKS
        assert f"{TASKS} of {TASKS} attempts made" in said[0][1]
        made = re.search(r"This worker made ([\d,]+) ", said[1][1])
        assert made is not None, said
        assert int(made[1]) > 0


def test_what_killed_workers_held_is_made_by_others(store_address, tmp_path):
    kills = 0
    with server(0.02) as slow:
        path = suite(tmp_path, slow, tasks=TASKS, limits=f"{{concurrency: {FLYING}}}")
        put_up(store_address, path)
        stays = start(store_address, "work", "--suite", path)
        for share in (0.2, 0.4, 0.6):
            other = start(store_address, "work", "--suite", path)
            wait_for(lambda n=share * TASKS: calls(slow) > n, stays)
            kills += other.poll() is None
            other.send_signal(signal.SIGKILL)
            ended(other)
        code, said = ended(stays)
        assert code == 0, said
        _, spent = whole(store_address)
        assert spent["calls"] == TASKS
        assert TASKS <= calls(slow) <= TASKS + kills * FLYING


def test_all_workers_are_killed_and_a_resumed_run_makes_the_rest(postgresql, tmp_path):
    address = postgresql.database()
    with server(0.02) as slow:
        path = suite(tmp_path, slow, tasks=TASKS, limits=f"{{concurrency: {FLYING}}}")
        put_up(address, path)
        workers = [start(address, "work", "--suite", path) for _ in range(2)]
        wait_for(lambda: calls(slow) > TASKS / 2, workers[0])
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
            ended(worker)
        code, said = run(address, "run", "--resume")
        assert code == 0, said
        whole(address)
        assert calls(slow) <= TASKS + FLYING


def test_a_worker_that_comes_back_too_late_writes_nothing(postgresql, tmp_path):
    address = postgresql.database()
    with server(0.5) as slow:  # it is far from its end when it is stopped
        path = suite(tmp_path, slow, tasks=24, limits="{concurrency: 4}")
        put_up(address, path)
        late = impatient(address, "work", "--suite", path)
        wait_for(lambda: calls(slow) > 4, late)
        late.send_signal(signal.SIGSTOP)
        before = {row["task_id"]: row for row in kept(address)[0]}
        worker = impatient(address, "work", "--suite", path)
        code, said = ended(worker)
        assert code == 0, said
        rows, _ = whole(address, 24)
        made = {row["task_id"]: row for row in rows}
        assert before.items() <= made.items()
        late.send_signal(signal.SIGCONT)
        code, said = ended(late)
        assert code == 4, said
        assert "This worker was silent for too long" in said
        assert {row["task_id"]: row for row in kept(address)[0]} == made
        assert calls(slow) <= 24 + 4


def test_a_worker_of_a_run_that_another_process_continues(tmp_path):
    """One process alone continues a run in SQLite: it ends the sharing, and nobody was silent."""
    address = str(tmp_path / "store.db")
    with server(0.5) as slow:  # it is far from its end when it loses the run
        path = suite(tmp_path, slow, tasks=TASKS)
        put_up(address, path)
        worker = start(address, "work", "--suite", path)
        wait_for(lambda: calls(slow) > 4, worker)
        with closing(Store(address)) as store:
            take_down(store, store.find("latest").id)
        code, said = ended(worker)
        assert (code, "Another process continued this run." in said) == (4, True), said
        assert calls(slow) < TASKS


def test_an_interrupted_worker_gives_back_what_it_did_not_finish(postgresql, tmp_path):
    address = postgresql.database()
    with server(0.1) as slow:
        path = suite(tmp_path, slow, tasks=40, limits="{concurrency: 2}")
        put_up(address, path)
        first = start(address, "work", "--suite", path)
        wait_for(lambda: calls(slow) > 6, first)
        first.send_signal(signal.SIGINT)
        code, said = ended(first)
        assert code == 130, said
        assert "left for other workers" in said
        code, said = run(address, "work", "--suite", path)
        assert code == 0, said
        _, spent = whole(address, 40)
        assert spent["calls"] == calls(slow) == 40


def test_a_database_that_restarts_is_waited_for(postgresql, tmp_path):
    address = postgresql.database()
    with server(0.1) as slow:  # it is far from its end when the database stops
        path = suite(tmp_path, slow, tasks=TASKS, limits=f"{{concurrency: {FLYING}}}")
        put_up(address, path)
        worker = start(address, "work", "--suite", path)
        wait_for(lambda: calls(slow) > TASKS / 3, worker)
        postgresql.stop(at_once=True)
        time.sleep(0.5)
        postgresql.start()
        code, said = ended(worker)
        assert code == 0, said
        whole(address)


@pytest.mark.parametrize("limits", ["{concurrency: 4}", "{concurrency: 4, usd: 5}"])
def test_a_worker_of_a_deleted_run_stops_and_writes_nothing(store_address, tmp_path, limits):
    with server(0.5) as slow:  # it is far from its end when it is deleted
        path = suite(tmp_path, slow, tasks=TASKS, limits=limits)
        put_up(store_address, path)
        worker = start(store_address, "work", "--suite", path)
        wait_for(lambda: calls(slow) > 8, worker)
        with closing(Store(store_address)) as store:
            found = store.find("latest").id
        code, said = run(store_address, "rm", found, "--yes")
        assert code == 0, said
        code, said = ended(worker)
        assert code == 4, said
        assert "The run was deleted, so nothing more was written." in said
        assert "Error" not in said
        assert calls(slow) < TASKS
    with closing(Store(store_address)) as store, store.engine.connect() as connection:
        for table in METADATA.tables.values():
            if "run" in table.c:
                rows = select(func.count()).select_from(table).where(table.c.run == found)
                assert connection.scalar(rows) == 0, table.name
