"""Digests of large runs are made by a process of their own, which says how far it is."""

import os
import subprocess
import sys
import time

import pytest

from assay.store import kept, look
from assay.store.store import Store
from assay.web.digests import DONE, Digests
from report.test_copied import SETTINGS
from store.samples import RUN, call, record, run


@pytest.fixture
def store(tmp_path):
    made = Store(str(tmp_path / "assay.db"))
    made.add_run(run(attempts=30_000, status="done", settings=SETTINGS))
    rows = [
        record(f"t{i:02}", target="4", response=f"It is {4 + i % 2}.", latency_ms=1.0 * i)
        for i in range(20)
    ]
    made.write(rows, [call("t00")])
    yield made
    made.close()


def test_a_process_makes_it_and_says_how_far_it_is(store):
    done = subprocess.run(
        [sys.executable, "-m", "assay.web.digests", RUN],
        env={**os.environ, "ASSAY_STORE": store.address},
        capture_output=True,
        text=True,
        check=True,
    )
    shares = [float(line.removeprefix(DONE)) for line in done.stdout.splitlines()]
    assert len(shares) >= 4
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    state = kept.state(store, RUN)
    assert state.kept == state.stamp
    assert look.value(store, RUN, ("t01", "m", "T0", 1), "correct") is False


def test_it_is_asked_for_and_then_there(store):
    digests = Digests(store)
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
    store.set_run(RUN, settings={**SETTINGS, "match": {**SETTINGS["match"], "kind": "none"}})
    digests = Digests(store)
    try:
        end = time.monotonic() + 120
        while not (made := digests.get(store.find(RUN))).problem:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert made.digest is None
    finally:
        digests.close()
