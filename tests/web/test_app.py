"""Whatever breaks, the answer is ours: JSON to a program, a page to a person."""

import gc
import sqlite3

import pytest
from jinja2.runtime import Context
from starlette.requests import Request
from starlette.testclient import TestClient

from pennyweight.store.store import Store
from pennyweight.web.app import make_app
from pennyweight.web.pages import pages
from pennyweight.web.site import Site
from web.serving import replayed, serving


def test_what_breaks_is_told_in_our_own_words(filled, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(Site, "state", broken)
    store = Store(str(filled[0] / ".pennyweight" / "pennyweight.db"))
    local = {"base_url": "http://localhost", "raise_server_exceptions": False}
    with TestClient(make_app(store), **local) as client:
        told = client.get("/api/runs/x")
        assert told.status_code == 500
        assert "Internal error (ZeroDivisionError)" in told.json()["detail"]
        page = client.get("/runs/x")
        assert page.status_code == 500
        assert "<h1>Internal error</h1>" in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert client.get("/new").status_code == 200
    store.close()


def test_a_damaged_store_is_told_as_one(tmp_path):
    run = replayed(tmp_path)
    with sqlite3.connect(tmp_path / ".pennyweight" / "pennyweight.db") as store:
        store.execute("UPDATE pennyweight_run SET settings = '[1]'")
    with serving(tmp_path) as server:
        status, told = server.json(f"/api/runs/{run}")
        assert status == 503
        assert f"settings of run {run} is '[1]'" in told["detail"]
        assert server.get(f"/runs/{run}")[0] == 503


@pytest.mark.parametrize("path", ["/", "/runs/{run}", "/runs/{run}/records", "/new", "/docs"])
def test_a_page_is_forgotten_once_it_is_sent(filled, path):
    """What goes in circles keeps a whole page in memory until the collector looks."""
    folder, run = filled
    store = Store(str(folder / ".pennyweight" / "pennyweight.db"))
    app = make_app(store).app.app
    shows = {route.path: route.endpoint for route in pages()}

    def ask(path):
        scope = {"type": "http", "method": "GET", "path": path.format(run=run), "headers": []}
        scope |= {"query_string": b"", "path_params": {"run": run}, "app": app}
        assert shows[path](Request(scope)).status_code == 200

    def filled_in():
        return sum(type(held) is Context for held in gc.get_objects())

    ask("/runs/{run}")  # its digest is made
    ask(path)
    gc.disable()
    try:
        before = filled_in()
        ask(path)
        assert filled_in() == before
    finally:
        gc.enable()
    store.close()
