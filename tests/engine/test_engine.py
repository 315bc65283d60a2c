"""What is paid for is kept, and limits hold, whatever happens beside it."""

import asyncio
import json
import resource
import signal
import sys
import time
from contextlib import closing

import pytest

from engine.command import added, ended, run, start
from engine.serving import calls, server
from engine.serving import suite as counting
from engine.test_hostile import SLOW_DOWN, suite
from models.hostile import in_a_thread, in_turn, reset, response
from pennyweight.engine import limiter
from pennyweight.engine.engine import Engine
from pennyweight.engine.execution import execute, new_run, open_suite
from pennyweight.errors import StoreError
from pennyweight.store.store import Store


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


def test_a_subject_that_cannot_start_ends_no_other(tmp_path, address):
    (tmp_path / "bad.gguf").write_bytes(b"not a model")
    with in_a_thread({"m": after(2)}) as served:
        where, seen = served["m"]
        (tmp_path / "s.yaml").write_text(
            "suite: s\ntasks: [a, b, c]\nsubjects:\n"
            f"  - {{name: m, model: openai/x, base_url: '{where}/v1'}}\n"
            f"  - {{name: l, model: local/{tmp_path}/bad.gguf}}\n"
        )
        code, said = run(address, "run", tmp_path / "s.yaml")
        assert code == 4, said
        assert len(seen) == 3
    found, statuses, _ = latest(address)
    assert statuses == {"ok": 3, "error": 3}
    assert found.status == "failed"
    assert "bad.gguf cannot be served" in said
    assert "Traceback" not in said


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
    assert "Time limit reached" in said
    _, statuses, spent = latest(address)
    assert statuses == {}  # no model failed: it had no time to answer
    assert (spent["calls"], spent["held_tokens"] > 4 * 4096) == (4, True)


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


def test_who_waits_for_a_place_holds_no_prompt(tmp_path, monkeypatch):
    (tmp_path / "bot.py").write_text(
        "import asyncio\nasync def a(text):\n    await asyncio.sleep(0.3)\n    return '4'\n"
    )
    tasks = ", ".join(f"{{id: t{i}, input: hi}}" for i in range(40))
    (tmp_path / "s.yaml").write_text(
        f"suite: s\ntasks: [{tasks}]\nsubjects: ['python:bot:a']\nlimits: {{concurrency: auto}}\n"
    )
    ready, most, written = 0, 0, 0
    make = Engine._ready

    def counting(self, *given):
        nonlocal ready, most
        ready += 1
        most = max(most, ready - written)
        return make(self, *given)

    def watch(tally, *_):
        nonlocal written
        written = tally.done

    monkeypatch.setattr(Engine, "_ready", counting)
    monkeypatch.setattr(limiter, "START", 4)
    loaded = open_suite(tmp_path / "s.yaml")
    with closing(Store(str(tmp_path / "s.db"))) as store:
        outcome = execute(loaded, added(new_run(loaded), store), store, watch=watch)
    assert outcome.tally.done == ready == 40
    assert most <= 20


def test_a_limit_without_a_date_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(limiter, "TRIES", 2)
    with in_a_thread({"m": in_turn(*[response(SLOW_DOWN, 429)] * 3, response())}) as served:
        path = suite(tmp_path, {"m": served["m"][0]})
        loaded = open_suite(path)
        with closing(Store(str(tmp_path / "s.db"))) as store:
            run_ = new_run(loaded)
            outcome = execute(loaded, added(run_, store), store, watch=lambda *_: None)
            (row,) = next(store.records(run_.id)).to_dicts()
    assert (row["status"], row["tries"], outcome.tally.errors) == ("ok", 4, {})


def test_a_short_outage_costs_no_attempt(tmp_path, monkeypatch):
    monkeypatch.setattr(limiter, "TRIES", 4)
    outage = in_turn(response(), *[reset] * 4, response())
    with in_a_thread({"m": outage}) as served:
        path = suite(tmp_path, {"m": served["m"][0]}, tasks=2, limits="{concurrency: 1}")
        loaded = open_suite(path)
        with closing(Store(str(tmp_path / "s.db"))) as store:
            run_ = new_run(loaded)
            execute(loaded, added(run_, store), store, watch=lambda *_: None)
            rows = next(store.records(run_.id)).to_dicts()
    assert sorted((row["status"], row["tries"]) for row in rows) == [("ok", 1), ("ok", 5)]


