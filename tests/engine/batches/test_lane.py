"""The batch lane from end to end: what goes out, what comes back, and in which state."""

import asyncio
import errno
import io
import json
import tracemalloc

import pytest

import pennyweight
from batch_serving import DIALECTS, JUDGED, RUBRIC, batch_suite
from pennyweight.api.lanes.collect import collect
from pennyweight.engine.batches import inbox, lane, outbox
from pennyweight.engine.batches.inbox import LaneMember
from pennyweight.engine.batches.outbox import OpenBatch, Outbox, released, wanted_request
from pennyweight.engine.budget import Amount
from pennyweight.errors import InputError, StoreError, UntrustedError, UsageError
from pennyweight.models.batch import openai
from pennyweight.models.batch.dialect import BatchSize
from pennyweight.models.failure import CallError
from pennyweight.models.local import serving
from pennyweight.models.model import Message, Request, Settings
from pennyweight.models.prices import Prices
from pennyweight.models.providers import find
from pennyweight.record import AttemptKey
from pennyweight.store.lanes.batches import (
    batches_of,
    begin_submission,
    drop_batch,
    out_batches,
    request_states,
    set_batch,
)
from pennyweight.suite.values import Subject


def rows_of(run):
    return {row["task_id"]: row for row in run.records().to_dicts()}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_run_goes_out_and_comes_back(dialect, server, store, tmp_path):
    server.control(hold=True)
    run = pennyweight.run(batch_suite(tmp_path, server, dialect), store=store)
    assert (run.status, run.exit_code, run.made, run.missing) == ("waiting", 0, 0, 5)
    out = out_batches(store)[run.id]
    assert (out.batches, out.requests, out.done) == (1, 5, 0)
    held = store.spent(run.id)["held_usd"]
    assert held > 0
    assert collect(store=store).is_waiting
    assert store.spent(run.id)["held_usd"] == pytest.approx(held)
    server.control(hold=False)
    run = collect(store=store)
    assert (run.status, run.exit_code, run.made) == ("done", 0, 5)
    for i, row in enumerate(rows_of(run).values()):
        assert row["response"] == str(2 + 3 * i)
        assert row["lane"] == "batch"
        for name in ("latency_ms", "wait_ms", "ttft_ms", "duration_seconds"):
            assert row.get(name) is None
        assert row["cost_usd"] == pytest.approx(16e-6)
    spent = store.spent(run.id)
    assert (spent["calls"], spent["held_usd"], spent["held_tokens"]) == (5, None, None)
    assert spent["usd"] == pytest.approx(80e-6)
    assert server.submissions() == [5]
    assert server.log()["live"] == 0


def test_a_real_model_answers_a_batch(server, store, tmp_path, local_model):
    """The provider's side is the local model: its replies and its tokens come back."""

    async def made():
        async with serving("smollm2-135m", 1, 512) as address:
            server.control(answer=f"{address}/v1")
            path = batch_suite(tmp_path, server, tasks=2)
            await asyncio.to_thread(pennyweight.run, path, store=store)
            return await asyncio.to_thread(collect, store=store)

    run = asyncio.run(made())
    assert (run.status, server.submissions()) == ("done", [2])
    for i, row in enumerate(rows_of(run).values()):
        assert row["response"] not in {"", str(2 + 3 * i)}  # no rule has made it
        assert row["completion_tokens"] >= 1


def test_a_run_that_is_resumed_collects_too(server, store, tmp_path):
    path = batch_suite(tmp_path, server)
    assert pennyweight.run(path, store=store).is_waiting
    assert pennyweight.resume(path, store=store).status == "done"
    assert server.submissions() == [5]


def test_live_calls_say_so(server, store, tmp_path):
    run = pennyweight.run(batch_suite(tmp_path, server), store=store, lane="live")
    assert {row["lane"] for row in rows_of(run).values()} == {"live"}
    assert (run.status, server.submissions(), server.log()["live"]) == ("done", [], 5)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("order", ["reversed", "doubled", "foreign", "odd_id", "junk"])
