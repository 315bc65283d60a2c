"""A process that was silent for so long that another went on with its run: it changes nothing."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from engine.command import added, ended, kept, run
from engine.test_hostile import SLOW_DOWN, suite
from models.hostile import in_a_thread, response
from pennyweight.engine.execution import execute, new_run, open_suite
from pennyweight.judges.phases import judge_phases
from pennyweight.store.lease import owner_of, release_run, take_run
from pennyweight.store.store import Store

IMPATIENT = (
    "import sys\nfrom pennyweight.store import lease\nlease.FRESH = 0.5\n"
    "from pennyweight.cli import main\nsys.argv = ['pennyweight', *sys.argv[1:]]\nmain()\n"
)
"""`pennyweight` that looks after half a second of silence whether it still has its run."""
TASKS = 6


class Server:
    """Limits half of the first calls and lets the others wait; answers everything later."""

    def __init__(self):
        self.calls = 0
        self.is_open = False

    async def __call__(self, writer):
        self.calls += 1
        number = self.calls
        if number > TASKS:
            await response()(writer)
        elif number <= TASKS // 2:
            await response(SLOW_DOWN, 429, headers={"Retry-After": "250"})(writer)
        else:
            while not self.is_open:
                await asyncio.sleep(0.02)
            await response()(writer)


def ledger(address):
    with closing(Store(address)) as store, store.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT status FROM pennyweight_call ORDER BY id")
        return [row[0] for row in found]


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def test_who_lost_a_run_writes_only_what_it_paid_and_ends(tmp_path, store_address):
    serving = Server()
    with in_a_thread({"m": serving}) as served:
        limits = f"{{concurrency: {TASKS}, timeout: 280}}"
        path = suite(tmp_path, {"m": served["m"][0]}, tasks=TASKS, limits=limits)
        first = subprocess.Popen(
            [sys.executable, "-c", IMPATIENT, "run", str(path), "--store", store_address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until(lambda: serving.calls == TASKS and len(kept(store_address)[1]) > 0)
            until(lambda: kept(store_address)[1]["calls"] == TASKS // 2)
            first.send_signal(signal.SIGSTOP)
            with closing(Store(store_address)) as store, store.engine.begin() as connection:
                for table in ("run", "worker"):
                    connection.exec_driver_sql(f"UPDATE pennyweight_{table} SET beat = beat - 100")
            code, said = run(store_address, "run", "--resume")
            assert code == 0, said
            before, _ = kept(store_address)
            serving.is_open = True
            time.sleep(1)
            first.send_signal(signal.SIGCONT)
            code, said = ended(first)
        finally:
            first.kill()
        assert code == 4, said
        assert "Another process continued this run." in said
        assert serving.calls == 2 * TASKS
    rows, _ = kept(store_address)
    assert rows == before
    assert [row["status"] for row in rows] == ["ok"] * TASKS
    with closing(Store(store_address)) as store:
        assert store.find("latest").status == "done"
    calls = ledger(store_address)
    assert calls.count("rate_limit") == TASKS // 2
    assert len(calls) == 2 * TASKS
    assert calls.count("ok") + calls.count("cancelled") == TASKS + TASKS // 2


def steal(address, run_id):
    with closing(Store(address)) as other:
        release_run(other, run_id, owner_of(other, run_id).text)
        assert take_run(other, run_id, "{}")


def test_who_only_waits_learns_of_it_by_the_next_sign_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr("pennyweight.engine.resume.HEARTBEAT", 0.05)
    limited = response(SLOW_DOWN, 429, headers={"Retry-After": "250"})
    address = str(tmp_path / "s.db")
    with in_a_thread({"m": limited}) as served, closing(Store(address)) as store:
        path = suite(tmp_path, {"m": served["m"][0]}, tasks=2)
        loaded = open_suite(path)
        made = new_run(loaded)

        thief = threading.Timer(1.0, steal, (address, made.id))
        thief.start()
        outcome = execute(loaded, added(made, store), store, watch=lambda *_: None)
        thief.join()
        assert outcome.tally.lost
        assert not store.statuses(made.id)
        assert store.find(made.id).status == "running"


@pytest.mark.parametrize("phase", ["scores", "behaviours"])
def test_who_lost_a_run_while_judging_keeps_no_judgment(tmp_path, monkeypatch, phase):
    monkeypatch.setattr("pennyweight.engine.resume.HEARTBEAT", 0.05)
    address = str(tmp_path / "s.db")
    (tmp_path / "bot.py").write_text(
        "import asyncio\ndef answer(text):\n    return 'FINAL_ANSWER: 4'\n"
        "async def judge(request):\n    await asyncio.sleep(250)\n"
    )
    checks = "" if phase == "scores" else ", expected_behaviors: [{judge: It says four.}]"
    (tmp_path / "s.yaml").write_text(
        f"suite: s\ntasks: [{{id: a, input: hi{checks}}}]\nsubjects: ['python:bot:answer']\n"
        "judge: {model: 'python:bot:judge'}\nlimits: {timeout: 280}\n"
    )
    loaded = open_suite(tmp_path / "s.yaml")
    made = new_run(loaded)
    with closing(Store(address)) as store:
        outcome = execute(loaded, added(made, store), store, watch=lambda *_: None)
        phases = judge_phases(loaded, outcome.run, store, progress=lambda *_: None)
        (ask,) = [ask for found, ask in phases if found.kind == phase]
        thief = threading.Timer(0.5, steal, (address, made.id))
        thief.start()
        judged = ask()
        thief.join()
        assert judged.tally.lost
        assert store.judgments(made.id).height == 0
    assert ledger(address) == ["ok", "cancelled"]
