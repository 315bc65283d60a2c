"""A program that traces with the real OpenTelemetry SDK sends its spans to a real server."""

import gzip
import json
from urllib.parse import quote

import pytest

from pennyweight.web.access import Access
from pennyweight.web.guard import Guard
from sources.logs.test_otel import CHAT, TOOL, event, span, spans, with_parts
from sources.logs.test_otel import logs as log_events
from web.serving import command, serving
from web.test_rest import until

http = pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
exporters = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
resources = pytest.importorskip("opentelemetry.sdk.resources")
status = pytest.importorskip("opentelemetry.trace.status")

TOKEN = "a-token-of-a-test-server"
SIGNED = {"Authorization": f"Bearer {TOKEN}"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that requires a token."""
    folder = tmp_path_factory.mktemp("otlp")
    with serving(folder, env={"PENNYWEIGHT_TOKEN": TOKEN}, open_to_all=False) as started:
        yield started


def agent(provider, task, *, score=None, error=""):
    """Trace an agent's attempt: a call, a tool, a call."""
    tracer = provider.get_tracer("test")
    about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "adder"}
    with tracer.start_as_current_span("agent", attributes=about) as root:
        root.set_attribute("gen_ai.conversation.id", task)
        first, second = (dict(read(one)) for one in with_parts()[0])
        for name, found in (("chat", first), ("tool", TOOL), ("chat", second)):
            with tracer.start_as_current_span(name, attributes=found):
                pass
        if score is not None:
            result = {"gen_ai.evaluation.name": "right", "gen_ai.evaluation.score.value": score}
            root.add_event("gen_ai.evaluation.result", result)
        if error:
            root.set_status(status.Status(status.StatusCode.ERROR, error))


def read(one):
    """Give the attributes of a span as the SDK takes them."""
    for pair in one["attributes"]:
        ((kind, value),) = pair["value"].items()
        yield pair["key"], int(value) if kind == "intValue" else value


def measured(server, run):
    """Wait until a run is scored; return its records."""
    until(
        lambda: server.json(f"/api/runs/{run}/digest", headers=SIGNED)[1],
        lambda digest: digest["current"],
    )
    return server.json(f"/api/runs/{run}/records", headers=SIGNED)[1]["records"]


@pytest.mark.parametrize(
    ("run", "processor", "compression"),
    [
        ("each", export.SimpleSpanProcessor, None),
        ("batch", export.BatchSpanProcessor, http.Compression.Gzip),
    ],
)
def test_traces_of_the_sdk_become_attempts_of_a_run(server, run, processor, compression):
    exporter = exporters.OTLPSpanExporter(
        f"{server.address}/v1/traces",
        headers={**SIGNED, "X-Pennyweight-Run": run},
        compression=compression,
    )
    provider = sdk.TracerProvider(resource=resources.Resource({"service.name": "shop"}))
    provider.add_span_processor(processor(exporter))
    agent(provider, "sum", score=1.0)
    agent(provider, "sum", score=0.0)
    agent(provider, "crash", error="overloaded")
    provider.shutdown()
    found = measured(server, run)
    assert [(r["task_id"], r["attempt"], r["status"], r["passed"]) for r in found] == [
        ("crash", 1, "error", None),
        ("sum", 1, "ok", True),
        ("sum", 2, "ok", False),
    ]
    key = quote(json.dumps(["sum", "adder", "T0", 1]))
    address = f"/api/runs/{run}/record?key={key}"
    whole = server.json(address, headers=SIGNED)[1]["record"]
    assert (whole["prompt_tokens"], whole["response"]) == (20, "It is 4.")
    (call,) = json.loads(whole["tool_calls"])
    assert (call["name"], call["result"]) == ("add", "4")


def post(server, body, **headers):
    return server.get("/v1/traces", method="POST", body=body, headers={**JSON, **headers})


def test_json_is_taken_and_the_run_is_named_by_the_service(server):
    body = json.dumps(spans(span("01", "", CHAT))).encode()
    code, headers, text = post(
        server, gzip.compress(body), **SIGNED, **{"Content-Encoding": "gzip"}
    )
    assert (code, headers["content-type"], text) == (200, "application/json", "{}")
    assert server.json("/api/runs/shop", headers=SIGNED)[1]["made"] == 1
    assert post(server, body, **SIGNED)[0] == 200  # sent again
    assert server.json("/api/runs/shop", headers=SIGNED)[1]["made"] == 1