def test_results_in_any_shape(dialect, order, server, store, tmp_path):
    server.control(order=order)
    pennyweight.run(batch_suite(tmp_path, server, dialect, tasks=9), store=store)
    run = collect(store=store)
    assert run.status == "done"
    assert {row["response"] for row in rows_of(run).values()} == {str(2 + 3 * i) for i in range(9)}
    assert (store.spent(run.id)["calls"], server.submissions()) == (9, [9])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_rows_that_are_missing_go_into_the_next_batch(dialect, server, store, tmp_path):
    """With no row, or expired: not answered, so not paid for."""
    server.control(expire=["[0]"], drop=["[8]"])
    pennyweight.run(batch_suite(tmp_path, server, dialect, tasks=9), store=store)
    server.control(expire=[], drop=["[8]"])
    assert collect(store=store).is_waiting
    server.control(drop=[])
    assert collect(store=store).is_waiting
    run = collect(store=store)
    assert server.submissions() == [9, 2, 1]
    assert (run.status, len(rows_of(run)), store.spent(run.id)["calls"]) == ("done", 9, 9)
    assert store.spent(run.id)["held_usd"] is None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_answers_that_cannot_be_read_may_have_been_paid_for(dialect, server, store, tmp_path):
    """The results end within a line; the provider counts more answers than they contain."""
    server.control(order="truncated", expire=["[0]"])
    pennyweight.run(batch_suite(tmp_path, server, dialect, tasks=9), store=store)
    server.control(order="", expire=[])
    run = collect(store=store)
    again = server.submissions()[1]
    unread = again - 1  # the one that expired costs nothing
    assert unread >= 3
    spent = store.spent(run.id)
    assert (spent["calls"], spent["unpriced"]) == (9 - 1, unread)
    (told,) = [note for note in run.notes if "cannot be read" in note]
    assert f"{unread} answers of batch" in told
    assert server.deleted() == 0  # what cannot be read stays where it is
    run = collect(store=store)
    assert (run.status, len(rows_of(run))) == ("done", 9)
    assert (server.submissions(), run.notes) == ([9, again], ())
    spent = store.spent(run.id)
    assert (spent["calls"], spent["unpriced"]) == (9 - 1 + again, unread)
    assert spent["usd"] == pytest.approx(sum(row["cost_usd"] for row in rows_of(run).values()))
    most = unread * (100 * 1e-6 + 16 * 1e-5)
    assert 0 < spent["held_usd"] < most


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_provider_keeps_of_a_batch_is_deleted(dialect, server, store, tmp_path):
    server.control(hold=True)
    pennyweight.run(batch_suite(tmp_path, server, dialect), store=store)
    assert collect(store=store).is_waiting
    files = tmp_path / "provider"
    assert server.deleted() == 0
    assert any(one.stat().st_size for one in files.iterdir())
    server.control(hold=False)
    run = collect(store=store)
    assert (run.status, run.notes) == ("done", ())
    assert not any(one.stat().st_size for one in files.iterdir())


def test_files_that_cannot_be_deleted_are_told_once(server, store, tmp_path, monkeypatch):
    monkeypatch.setattr(openai, "SIZE", BatchSize(4, 10**9))
    server.control(keep=True)
    pennyweight.run(batch_suite(tmp_path, server, tasks=10), store=store)
    run = collect(store=store)
    assert run.status == "done"
    (told,) = run.notes
    assert told.startswith("Files of batches that were collected are still at ")
    assert "It stays." in told


