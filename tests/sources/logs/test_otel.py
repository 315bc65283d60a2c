"""OpenTelemetry GenAI spans: six dialects, several files, far apart, broken."""

import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

import pennyweight
from pennyweight.errors import InputError, UsageError
from pennyweight.sources.discovery import file_sources
from pennyweight.sources.otel.protobuf import LOGS, TRACES, decode, kind_of
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, read, records

QUESTION, REPLY = "What is 2 + 2?", "It is 4."
ASKED = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
CALLED = {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 2, "b": 2}}
USED = {"role": "assistant", "parts": [CALLED]}
RESULT = {
    "role": "tool",
    "parts": [{"type": "tool_call_response", "id": "c1", "response": "4"}],
}
SAID = [{"role": "assistant", "parts": [{"type": "text", "content": REPLY}]}]
AGENT = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": "adder",
    "gen_ai.conversation.id": "sum",
    "lab.level": "easy",
    "lab.api_key": "sk-1",
}
TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "add",
    "gen_ai.tool.call.id": "c1",
    "gen_ai.tool.call.arguments": '{"a": 2, "b": 2}',
    "gen_ai.tool.call.result": "4",
}
USAGE = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 3}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "mini", **USAGE}


def value(one: Any) -> dict[str, Any]:
    match one:
        case bool():
            return {"boolValue": one}
        case int():
            return {"intValue": str(one)}
        case float():
            return {"doubleValue": one}
        case list():
            return {"arrayValue": {"values": [value(v) for v in one]}}
        case dict():
            return {"kvlistValue": {"values": attributes(one)}}
    return {"stringValue": one}


def attributes(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": value(one)} for name, one in found.items()]


def span(
    id_: str, parent: str, found: dict[str, Any], *events: Any, trace: str = "aa", **more: Any
) -> dict[str, Any]:
    start = 1_790_000_000_000_000_000 + int(id_, 16) * 1_000_000
    return {
        "traceId": trace * 16,
        "spanId": id_ * 8,
        **({"parentSpanId": parent * 8} if parent else {}),
        "name": "step",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 250_000_000),
        "attributes": attributes(found),
        "events": [{"name": n, "attributes": attributes(a)} for n, a in events],
        "status": {},
        **more,
    }


def event(
    id_: str, name: str, body: Any, found: dict[str, Any] | None = None, trace: str = "aa"
) -> dict[str, Any]:
    ids = {"traceId": trace * 16, "spanId": id_ * 8} if id_ else {}
    made = {"eventName": name, "attributes": attributes(found or {}), **ids}
    return made | ({"body": value(body)} if body is not None else {})


def spans(*several: dict[str, Any]) -> dict[str, Any]:
    about = {"attributes": attributes({"service.name": "shop"})}
    return {"resourceSpans": [{"resource": about, "scopeSpans": [{"spans": list(several)}]}]}


def logs(*several: dict[str, Any]) -> dict[str, Any]:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"logRecords": list(several)}]}]}


def evaluated(score: float, label: str = "", name: str = "right") -> tuple[str, dict[str, Any]]:
    about = {"name": name, "score.value": score, "explanation": "seen"}
    about |= {"score.label": label} if label else {}
    found = {f"gen_ai.evaluation.{key}": one for key, one in about.items()}
    return "gen_ai.evaluation.result", found


def written(path: Path, *requests: Any) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in requests))
    return path


AGENT_SPANS = (span("03", "01", TOOL), span("01", "", AGENT, evaluated(1.0, "pass")))


def calls(first: dict[str, Any], second: dict[str, Any]) -> list[dict[str, Any]]:
    return [span("02", "01", first), span("04", "01", second)]


def with_parts() -> tuple[Any, Any]:
    first = {"gen_ai.input.messages": json.dumps(ASKED)}
    first |= {"gen_ai.output.messages": json.dumps([USED])}
    second = {"gen_ai.input.messages": json.dumps([*ASKED, USED, RESULT])}
    second |= {"gen_ai.output.messages": json.dumps(SAID)}
    return calls(CHAT | first, CHAT | second), []


def with_details() -> tuple[Any, Any]:
    name = "gen_ai.client.inference.operation.details"
    first = {"gen_ai.input.messages": ASKED, "gen_ai.output.messages": [USED]}
    second = {"gen_ai.input.messages": [*ASKED, USED, RESULT], "gen_ai.output.messages": SAID}
    return calls(CHAT, CHAT), [event("02", name, None, first), event("04", name, None, second)]


