"""Runs as events of OpenAI Evals: our own reader reads the verdicts and the tokens of the run."""

import json
from contextlib import closing

import pytest

from exports.runs import filled
from pennyweight.api.export import export
from sources.logs.reading import notes_of, records
from store.samples import RUN


@pytest.fixture
def logs(tmp_path):
    with closing(filled(tmp_path / "s.db")) as store:
        export(RUN, tmp_path / "logs", format="openai-evals", store=store)
    return tmp_path / "logs"


def test_verdicts_answers_and_tokens_are_read_back(logs):
    rows = {row["task_id"]: row for row in records(logs / "n_T0.jsonl")}
    assert {task: row["passed"] for task, row in rows.items()} == {
        "a": True, "a#2": False, "b/ü": True, "c": False, "d": None, "e": None,
    }  # fmt: skip
    assert (rows["d"]["status"], rows["d"]["error"]) == ("error", "HTTP 500")
    assert (rows["a"]["answer"], rows["a"]["target"]) == ("It is Lima", "Lima")
    assert (rows["a"]["prompt_tokens"], rows["a"]["completion_tokens"]) == (120, 30)
    assert rows["e"]["completion_tokens"] is None
    assert {row["subject"] for row in rows.values()} == {"n"}


def test_the_report_agrees_and_tiers_do_not_collide(logs):
    assert notes_of(logs) == []
    assert len({(row["run"], row["subject"], row["task_id"]) for row in records(logs)}) == 18
    lines = [json.loads(line) for line in (logs / "n_T0.jsonl").read_text().splitlines()]
    assert lines[0]["spec"]["completion_fns"] == ["n"]
    assert lines[-1] == {"final_report": {"accuracy": 0.5}}
    events = lines[1:-1]
    assert [one["event_id"] for one in events] == list(range(len(events)))
    assert next(e["data"] for e in events if e["type"] == "metrics")["cost_usd"] == 0.000123