def test_the_file_of_a_batch_that_is_refused_is_deleted(server, tmp_path):
    service = find("openai/fake", base_url=server.base_url("openai")).batches()
    with (tmp_path / "upload").open("w+b") as file, pytest.raises(CallError):
        service.submit(file, 0, "a-name", "/chat/completions", lambda: server.control(refuse=True))
    assert server.deleted() == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_errors_that_stay_become_failed_attempts(dialect, server, store, tmp_path):
    server.control(fail={"[1]": 400, "[2]": 500})
    pennyweight.run(batch_suite(tmp_path, server, dialect), store=store)
    run = collect(store=store)
    assert server.submissions() == [5, 1]  # a server's failure may pass, a refusal does not
    assert rows_of(run)["t1"]["error_kind"] == "bad_request"
    while run.is_waiting:
        run = collect(store=store)
    assert server.submissions() == [5, 1, 1]
    rows = rows_of(run)
    assert rows["t2"]["error_kind"] == "server"
    assert [rows[f"t{i}"]["status"] for i in range(5)] == ["ok", "error", "error", "ok", "ok"]
    assert (run.status, run.exit_code) == ("failed", 4)
    server.control(fail={})
    run = collect(
        run.id, store=store
    )  # collecting repeats no failure, and says that there are some
    assert (run.status, run.exit_code, run.errors) == ("failed", 4, {"bad_request": 1, "server": 1})
    assert server.submissions() == [5, 1, 1]
    assert pennyweight.resume(run.id, store=store).is_waiting
    assert collect(store=store).status == "done"
    assert server.submissions() == [5, 1, 1, 2]


@pytest.mark.parametrize("dialect", ["openai", "google"])
def test_a_batch_that_is_refused_as_a_whole(dialect, server, store, tmp_path):
    server.control(whole="invalid_model")
    pennyweight.run(batch_suite(tmp_path, server, dialect), store=store)
    run = collect(store=store)
    assert (run.status, run.errors) == ("failed", {"bad_request": 5})
    assert "It is invalid_model" in rows_of(run)["t0"]["error"]


def test_a_full_queue_is_tried_again(server, store, tmp_path):
    server.control(whole="token_limit_exceeded")
    pennyweight.run(batch_suite(tmp_path, server), store=store)
    server.control(whole=None)
    assert collect(store=store).is_waiting
    assert collect(store=store).status == "done"
    assert server.submissions() == [5, 5]


def test_a_batch_that_is_not_taken(server, store, tmp_path):
    path = batch_suite(tmp_path, server)
    server.control(die="upload")
    run = pennyweight.run(path, store=store)
    assert (run.status, run.exit_code, run.is_waiting) == ("stopped", 4, False)
    assert store.spent(run.id)["held_usd"] is None
    assert pennyweight.resume(run.id, store=store).is_waiting
    assert collect(store=store).status == "done"
    assert server.submissions() == [5]


def test_sizes_are_kept(server, store, tmp_path, monkeypatch):
    monkeypatch.setattr(openai, "SIZE", BatchSize(4, 10**9))
    run = pennyweight.run(batch_suite(tmp_path, server, tasks=10), store=store)
    assert server.submissions() == [4, 4, 2]
    assert out_batches(store)[run.id].batches == 3
    assert collect(store=store).status == "done"
    line = openai.line("pw_" + 40 * "0", "/chat/completions", {
        "model": "fake", "messages": [{"role": "user", "content": "[0] 2 + 0 plus 0?"}],
        "max_tokens": 16,
    })  # fmt: skip
    monkeypatch.setattr(openai, "SIZE", BatchSize(10**6, 3 * len(line) + 3))
    pennyweight.run(batch_suite(tmp_path, server, tasks=10), store=store)
    assert server.submissions()[3:] == [3, 3, 3, 1]
    monkeypatch.setattr(openai, "SIZE", BatchSize(10**6, 20))
    run = pennyweight.run(batch_suite(tmp_path, server, tasks=2), store=store)
    assert (run.status, run.errors) == ("failed", {"too_large": 2})


