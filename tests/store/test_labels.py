"""The titles of runs, and the runs that lists leave out."""

from pennyweight.api.runs import all_runs, label_run
from pennyweight.store.labels import RunLabel, labels
from pennyweight.store.remarks import add_remark
from pennyweight.store.store import Store
from store.samples import RUN, run


def test_a_run_is_renamed_archived_and_found_by_its_tag(store_address):
    store = Store(store_address)
    store.add_run(run(status="done"))
    assert labels(store) == {}
    label_run(RUN, title="  Night \x1b[31m run ", store=store)
    label_run(RUN, archived=True, store=store)
    assert labels(store)[RUN].archived
    assert "\x1b" not in labels(store)[RUN].title
    assert all_runs(store, archived=False)[0] == []
    assert [one.run.id for one in all_runs(store)[0]] == [RUN]
    label_run(RUN, title="", archived=False, store=store)
    assert labels(store)[RUN] == RunLabel()
    add_remark(store, RUN, who="me", tags=["a", "b"])
    add_remark(store, RUN, who="me", tags=["b"])
    assert [len(all_runs(store, tag=tag)[0]) for tag in ("a", "b")] == [0, 1]
    store.remove(RUN)
    assert labels(store) == {}
    store.close()
