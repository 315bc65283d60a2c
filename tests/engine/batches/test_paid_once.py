"""What a batch has answered is paid for: it is neither lost nor asked for again."""

import json
from contextlib import closing

import pytest

import pennyweight
from batch_serving import batch_server, batch_suite
from pennyweight.api.lanes.collect import collect
from pennyweight.store.store import Store

RUBRIC = {"categories": {"a": {"weight": 1, "items": ["It is right."]}}, "pass_mark": 0.6}
JUDGED = json.dumps({"items": {"a": {"evidence": "seen", "score": 1}}, "confidence": 1})


@pytest.fixture
def server(tmp_path):
    with batch_server(tmp_path) as started:
        yield started


@pytest.fixture
def store(tmp_path):
    with closing(Store(str(tmp_path / "store.db"))) as opened:
        yield opened


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
