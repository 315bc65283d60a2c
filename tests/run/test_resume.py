"""Going on with a run: corrected tasks, one process at a time, from any folder."""

import json
import signal
import threading
import time
from contextlib import closing

import pytest

from assay.errors import UsageError
from assay.run.execute import open_suite
from assay.run.resume import Difference, correct, held, still_to_make
from assay.store.lease import Owner
from assay.store.store import Store
from run.command import ended, kept, run, start
from run.serving import calls, server, suite

AGENT = "def a(text):\n    return 'FINAL_ANSWER: 4'\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "resumed_agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def write(folder, *rows, more=""):
    """Write a suite whose tasks lie in a file of their own."""
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = ["suite: s", "tasks: tasks.jsonl", "subjects: ['python:resumed_agent:a']", more]
    (folder / "s.yaml").write_text("\n".join(lines) + "\n")


FOUR = {"id": "four", "input": "2 + 2?", "target": "5"}
SIX = {"id": "six", "input": "3 + 3?", "target": "4"}


def test_a_corrected_target_is_scored_without_a_call(folder):
    address = str(folder / "s.db")
    write(folder, FOUR, SIX)
    assert run(address, "run", "s.yaml")[0] == 0
    write(folder, {**FOUR, "target": "4", "category": "easy", "hint": "two"}, SIX)
    assert run(address, "run", "--resume")[0] == 2
    code, said = run(address, "run", "--resume", "--yes")
    assert code == 0, said
    assert "2 attempts stand" in said
    rows, spent = kept(address)
    assert [(r["target"], r["category"], r["extra"]) for r in rows] == [
        ("4", "easy", '{"hint": "two"}'),
        ("4", None, None),
    ]
    assert spent["calls"] == 2


def test_a_record_that_is_made_anew_keeps_its_target_until_then(folder):
    address = str(folder / "s.db")
    write(folder, FOUR, SIX, more="tiers: {T0: {}, T1: {system: Short.}}")
    assert run(address, "run", "s.yaml")[0] == 0
    changed = {**FOUR, "target": "4"}
    write(folder, changed, {**SIX, "target": "6"}, more="tiers: {T0: {}, T1: {system: Long.}}")
    loaded = open_suite("s.yaml")
    with closing(Store(address)) as store:
        run_id = store.find("latest").id
        made = store.made(run_id)
        todo = list(still_to_make(loaded, made))
        assert correct(run_id, loaded, store, made, todo) == 2
        again = correct(run_id, loaded, store, made, todo)
    rows, _ = kept(address)
    targets = {(r["task_id"], r["tier"]): r["target"] for r in rows}
    assert targets == {
        ("four", "T0"): "4",
        ("four", "T1"): "5",
        ("six", "T0"): "6",
        ("six", "T1"): "4",
    }
    assert again == 2


def test_probabilities_that_are_wanted_later_are_asked_for_anew(folder):
    address = str(folder / "s.db")
    write(folder, FOUR)
    assert run(address, "run", "s.yaml")[0] == 0
    write(folder, FOUR, more="confidence: logprobs")
    code, said = run(address, "run", "--resume", "--yes")
    assert code == 0, said
    assert "1 changed and are made anew" in said


@pytest.mark.parametrize(
    ("found", "asks"),
    [
        (Difference(3, 1, 0, 2, 0, ()), False),
        (Difference(3, 0, 0, 97, 0, ("the suite's text (s.yaml)",)), True),
        (Difference(3, 0, 1, 0, 0, ()), True),
        (Difference(3, 0, 0, 0, 1, ()), True),
    ],
)
def test_a_suite_that_changed_is_asked_about(found, asks):
    assert found.asks is asks


def test_more_runs_are_asked_about(folder):
    address = str(folder / "s.db")
    write(folder, FOUR)
    assert run(address, "run", "s.yaml")[0] == 0
    write(folder, FOUR, more="runs: 50")
    code, said = run(address, "run", "--resume")
    assert code == 2
    assert "49 are still to be made" in said
    assert kept(address)[1]["calls"] == 1


def test_a_run_that_is_being_made_is_not_made_twice(tmp_path, store_address):
    with server(delay=600) as at:
        path = suite(tmp_path, at, tasks=2)
        first = start(store_address, "run", path)
        try:
            while calls(at) < 2:
                time.sleep(0.05)
            code, said = run(store_address, "run", "--resume")
            assert code == 2, said
            assert f"being made by another process, {first.pid} on" in said
            assert "Wait until it ends" in said
            assert first.poll() is None
            assert calls(at) == 2
        finally:
            first.kill()
            ended(first)


def test_a_killed_run_is_resumed_at_once(tmp_path, store_address):
    with server(delay=0.2) as at:
        path = suite(tmp_path, at, tasks=24)
        first = start(store_address, "run", path)
        while calls(at) < 2:
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)
        ended(first)
        code, said = run(store_address, "run", "--resume")
        assert code == 0, said
        assert len(kept(store_address)[0]) == 24


def test_a_run_that_was_taken_over_says_so(folder, monkeypatch):
    monkeypatch.setattr("assay.run.resume.EVERY", 0.01)
    address = str(folder / "s.db")
    write(folder, FOUR)
    assert run(address, "run", "s.yaml")[0] == 0
    with closing(Store(address)) as store:
        run_id, told = store.find("latest").id, threading.Event()
        with held(store, run_id, told.set):
            with pytest.raises(UsageError, match="being made by another process"):
                held(store, run_id).__enter__()
            store.release(run_id, store.holder(run_id).text)
            assert store.take(run_id, Owner.here().text)
            assert told.wait(30)
        assert store.holder(run_id) is not None, "what another took is not let go"


def test_a_run_is_resumed_from_another_folder_with_its_own_suite(folder):
    address = str(folder / "s.db")
    write(folder, FOUR)
    assert run(address, "run", "s.yaml")[0] == 0
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    write(elsewhere, FOUR, SIX)
    (elsewhere / "resumed_agent.py").write_text(AGENT)
    code, said = run(address, "run", "--resume", cwd=elsewhere)
    assert code == 0, said
    assert "1 attempt stands, 0 failed and are tried again, 0 are still to be made" in said
    assert "there is a change" not in said


def test_a_recording_keeps_equal_prompts_of_two_tiers_apart(folder):
    write(folder, FOUR, {**FOUR, "id": "again"}, more="tiers: {T0: {}, T1: {}}")
    counting = "n = 0\ndef a(text):\n    global n\n    n += 1\n    return f'FINAL_ANSWER: {n}'\n"
    (folder / "resumed_agent.py").write_text(counting)
    address = str(folder / "s.db")
    code, said = run(address, "run", "s.yaml", "--record", "tape.jsonl")
    assert code == 0, said
    first = [(r["task_id"], r["tier"], r["response"]) for r in kept(address)[0]]
    assert len({response for *_, response in first}) == 4
    text = (folder / "s.yaml").read_text()
    (folder / "s.yaml").write_text(text.replace("python:resumed_agent:a", "replay:tape.jsonl"))
    code, said = run(address, "run", "s.yaml")
    assert code == 0, said
    assert [(r["task_id"], r["tier"], r["response"]) for r in kept(address)[0]] == first