def test_a_function_that_cancels_itself_fails_alone(tmp_path, address):
    (tmp_path / "bot.py").write_text(
        "import asyncio\nasync def a(text):\n"
        "    if text == 'bad':\n        raise asyncio.CancelledError('mine')\n    return '4'\n"
    )
    (tmp_path / "s.yaml").write_text(
        "suite: s\ntasks: [bad, good, fine]\nsubjects: ['python:bot:a']\n"
    )
    code, said = run(address, "run", tmp_path / "s.yaml")
    assert code == 4, said
    assert "Traceback" not in said
    assert "CancelledError: mine" in said
    assert latest(address)[1] == {"ok": 2, "error": 1}


def test_a_schema_counts_in_what_is_set_aside(tmp_path, address):
    schema = {"type": "object", "description": "x" * 900}
    with in_a_thread({"m": response()}) as served:
        for name, value in (("schema", schema), ("response_format", {"json_schema": schema})):
            more = json.dumps({"max_tokens": 10, name: value})
            path = suite(tmp_path, {"m": served["m"][0]}, limits="{tokens: 800}", settings=more)
            code, said = run(address, "run", path)
            assert code == 4, said
            assert "more than limits.tokens (800)" in said
        assert not served["m"][1]


def test_a_store_that_is_removed_under_a_run_stops_it(tmp_path, address):
    with in_a_thread({"m": after(0.2)}) as served:
        where, seen = served["m"]
        process = start(address, "run", suite(tmp_path, {"m": where}, tasks=400))
        while len(seen) < 8:
            time.sleep(0.02)
        for one in tmp_path.glob("store.db*"):
            one.unlink()
        code, said = ended(process)
        assert code == 4, said
        assert "was deleted or replaced while it was in use" in said
        assert "Traceback" not in said
        assert len(seen) < 400


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


HUNDREDS = """
import asyncio
begun = answered = 0
async def answer(text):
    global begun, answered
    begun += 1
    await asyncio.sleep({pause})
    answered += 1
    return "4"
"""


@pytest.fixture
def hundreds(tmp_path, monkeypatch):
    """A suite with 300 calls at a time of a function that counts; gives suite, store, module."""

    def make(pause, tasks=1000):
        (tmp_path / "counting.py").write_text(HUNDREDS.format(pause=pause))
        listed = ", ".join(f"{{id: t{i}, input: x}}" for i in range(tasks))
        path = tmp_path / "suite.yaml"
        path.write_text(
            f"suite: s\ntasks: [{listed}]\nsubjects: ['python:counting:answer']\n"
            "limits: {concurrency: 300}\n"
        )
        return open_suite(path), sys.modules["counting"]

    monkeypatch.delitem(sys.modules, "counting", raising=False)
    yield make
    sys.modules.pop("counting", None)


def test_a_store_that_fails_ends_hundreds_of_calls_for_whose_commit_nobody_waits(
    tmp_path, address, hundreds, monkeypatch
):
    def full(*_):
        raise StoreError("It is full.")

    loaded, module = hundreds("0.1 if begun <= 40 else 300")
    monkeypatch.setattr(Store, "write", full)
    with closing(Store(address)) as store, pytest.raises(StoreError) as told:
        execute(loaded, added(new_run(loaded), store), store, watch=lambda *_: None)
    begun, answered = module.begun, module.answered
    assert 0 < answered <= 40 < begun
    lost = f"resume: {begun} responses, {begun - answered} of them still in flight."
    assert lost in str(told.value)


def test_of_hundreds_of_places_some_are_given_on_while_records_are_written(
    address, hundreds, monkeypatch
):
    write, seen = Store.write, []

    def slow(store, *rows):
        end = time.monotonic() + 20
        while not seen and module.begun < 386 and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.1)
        seen.append(module.begun)
        write(store, *rows)

    loaded, module = hundreds("0")
    monkeypatch.setattr(Store, "write", slow)
    with closing(Store(address)) as store:
        run_ = new_run(loaded)
        execute(loaded, added(run_, store), store, watch=lambda *_: None)
        assert seen[0] == 300 + 86
        assert store.statuses(run_.id) == {"ok": 1000}


def test_few_open_files_make_a_run_slower_and_lose_nothing(tmp_path, address):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))

    with server(0.05) as slow:
        path = counting(tmp_path, slow, tasks=1500, limits="{concurrency: 600}")
        code, said = run(address, "run", path, preexec_fn=few)
        assert code == 0, said
        assert "Concurrency is 136, not 600" in said
        assert latest(address)[1] == {"ok": 1500}
        assert calls(slow) == 1500