def with_events() -> tuple[Any, Any]:
    function = {"name": "add", "arguments": '{"a": 2, "b": 2}'}
    used = {"tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    question = {"content": QUESTION}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant"}}
    return calls(CHAT, CHAT), [
        event("02", "gen_ai.user.message", question),
        event("02", "gen_ai.choice", {**choice, "message": used}),
        event("04", "gen_ai.user.message", question),
        event("04", "gen_ai.assistant.message", used),
        event("04", "gen_ai.tool.message", {"id": "c1", "content": "4"}),
        event("04", "gen_ai.choice", {**choice, "message": {"content": REPLY}}),
    ]


def with_numbers() -> tuple[Any, Any]:
    usage = {"gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.completion_tokens": 3}
    call = {"llm.request.type": "chat", "gen_ai.response.model": "mini", **usage}
    asked = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": QUESTION}
    used = {"id": "c1", "name": "add", "arguments": '{"a": 2, "b": 2}'}
    first = {f"gen_ai.completion.0.tool_calls.0.{n}": v for n, v in used.items()}
    second = {f"gen_ai.prompt.1.tool_calls.0.{n}": v for n, v in used.items()}
    second |= {"gen_ai.prompt.1.role": "assistant", "gen_ai.prompt.2.role": "tool"}
    second |= {"gen_ai.prompt.2.content": "4", "gen_ai.prompt.2.tool_call_id": "c1"}
    second |= {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": REPLY}
    return calls(call | asked | first, call | asked | second), []


def open_inference() -> tuple[Any, Any]:
    call = {"openinference.span.kind": "LLM", "llm.model_name": "mini"}
    call |= {"llm.token_count.prompt": 10, "llm.token_count.completion": 3}
    ask, say = "llm.input_messages", "llm.output_messages"
    asked = {f"{ask}.0.message.role": "user", f"{ask}.0.message.content": QUESTION}
    used = {"id": "c1", "function.name": "add", "function.arguments": '{"a": 2, "b": 2}'}
    way = "message.tool_calls.0.tool_call"
    first = {f"{say}.0.{way}.{n}": v for n, v in used.items()}
    second = {f"{ask}.1.{way}.{n}": v for n, v in used.items()}
    second |= {f"{ask}.1.message.role": "assistant", f"{ask}.2.message.role": "tool"}
    second |= {f"{ask}.2.message.content": "4", f"{ask}.2.message.tool_call_id": "c1"}
    second |= {f"{say}.0.message.role": "assistant", f"{say}.0.message.content": REPLY}
    return calls(call | asked | first, call | asked | second), []


DIALECTS = [with_parts, with_details, with_events, with_numbers, open_inference]
USED_TURN = {"id": "c1", "name": "add", "arguments": {"a": 2, "b": 2}}


def agent_log(folder: Path, dialect: Any = with_parts) -> Path:
    """Write an agent's attempt: a call, a tool, another call; the spans stand in two requests."""
    found, events = dialect()
    if events:
        written(folder / "x.logs.jsonl", logs(*events))
    return written(folder / "x.traces.jsonl", spans(*found), spans(*AGENT_SPANS))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_gives_the_same_record(dialect: Any, tmp_path: Path) -> None:
    path = agent_log(tmp_path, dialect)
    for place in (path, tmp_path):
        (row,) = records(place)
        assert (row["run"], row["subject"], row["task_id"]) == ("x", "adder", "sum")
        assert (row["input"], row["response"], row["status"]) == (QUESTION, REPLY, "ok")
        assert (row["prompt_tokens"], row["completion_tokens"]) == (20, 6)
        assert (row["passed"], row["latency_ms"], row["cost_usd"]) == (True, 250, None)
        assert json.loads(row["scores"]) == {"right": 1.0}
        assert json.loads(row["tool_calls"]) == [USED_TURN | {"result": "4"}]
        assert json.loads(row["messages"]) == [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": "", "tool_calls": [USED_TURN]},
            {"role": "tool", "content": "4", "tool_call_id": "c1"},
            {"role": "assistant", "content": REPLY},
        ]


def console(one: dict[str, Any]) -> dict[str, Any]:
    """Return a span as the console exporter prints it."""
    found = {a["key"]: next(iter(a["value"].values())) for a in one["attributes"]}
    ids = {"trace_id": "0x" + one["traceId"], "span_id": "0x" + one["spanId"]}
    parent = one.get("parentSpanId")
    events = [{"name": e["name"], "attributes": {}} for e in one["events"]]
    times = {"start_time": "2026-09-21T13:46:40.1Z", "end_time": "2026-09-21T13:46:40.35Z"}
    return {
        "name": "step",
        "context": ids,
        "parent_id": parent and "0x" + parent,
        **times,
        "status": {"status_code": "UNSET"},
        "attributes": found,
        "events": events,
    }


@pytest.mark.parametrize("indent", [None, 4])
def test_what_the_console_exporter_prints_is_read(indent: int | None, tmp_path: Path) -> None:
    several = [*with_parts()[0], *AGENT_SPANS]
    text = "\n".join(json.dumps(console(one), indent=indent) for one in several)
    (tmp_path / "out.jsonl").write_text(text + "\n")
    (row,) = records(tmp_path / "out.jsonl")
    assert (row["response"], row["prompt_tokens"], row["latency_ms"]) == (REPLY, 20, 250)


def protobuf(request: dict[str, Any], kind: str = "trace") -> bytes:
    """Return a request as the protobuf of the OpenTelemetry project itself."""
    place = f"opentelemetry.proto.collector.{kind}.v1.{kind}_service_pb2"
    name = f"Export{kind.capitalize()}ServiceRequest"
    message = getattr(pytest.importorskip(place), name)()
    json_format = pytest.importorskip("google.protobuf.json_format")
    ids = re.compile(r'("(?:traceId|spanId|parentSpanId)": ")([0-9a-f]+)"')
    text = ids.sub(
        lambda m: f'{m[1]}{b64encode(bytes.fromhex(m[2])).decode()}"', json.dumps(request)
    )
    made: bytes = json_format.Parse(text, message).SerializeToString()
    return made


@pytest.mark.parametrize("prefixed", [False, True])
def test_protobuf_is_read_as_json_is(prefixed: bool, tmp_path: Path) -> None:
    found, events = with_events()
    several = [protobuf(spans(*found)), protobuf(spans(*AGENT_SPANS))]
    for name, messages in {
        "x.traces.pb": several,
        "x.logs.pb": [protobuf(logs(*events), "logs")],
    }.items():
        sizes = [len(one).to_bytes(4, "big") if prefixed else b"" for one in messages]
        parts = zip(sizes, messages, strict=True)
        (tmp_path / name).write_bytes(b"".join(size + one for size, one in parts))
    (row,) = records(tmp_path)
    (same_row,) = records(tmp_path / "x.traces.pb")
    assert row == same_row
    assert (row["input"], row["response"], row["prompt_tokens"]) == (QUESTION, REPLY, 20)
    assert (row["passed"], row["latency_ms"]) == (True, 250)


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_protobuf_that_is_cut_off_is_told(cut: int, tmp_path: Path) -> None:
    whole = protobuf(spans(*with_parts()[0], *AGENT_SPANS))
    (tmp_path / "x.pb").write_bytes(whole[:-cut])
    assert read(file_sources(tmp_path / "x.pb"))[1]


def test_other_protobuf_is_no_log_of_traces() -> None:
    assert kind_of(b"\n\x03abc") is None
    assert kind_of(protobuf(spans(span("01", "", CHAT)))) == TRACES


def test_values_that_are_nested_without_end_are_refused() -> None:
    deep = b""
    for _ in range(130):  # a list in a list in a list …
        inner = b"\x0a" + _size(deep) + deep
        deep = b"\x2a" + _size(inner) + inner
    for tag in (b"\x2a", b"\x12", b"\x12", b"\x0a"):
        deep = tag + _size(deep) + deep
    with pytest.raises(ValueError, match="nested too deeply"):
        decode(deep, LOGS)


def _size(data: bytes) -> bytes:
    """Return a length as a varint of three bytes."""
    size = len(data)
    return bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])


