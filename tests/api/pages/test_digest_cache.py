"""Digests of large runs are made by a process of their own, which says how far it is."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from api.pages.test_digest import SETTINGS
from pennyweight.api.pages import digest_cache
from pennyweight.api.pages.digest_cache import DONE, DigestCache, compute
from pennyweight.api.pages.run_list import listing
from pennyweight.record import AttemptKey
from pennyweight.schema.typed_values import fits
from pennyweight.scoring.digest import VERSION
from pennyweight.store import cache as kept
from pennyweight.store import queries as look
from pennyweight.store.store import Store
from store.samples import RUN, call, record, run


@pytest.fixture
def store(tmp_path):
    made = Store(str(tmp_path / "pennyweight.db"))
    made.add_run(run(attempts=30_000, status="done", settings=SETTINGS))
    rows = [
        record(f"t{i:02}", target="4", response=f"It is {4 + i % 2}.", latency_ms=1.0 * i)
        for i in range(20)
    ]
    made.write(rows, [call("t00")])
    yield made
    made.close()


def test_an_outdated_digest_is_read_once(store, monkeypatch):
    found = store.find(RUN)
    compute(store, found)
    with closing(sqlite3.connect(store.address)) as db, db:
        db.execute("UPDATE pennyweight_digest SET data = replace(data, 'version', 'was')")
    read = []

    def counted(data, kind):
        read.append(kind)
        return fits(data, kind)

    monkeypatch.setattr(digest_cache, "fits", counted)
    monkeypatch.setattr(DigestCache, "ask", lambda *_: None)  # as if another run were computed
    digests = DigestCache(store)
    assert [digests.get(found).digest for _ in range(3)] == [None] * 3
    assert len(read) == 1
    compute(store, found)
    assert digests.get(found).digest["version"] == VERSION
    assert len(read) == 2
    digests.close()


def test_a_process_makes_it_and_says_how_far_it_is(store):
    done = subprocess.run(
        [sys.executable, "-m", "pennyweight.api.pages.digest_cache", RUN],
        env={**os.environ, "PENNYWEIGHT_STORE": store.address},
        capture_output=True,
        text=True,
        check=True,
    )
    shares = [float(line.removeprefix(DONE)) for line in done.stdout.splitlines()]
    assert len(shares) >= 4
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    state = kept.state(store, RUN)
    assert state.digest_stamp == state.stamp
    assert look.value(store, AttemptKey(RUN, "m", "T0", "t01", 1), "correct") is False


def test_it_is_asked_for_and_then_there(store):
    digests = DigestCache(store)
    found = store.find(RUN)
    try:
        assert digests.get(found).digest is None
        assert digests.waiting == [RUN]
        end = time.monotonic() + 120
        while not (made := digests.get(found)).current:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert made.problem == ""
        assert made.digest["whole"]["records"] == 20
        while digests.waiting:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert digests.done(RUN) is None
    finally:
        digests.close()


def test_what_goes_wrong_is_told(store):
    store.set_run(RUN, settings={**SETTINGS, "match": {**SETTINGS["match"], "kind": "unheard-of"}})
    digests = DigestCache(store)
    try:
        end = time.monotonic() + 120
        while not (made := digests.get(store.find(RUN))).problem:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert made.digest is None
    finally:
        digests.close()


def ended(digests):
    end = time.monotonic() + 120
    while digests.waiting:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_one_that_breaks_stops_no_other_and_is_not_made_again(tmp_path):
    store = Store(str(tmp_path / "pennyweight.db"))
    broken, whole = "20260101-000000-0001", "20260101-000000-0002"
    for name in (broken, whole):
        store.add_run(run(name, status="done", settings=SETTINGS))
        store.write([record("a", name, target="4", response="It is 4.")], [call("a", name)])
    with closing(sqlite3.connect(tmp_path / "pennyweight.db")) as file, file:
        file.execute("UPDATE pennyweight_record SET latency_ms = 'abc' WHERE run = ?", (broken,))
    digests = DigestCache(store)
    try:
        for name in (broken, whole):
            digests.ask(store.find(name))
        ended(digests)
        assert digests.get(store.find(whole), wait=False).digest["whole"]["records"] == 1
        told = digests.get(store.find(broken), wait=False)
        assert "latency_ms" in told.problem
        assert digests.waiting == []
        found = listing(store, digests, lambda run: run.status)
        row = next(r for r in found.runs() if r.id == broken)
        assert row.problem == told.problem
        assert digests.waiting == []
    finally:
        digests.close()
        store.close()


def test_columns_of_the_tasks_have_leaderboards(tmp_path):
    store = Store(str(tmp_path / "pennyweight.db"))
    store.add_run(run(attempts=60, status="done", settings=SETTINGS))

    def extra(task, tier):
        own = {"level": ["easy", "hard"][task % 2], "grade": task % 3, "serial": f"s{task}"}
        further = {"mood": f"{tier}{task % 2}", "label": str(task % 2), "a b": str(task % 2)}
        return json.dumps({**own, **further, "same": "x", "note": f"{task % 2}" * 90})

    store.write(
        [
            record(f"t{task:02}", tier=tier, target="4", response=f"It is {4 + task % 2}.",
                   category="ab"[task % 2], extra=extra(task, tier))
            for task in range(30)
            for tier in ("T0", "T1")
        ],
        [call("t00")],
    )  # fmt: skip
    boards = {tuple(one["by"]): one for one in compute(store, store.find(RUN))["boards"]}
    assert list(boards) == [("category",), ("level",), ("grade",)]
    sides = {side["name"]: side for side in boards[("level",)]["sides"]}
    assert {name: side["estimates"]["accuracy"][0] for name, side in sides.items()} == {
        "easy": 1.0,
        "hard": 0.0,
    }
    assert [side["tasks"] for side in boards[("grade",)]["sides"]] == [10, 10, 10]
    store.close()
