"""The batch server of the tests speaks as the official packages do, and so does our client."""

import asyncio
import json
from base64 import b64encode
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from batch_serving import DIALECTS, batch_server
from pennyweight.models.failure import CallError
from pennyweight.models.model import Message, Request, Settings
from pennyweight.models.providers import PROVIDERS, find


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with batch_server(tmp_path_factory.mktemp("batches")) as started:
        yield started


def test_the_official_openai_package(server, tmp_path):
    from openai import OpenAI

    body = {"model": "fake", "messages": [{"role": "user", "content": "1 + 2"}]}
    line = {"custom_id": "one", "method": "POST", "url": "/v1/chat/completions", "body": body}
    file = tmp_path / "requests.jsonl"
    file.write_text(json.dumps(line) + "\n")
    with OpenAI(api_key="k", base_url=server.base_url("openai")) as client:
        uploaded = client.files.create(file=file, purpose="batch")
        made = client.batches.create(
            input_file_id=uploaded.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"pennyweight": "a name"},
        )
        batch = client.batches.retrieve(made.id)
        assert batch.status == "completed"
        assert (batch.request_counts.total, batch.metadata) == (1, {"pennyweight": "a name"})
        assert made.id in [one.id for one in client.batches.list(limit=1)]
        read = json.loads(client.files.content(batch.output_file_id).text)
        assert read["response"]["body"]["choices"][0]["message"]["content"] == "3"
        server.control(hold=True)
        running = client.batches.create(
            input_file_id=uploaded.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
        assert client.batches.cancel(running.id).status == "cancelled"
        assert batch.request_counts.completed == 1
        assert client.files.delete(uploaded.id).deleted
        server.control(hold=False)


def test_the_official_anthropic_package(server):
    from anthropic import Anthropic

    message = {"role": "user", "content": "1 + 2"}
    params = {"model": "fake", "max_tokens": 8, "messages": [message]}
    with Anthropic(api_key="k", base_url=server.base_url("anthropic")) as client:
        made = client.messages.batches.create(requests=[{"custom_id": "one", "params": params}])
        batch = client.messages.batches.retrieve(made.id)
        assert (batch.processing_status, batch.request_counts.succeeded) == ("ended", 1)
        assert made.id in [one.id for one in client.messages.batches.list(limit=1)]
        (row,) = client.messages.batches.results(made.id)
        assert (row.custom_id, row.result.type) == ("one", "succeeded")
        assert row.result.message.content[0].text == "3"
        server.control(fail={"1 + 2": 429})
        failed = client.messages.batches.create(requests=[{"custom_id": "one", "params": params}])
        (row,) = client.messages.batches.results(failed.id)
        assert row.result.error.error.type == "rate_limit_error"
        server.control(fail={}, hold=True)
        running = client.messages.batches.create(requests=[{"custom_id": "one", "params": params}])
        assert client.messages.batches.cancel(running.id).processing_status == "ended"
        client.messages.batches.delete(made.id)
        assert made.id not in [one.id for one in client.messages.batches.list()]
        server.control(hold=False)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_official_google_package(server, tmp_path):
    from google import genai

    content = {"contents": [{"role": "user", "parts": [{"text": "1 + 2"}]}]}
    file = tmp_path / "requests.jsonl"
    file.write_text(json.dumps({"key": "one", "request": content}) + "\n")
    client = genai.Client(
        api_key="k", http_options={"base_url": server.address, "api_version": "v1beta"}
    )
    uploaded = client.files.upload(file=file, config={"mime_type": "application/jsonl"})
    made = client.batches.create(model="fake", src=uploaded.name, config={"display_name": "a name"})
    batch = client.batches.get(name=made.name)
    assert (batch.state.name, batch.display_name) == ("JOB_STATE_SUCCEEDED", "a name")
    assert made.name in [one.name for one in client.batches.list(config={"page_size": 1})]
    row = json.loads(client.files.download(file=batch.dest.file_name))
    assert row["response"]["candidates"][0]["content"]["parts"][0]["text"] == "3"
    server.control(hold=True)
    running = client.batches.create(model="fake", src=uploaded.name)
    client.batches.cancel(name=running.name)
    assert client.batches.get(name=running.name).state.name == "JOB_STATE_CANCELLED"
    client.files.delete(name=uploaded.name)
    server.control(hold=False)
    client.close()


def service_of(server, dialect, key_env=None):
    model = find(f"{dialect}/fake", base_url=server.base_url(dialect), key_env=key_env)
    asyncio.run(model.close())
    return model.batches()


def submitted(service, tmp_path, *prompts, name="a-name"):
    dialect, lines = service.dialect, []
    for number, prompt in enumerate(prompts):
        request = Request((Message("user", prompt),), Settings(max_tokens=8), number)
        _, path, line = service.request_id("me", request)
        lines.append(line)
    whole = dialect.HEAD + dialect.BETWEEN.join(lines) + dialect.TAIL
    file = tmp_path / "upload"
    file.write_bytes(whole)
    steps = []
    with file.open("rb") as opened:
        remote = service.submit(opened, len(whole), name, path, lambda: steps.append("submitting"))
    assert steps == ["submitting"]
    return remote


@pytest.mark.parametrize("dialect", DIALECTS)
def test_our_client_says_the_same(server, dialect, tmp_path):
    service = service_of(server, dialect)
    service.check()
    made = submitted(service, tmp_path, "1 + 2", "20 + 3")
    batch = service.read(made.handle)
    assert batch.has_ended
    assert (batch.requests, batch.done, batch.succeeded) == (2, 2, 2)
    assert batch.name == (None if dialect == "anthropic" else "a-name")
    assert made.handle in [one.handle for one in service.listed()]
    replies = [service.reply(row) for row in service.results(batch)]
    assert sorted(reply.text for reply in replies) == ["23", "3"]
    assert {(r.lane, r.latency_ms, r.usage.prompt_tokens) for r in replies} == {("batch", None, 3)}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_errors_of_rows_have_their_kinds(server, dialect, tmp_path):
    service = service_of(server, dialect)
    server.control(fail={"bad": 400, "busy": 429}, expire=["late"])
    batch = service.read(submitted(service, tmp_path, "bad", "busy", "late", "2 + 2").handle)
    server.control(fail={}, expire=[])
    kinds = []
    for row in service.results(batch):
        try:
            kinds.append(service.reply(row).text)
        except CallError as error:
            kinds.append(error.kind)
    assert sorted(kinds) == ["4", "bad_request", "rate_limit", "timeout"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_server_without_batches_says_so(dialect, server, tmp_path):
    model = find(f"{dialect}/fake", base_url=f"{server.address}/elsewhere")
    with pytest.raises(CallError) as error:
        model.batches().check()
    assert error.value.kind == "not_found"


def test_results_elsewhere_are_not_fetched(server):
    """The key goes to one address alone, whatever the provider answers."""
    client = service_of(server, "openai").client
    with pytest.raises(CallError, match="another address"):
        list(client.lines("http://127.0.0.2:1/files/x"))


def test_keys_are_removed_from_results(server, tmp_path, monkeypatch):
    monkeypatch.setenv("OUR_KEY", "123456789012345")
    service = service_of(server, "openai", "OUR_KEY")
    made = submitted(service, tmp_path, "123456789012345")
    replies = [service.reply(row).text for row in service.results(service.read(made.handle))]
    assert replies == ["[key]"]


def test_a_file_is_cut_into_lines_wherever_pieces_end(server, tmp_path, monkeypatch):
    from pennyweight.models.batch import client

    service = service_of(server, "openai")
    batch = service.read(submitted(service, tmp_path, *(f"{i} + 1" for i in range(30))).handle)
    whole = [row.id for row in service.results(batch)]
    monkeypatch.setattr(client, "PIECE", 7)
    assert [row.id for row in service.results(batch)] == whole
    monkeypatch.setattr(client, "MAX_BODY", 100)  # every line is too long
    assert list(service.results(batch)) == [None] * 30


def test_ids_differ_by_what_is_asked_and_by_whom(server):
    service = service_of(server, "openai")
    request = Request((Message("user", "Hi"),), Settings(max_tokens=8), 1, label="T0\0t1")
    ids = {
        service.request_id(owner, one)[0]
        for owner in ("a", "b")
        for one in (request, Request(request.messages, request.settings, 2, label="T0\0t1"))
    }
    assert len(ids) == 4
    assert service.request_id("a", request) == service.request_id("a", request)


def test_openai_takes_the_responses_format_in_batches(server, tmp_path):
    from openai import OpenAI
    from openai.types.responses import Response

    model = find("openai-responses/fake", base_url=server.base_url("openai"))
    asyncio.run(model.close())
    service = model.batches()
    made = submitted(service, tmp_path, "1 + 2", "20 + 3")
    sent = [json.loads(line) for line in (tmp_path / "upload").read_text().splitlines()]
    assert {line["url"] for line in sent} == {"/v1/responses"}
    assert all(line["body"]["store"] is False for line in sent)
    batch = service.read(made.handle)
    replies = [service.reply(row) for row in service.results(batch)]
    assert sorted(reply.text for reply in replies) == ["23", "3"]
    assert {(r.lane, r.usage.prompt_tokens) for r in replies} == {("batch", 3)}
    with OpenAI(api_key="k", base_url=server.base_url("openai")) as client:
        theirs = client.batches.retrieve(made.handle)
        assert theirs.endpoint == "/v1/responses"
        rows = client.files.content(theirs.output_file_id).text.splitlines()
    bodies = [Response.model_validate(json.loads(row)["response"]["body"]) for row in rows]
    assert sorted(body.output_text for body in bodies) == ["23", "3"]


def test_providers_with_batches():
    with_batches = {name for name, provider in PROVIDERS.items() if provider.batches}
    assert {"openai", "openai-responses", "anthropic", "google"} <= with_batches
    assert "ollama" not in with_batches


@contextmanager
def proxy(monkeypatch):
    """A proxy that answers plain calls itself and refuses tunnels; gives what it was asked."""
    asked = []

    class Proxy(BaseHTTPRequestHandler):
        def answer(self, status):
            seen = [self.headers.get(name) for name in ("Host", "Proxy-Authorization")]
            asked.append((self.command, self.path, *seen))
            body = b'{"id": "b", "object": "batch", "status": "in_progress"}'
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.answer(200)

        def do_CONNECT(self):
            self.answer(403)

        def log_message(self, *words):
            pass

    with HTTPServer(("127.0.0.1", 0), Proxy) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        for name in ("http_proxy", "https_proxy"):
            address = f"http://me:p%40ss@127.0.0.1:{server.server_port}"
            monkeypatch.setenv(name, address)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        yield asked
        server.shutdown()
        thread.join()


def test_a_proxy_gets_its_password_and_whole_addresses(monkeypatch):
    login = f"Basic {b64encode(b'me:p@ss').decode()}"
    with proxy(monkeypatch) as asked:
        plain = find("openai/fake", base_url="http://there.invalid:81/v1").batches()
        assert not plain.read("b").has_ended
        secure = find("openai/fake", base_url="https://there.invalid/v1").batches()
        with pytest.raises(CallError, match="403") as refused:
            secure.read("b")
        assert "p@ss" not in str(refused.value)
    first, second = asked
    assert first == ("GET", "http://there.invalid:81/v1/batches/b", "there.invalid:81", login)
    assert second[:2] == ("CONNECT", "there.invalid:443")
    assert second[3] == login


def test_a_proxy_with_tls_is_refused_for_tunnels(monkeypatch):
    monkeypatch.setenv("https_proxy", "https://me:pass@127.0.0.1:9")
    service = find("openai/fake", base_url="https://there.invalid/v1").batches()
    with pytest.raises(CallError, match="Name an http:// one"):
        service.read("b")