def test_one_indented_request_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(spans(*with_parts()[0], *AGENT_SPANS), indent=2))
    (row,) = records(path)
    assert row["response"] == REPLY
    path.write_text(json.dumps([spans(*with_parts()[0]), spans(*AGENT_SPANS)]))
    assert records(path)[0]["response"] == REPLY


def test_a_trace_is_one_attempt_however_far_apart_its_spans_lie(tmp_path: Path) -> None:
    traces = [f"{n:02x}" for n in range(1, 41)]
    found = [span("02", "01", CHAT, trace=t) for t in traces]
    agents = [span("01", "", AGENT, trace=t) for t in reversed(traces)]
    path = written(tmp_path / "x.jsonl", *map(spans, [*found, *agents]))
    rows = records(path)
    assert sorted(row["attempt"] for row in rows) == list(range(1, 41))
    assert {row["trace_id"] for row in rows} == {t * 16 for t in traces}
    assert {row["prompt_tokens"] for row in rows} == {10}


def test_every_tree_of_a_trace_is_an_attempt(tmp_path: Path) -> None:
    """A call without its parent, and agents with a conversation each below one span."""
    other = AGENT | {"gen_ai.conversation.id": "other"}
    path = written(
        tmp_path / "x.jsonl",
        spans(span("02", "09", CHAT), span("03", "", {}), span("04", "03", AGENT)),
        spans(span("05", "03", other), span("06", "05", CHAT), span("07", "04", CHAT)),
        spans(span("08", "04", CHAT)),
    )
    rows = {row["task_id"]: row["prompt_tokens"] for row in records(path)}
    assert rows == {"aa" * 16: 10, "sum": 20, "other": 10}


