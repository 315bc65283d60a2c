"""Baselines: kept with where they came from, and the same when read again."""

import polars as pl
import pytest

from gates.samples import answers, policy, records_of, share
from pennyweight.errors import InputError, UsageError
from pennyweight.gates import baseline
from pennyweight.gates.decision import decide, needed_metrics


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def kept(name, rows):
    return baseline.save(name, records_of(rows, None, {}), "records.jsonl")


def test_a_baseline_decides_as_the_records_it_was_made_of():
    made = policy({"gates": [{"metric": "accuracy", "no_worse_than": "2%"}]})
    before, now = answers(90, 100), answers(70, 100)
    kept("main", before)
    metrics = needed_metrics(made)
    records = records_of(now, metrics, {})
    found = decide(made, records, baseline.load("main", {}))
    direct = decide(made, records, records_of(before, metrics, {}))
    assert found.gates == direct.gates
    assert found.baseline == "baseline main (records.jsonl)"


def test_they_are_listed_with_their_provenance_and_replaced_by_name():
    kept("one", share(5, 10))
    kept("two", share(9, 10))
    kept("one", share(10, 10))
    listed = {b.name: b for b in baseline.baselines()[0]}
    assert {n: (b.pass_rate, b.records, b.source) for n, b in listed.items()} == {
        "one": (1.0, 10, "records.jsonl"),
        "two": (0.9, 10, "records.jsonl"),
    }
    baseline.remove("one")
    assert [b.name for b in baseline.baselines()[0]] == ["two"]


def test_mistakes_say_what_to_do():
    kept("main", share(5, 10))
    with pytest.raises(UsageError, match="Did you mean 'main'"):
        baseline.remove("mian")
    for name in ("../up", "latest", "", "a b"):
        with pytest.raises(UsageError, match="cannot be the name of a baseline"):
            kept(name, share(1, 2))
    baseline.FOLDER.joinpath("broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"broken.parquet: not a baseline, or damaged"):
        baseline.load("broken", {})
    found, problems = baseline.baselines()
    assert [b.name for b in found] == ["main"]
    assert ["broken.parquet" in problem for problem in problems] == [True]


def test_a_copied_file_is_a_baseline_of_its_own():
    kept("main", share(10, 10))
    baseline.FOLDER.joinpath("copy.parquet").write_bytes(
        baseline.FOLDER.joinpath("main.parquet").read_bytes()
    )
    kept("main", share(0, 10))
    assert baseline.load("copy", {}).frame["passed"].all()
    assert {b.name: b.pass_rate for b in baseline.baselines()[0]} == {"main": 0.0, "copy": 1.0}


def test_one_that_lacks_what_a_gate_needs_is_refused():
    path = kept("main", answers(9, 10)).path
    told = pl.read_parquet_metadata(path)
    pl.read_parquet(path).drop("correct", "undecided", "judge_scores").write_parquet(
        path, metadata={"pennyweight.baseline": told["pennyweight.baseline"]}
    )
    with pytest.raises(
        InputError, match=r"has no correct; it was saved by .*\n'pennyweight baseline set"
    ):
        baseline.load("main", {}, ["accuracy"])
    made = policy({"gates": [{"metric": "pass_rate", "no_worse_than": "60%"}]})
    now = records_of(answers(9, 10), needed_metrics(made), {})
    assert decide(made, now, baseline.load("main", {}, ["pass_rate"])).verdict == "pass"


def test_no_texts_are_kept():
    kept("main", [{**row, "response": "a secret"} for row in answers(5, 10)])
    assert b"a secret" not in baseline.FOLDER.joinpath("main.parquet").read_bytes()
