"""Runs of other people's functions, and of servers whose replies have other types than promised."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli.command import pennyweight
from engine.test_hostile import suite
from models.hostile import GOOD, in_a_thread, response
from pennyweight.store.store import Store

MODULE = """\
import pathlib, sys, time

def exits(text):
    sys.exit(3)

def types(text):
    return {"text": "4", "usage": {"prompt_tokens": 10**30}, "latency_ms": "fast", "model": 5}

def hangs(text):
    pathlib.Path("began").touch()
    time.sleep(300)

def leaks(text):
    import os
    key = os.environ["THEIR_API_KEY"]
    call = {"id": "1", "name": "f", "arguments": key}
    return {"text": "4", "model": key, "finish": key, "tool_calls": [call], "work": {"x": key}}

def good(text):
    return "4"
"""


def functions(folder: Path, *names: str, timeout: float = 60, tasks: int = 2) -> Path:
    (folder / "theirs.py").write_text(MODULE)
    lines = ["suite: functions", "answer: last_line", "subjects:"]
    lines += [f"  - {{name: {name}, model: 'python:theirs:{name}'}}" for name in names]
    lines += [f"limits: {{timeout: {timeout}, concurrency: 2}}", "tasks:"]
    lines += [f'  - {{id: t{i}, input: "2 + 2?", target: "4"}}' for i in range(tasks)]
    path = folder / "suite.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def started(folder: Path, *arguments: str | Path, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pennyweight", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PENNYWEIGHT_STORE": str(folder / "s.db"), **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def records(folder: Path) -> list[dict[str, Any]]:
    store = Store(str(folder / "s.db"))
    try:
        run = store.find("latest").id
        return [row for frame in store.records(run) for row in frame.to_dicts()]
    finally:
        store.close()


def test_a_function_that_fails_in_its_own_way_fails_alone(tmp_path: Path) -> None:
    path = functions(tmp_path, "exits", "types", "good")
    process = started(tmp_path, "run", path)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 4, said
    assert "Traceback" not in said
    found = {(r["subject"], r["status"], r["error_kind"], r["tries"]) for r in records(tmp_path)}
    assert found == {
        ("exits", "error", "function", 1),
        ("types", "error", "function", 1),
        ("good", "ok", None, 1),
    }


def test_a_function_that_hangs_ends_with_its_timeout(tmp_path: Path) -> None:
    process = started(tmp_path, "run", functions(tmp_path, "hangs", timeout=0.5))
    _, said = process.communicate(timeout=60)
    assert process.returncode == 4, said
    assert {(r["error_kind"], r["tries"]) for r in records(tmp_path)} == {("timeout", 1)}


def test_a_function_that_hangs_can_be_interrupted(tmp_path: Path) -> None:
    process = started(tmp_path, "run", functions(tmp_path, "hangs", timeout=200))
    try:
        end = time.monotonic() + 30
        while not (tmp_path / "began").exists() and time.monotonic() < end:
            time.sleep(0.05)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "Traceback" not in said


def test_a_key_that_a_function_passes_on_is_kept_nowhere(tmp_path: Path) -> None:
    key = "sk-0123456789abcdef"
    path = functions(tmp_path, "leaks")
    process = started(tmp_path, "run", path, "--record", "replies.jsonl", THEIR_API_KEY=key)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert all(row["model"] == "[key]" for row in records(tmp_path))
    for file in tmp_path.iterdir():
        assert key.encode() not in (file.read_bytes() if file.is_file() else b"")


WRONG: dict[str, Any] = {
    "model": {**GOOD, "model": 123},
    "finish": {**GOOD, "choices": [{"message": {"content": "4"}, "finish_reason": 7}]},
    "usage": {**GOOD, "usage": {"prompt_tokens": "5", "completion_tokens": 10**30}},
    "cut": {**GOOD, "choices": [{"finish_reason": "length", "message": {"role": "assistant"}}]},
}
PAID = {**GOOD, "choices": [{"finish_reason": "stop", "message": {"content": 4}}]}


def test_replies_of_other_types_do_not_end_the_run(tmp_path: Path) -> None:
    behaviours = {name: response(body) for name, body in WRONG.items()}
    with in_a_thread(behaviours) as served:
        path = suite(tmp_path, {name: address for name, (address, _) in served.items()}, tasks=2)
        result = pennyweight("run", path, "--store", tmp_path / "s.db")
    assert result.code == 0, result.err
    rows = {row["subject"]: row for row in records(tmp_path)}
    assert (rows["model"]["model"], rows["finish"]["finish"]) == (None, None)
    assert rows["usage"]["prompt_tokens"] is None
    assert (rows["cut"]["response"], rows["cut"]["truncated"]) == ("", True)


def test_a_reply_that_was_paid_is_not_bought_again(tmp_path: Path) -> None:
    with in_a_thread({"m": response(PAID)}) as served:
        address, seen = served["m"]
        path = suite(tmp_path, {"m": address}, tasks=2)
        assert pennyweight("run", path, "--store", tmp_path / "s.db").code == 4
        assert len(seen) == 2
    assert {row["error_kind"] for row in records(tmp_path)} == {"malformed"}


def test_what_a_failed_answer_took_is_in_the_ledger(tmp_path: Path) -> None:
    failed = {**GOOD, "choices": [{"finish_reason": "error", "error": {"code": 400}}]}
    with in_a_thread({"m": response(failed)}) as served:
        path = suite(tmp_path, {"m": served["m"][0]}, tasks=2)
        assert pennyweight("run", path, "--store", tmp_path / "s.db").code == 4
    store = Store(str(tmp_path / "s.db"))
    spent = store.spent(store.find("latest").id)
    store.close()
    assert (spent["calls"], spent["prompt_tokens"], spent["completion_tokens"]) == (2, 10, 2)
    assert spent["usd"] == pytest.approx(12e-6)


def test_a_mistyped_model_does_not_fail_a_thousand_times(tmp_path: Path) -> None:
    body = {"error": {"message": "The model 'm' does not exist", "code": "model_not_found"}}
    with in_a_thread({"m": response(body, 404)}) as served:
        address, seen = served["m"]
        path = suite(tmp_path, {"m": address}, tasks=300)
        result = pennyweight("run", path, "--store", tmp_path / "s.db")
    assert result.code == 4
    assert "refused 10 calls in a row" in result.err
    assert len(seen) < 20
