"""Going on with a run: corrected tasks, one process at a time, from any folder."""

import json
import signal
import threading
import time
from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import update

from engine.command import ended, kept, run, start
from engine.serving import calls, server, suite
from pennyweight.api.score import score
from pennyweight.engine.execution import open_suite
from pennyweight.engine.resume import ResumePlan, held, renew
from pennyweight.errors import UsageError
from pennyweight.store.lease import Owner, owner_of, release_run, take_run
from pennyweight.store.store import Store
from pennyweight.store.tables import RUN
from pennyweight.stored_runs.source import RunSource

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


def scored(address):
    """Give the accuracy of the latest run, and over how many records."""
    with closing(Store(address)) as store:
        (group,) = score([RunSource(store.find("latest"), store)]).groups
        return group.estimates["accuracy"].value, group.records


def test_a_corrected_target_is_scored_without_a_call(folder):
    address = str(folder / "s.db")
    write(folder, FOUR, SIX)
    assert run(address, "run", "s.yaml")[0] == 0
    write(folder, {**FOUR, "target": "4", "category": "easy", "hint": "two"}, SIX)
    assert run(address, "run", "--resume")[0] == 2
    code, said = run(address, "run", "--resume", "--yes")
    assert code == 0, said
    assert "2 attempts reused" in said
    rows, spent = kept(address)
    assert [(r["target"], r["category"], r["extra"]) for r in rows] == [
        ("4", "easy", '{"hint": "two"}'),
        ("4", None, None),
    ]
    assert spent["calls"] == 2


def test_what_the_suite_no_longer_asks_for_does_not_count_and_comes_back(tmp_path, store_address):
    """Two tiers, tasks and runs become one of each, with another prompt; then all is undone."""
    (tmp_path / "resumed_agent.py").write_text(AGENT)
    whole = "tiers: {T0: {}, T1: {system: Short.}}\nruns: 2"
    first = [{**FOUR, "target": "4"}, {**SIX, "target": "6"}]
    write(tmp_path, *first, more=whole)
    at = {"cwd": tmp_path}
    assert run(store_address, "run", "s.yaml", **at)[0] == 0
    assert scored(store_address) == (0.5, 8)
    changed = {**SIX, "input": "3 + 3 = ?", "target": "6"}
    write(tmp_path, changed)
    code, said = run(store_address, "run", "--resume", "--yes", **at)
    assert code == 0, said
    assert "1 invalidated by changes to the suite" in said
    assert "7 records are no longer part of the suite." in said
    assert "no score counts them" in said
    rows, spent = kept(store_address)
    assert [(r["task_id"], r["tier"], r["attempt"]) for r in rows] == [("six", "T0", 1)]
    assert (scored(store_address), spent["calls"]) == ((0.0, 1), 9)
    with closing(Store(store_address)) as store:
        (found,) = store.runs()
        assert (sum(store.statuses(found.id).values()), found.attempts) == (1, 1)
    write(tmp_path, {**first[0], "target": "5"}, first[1], more=whole)
    code, said = run(store_address, "run", "--resume", "--yes", **at)
    assert code == 0, said
    assert "8 attempts reused" in said
    rows, spent = kept(store_address)
    assert (len(rows), spent["calls"]) == (8, 9), "nothing is paid for twice"
    assert scored(store_address) == (0.0, 8), "by the targets of today"
    assert {r["input"] for r in rows} == {"2 + 2?", "3 + 3?"}


def test_a_part_of_a_suite_sets_nothing_aside(folder):
    address = str(folder / "s.db")
    write(folder, FOUR, SIX)
    assert run(address, "run", "s.yaml")[0] == 0
    suite_ = open_suite("s.yaml")
    part = replace(suite_, tasks=suite_.tasks[:1])
    with closing(Store(address)) as store:
        found = store.find("latest")
        assert renew(found, replace(part, is_part=True), store) == []
        assert len(store.attempts(found.id)) == 2
        assert renew(found, part, store) == []
        assert len(store.attempts(found.id)) == 1


