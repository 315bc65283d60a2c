"""`kill -9` at any moment: nothing committed is lost, nothing but what was in flight paid twice."""

import random
import signal
import time

import pytest

from engine.command import ended, kept, run, start
from engine.serving import calls, server, suite

KILLS, TASKS, FLYING = 20, 400, 8


def wait_for(condition, process, seconds=60.0):
    """Wait until something is so, the process has ended, or the time is over."""
    end = time.monotonic() + seconds
    while process.poll() is None and not condition() and time.monotonic() < end:
        time.sleep(0.002)


def test_kills_lose_nothing_committed_and_pay_no_more_than_was_in_flight(store_address, tmp_path):
    rng = random.Random(5)
    with server(0.01) as slow:
        path = suite(tmp_path, slow, tasks=TASKS, limits=f"{{concurrency: {FLYING}}}")
        arguments, committed, kills = ["run", path], {}, 0
        for turn in range(KILLS):
            before = calls(slow)
            process = start(store_address, *arguments)
            if turn % 5 == 4:  # anywhere, also while it starts or reads what there is
                wait_for(lambda: False, process, rng.uniform(0.0, 1.5))
            else:
                more = rng.randint(1, 2 * TASKS // KILLS)
                wait_for(lambda n=before + more: calls(slow) >= n, process)
                wait_for(lambda: False, process, rng.uniform(0.0, 0.02))
            kills += process.poll() is None
            process.send_signal(signal.SIGKILL)
            ended(process)
            rows, spent = kept(store_address)
            found = {row["task_id"]: row for row in rows}
            assert len(found) == len(rows) == spent["calls"]
            assert committed.items() <= found.items()
            assert calls(slow) <= len(rows) + kills * FLYING
            committed = found
            arguments = ["run", "--resume"]
        assert kills > KILLS / 2
        code, said = run(store_address, "run", "--resume")
        assert code == 0, said
        rows, spent = kept(store_address)
        assert len(rows) == len({row["task_id"] for row in rows}) == TASKS
        assert committed.items() <= {row["task_id"]: row for row in rows}.items()
        assert TASKS <= calls(slow) <= TASKS + kills * FLYING
        assert spent["calls"] == TASKS
        assert spent["usd"] == pytest.approx(sum(row["cost_usd"] for row in rows))


def test_a_kill_with_hundreds_of_calls_under_way(store_address, tmp_path):
    tasks, flying = 4000, 400
    most = flying + (flying - 128) // 2
    with server(0.05) as slow:
        path = suite(tmp_path, slow, tasks=tasks, limits=f"{{concurrency: {flying}}}")
        process = start(store_address, "run", path)
        wait_for(lambda: calls(slow) >= tasks // 2, process)
        process.send_signal(signal.SIGKILL)
        ended(process)
        rows, spent = kept(store_address)
        assert len({row["task_id"] for row in rows}) == len(rows) == spent["calls"]
        assert 0 < len(rows) < tasks
        assert calls(slow) <= len(rows) + most
        code, said = run(store_address, "run", "--resume")
        assert code == 0, said
        rows, spent = kept(store_address)
        assert len({row["task_id"] for row in rows}) == len(rows) == spent["calls"] == tasks
        assert calls(slow) <= tasks + most


def test_ctrl_c_twice_stops_at_once_and_keeps_every_response(store_address, tmp_path):
    with server(0.3) as slow:
        path = suite(tmp_path, slow, tasks=TASKS, limits=f"{{concurrency: {FLYING}}}")
        process = start(store_address, "run", path)
        wait_for(lambda: calls(slow) > 2 * FLYING, process)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        code, said = ended(process)
        assert code == 130, said
        rows, spent = kept(store_address)
        assert len(rows) >= FLYING
        assert len(rows) >= calls(slow) - FLYING
        assert calls(slow) <= spent["calls"] <= calls(slow) + FLYING  # some had not arrived yet
        assert (spent["held_tokens"] or 0) >= 4096 * (spent["calls"] - len(rows))
        assert "pennyweight run --resume" in said


def test_a_database_that_restarts_under_a_run_is_waited_for(postgresql, tmp_path):
    address = postgresql.database()
    with server(0.02) as slow:
        path = suite(tmp_path, slow, tasks=TASKS, limits=f"{{concurrency: {FLYING}}}")
        process = start(address, "run", path)
        for share in (0.2, 0.5):
            wait_for(lambda n=share * TASKS: calls(slow) >= n, process)
            postgresql.stop(at_once=True)
            time.sleep(0.5)
            postgresql.start()
        code, said = ended(process)
        assert code == 0, said
        rows, spent = kept(address)
        assert len(rows) == spent["calls"] == calls(slow) == TASKS
