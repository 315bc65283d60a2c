"""Runs that send their attempts to a collector, whose requests the official classes read."""

import socket

import pytest

from api.test_run import suite as suite  # noqa: PLC0414 - a fixture
from exports.test_otlp import collector
from pennyweight.api.run import Watcher, run
from pennyweight.exports.otlp import HEADERS

traces = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
logs = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")

RUBRIC = "{categories: {c: {items: [{id: good, text: Good., points: 1}]}}}"
JUDGED = f"judge: {{model: 'python:told_model:judge', rubric: {RUBRIC}}}\n"


class Notes(Watcher):
    def __init__(self):
        self.told = []

    def note(self, text):
        self.told.append(text)


def spans(taken):
    """The spans that the official classes read in all requests."""
    for path, _, body in taken:
        if path == "/v1/traces":
            for group in traces.ExportTraceServiceRequest.FromString(body).resource_spans:
                yield from (span for scope in group.scope_spans for span in scope.spans)


def found(attributes):
    return {one.key: one.value for one in attributes}


def test_attempts_calls_and_verdicts_are_spans(suite):
    with collector() as (address, taken):
        made = run(suite, otel=address)
    every = list(spans(taken))
    roots = [span for span in every if not span.parent_span_id]
    calls = [span for span in every if span.name == "chat python:told_model:answer"]
    assert (len(roots), len(calls)) == (2, 2)
    assert {span.parent_span_id for span in calls} == {span.span_id for span in roots}
    verdicts = {}
    for span in roots:
        (event,) = span.events
        assert event.name == "gen_ai.evaluation.result"
        task = found(span.attributes)["gen_ai.conversation.id"].string_value
        verdicts[task] = found(event.attributes)["gen_ai.evaluation.score.label"].string_value
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
    assert verdicts == {"a": "pass", "b": "fail"}
    said = found(calls[0].attributes)["gen_ai.output.messages"].string_value
    assert "FINAL_ANSWER: 4" in said
    assert made.notes == (f"Sent 2 attempts as traces to {address}.",)


def test_what_judges_decide_follows_as_log_events(suite):
    suite.write_text(suite.read_text() + JUDGED)
    with collector() as (address, taken):
        run(suite, otel=address)
    roots = [span for span in spans(taken) if not span.parent_span_id]
    assert [list(span.events) for span in roots] == [[], []]
    ((_, _, body),) = [one for one in taken if one[0] == "/v1/logs"]
    (group,) = logs.ExportLogsServiceRequest.FromString(body).resource_logs
    events = group.scope_logs[0].log_records
    assert {event.event_name for event in events} == {"gen_ai.evaluation.result"}
    assert {event.span_id for event in events} == {span.span_id for span in roots}


def test_an_endpoint_that_is_down_is_told_once_and_the_run_is_whole(suite, monkeypatch):
    monkeypatch.setenv(HEADERS, "authorization=s3cret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
    watch = Notes()
    made = run(suite, otel=address, watch=watch)
    assert (made.made, made.exit_code) == (2, 0)
    told = [text for text in watch.told if "--otel" in text]
    assert told == [f"--otel {address}: Connection refused. The run goes on."]
    assert made.notes[-1] == (
        f"Sent 0 attempts as traces to {address}; 2 could not be sent (Connection refused)."
    )
    assert "s3cret" not in str((watch.told, made.notes))
