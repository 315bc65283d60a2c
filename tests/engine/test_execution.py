"""Runs: nothing answered is lost, budgets are hard, and what is made stays made."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.command import added
from engine.serving import calls, server, suite
from pennyweight.engine.ending import Limit, LimitReached
from pennyweight.engine.execution import execute, new_run, open_suite
from pennyweight.errors import StoreError
from pennyweight.store import store as module
from pennyweight.store.store import Store

PENNYWEIGHT = [sys.executable, "-m", "pennyweight"]


def run(folder, *arguments, **options):
    environment = {
        **os.environ,
        "PENNYWEIGHT_STORE": str(Path(folder, "store.db")),
        "COLUMNS": "80",
    }
    environment |= options.pop("env", {})
    return subprocess.run(
        [*PENNYWEIGHT, *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def store(folder):
    return Store(str(Path(folder, "store.db")))


def records(folder, run_id="latest"):
    at = store(folder)
    return [row for frame in at.records(at.find(run_id).id) for row in frame.to_dicts()]


@pytest.fixture(scope="module")
def address():
    with server() as at:
        yield at


def test_a_run_keeps_every_record_and_prints_the_scores(tmp_path, address):
    path = suite(tmp_path, address, tasks=30, runs=2, tiers="{T0: {}, T1: {system: Be careful.}}")
    done = run(tmp_path, "run", path, "--format", "json")
    assert done.returncode == 0, done.stderr
    groups = json.loads(done.stdout)["groups"]
    assert [(g["group"], g["records"]) for g in groups] == [
        ({"tier": "T0"}, 60),
        ({"tier": "T1"}, 60),
    ]
    assert groups[0]["metrics"]["accuracy"] == 1.0
    assert groups[0]["metrics"]["cost_usd_mean"] == pytest.approx((20 * 1 + 8 * 10) / 1e6)
    rows = records(tmp_path)
    assert len({(r["tier"], r["task_id"], r["attempt"]) for r in rows}) == len(rows) == 120
    assert all(r["latency_ms"] > 0 and r["wait_ms"] >= 0 and r["tries"] == 1 for r in rows)
    spent = store(tmp_path).spent(store(tmp_path).find("latest").id)
    assert spent["calls"] == 120
    assert spent["usd"] == pytest.approx(sum(r["cost_usd"] for r in rows))


def test_a_second_resume_makes_nothing(tmp_path, address):
    path = suite(tmp_path, address, tasks=10)
    assert run(tmp_path, "run", path).returncode == 0
    before = calls(address)
    again = run(tmp_path, "run", "--resume")
    assert again.returncode == 0, again.stderr
    assert "10 attempts reused" in again.stderr
    assert calls(address) == before


def test_a_changed_prompt_is_told_and_made_again_only_when_agreed(tmp_path, address):
    path = suite(tmp_path, address, tasks=10)
    assert run(tmp_path, "run", path).returncode == 0
    suite(tmp_path, address, tasks=12, prompt='"{{ input }} Now."')
    before = calls(address)
    refused = run(tmp_path, "run", "--resume")
    assert refused.returncode == 2
    assert "10 invalidated" in refused.stderr
    assert calls(address) == before
    agreed = run(tmp_path, "run", "--resume", "--yes")
    assert agreed.returncode == 0, agreed.stderr
    assert calls(address) == before + 12
    assert len(records(tmp_path)) == 12


def test_a_dollar_budget_is_never_passed(tmp_path, address):
    settings = {"limits": "{concurrency: 16, usd: 0.002}", "settings": "{max_tokens: 10}"}
    path = suite(tmp_path, address, tasks=60, **settings)
    done = run(tmp_path, "run", path, "--format", "json")
    assert done.returncode == 4
    assert "Cost limit reached" in done.stderr
    spent = store(tmp_path).spent(store(tmp_path).find("latest").id)
    assert 0 < spent["usd"] <= 0.002


def test_a_token_budget_is_never_passed(tmp_path, address):
    settings = "{concurrency: 4, tokens: 3000}"
    path = suite(tmp_path, address, tasks=200, limits=settings, settings="{max_tokens: 50}")
    assert run(tmp_path, "run", path).returncode == 4
    spent = store(tmp_path).spent(store(tmp_path).find("latest").id)
    assert 0 < spent["prompt_tokens"] + spent["completion_tokens"] <= 3000


def test_ctrl_c_ends_in_good_order_and_resumes(tmp_path):
    with server(0.05) as slow:
        path = suite(tmp_path, slow, tasks=300, limits="{concurrency: 4}")
        environment = {**os.environ, "PENNYWEIGHT_STORE": str(tmp_path / "store.db")}
        process = subprocess.Popen(
            [*PENNYWEIGHT, "run", str(path)], env=environment, stderr=subprocess.PIPE, text=True
        )
        _wait_for(lambda: calls(slow) > 20)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 130, said
        made = len(records(tmp_path))
        assert made == calls(slow)
        assert f"pennyweight run --resume {store(tmp_path).find('latest').id}" in said
        assert run(tmp_path, "run", "--resume").returncode == 0
        assert len(records(tmp_path)) == calls(slow) == 300


def _wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def test_a_recorded_run_gives_the_same_records_again(tmp_path, address):
    path = suite(tmp_path, address, tasks=10, runs=2, seed=3)
    tape = tmp_path / "tape.jsonl"
    first = run(tmp_path, "run", path, "--record", tape, "--format", "json")
    text = path.read_text().replace("openai/instant", f"replay:{tape}#openai/instant")
    text = text.replace(f', base_url: "{address}/v1"', "")
    path.write_text(text)
    before = calls(address)
    second = run(tmp_path, "run", path, "--format", "json")
    assert second.returncode == 0, second.stderr
    assert calls(address) == before
    assert json.loads(first.stdout) == json.loads(second.stdout)


def test_a_store_that_cannot_be_written_stops_the_run_loudly(tmp_path, address):
    path = suite(tmp_path, address, tasks=5)
    (tmp_path / "folder").mkdir()
    done = run(tmp_path, "run", path, env={"PENNYWEIGHT_STORE": str(tmp_path / "folder")})
    assert done.returncode == 4
    assert "cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_that_is_gone_for_good_is_waited_for_once(postgresql, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 1.0)
    waited = []
    pause = threading.Event().wait
    clock = SimpleNamespace(
        monotonic=time.monotonic, time=time.time, sleep=lambda s: waited.append(s) or pause(s)
    )
    monkeypatch.setattr(module, "time", clock)
    (tmp_path / "bot.py").write_text("def a(text):\n    return '4'\n")
    (tmp_path / "s.yaml").write_text("suite: s\ntasks: [a]\nsubjects: ['python:bot:a']\n")
    loaded = open_suite(tmp_path / "s.yaml")
    began = []

    def watch(*_):
        if not began:
            began.append(1)
            postgresql.stop(at_once=True)

    with closing(Store(postgresql.database())) as store:
        try:
            with pytest.raises(StoreError):
                execute(loaded, added(new_run(loaded), store), store, watch=watch)
        finally:
            postgresql.start()
    assert 0 < len(waited) <= 6, "the run's status is not waited for again"


def test_time_that_is_over_when_it_begins_makes_nothing(tmp_path, address):
    path = suite(tmp_path, address, tasks=5, limits="{seconds: 50}")
    loaded, before = open_suite(path), calls(address)
    with closing(store(tmp_path)) as at:
        began = time.monotonic() - 100
        outcome = execute(
            loaded, added(new_run(loaded), at), at, watch=lambda *_: None, began=began
        )
    assert outcome.tally.done == 0
    assert isinstance(outcome.tally.stop_reason, LimitReached)
    assert outcome.tally.stop_reason.limit is Limit.SECONDS
    assert calls(address) == before


def test_openai_base_url_is_honoured_and_named_before_the_first_call(tmp_path, monkeypatch):
    """Prompts meant for a gateway never go to the public address; another one is another call."""
    from cli.command import pennyweight
    from engine.serving import calls, server

    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    monkeypatch.setenv("PENNYWEIGHT_STORE", str(tmp_path / "s.db"))
    table = tmp_path / "q.csv"
    table.write_text("question,answer\n2 + 2?,4\n")
    with server() as address, server() as other:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        named = f"openai/instant is called at {address}/v1 (OPENAI_BASE_URL)."
        assert named in pennyweight("run", table, "-m", "openai/instant", "--dry-run").err
        said = pennyweight("run", table, "-m", "openai/instant")
        assert said.code == 0, said.err
        assert named in said.err.partition("Run ")[0]
        assert calls(address) == 1
        monkeypatch.setenv("OPENAI_BASE_URL", f"{other}/v1")
        again = pennyweight("run", "--resume", "--yes")
        assert "1 invalidated by changes" in again.err
        assert (calls(address), calls(other)) == (1, 1)
