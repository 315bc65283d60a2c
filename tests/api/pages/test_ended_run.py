"""The numbers of a run are there when it ends, where that costs little."""

import pytest

from pennyweight.api.pages import digest_cache, ended_run
from pennyweight.api.pages.ended_run import compute_ahead, digest_seconds
from pennyweight.store import cache
from pennyweight.store.store import Store
from store.samples import RUN, call, record, run


@pytest.fixture
def store(tmp_path):
    opened = Store(str(tmp_path / "pennyweight.db"))
    yield opened
    opened.close()


def filled(store, **more):
    store.add_run(run(**{"status": "done", "created": 0.0, "ended": 1_000.0, **more}))
    store.write([record(task, target="4", response="4") for task in "abc"], [call("a")])


def current(store):
    found = cache.state(store, RUN)
    return found.digest_stamp == found.stamp


def test_a_long_run_has_its_numbers_when_it_ends(store):
    filled(store)
    assert compute_ahead(store, RUN)
    assert current(store)


def test_a_quick_run_is_left_to_the_page(store):
    filled(store, ended=2.0)
    assert not compute_ahead(store, RUN)
    assert not current(store)


@pytest.mark.parametrize("status", ["failed", "stopped", "running"])
def test_a_run_that_may_continue_is_left_to_the_page(store, status):
    filled(store, status=status)
    assert not compute_ahead(store, RUN)


def test_an_interrupt_or_an_error_loses_nothing(store, monkeypatch):
    filled(store)
    for error in (KeyboardInterrupt, RuntimeError):

        def broken(*_, error=error):
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(digest_cache, "compute", broken)
            assert not compute_ahead(store, RUN)
    assert not compute_ahead(store, "no-such-run")
    assert compute_ahead(store, RUN)


@pytest.mark.parametrize("error", [OSError(28, "No space left"), MemoryError(), RuntimeError("x")])
def test_no_error_of_the_numbers_reaches_the_run(store, monkeypatch, error):
    filled(store)

    def broken(*_):
        raise error

    def closed(text):
        told.append(text)
        raise BrokenPipeError

    told = []
    monkeypatch.setattr(digest_cache.DigestCache, "now", broken)
    assert not compute_ahead(store, RUN, told.append)
    assert len(told) == 1
    assert type(error).__name__ in told[0]
    assert "\n" not in told[0]
    assert not compute_ahead(store, RUN, closed)


def test_waiting_is_announced(store, monkeypatch):
    filled(store)
    told = []
    monkeypatch.setattr(ended_run, "MIN_TOLD", 0.0)
    assert compute_ahead(store, RUN, told.append)
    assert told == ["Computing the numbers of the page. Ctrl-C leaves them to 'pennyweight serve'."]


def test_the_estimate_grows_with_sides_and_records():
    small, sides = run(), run(settings={"subjects": ["a", "b"], "tiers": ["T0", "T1"]})
    assert digest_seconds(small) < digest_seconds(sides) < digest_seconds(run(attempts=100_000))