def test_a_batch_that_the_provider_lost_keeps_no_other(server, store, tmp_path, monkeypatch):
    monkeypatch.setattr(openai, "SIZE", BatchSize(4, 10**9))
    run = pennyweight.run(batch_suite(tmp_path, server, tasks=10), store=store)
    lost = batches_of(store, run.id)[0].id
    set_batch(store, lost, handle="batch_lost")
    assert collect(store=store).is_waiting
    assert server.submissions() == [4, 4, 2, 4]
    (problem,) = {b.problem for b in batches_of(store, run.id, ("ended",)) if b.id == lost}
    assert "no longer has the batch batch_lost" in problem
    run = collect(store=store)
    assert (run.status, len(rows_of(run))) == ("done", 10)
    spent = store.spent(run.id)
    assert (spent["calls"], spent["unpriced"]) == (14, 4)  # the lost ones may have been paid for
    assert spent["held_usd"] > 0


def test_a_batch_that_another_process_dropped_is_not_submitted(
    server, store, tmp_path, monkeypatch
):
    def late(at, batch, when):
        (found,) = batches_of(at, batch.run)
        for _ in range(2):  # what it holds is released once
            drop_batch(at, found, [released(found)])
        begin_submission(at, batch, when)

    with monkeypatch.context() as patch:
        patch.setattr(outbox, "begin_submission", late)
        run = pennyweight.run(batch_suite(tmp_path, server, tasks=3), store=store)
    assert server.submissions() == []
    assert store.spent(run.id)["held_usd"] is None
    pennyweight.resume(run.id, store=store)
    assert server.submissions() == [3]


def test_a_batch_that_cannot_be_read_now_keeps_no_other(server, store, tmp_path, monkeypatch):
    monkeypatch.setattr(openai, "SIZE", BatchSize(4, 10**9))
    run = pennyweight.run(batch_suite(tmp_path, server, tasks=10), store=store)
    first, read = batches_of(store, run.id)[0].handle, openai.read

    def fails(client, handle):
        if handle == first:
            raise CallError("server", "The server failed.", status=500)
        return read(client, handle)

    with monkeypatch.context() as broken:
        broken.setattr(openai, "read", fails)
        with pytest.raises(CallError, match="The server failed"):
            collect(store=store)
    out = out_batches(store)[run.id]
    assert (out.batches, out.requests, server.submissions()) == (1, 4, [4, 4, 2])
    assert collect(store=store).status == "done"


def test_a_batch_that_cannot_be_cancelled_is_waited_for(server, store, tmp_path, monkeypatch):
    def fails(client, handle):
        raise CallError("bad_request", "It cannot be cancelled.", status=409)

    server.control(hold=True)
    pennyweight.run(batch_suite(tmp_path, server), store=store)
    monkeypatch.setattr(openai, "cancel", fails)
    assert collect(store=store, deadline=0).is_waiting
    server.control(hold=False)
    assert collect(store=store, deadline=0).status == "done"
    assert (server.submissions(), server.log()["live"]) == ([5], 0)


def test_the_price_of_batches_is_reserved_and_recorded(server, store, tmp_path):
    subject = {
        "name": "m", "model": "openai/gpt-4o", "base_url": server.base_url("openai"),
        "priced_as": "openai/gpt-4o", "max_tokens": 16,
    }  # fmt: skip
    path = batch_suite(tmp_path, server, subjects=[subject], prices={})
    live = pennyweight.run(path, store=store, lane="live")
    server.control(hold=True)
    run = pennyweight.run(path, store=store)
    held = store.spent(run.id)["held_usd"]
    server.control(hold=False)
    run = collect(store=store)
    for task, row in rows_of(run).items():
        other = rows_of(live)[task]
        assert row["input_price"] == other["input_price"] / 2
        assert row["cost_usd"] == pytest.approx(other["cost_usd"] / 2)
        assert row["cost_usd"] < held / 5
    assert store.spent(run.id)["usd"] == pytest.approx(store.spent(live.id)["usd"] / 2)


