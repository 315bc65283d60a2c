"""What is paid for is kept, and limits hold, whatever happens beside it."""

import asyncio
import signal
import time
from contextlib import closing

import pytest

from assay.store.store import Store
from models.hostile import in_a_thread, response
from run.command import ended, run, start
from run.test_hostile import SLOW_DOWN, suite


def after(seconds, behaviour=None):
    async def late(writer):
        await asyncio.sleep(seconds)
        await (behaviour or response())(writer)

    return late


def latest(address):
    with closing(Store(address)) as store:
        found = store.find("latest")
        return found, store.statuses(found.id), store.spent(found.id)


@pytest.fixture
def address(tmp_path):
    return str(tmp_path / "store.db")


def test_answers_under_way_are_kept_when_another_subject_breaks(tmp_path, address):
    (tmp_path / "bad.gguf").write_bytes(b"not a model")
    with in_a_thread({"m": after(2)}) as served:
        where, seen = served["m"]
        (tmp_path / "s.yaml").write_text(
            "suite: s\ntasks: [a, b, c]\nsubjects:\n"
            f"  - {{name: m, model: openai/x, base_url: '{where}/v1'}}\n"
            f"  - {{name: l, model: local/{tmp_path}/bad.gguf}}\n"
        )
        code, _ = run(address, "run", tmp_path / "s.yaml")
        assert code
        assert len(seen) == 3
    found, statuses, _ = latest(address)
    assert statuses == {"ok": 3}
    assert found.status == "failed"


def test_a_limited_account_holds_up_no_other(tmp_path, address):
    limited = response(SLOW_DOWN, 429, headers={"Retry-After": "60"})
    with in_a_thread({"limited": limited, "fine": response()}) as served:
        addresses = {name: where for name, (where, _) in served.items()}
        path = suite(tmp_path, addresses, tasks=60, limits="{concurrency: 4}")
        process = start(address, "run", path)
        fine = served["fine"][1]
        end = time.monotonic() + 50
        while len(fine) < 60 and time.monotonic() < end:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        ended(process)
        assert len(fine) == 60


def test_one_interrupt_ends_a_run_that_waits_for_budget(tmp_path, address):
    with in_a_thread({"m": after(1)}) as served:
        where, seen = served["m"]
        limits = "{concurrency: 8, tokens: 600}"
        path = suite(tmp_path, {"m": where}, tasks=60, limits=limits, settings="{max_tokens: 100}")
        process = start(address, "run", path)
        while len(seen) < 3:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        code, _ = ended(process)
        assert code == 130
        assert len(seen) <= 10


def test_the_time_of_a_run_is_hard(tmp_path, address):
    with in_a_thread({"m": after(300)}) as served:
        where, _ = served["m"]
        path = suite(tmp_path, {"m": where}, tasks=4, limits="{seconds: 2, timeout: 600}")
        code, said = run(address, "run", path)
    assert code == 4
    assert "time" in said
    assert latest(address)[1] == {"error": 4}


def test_calls_that_do_not_say_what_they_took_count_on_a_resumed_run_too(tmp_path, address):
    silent = {"model": "m", "choices": [{"message": {"content": "4"}, "finish_reason": "stop"}]}
    with in_a_thread({"m": response(silent)}) as served:
        where, seen = served["m"]
        limits, more = "{concurrency: 2, tokens: 500}", "{max_tokens: 100}"
        path = suite(tmp_path, {"m": where}, tasks=20, limits=limits, settings=more)
        run(address, "run", path)
        made = len(seen)
        assert 0 < made < 20
        for _ in range(2):
            run(address, "run", "--resume", "--yes")
        assert len(seen) == made
    spent = latest(address)[2]
    assert spent["prompt_tokens"] is None
    assert 0 < spent["held_tokens"] <= 500


def test_an_attempt_larger_than_the_budget_is_named_and_the_others_are_made(tmp_path, address):
    with in_a_thread({"m": response()}) as served:
        where, _ = served["m"]
        (tmp_path / "s.yaml").write_text(
            f"suite: s\ntasks: [{{id: huge, input: {'x' * 3000}}}, {{id: small, input: hi}}]\n"
            f"subjects: [{{name: m, model: openai/x, base_url: '{where}/v1'}}]\n"
            "settings: {max_tokens: 10}\nlimits: {tokens: 1000}\n"
        )
        code, said = run(address, "run", tmp_path / "s.yaml")
    assert code == 4
    assert "huge" in said
    assert latest(address)[1] == {"ok": 1}


def test_the_wait_of_a_record_is_never_negative_under_replay(tmp_path, address):
    with in_a_thread({"m": after(0.3)}) as served:
        path = suite(tmp_path, {"m": served["m"][0]}, tasks=3)
        tape = tmp_path / "tape.jsonl"
        assert run(address, "run", path, "--record", tape)[0] == 0
    text = path.read_text().replace("openai/m", f"replay:{tape}")
    assert "replay:" in text
    path.write_text(text)
    assert run(address, "run", path)[0] == 0
    with closing(Store(address)) as store:
        (frame,) = store.records(store.find("latest").id)
    assert (frame["latency_ms"] > 200).all()
    assert (frame["wait_ms"] >= 0).all()