def test_a_span_that_was_exported_twice_counts_once(tmp_path: Path) -> None:
    found = spans(*with_parts()[0], *AGENT_SPANS)
    (row,) = records(written(tmp_path / "x.jsonl", found, found))
    assert row["prompt_tokens"] == 20


def test_a_call_that_wraps_another_is_not_counted_again(tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", spans(span("01", "", CHAT), span("02", "01", CHAT)))
    (row,) = records(path)
    assert (row["prompt_tokens"], row["subject"]) == (10, "mini")


def test_an_error_of_the_agent_or_its_last_call_is_no_failure(tmp_path: Path) -> None:
    broken = {"status": {"code": 2, "message": "overloaded"}}
    said = ("exception", {"exception.message": "cut off"})
    path = written(
        tmp_path / "x.jsonl",
        spans(span("01", "", AGENT, evaluated(0.0), **broken), span("02", "01", CHAT)),
        spans(span("01", "", AGENT, trace="bb"), span("02", "01", CHAT, **broken, trace="bb")),
        spans(span("01", "", CHAT, said, status={"code": "STATUS_CODE_ERROR"}, trace="cc")),
        spans(span("01", "", AGENT, trace="dd"), span("02", "01", CHAT, trace="dd", **broken)),
        spans(span("03", "01", CHAT, trace="dd")),
    )
    rows = records(path)
    told = [(r["status"], r["error"], r["passed"]) for r in rows]
    assert told[:2] == [("error", "overloaded", None)] * 2
    assert told[2:] == [("error", "cut off", None), ("ok", None, None)]


def test_an_evaluation_may_come_as_a_log_event_of_the_span_or_of_the_response(
    tmp_path: Path,
) -> None:
    reply = {"gen_ai.response.id": "r2"}
    path = written(
        tmp_path / "x.traces.jsonl",
        spans(span("01", "", CHAT), span("01", "", CHAT | reply, trace="bb")),
    )
    name, half = evaluated(0.5)
    _, late = evaluated(1.0)
    written(
        tmp_path / "x.logs.jsonl",
        logs(event("01", name, None, half), event("", name, None, late | reply)),
    )
    assert [(row["passed"], row["impl_rate"]) for row in records(path)] == [(False, 0.5), (True, 1)]


def test_the_label_decides_and_the_scorer_is_chosen(tmp_path: Path) -> None:
    results = evaluated(0.7, "pass"), evaluated(4.0, "fail", "style"), evaluated(-3.0, "", "tone")
    path = written(tmp_path / "x.jsonl", spans(span("01", "", CHAT, *results)))
    (row,) = records(path)
    assert (row["passed"], row["impl_rate"]) == (True, 0.7)
    checks = {one["name"]: one["holds"] for one in json.loads(row["checks"])}
    assert checks == {"right": True, "style": False, "tone": None}
    (row,) = records(path, scorer="style")
    assert (row["passed"], row["impl_rate"]) == (False, None)
    (row,) = records(path, scorer="tone")
    assert (row["passed"], row["undecided"]) == (None, ["tone"])
    with pytest.raises(UsageError, match=r"Evaluation 'tome' is not known\. Did you mean 'tone'"):
        records(path, scorer="tome")
    bare = written(tmp_path / "bare.jsonl", spans(span("01", "", CHAT)))
    with pytest.raises(UsageError, match=r"Score 'tone' is not known\. The log has no scores"):
        records(bare, scorer="tone")


def test_a_task_is_any_attribute_and_secrets_are_not_copied(tmp_path: Path) -> None:
    path = agent_log(tmp_path)
    scores = pennyweight.score(path, map={"task_id": "lab.level"}, by=["task_id"])
    assert [group.group["task_id"] for group in scores.groups] == ["easy"]
    (row,) = records(path)
    assert row["lab.level"] == "easy"
    assert "sk-1" not in str(row)


def test_traces_without_a_model_are_left_out(tmp_path: Path) -> None:
    other = span("01", "", {"http.route": "/health"}, trace="bb")
    path = written(tmp_path / "x.jsonl", spans(span("01", "", CHAT), other))
    assert len(records(path)) == 1
    (note,) = notes_of(path)
    assert note == "x.jsonl: 1 trace without a call to a model or an agent left out."


def test_log_events_beside_spans_are_not_read_twice(tmp_path: Path) -> None:
    path = agent_log(tmp_path, with_events).with_name("x.logs.jsonl")
    with pytest.raises(InputError, match=r"belong to x\.traces\.jsonl; name that file"):
        records(path)


def test_log_events_alone_are_the_calls_that_they_tell_of(tmp_path: Path) -> None:
    _, events = with_details()
    found = [event("04", events[1]["eventName"], None, CHAT | {"gen_ai.output.messages": SAID})]
    (row,) = records(written(tmp_path / "x.logs.jsonl", logs(*found)))
    assert (row["response"], row["prompt_tokens"], row["latency_ms"]) == (REPLY, 10, None)


def test_what_is_broken_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lost = span("01", "", CHAT) | {"traceId": ""}
    loop = [span("05", "06", CHAT, trace="bb"), span("06", "05", CHAT, trace="bb")]
    odd = span("01", "", CHAT, trace="cc") | {"attributes": 7, "startTimeUnixNano": "soon"}
    good = json.dumps(spans(span("01", "", CHAT), lost, odd, *loop))
    path.write_text(good + '\n{"resourceSpans": [{"sco')
    rows, problems = read(file_sources(path))
    assert [row["prompt_tokens"] for row in rows] == [10]
    assert len(problems) == 2


def test_the_real_logs_give_what_was_measured_in_every_dialect() -> None:
    folder = fixture("otel")
    alike = []
    for path in [*folder.glob("*.traces.jsonl"), *folder.glob("*.console.jsonl")]:
        rows = records(path)
        measured = expected("otel")[path.name.split(".")[0]]
        assert {
            "attempts": len(rows),
            "passed": sum(row["passed"] is True for row in rows),
            "failed": sum(row["passed"] is False for row in rows),
            "errors": sum(row["status"] == "error" for row in rows),
            "prompt_tokens": sum(row["prompt_tokens"] or 0 for row in rows),
            "completion_tokens": sum(row["completion_tokens"] or 0 for row in rows),
        }.items() <= measured.items()
        alike.append([same(row) for row in rows])
    assert len(alike) == 8
    assert all(rows == alike[0] for rows in alike)
    assert len(records(folder)) == 6 * 8


COLUMNS = (
    *("subject", "task_id", "attempt", "input", "response", "status", "passed", "impl_rate"),
    *("prompt_tokens", "completion_tokens", "finish", "truncated", "scores", "checks"),
)


def same(row: dict[str, Any]) -> list[Any]:
    """Return what all dialects know alike; the ids of tool calls differ, some keep reasoning."""
    chat = [
        [m["role"], m["content"], [[c["name"], c["arguments"]] for c in m.get("tool_calls", ())]]
        for m in json.loads(row["messages"])
    ]
    used = [[c["name"], c["arguments"], c["result"]] for c in json.loads(row["tool_calls"] or "[]")]
    return [*(row[name] for name in COLUMNS), chat, used]