def test_a_limit_lets_out_what_it_covers_and_the_rest_later(server, store, tmp_path):
    """Each request may use some 50 tokens, and uses 7: one after the other they fit."""
    limits = {"lane": "batch", "tokens": 150}
    server.control(hold=True)
    run = pennyweight.run(batch_suite(tmp_path, server, limits=limits), store=store)
    first = server.submissions()
    assert run.is_waiting
    assert 0 < sum(first) < 5
    spent = store.spent(run.id)
    assert spent["held_tokens"] <= 150
    server.control(hold=False)
    while run.is_waiting:
        run = collect(store=store)
        spent = store.spent(run.id)
        used = (spent["prompt_tokens"] or 0) + (spent["completion_tokens"] or 0)
        assert used + (spent["held_tokens"] or 0) <= 150
    assert (run.status, sum(server.submissions())) == ("done", 5)


def test_conversations_go_turn_by_turn(server, store, tmp_path):
    tasks = [
        {"id": "a", "input": "1 + 1", "turns": ["and 5?", "and 7?"]},
        {"id": "b", "input": "3 + 1", "turns": ["and 6?"]},
        {"id": "c", "input": "4 + 1"},
    ]
    path = batch_suite(tmp_path, server, tasks=tasks)
    run = pennyweight.run(path, store=store)
    made = []
    while run.is_waiting:
        run = collect(store=store)
        made.append(len(rows_of(run)) if store.statuses(run.id) else 0)
    assert made == [1, 2, 3]
    assert server.submissions() == [3, 2, 1]
    rows = rows_of(run)
    assert rows["a"]["response"] == "2\n\n5\n\n7"
    spent = store.spent(run.id)
    assert spent["calls"] == 6
    assert spent["usd"] == pytest.approx(sum(row["cost_usd"] for row in rows.values()))
    assert spent["held_usd"] is None


def test_after_the_deadline_the_rest_is_called_live(server, store, tmp_path):
    server.control(hold=True)
    run = pennyweight.run(batch_suite(tmp_path, server), store=store)
    assert collect(store=store, deadline=3600).is_waiting
    assert server.log()["live"] == 0
    assert collect(store=store, deadline=0).is_waiting  # until it is cancelled, it may be answered
    run = collect(store=store, deadline=0)
    assert (run.status, server.log()["live"], server.submissions()) == ("done", 5, [5])
    assert {row["lane"] for row in rows_of(run).values()} == {"live"}
    spent = store.spent(run.id)
    assert (spent["calls"], spent["held_usd"]) == (5, None)
    assert spent["usd"] == pytest.approx(sum(row["cost_usd"] for row in rows_of(run).values()))


def test_a_conversation_that_ends_live(server, store, tmp_path):
    """What a batch answered is neither asked nor paid for again."""
    tasks = [{"id": "a", "input": "1 + 1", "turns": ["and 5?"]}]
    pennyweight.run(batch_suite(tmp_path, server, tasks=tasks), store=store)
    run = collect(store=store, deadline=0)
    assert (run.status, server.submissions(), server.log()["live"]) == ("done", [1], 1)
    row = rows_of(run)["a"]
    assert (row["response"], row["lane"]) == ("2\n\n5", "live")
    spent = store.spent(run.id)
    assert (spent["calls"], spent["held_usd"]) == (2, None)
    assert spent["usd"] == pytest.approx(row["cost_usd"])


def test_the_prices_of_a_conversation_that_ends_live_are_those_it_paid(server, store, tmp_path):
    subject = {
        "name": "m", "model": "openai/gpt-4o", "base_url": server.base_url("openai"),
        "priced_as": "openai/gpt-4o", "max_tokens": 16,
    }  # fmt: skip
    tasks = [{"id": "a", "input": "1 + 1", "turns": ["and 5?"]}]
    path = batch_suite(tmp_path, server, tasks=tasks, subjects=[subject], prices={})
    live = rows_of(pennyweight.run(path, store=store, lane="live"))["a"]
    pennyweight.run(path, store=store)
    row = rows_of(collect(store=store, deadline=0))["a"]
    paid = (
        row["prompt_tokens"] * row["input_price"] + row["completion_tokens"] * row["output_price"]
    )
    assert row["cost_usd"] == pytest.approx(paid / 1e6, rel=1e-12)
    for name in ("cost_usd", "input_price", "output_price"):
        assert live[name] / 2 < row[name] < live[name]