SUITE = """\
suite: s
prompt: "{{ input }}"
subjects: ["python:told:answer"]
tasks: [{id: a, input: x, target: "4"}, {id: b, input: y, target: "5"}]
"""


def test_a_run_sends_its_attempts_to_a_server(server, tmp_path):
    (tmp_path / "told.py").write_text("def answer(text):\n    return 'FINAL_ANSWER: 4'\n")
    (tmp_path / "suite.yaml").write_text(SUITE)
    key = {"OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{TOKEN},x-pennyweight-run=ours"}
    done = command("run", "suite.yaml", "--otel", server.address, folder=tmp_path, env=key)
    assert f"Sent 2 attempts as traces to {server.address}." in done.stderr
    assert TOKEN not in done.stdout + done.stderr
    assert TOKEN.encode() not in b"".join(p.read_bytes() for p in tmp_path.rglob("*.db*"))
    found = measured(server, "ours")
    assert [(r["task_id"], r["passed"]) for r in found] == [("a", True), ("b", False)]


def test_log_events_bring_messages_and_results_before_and_after_the_root_ends(server):
    headers = {**SIGNED, "X-Pennyweight-Run": "events"}
    said = event("01", "gen_ai.choice", {"message": {"content": "It is 4."}})
    asked = event("01", "gen_ai.user.message", {"content": "What is 2 + 2?"})
    about = {"gen_ai.evaluation.name": "right", "gen_ai.evaluation.score.value": 1.0}
    result = event("01", "gen_ai.evaluation.result", None, about)
    body = json.dumps(log_events(asked, said)).encode()
    assert server.get("/v1/logs", method="POST", body=body, headers={**JSON, **headers})[0] == 200
    assert post(server, json.dumps(spans(span("01", "", CHAT))).encode(), **headers)[0] == 200
    body = json.dumps(log_events(result)).encode()
    assert server.get("/v1/logs", method="POST", body=body, headers={**JSON, **headers})[0] == 200
    (row,) = measured(server, "events")
    assert (row["attempt"], row["passed"]) == (1, True)
    key = quote(json.dumps([row["task_id"], row["subject"], "T0", 1]))
    whole = server.json(f"/api/runs/events/record?key={key}", headers=SIGNED)[1]["record"]
    assert (whole["input"], whole["response"]) == ("What is 2 + 2?", "It is 4.")
    assert server.json("/api/runs/events", headers=SIGNED)[1]["made"] == 1


@pytest.mark.parametrize(
    ("body", "headers", "code", "told"),
    [
        (b"{}", {}, 401, "A token is required"),
        (b"{}", {**SIGNED, "Content-Type": "text/plain"}, 415, "Send OTLP as"),
        (b"{}", {**SIGNED, "Content-Encoding": "br"}, 415, "compressed with gzip"),
        (b"{", SIGNED, 400, "no OTLP JSON"),
        (b"\x0a\x09", {**SIGNED, "Content-Type": "application/x-protobuf"}, 400, "cut off"),
        (b"no", {**SIGNED, "Content-Encoding": "gzip"}, 400, "cannot be decompressed"),
        (b"{}", {**SIGNED, "X-Pennyweight-Run": "../x"}, 400, "a name has up to 80"),
        (b"{}", {**SIGNED, "Origin": "http://elsewhere.example"}, 403, "another site"),
    ],
)
def test_what_is_wrong_is_refused(server, body, headers, code, told):
    found, _, text = post(server, body, **headers)
    assert (found, told in json.loads(text)["detail"]) == (code, True)


def test_a_server_without_a_token_takes_traces_and_nothing_else_without_its_page():
    async def app(*_): ...

    guard = Guard(app, Access(), frozenset(["localhost"]))
    scope = {"type": "http", "method": "POST", "headers": [(b"host", b"localhost")]}
    assert guard.check({**scope, "path": "/v1/traces"}) is None
    assert guard.check({**scope, "path": "/api/runs"}).status_code == 403
