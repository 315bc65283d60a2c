"""Subjects and judges that leave the batch lane, or the suite, while their batches are out."""

from contextlib import closing

import pytest

import pennyweight
from batch_serving import JUDGED, RUBRIC, batch_suite
from engine.batches.test_kill import killed_at
from pennyweight.api.lanes.collect import collect
from pennyweight.api.sharing.work import put_up
from pennyweight.errors import UsageError
from pennyweight.store.lanes.batches import out_batches
from pennyweight.store.store import Store

LIVE = {"lane": "live"}


def subjects(server, **lanes):
    return [
        {
            "name": name, "model": f"openai/{name}", "base_url": server.base_url("openai"),
            "max_tokens": 16, "limits": {"lane": lane},
        }
        for name, lane in lanes.items()
    ]  # fmt: skip


def lanes_of(run):
    return sorted((row["subject"], row["lane"]) for row in run.records().to_dicts())


def test_a_run_that_goes_on_live_stops_what_is_out_first(server, store, tmp_path):
    """As after a deadline: a request that may still be answered is not called."""
    server.control(hold=True)
    pennyweight.run(batch_suite(tmp_path, server), store=store)
    path = batch_suite(tmp_path, server, limits=LIVE)
    run = pennyweight.resume(path, store=store)
    assert (run.is_waiting, server.log()["live"], server.submissions()) == (True, 0, [5])
    run = collect(store=store)
    assert (run.status, server.log()["live"], server.submissions()) == ("done", 5, [5])
    spent = store.spent(run.id)
    assert (spent["calls"], spent["held_usd"], out_batches(store)) == (5, None, {})
    assert lanes_of(run) == [("m", "live")] * 5


def test_a_run_that_goes_on_live_takes_the_replies_that_are_there(server, store, tmp_path):
    server.control(expire=["[3]"])
    pennyweight.run(batch_suite(tmp_path, server), store=store)
    run = pennyweight.resume("latest", store=store, lane="live")
    assert (run.status, server.log()["live"], server.submissions()) == ("done", 1, [5])
    assert lanes_of(run) == [("m", "batch")] * 4 + [("m", "live")]
    assert store.spent(run.id)["calls"] == 5


def test_replies_without_records_are_taken_in_the_live_lane_too(server, tmp_path):
    address = str(tmp_path / "store.db")
    with closing(Store(address)) as store:
        pennyweight.run(batch_suite(tmp_path, server, tasks=5), store=store)
    killed_at("ended", address, "collect")
    with closing(Store(address)) as store:
        assert out_batches(store) == {}
        run = pennyweight.resume(batch_suite(tmp_path, server, limits=LIVE), store=store)
        assert (run.status, server.log()["live"], store.spent(run.id)["calls"]) == ("done", 0, 5)


def test_one_subject_may_leave_the_lane(server, store, tmp_path):
    server.control(hold=True)
    both = subjects(server, a="batch", b="batch")
    pennyweight.run(batch_suite(tmp_path, server, subjects=both, prices={}), store=store)
    one = subjects(server, a="batch", b="live")
    path = batch_suite(tmp_path, server, subjects=one, prices={})
    assert pennyweight.resume(path, store=store).is_waiting
    assert server.log()["live"] == 0
    run = collect(store=store)
    assert (run.is_waiting, server.log()["live"]) == (True, 5)
    server.control(hold=False)
    run = collect(store=store)
    assert (run.status, server.submissions()) == ("done", [5, 5])
    assert lanes_of(run) == [("a", "batch")] * 5 + [("b", "live")] * 5


def test_a_subject_stays_in_the_suite_until_its_batches_are_collected(server, store, tmp_path):
    server.control(hold=True)
    both = subjects(server, a="batch", b="batch")
    run = pennyweight.run(batch_suite(tmp_path, server, subjects=both, prices={}), store=store)
    held = store.spent(run.id)["held_usd"]
    one = batch_suite(tmp_path, server, subjects=both[:1], prices={})
    with pytest.raises(UsageError, match=r"waits for 5 requests of b in batches") as told:
        pennyweight.resume(run.id, suite=one, store=store)
    assert f"'pennyweight collect {run.id}'" in str(told.value)
    assert store.spent(run.id)["held_usd"] == held
    assert store.find(run.id).status == "waiting"
    server.control(hold=False)
    two = batch_suite(tmp_path, server, subjects=both, prices={})
    assert collect(store=store, suite=two).status == "done"
    one = batch_suite(tmp_path, server, subjects=both[:1], prices={})
    run = pennyweight.resume(run.id, suite=one, store=store)
    assert (run.status, lanes_of(run)) == ("done", [("a", "batch")] * 5)


def test_a_judge_may_leave_the_lane(server, store, tmp_path):
    def judged(**more):
        judge = {"name": "j", "model": "openai/judge", "base_url": server.base_url("openai")}
        panel = {"models": [{**judge, **more}], "rubric": RUBRIC}
        return batch_suite(tmp_path, server, judge=panel, prices={})

    server.control(says={"It is right": JUDGED})
    pennyweight.run(judged(), store=store)
    run = collect(store=store)
    assert server.submissions() == [5, 5]
    notes = []

    class Watch(pennyweight.Watcher):
        def note(self, text):
            notes.append(text)

    pennyweight.resume(run.id, suite=batch_suite(tmp_path, server), store=store, watch=Watch())
    assert any("waits for 5 requests of j in batches" in note for note in notes)
    run = pennyweight.resume(run.id, suite=judged(limits={"lane": "live"}), store=store)
    assert (run.status, server.log()["live"], server.submissions()) == ("done", 0, [5, 5])
    assert store.judgments(run.id)["score"].to_list() == [1.0] * 5
    assert store.spent(run.id)["calls"] == 10


def test_batches_that_are_out_are_neither_recorded_nor_shared(server, store, tmp_path):
    server.control(hold=True)
    pennyweight.run(batch_suite(tmp_path, server), store=store)
    with pytest.raises(UsageError, match="--record"):
        pennyweight.resume("latest", store=store, record=tmp_path / "tape.jsonl")
    with pytest.raises(UsageError, match="sent in batches, and workers call live"):
        put_up("latest", resume=True, file=batch_suite(tmp_path, server, limits=LIVE), store=store)
    assert server.log()["live"] == 0
