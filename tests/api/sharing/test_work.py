"""A worker runs nothing that only the store names."""

import pytest

import pennyweight
from pennyweight.api.sharing.work import put_up, work
from pennyweight.errors import UntrustedError, UsageError
from pennyweight.store.shared_runs import live_workers
from pennyweight.store.store import Store

SUITE = """
suite: s
tasks: [{id: a, input: "2 + 2?", target: "4"}, {id: b, input: "2 + 3?", target: "4"}]
subjects: ['python:bot:answer']
"""


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "bot.py").write_text("def answer(text):\n    return '4'\n")
    path = tmp_path / "s.yaml"
    path.write_text(SUITE)
    return path


def test_a_run_is_put_up_and_made(suite, tmp_path):
    store = str(tmp_path / "store.db")
    run, number = put_up(suite, store=store)
    assert number == 2
    result = work(run.id, store=store)
    assert (result.made, result.left, result.errors) == (2, 0, {})
    assert Store(store).find(run.id).status == "done"
    assert work(run.id, store=store).made == 0


def test_only_some_subjects(suite, tmp_path):
    store = str(tmp_path / "store.db")
    suite.write_text(SUITE.replace("['python", "[{name: x, model: 'python:bot:answer'}, 'python"))
    run, _ = put_up(suite, store=store)
    result = work(run.id, store=store, subjects=["x"])
    assert (result.made, result.left) == (2, 2)
    with pytest.raises(UsageError, match=r"'y' is not known. .*The subjects of the run: x, "):
        work(run.id, store=store, subjects=["x", "y"])
    assert live_workers(Store(store), run.id) == 0


def test_batches_are_no_work(tmp_path):
    path, store = tmp_path / "s.yaml", str(tmp_path / "store.db")
    subject = "{name: m, model: openai/m, base_url: 'http://127.0.0.1:9', limits: {lane: batch}}"
    path.write_text(f"suite: s\ntasks: [a]\nsubjects: [{subject}]\n")
    with pytest.raises(UsageError, match="m is called in batches, and workers call live"):
        put_up(path, store=store)
    with pytest.raises(UsageError, match="m is called in batches, and workers call live"):
        pennyweight.run(path, store=store, on="ray", progress=False)
    assert Store(store).runs() == []


def test_a_suite_that_only_the_store_has_runs_no_function(suite, tmp_path):
    store = str(tmp_path / "store.db")
    run, _ = put_up(suite, store=store)
    moved = suite.rename(tmp_path / "moved.yaml")
    with pytest.raises(UntrustedError, match=r"pennyweight work .* --suite FILE"):
        work(run.id, store=store)
    assert work(run.id, store=store, suite=moved).made == 2


def test_a_run_that_is_not_shared_is_no_work(suite, tmp_path):
    store = str(tmp_path / "store.db")
    made = pennyweight.run(suite, store=store, progress=False)
    with pytest.raises(UsageError, match="--on workers"):
        work(made.id, store=store)
