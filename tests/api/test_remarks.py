"""Remarks: verdicts and notes about records, tags and notes of runs."""

import pytest

from pennyweight.api.pages.records import remark_on_record, remark_on_run, remarks, tags_of
from pennyweight.errors import NotFoundError, UsageError
from pennyweight.record import AttemptKey
from pennyweight.store.store import Store
from store.samples import RUN, record, run

KEY = AttemptKey(RUN, "m", "T0", "a", 1)


@pytest.fixture
def store(tmp_path):
    made = Store(str(tmp_path / "pennyweight.db"))
    made.add_run(run(status="done"))
    made.write([record("a")], [])
    yield made
    made.close()


def test_a_verdict_about_a_record(store):
    remark_on_record(store, KEY, verdict="wrong", note="off by\0 one\ud800", who="Ada")
    (remark,) = remarks(store, KEY)
    assert (remark.verdict, remark.note, remark.who) == ("wrong", "off by one?", "Ada")
    with pytest.raises(UsageError, match="verdict, a note"):
        remark_on_record(store, KEY, note="  ")
    with pytest.raises(NotFoundError):
        remark_on_record(store, KEY._replace(task_id="none"), verdict="right")


def test_tags_are_replaced_added_and_removed(store):
    assert tags_of(store, RUN) == ()
    remark_on_run(store, RUN, tags=["a", "", "b"])
    assert tags_of(store, RUN) == ("a", "b")
    remark_on_run(store, RUN, add=["c", "a"], remove=["b"])
    assert tags_of(store, RUN) == ("a", "c")
    remark_on_run(store, RUN, note="only a note")
    assert tags_of(store, RUN) == ("a", "c")
    assert remarks(store, RUN)[0].who == "someone"
    with pytest.raises(UsageError, match="tag, a note"):
        remark_on_run(store, RUN, who="Ada")