def test_waiting_ends_when_everything_is_there(server, store, tmp_path, monkeypatch):
    tasks = [{"id": "a", "input": "1 + 1", "turns": ["and 5?"]}, {"id": "b", "input": "2"}]
    server.control(hold=True)
    pennyweight.run(batch_suite(tmp_path, server, tasks=tasks), store=store)
    told = []

    class Watch(pennyweight.Watcher):
        def waiting(self, out, pause):
            told.append((out.batches, out.requests))
            if len(told) == 3:
                server.control(hold=False)

    run = collect(store=store, wait=True, poll=0.01, watch=Watch())
    assert run.status == "done"
    assert told[:3] == [(1, 2)] * 3
    assert told[3:] == [(1, 1)]  # the second turn


def test_waiting_ends_when_a_batch_is_gone_or_the_key_is(server, store, tmp_path, monkeypatch):
    server.control(hold=True)
    started = pennyweight.run(batch_suite(tmp_path, server), store=store)
    told = []

    def refused(client, handle):
        raise CallError("auth", "The key is not valid.", status=401)

    class Watch(pennyweight.Watcher):
        def waiting(self, out, pause):
            told.append(out.batches)
            if len(told) == 2:  # another batch replaces the one that is gone
                (batch,) = batches_of(store, started.id)
                set_batch(store, batch.id, handle="batch_lost")
            if len(told) == 4:
                monkeypatch.setattr(openai, "read", refused)

    with pytest.raises(CallError, match="not valid"):
        collect(store=store, wait=True, poll=0.01, watch=Watch())
    assert (told, server.submissions()) == ([1] * 4, [5, 5])


def test_replies_are_forgotten_once_records_have_them(server, store, tmp_path):
    pennyweight.run(batch_suite(tmp_path, server), store=store)
    run = collect(store=store)
    assert {state for state, _ in request_states(store, run.id).values()} == {"answered"}
    with store.engine.connect() as connection:
        query = "SELECT count(*) FROM pennyweight_request WHERE body IS NOT NULL"
        assert connection.exec_driver_sql(query).scalar() == 0


def test_a_changed_prompt_is_another_request(server, store, tmp_path):
    server.control(hold=True)
    path = batch_suite(tmp_path, server)
    pennyweight.run(path, store=store)
    path = batch_suite(tmp_path, server, prompt="Now: {{ input }}")
    run = pennyweight.resume("latest", suite=path, store=store)
    server.control(hold=False)
    while run.is_waiting:
        run = collect(store=store)
    assert server.submissions() == [5, 5]
    assert store.spent(run.id)["calls"] == 10  # all of them were paid for
    assert len(rows_of(run)) == 5


