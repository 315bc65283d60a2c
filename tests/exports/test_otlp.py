"""Requests to an OpenTelemetry endpoint: where they go, which headers they have, what fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from background import in_background
from pennyweight.errors import UsageError
from pennyweight.exports.otlp import HEADERS, OtlpEndpoint, OtlpError
from pennyweight.sources.otel.protobuf import LOGS, TRACES, encode

Request = tuple[str, dict[str, str], bytes]
SPANS = {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "a"}]}]}]}


@contextmanager
def collector(
    status: int = 200, body: bytes = b"", **headers: str
) -> Iterator[tuple[str, list[Request]]]:
    """Answer every request alike; yields the address, and the requests as they come."""
    taken: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            taken.append((self.path, {k.lower(): v for k, v in self.headers.items()}, data))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with in_background(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}", taken


def test_headers_come_from_the_environment_and_are_never_shown(monkeypatch):
    monkeypatch.setenv(HEADERS, "authorization=Bearer%20s3cret, x-run=1")
    with collector() as (address, taken):
        endpoint = OtlpEndpoint.of(f"{address}/v1/traces")
        assert endpoint.send(SPANS, TRACES) == 0
        endpoint.send({"resourceLogs": []}, LOGS)
    assert "s3cret" not in repr(endpoint)
    (path, headers, body), (other, *_) = taken
    assert (path, other, body) == ("/v1/traces", "/v1/logs", encode(SPANS, TRACES))
    assert (headers["authorization"], headers["x-run"]) == ("Bearer s3cret", "1")
    assert headers["content-type"] == "application/x-protobuf"


def test_spans_that_are_refused_are_counted():
    answer = encode({"partialSuccess": {"rejected": 2, "errorMessage": "no"}}, "Answer")
    with collector(body=answer) as (address, _):
        assert OtlpEndpoint.of(address).send(SPANS, TRACES) == 2


@pytest.mark.parametrize(
    ("status", "again"), [(503, True), (429, True), (400, False), (401, False)]
)
def test_what_fails_says_whether_to_try_again(status, again):
    with collector(status) as (address, _), pytest.raises(OtlpError, match=str(status)) as told:
        OtlpEndpoint.of(address).send(SPANS, TRACES)
    assert told.value.again is again


def test_a_redirect_gets_no_headers(monkeypatch):
    monkeypatch.setenv(HEADERS, "x-key=s3cret")
    with collector() as (elsewhere, taken), collector(307, Location=elsewhere) as (address, _):
        with pytest.raises(OtlpError, match="307"):
            OtlpEndpoint.of(address).send(SPANS, TRACES)
        assert taken == []


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:4318", "ftp://a", "http://", "http://a:x", "http://k:s3cret@a", "http://a?b"],
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(UsageError, match="--otel") as told:
        OtlpEndpoint.of(address)
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("text", ["s3cret", "a b=s3cret", "x=s3cret%0d%0ay:z"])
def test_headers_that_are_none_are_refused_without_their_values(text, monkeypatch):
    monkeypatch.setenv(HEADERS, text)
    with pytest.raises(UsageError, match=HEADERS) as told:
        OtlpEndpoint.of("http://127.0.0.1:1")
    assert "s3cret" not in str(told.value)
