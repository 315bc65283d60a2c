"""A program that traces with the real OpenTelemetry SDK sends its spans to a real server."""

import gzip
import json
from urllib.parse import quote

import pytest

from pennyweight.web.access import Access
from pennyweight.web.guard import Guard
from sources.logs.test_otel import CHAT, TOOL, span, spans, with_parts
from web.serving import serving
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
    until(
        lambda: server.json(f"/api/runs/{run}/digest", headers=SIGNED)[1],
        lambda digest: digest["current"],
    )
    found = server.json(f"/api/runs/{run}/records", headers=SIGNED)[1]["records"]
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