def test_a_provider_without_batches_is_a_mistake(server, store, tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text(
        "suite: s\ntasks: [{id: a, input: hi}]\nlimits: {lane: batch}\nsubjects:\n"
        "  - ollama/llama3\n"
        "  - {name: mine, command: echo hi, sandbox: none}\n"
        "  - {name: fine, model: ollama/other, limits: {lane: live}}\n"
        "  - local/smollm2-135m\n"
    )
    with pytest.raises(InputError) as error:
        pennyweight.run(path, store=store)
    said = str(error.value)
    assert "line 5" in said
    assert "ollama/llama3: there are no batches of ollama/llama3" in said
    assert "line 6" in said
    assert "agents" in said
    assert "line 8" in said
    assert "ollama/other" not in said
    assert store.runs() == []


def test_a_server_without_batches_is_told_before_the_first_call(server, store, tmp_path):
    path = batch_suite(tmp_path, server)
    value = json.loads(path.read_text())
    value["subjects"][0]["base_url"] = f"{server.address}/other/v1"
    path.write_text(json.dumps(value))
    with pytest.raises(UsageError, match=r"m cannot be called in batches.*404"):
        pennyweight.run(path, store=store)
    assert store.runs() == []
    with pytest.raises(UsageError, match="--record"):
        pennyweight.run(batch_suite(tmp_path, server), store=store, record=tmp_path / "tape.jsonl")


def test_one_subject_may_use_the_lane(server, store, tmp_path):
    address = server.base_url("openai")
    subjects = [
        {"name": "a", "model": "openai/x", "base_url": address, "limits": {"lane": "batch"}},
        {"name": "b", "model": "openai/y", "base_url": address},
    ]
    path = batch_suite(tmp_path, server, subjects=subjects, limits={}, prices={})
    run = pennyweight.run(path, store=store)
    assert (run.is_waiting, run.made, server.log()["live"]) == (True, 5, 5)
    assert server.submissions() == [5]
    run = collect(store=store)
    assert run.status == "done"
    lanes = {(row["subject"], row["lane"]) for row in run.records().to_dicts()}
    assert lanes == {("a", "batch"), ("b", "live")}


def test_what_a_store_names_is_collected_only_from_a_suite_that_a_person_names(
    server, store, tmp_path
):
    path = batch_suite(tmp_path, server)
    run = pennyweight.run(path, store=store)
    elsewhere = path.rename(tmp_path / "elsewhere.yaml")
    with pytest.raises(UntrustedError, match=f"pennyweight collect {run.id} --suite FILE"):
        collect(store=store)
    assert collect(store=store, suite=elsewhere).status == "done"


def test_a_run_is_found_on_its_own(server, store, tmp_path):
    with pytest.raises(UsageError, match="No run waits for batches"):
        collect(store=store)
    first = pennyweight.run(batch_suite(tmp_path, server), store=store)
    pennyweight.run(batch_suite(tmp_path, server), store=store, lane="live")
    assert collect(store=store).id == first.id
    assert batches_of(store, first.id) == []


def test_judges_use_the_lane_when_all_attempts_are_there(server, store, tmp_path):
    judge = {
        "name": "j", "model": "openai/judge", "base_url": server.base_url("openai"),
        "max_tokens": 99,
    }  # fmt: skip
    prices = {name: {"input": 1.0, "output": 10.0} for name in ("m", "j")}
    path = batch_suite(tmp_path, server, judge={"models": [judge], "rubric": RUBRIC}, prices=prices)
    server.control(says={"It is right": JUDGED}, hold=True)
    run = pennyweight.run(path, store=store)
    assert server.submissions() == [5]
    server.control(hold=False)
    server.control(hold=True)
    run = collect(store=store)
    assert (run.made, run.is_waiting, run.exit_code) == (5, True, 0)
    assert (run.status, server.submissions()) == ("waiting", [5, 5])
    server.control(hold=False)
    run = collect(store=store)
    assert (run.status, run.is_waiting, run.exit_code) == ("done", False, 0)
    assert store.judgments(run.id)["score"].to_list() == [1.0] * 5
    spent = store.spent(run.id)
    assert (spent["calls"], spent["held_usd"], server.log()["live"]) == (10, None, 0)
    costs = [*store.judgments(run.id)["cost_usd"], *(r["cost_usd"] for r in rows_of(run).values())]
    assert spent["usd"] == pytest.approx(sum(costs))


def test_a_judge_answers_each_equal_question(server, store, tmp_path):
    """Two subjects give the same reply: the judge's questions about them are equal."""
    judge = {"name": "j", "model": "openai/judge", "base_url": server.base_url("openai")}
    subjects = [
        {"name": name, "model": f"openai/{name}", "base_url": server.base_url("openai")}
        for name in ("m", "n")
    ]
    prices = {name: {"input": 1.0, "output": 10.0} for name in ("m", "n", "j")}
    path = batch_suite(
        tmp_path, server, tasks=1, judge={"models": [judge], "rubric": RUBRIC}, prices=prices,
        subjects=subjects,
    )  # fmt: skip
    server.control(says={"It is right": JUDGED})
    run = pennyweight.run(path, store=store)
    while run.is_waiting:
        run = collect(store=store)
    assert server.submissions() == [1, 1, 2]
    judged = store.judgments(run.id)
    assert judged["score"].to_list() == [1.0] * 2
    costs = [*judged["cost_usd"], *run.records()["cost_usd"]]
    assert store.spent(run.id)["usd"] == pytest.approx(sum(costs))


def test_a_judge_that_cannot_be_read_is_asked_again_in_the_next_batch(server, store, tmp_path):
    judge = {"name": "j", "model": "openai/judge", "base_url": server.base_url("openai")}
    path = batch_suite(
        tmp_path, server, tasks=1, judge={"models": [judge], "rubric": RUBRIC}, prices={}
    )
    run = pennyweight.run(path, store=store)
    while run.is_waiting:
        run = collect(store=store)
    assert server.submissions() == [1] * 5  # the attempt, and each time that the judge is asked
    assert store.judgments(run.id)["status"].to_list() == ["invalid"]


@pytest.mark.parametrize("full_at", [1, 4, 10])  # while it is written, at its end, never
def test_a_full_disk_is_told_before_anything_is_submitted(
    full_at, server, store, tmp_path, monkeypatch
):
    class Small(io.BytesIO):
        written = 0

        def write(self, data):
            self.written += 1
            if self.written > full_at * 2:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    path = batch_suite(tmp_path, server, tasks=4)
    with monkeypatch.context() as patched:
        patched.setattr(outbox, "OpenBatch", lambda *given: OpenBatch(*given, file=Small()))
        if full_at < 5:
            with pytest.raises(StoreError, match=r"cannot be written to .*No space left") as told:
                pennyweight.run(path, store=store)
            assert "not submitted" in str(told.value)
            assert "pennyweight run --resume 2" in str(told.value)
            assert (server.submissions(), server.log()["live"]) == ([], 0)
            assert store.spent(store.find("latest").id)["held_usd"] is None
        else:
            assert pennyweight.run(path, store=store).is_waiting
    run = pennyweight.resume("latest", store=store)
    while run.is_waiting:
        run = collect(store=store)
    assert (run.status, server.submissions()) == ("done", [4])


def test_large_batches_are_never_in_memory(server, store, tmp_path):
    """40 MB go out and come back; far less is in memory at any time."""
    model = find("openai/fake", base_url=server.base_url("openai"))
    service, run = model.batches(), "a-run"
    subject = Subject("m", "openai/fake")
    number, words = 2_000, "x" * 20_000
    tracemalloc.start()
    try:
        out = Outbox(store, run, "attempt")
        for i in range(number):
            request = Request((Message("user", f"{words} {i}"),), Settings(max_tokens=8), i)
            id_, path, line = service.request_id(run, request)
            wanted = wanted_request(AttemptKey(run, "m", "T0", f"t{i}", 1), id_, 0, Amount(0.1, 9))
            out.put(service, "m", path, line, wanted)
        out.submit()
        member = LaneMember(subject, service, "openai/fake")
        into = inbox.Inbox(store, run, "attempt", {"m": member}, Prices({}))
        assert into.collect()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12e6
    assert server.submissions() == [number]
    states = request_states(store, run)
    assert len(states) == number
    assert set(states.values()) == {("answered", 1)}


def test_what_a_batch_may_hold_is_what_the_providers_say():
    from pennyweight.models.batch import anthropic, google

    assert BatchSize(50_000, 200_000_000) == openai.SIZE
    assert BatchSize(100_000, 256_000_000) == anthropic.SIZE
    assert google.SIZE.bytes == 2_000_000_000
    assert lane.MAX_BATCHES == 3
    assert inbox.GROUP == 200
