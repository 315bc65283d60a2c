"""What a batch has answered is paid for: it is neither lost nor asked for again."""

import pytest

import pennyweight
from batch_serving import JUDGED, RUBRIC, batch_suite
from pennyweight.api.lanes.collect import collect
from pennyweight.models.failure import CallError
from pennyweight.models.remote import RemoteModel


def judged_suite(folder, server, **more):
    judge = {
        "name": "j", "model": "openai/judge", "base_url": server.base_url("openai"),
        "max_tokens": 1000,
    }  # fmt: skip
    prices = {name: {"input": 1.0, "output": 10.0} for name in ("m", "j")}
    panel = {"models": [judge], "rubric": RUBRIC}
    return batch_suite(folder, server, judge=panel, prices=prices, **more)


def test_judges_are_not_asked_again_what_they_answered_before_a_limit(server, store, tmp_path):
    """The judges' replies cannot be read, and asking again does not fit the limit."""
    server.control(says={"It is right": "no json " * 500})
    run = pennyweight.run(judged_suite(tmp_path, server), store=store)
    run = collect(store=store)
    assert server.submissions() == [5, 5]
    stopped = judged_suite(tmp_path, server, limits={"lane": "batch", "usd": 0.055})
    run = collect(store=store, suite=stopped)
    assert run.exit_code == 4
    assert server.submissions() == [5, 5]
    server.control(says={"It is right": JUDGED})
    run = pennyweight.resume(run.id, suite=judged_suite(tmp_path, server), store=store)
    while run.is_waiting:
        run = collect(store=store)
    assert run.status == "done"
    assert server.submissions() == [5, 5, 5]
    judged = store.judgments(run.id)
    assert judged["tries"].to_list() == [2] * 5
    costs = [*judged["cost_usd"], *run.records()["cost_usd"]]
    assert store.spent(run.id)["usd"] == pytest.approx(sum(costs))


LONG = "w " * 4995
"""A reply that costs nearly as much as its request may."""


def long_suite(folder, server, tasks, usd):
    subject = {
        "name": "m", "model": "openai/fake", "base_url": server.base_url("openai"),
        "max_tokens": 5000,
    }  # fmt: skip
    limits = {"lane": "batch", **({"usd": usd} if usd else {})}
    return batch_suite(folder, server, tasks=tasks, subjects=[subject], limits=limits)


def test_replies_become_records_after_the_deadline_too_if_they_used_the_limit(
    server, store, tmp_path
):
    """Half of the requests fit the limit; there is no room for a live call of any."""
    server.control(says={"plus": LONG})
    pennyweight.run(long_suite(tmp_path, server, 20, 0.502), store=store)
    sent = sum(server.submissions())
    assert 5 < sent < 15
    run = collect(store=store, deadline=0)
    assert (run.status, run.made, server.log()["live"]) == ("stopped", sent, 0)
    assert run.ended.is_limit
    spent = store.spent(run.id)
    assert (spent["calls"], spent["held_usd"], spent["held_tokens"]) == (sent, None, None)


def test_replies_become_records_after_a_request_that_does_not_fit(server, store, tmp_path):
    """The first request expired, and the replies to the others leave no room for it."""
    server.control(says={"plus": LONG}, expire=["[0]"])
    pennyweight.run(long_suite(tmp_path, server, 10, None), store=store)
    run = collect(store=store, suite=long_suite(tmp_path, server, 10, 0.46))
    assert (run.status, run.made, run.missing) == ("stopped", 9, 1)
    assert (server.submissions(), run.ended.is_limit) == ([10], True)


def test_a_key_that_is_refused_live_keeps_no_reply_from_its_record(
    server, store, tmp_path, monkeypatch
):
    server.control(expire=[f"[{i}]" for i in range(20)])
    pennyweight.run(batch_suite(tmp_path, server, tasks=25), store=store)

    async def refuse(self, request):
        raise CallError("auth", "The key is not valid.", status=401)

    monkeypatch.setattr(RemoteModel, "call", refuse)
    run = collect(store=store, deadline=0)
    rows = {row["task_id"]: row for row in run.records().to_dicts()}
    assert {rows[f"t{i}"]["lane"] for i in range(20, 25)} == {"batch"}
    assert (run.made, server.log()["live"]) == (5, 0)


def test_judgments_are_stored_after_the_deadline_too_if_they_used_the_limit(
    server, store, tmp_path
):
    """There is no room for a live call of any of them."""
    server.control(says={"It is right": JUDGED[:-1] + ', "note": "' + "w " * 980 + '"}'})
    pennyweight.run(judged_suite(tmp_path, server), store=store)
    collect(store=store)
    assert server.submissions() == [5, 5]
    tight = judged_suite(tmp_path, server, limits={"lane": "batch", "usd": 0.0545})
    run = collect(store=store, suite=tight, deadline=0)
    assert store.judgments(run.id)["status"].to_list() == ["ok"] * 5
    assert server.log()["live"] == 0
