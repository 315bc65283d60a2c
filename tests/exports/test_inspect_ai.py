"""Runs as logs of Inspect AI: what our own reader reads of them is the run."""

import json
import zipfile
from contextlib import closing

import pytest

from exports.runs import filled
from exports.tools import ask
from pennyweight.api.export import export
from pennyweight.api.score import score
from pennyweight.exports.inspect_ai import sample_of
from pennyweight.exports.values import dumped
from pennyweight.sources.log_format import Log
from pennyweight.sources.logs.inspect_ai import FORMAT
from pennyweight.sources.logs.inspect_samples import Header, row_of
from sources.logs.reading import notes_of, records
from store.samples import RUN

KEPT = (
    *("answer", "cot", "status", "error", "error_kind"),
    *("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens"),
    *("reasoning_tokens", "cost_usd", "truncated", "input", "target", "response", "reasoning"),
    *("category", "duration_seconds", "prob_correct"),
)


@pytest.fixture
def store(tmp_path):
    with closing(filled(tmp_path / "s.db")) as made:
        yield made


@pytest.fixture
def logs(store, tmp_path):
    export(RUN, tmp_path / "logs", format="inspect", store=store)
    return tmp_path / "logs"


def test_a_round_trip_keeps_every_number_of_every_record(store, logs, tmp_path):
    export(RUN, tmp_path / "r.parquet", store=store)
    ours = {key(row): row for row in records(tmp_path / "r.parquet")}
    theirs = {key(row): row for row in records(logs)}
    assert ours.keys() == theirs.keys()
    assert len(ours) == 18
    for name, row in theirs.items():
        assert {n: row.get(n) for n in KEPT} == {n: ours[name].get(n) for n in KEPT}
        assert str(row["latency_ms"])[:8] == str(ours[name]["latency_ms"])[:8]
    assert {row["passed"] for row in theirs.values()} == {True, False, None}
    assert [row["passed"] for n, row in theirs.items() if n[2] == "d"] == [None] * 3


def test_scores_of_the_logs_are_those_of_the_run(store, logs):
    run, read = score(RUN, by=["subject", "tier"], store=store), score(logs, by=["subject", "tier"])
    assert len(run.groups) == len(read.groups) == 3
    for one, other in zip(run.groups, read.groups, strict=True):
        assert one.group == other.group
        for name, estimate in one.estimates.items():
            if estimate.value is None:
                assert other.estimates.get(name) is None or other[name].value is None, name
            else:
                assert other[name].value == pytest.approx(estimate.value, rel=1e-12), name


def test_the_steps_of_an_agent_and_the_log_probabilities_are_there(logs):
    row = next(row for row in records(logs) if row["task_id"] == "b/ü")
    told = json.loads(row["messages"]) if isinstance(row["messages"], str) else row["messages"]
    assert [one["role"] for one in told] == ["system", "user", "assistant", "tool", "assistant"]
    with zipfile.ZipFile(logs / "n_T0.eval") as archive:
        sample = json.loads(archive.read("samples/b/ü_epoch_1.json"))
        first = json.loads(archive.read("samples/a_epoch_1.json"))
    call = sample["messages"][2]["tool_calls"][0]
    assert (call["function"], call["arguments"]) == ("find", {"q": "Lima"})
    assert sample["messages"][3]["tool_call_id"] == call["id"]
    assert sample["metadata"]["level"] == 3
    content = first["output"]["choices"][0]["logprobs"]["content"]
    assert content == [{"token": "Lima", "logprob": -0.25}]


def test_nothing_is_said_after_reading_an_export(logs):
    assert notes_of(logs) == []


def test_a_log_has_what_inspect_requires(logs):
    with zipfile.ZipFile(logs / "n_T0.eval") as archive:
        header = json.loads(archive.read("header.json"))
        summaries = json.loads(archive.read("_journal/summaries/1.json"))
        samples = [n for n in archive.namelist() if n.startswith("samples/")]
    assert {"created", "task", "dataset", "model", "config"} <= header["eval"].keys()
    assert (header["version"], header["status"]) == (2, "success")
    assert header["results"]["total_samples"] == len(samples) == len(summaries) == 6
    assert header["results"]["scores"][0]["metrics"]["pass_rate"]["value"] == 0.5


def key(row):
    return row["subject"], row["tier"], row["task_id"], row["attempt"]


def test_judges_and_behaviours_come_back_unless_another_score_decides(tmp_path):
    given = {
        "impl_rate": 0.8, "judge_scores": [0.7, 0.9], "judge_cost_usd": 0.01, "violated": [],
        "expected_behaviors": ["greets", "asks"], "observed_behaviors": ["greets"],
        "weight": 2.0, "pass_score": 0.5, "tier": "T1", "prob_correct": 0.25,
    }  # fmt: skip
    row = {"subject": "m", "task_id": "t", "attempt": 1, "status": "ok", "response": "x"}
    sample = json.loads(dumped(sample_of({**row, "passed": True, **given})))
    log = Log(FORMAT, tmp_path, ())
    read = row_of(sample, Header("r", "s", "m", "passed"), log)
    assert {name: read.get(name) for name in given} == given
    assert read["passed"] is True
    sample["scores"]["stricter"] = {"value": "I"}
    other = row_of(sample, Header("r", "s", "m", "stricter"), log)
    assert (other["passed"], other["impl_rate"], other["tier"]) == (False, 0.0, "T1")


READ = """
import json, sys
from pathlib import Path
from inspect_ai.log import read_eval_log
for path in sorted(Path(sys.argv[1]).glob("*.eval")):
    log = read_eval_log(str(path))
    samples = [(s.id, s.epoch, s.error is not None, len(s.messages)) for s in log.samples]
    (score,) = log.results.scores
    told = {"status": log.status, "model": log.eval.model, "samples": samples}
    print(json.dumps(told | {"rate": score.metrics["pass_rate"].value}))
"""


def test_inspect_itself_reads_the_logs_and_has_the_same_pass_rates(store, logs):
    read = [json.loads(line) for line in ask("inspect-ai", READ, logs).splitlines()]
    assert [one["status"] for one in read] == ["success"] * 3
    assert sum(len(one["samples"]) for one in read) == 18
    assert sum(sample[2] for one in read for sample in one["samples"]) == 3
    groups = score(RUN, by=["subject", "tier"], store=store).groups
    ours = sorted(round(one["pass_rate"].value, 9) for one in groups)
    assert sorted(round(one["rate"], 9) for one in read) == ours
