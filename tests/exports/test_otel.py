"""Runs as OpenTelemetry traces: our own reader reads the attempts with their evaluations."""

import json
from contextlib import closing

import pytest

from exports.runs import filled
from pennyweight.api.export import export
from sources.logs.reading import records
from store.samples import RUN


@pytest.fixture
def traces(tmp_path):
    with closing(filled(tmp_path / "s.db")) as store:
        export(RUN, tmp_path / "traces", format="otel", store=store)
    return tmp_path / "traces"


def test_verdicts_tokens_cost_and_latency_are_read_back(traces):
    rows = records(traces / "n_T0.traces.jsonl")
    assert [(row["task_id"], row["attempt"], row["status"], row["passed"]) for row in rows] == [
        ("a", 1, "ok", True), ("a", 2, "ok", False), ("b/ü", 1, "ok", True),
        ("c", 1, "ok", False), ("d", 1, "error", None), ("e", 1, "ok", None),
    ]  # fmt: skip
    first, agent, broken = rows[0], rows[2], rows[4]
    assert (first["subject"], first["response"]) == ("n", "So\nIt is Lima.")
    assert first["latency_ms"] == pytest.approx(1234.567, abs=1e-3)
    used = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "cost_usd")
    assert [first[name] for name in used] == [120, 30, 100, 11, 0.000123]
    assert broken["error"] == "HTTP 500"
    assert json.loads(agent["tool_calls"])[0]["result"] == "Peru"
    assert len(records(traces)) == 18


def test_ids_are_unique_and_spans_belong_to_their_attempt(traces):
    spans = [
        span
        for path in traces.iterdir()
        for line in path.read_text().splitlines()
        for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    ]
    assert len({one["traceId"] for one in spans}) == 18
    assert len({one["spanId"] for one in spans}) == len(spans)
    roots = {one["spanId"] for one in spans if "parentSpanId" not in one}
    assert {one["parentSpanId"] for one in spans if "parentSpanId" in one} <= roots
    assert all(len(one["traceId"]) == 32 and len(one["spanId"]) == 16 for one in spans)
    assert all(int(one["startTimeUnixNano"]) <= int(one["endTimeUnixNano"]) for one in spans)