def test_an_attempt_that_fails_again_costs_nothing_that_was_paid(folder):
    address = str(folder / "s.db")
    write(folder, FOUR)
    assert run(address, "run", "s.yaml")[0] == 0
    right = (folder / "s.yaml").read_text()
    (folder / "s.yaml").write_text(right.replace("resumed_agent:a", "resumed_agent:broken"))
    (folder / "resumed_agent.py").write_text(f"{AGENT}def broken(text):\n    raise ValueError\n")
    assert run(address, "run", "--resume", "--yes")[0] == 4
    assert [row["status"] for row in kept(address)[0]] == ["error"]
    (folder / "s.yaml").write_text(right)
    code, said = run(address, "run", "--resume", "--yes")
    assert code == 0, said
    assert "1 attempt reused" in said
    assert [row["status"] for row in kept(address)[0]] == ["ok"]


def test_a_run_that_was_whole_when_it_was_interrupted_has_ended_well(folder):
    address = str(folder / "s.db")
    write(folder, FOUR)
    interrupting = "import os, signal, time\n" + AGENT.replace(
        "    return", "    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(0.5)\n    return"
    )
    (folder / "resumed_agent.py").write_text(interrupting)
    code, said = run(address, "run", "s.yaml")
    assert "1 of 1 attempt made" in said
    assert (code, "Continue with" in said) == (0, False)


def test_probabilities_that_are_wanted_later_are_asked_for_again(folder):
    address = str(folder / "s.db")
    write(folder, FOUR)
    assert run(address, "run", "s.yaml")[0] == 0
    write(folder, FOUR, more="confidence: logprobs")
    code, said = run(address, "run", "--resume", "--yes")
    assert code == 0, said
    assert "1 invalidated by changes to the suite" in said


@pytest.mark.parametrize(
    ("found", "asks"),
    [
        (ResumePlan(3, 1, 0, 2, 0, ()), False),
        (ResumePlan(3, 0, 0, 97, 0, ("the suite's text (s.yaml)",)), True),
        (ResumePlan(3, 0, 1, 0, 0, ()), True),
        (ResumePlan(3, 0, 0, 0, 1, ()), True),
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
    assert "49 still to make" in said
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
            assert f"Another process, {first.pid} on" in said
            assert "Wait until it ends" in said
            assert first.poll() is None
            assert calls(at) == 2
        finally:
            first.kill()
            ended(first)


def test_a_lease_dated_ahead_is_taken_over_with_force(folder):
    """The clock of another machine was a year ahead: its lease would not expire for as long."""
    address = str(folder / "s.db")
    write(folder, FOUR)
    assert run(address, "run", "s.yaml")[0] == 0
    elsewhere = replace(Owner.here(), machine="elsewhere", host="elsewhere").text
    with closing(Store(address)) as store:
        assert take_run(store, store.find("latest").id, elsewhere)
        with store.engine.begin() as connection:
            connection.execute(update(RUN).values(beat=time.time() + 365 * 86400))
    code, said = run(address, "run", "--resume")
    assert (code, "--resume --force takes it over now." in said) == (2, True), said
    code, said = run(address, "run", "--resume", "--force")
    assert code == 0, said
    assert run(address, "run", "--resume")[0] == 0, "and it is free afterwards"


def test_force_takes_no_run_from_a_living_process_of_this_machine(tmp_path, store_address):
    with server(delay=600) as at:
        first = start(store_address, "run", suite(tmp_path, at, tasks=2))
        try:
            while calls(at) < 2:
                time.sleep(0.05)
            code, said = run(store_address, "run", "--resume", "--force")
            assert code == 2, said
            assert f"Process {first.pid} of this machine is executing run" in said
            assert first.poll() is None
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
    monkeypatch.setattr("pennyweight.engine.resume.HEARTBEAT", 0.01)
    address = str(folder / "s.db")
    write(folder, FOUR)
    assert run(address, "run", "s.yaml")[0] == 0
    with closing(Store(address)) as store:
        run_id, told = store.find("latest").id, threading.Event()
        with held(store, run_id, told.set):
            with pytest.raises(UsageError, match="Another process, "):
                held(store, run_id).__enter__()
            with closing(Store(address)) as other:
                release_run(other, run_id, owner_of(other, run_id).text)
                assert take_run(other, run_id, Owner.here().text)
            assert told.wait(30)
        assert owner_of(store, run_id) is not None, "what another took is not let go"


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
    assert "1 attempt reused, 0 to retry, 0 still to make" in said
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
