"""`pennyweight collect`: what it prints, and with which code it exits."""

import pytest

from batch_serving import batch_server, batch_suite
from cli.command import pennyweight


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with batch_server(tmp_path) as started:
        yield started


def test_a_run_in_batches(server, tmp_path):
    batch_suite(tmp_path, server, limits={}, answer="last_line")
    server.control(hold=True)
    ran = pennyweight("run", "suite.yaml", "--batch")
    assert ran.code == 0
    assert "5 requests are out in 1 batch. Fetch their replies with: pennyweight collect" in ran.err
    early = pennyweight("collect")
    assert early.code == 3
    listed = pennyweight("runs")
    assert "waiting" in listed.out
    assert "5 out in batches" in " ".join(listed.out.split())
    assert pennyweight("runs", "--format", "json").json["runs"][0]["out"] == {
        "batches": 1, "requests": 5, "done": 0,
    }  # fmt: skip
    assert "5 requests in 1 batch" in " ".join(pennyweight("show").out.split())
    server.control(hold=False)
    done = pennyweight("collect", "--wait", "--poll", "0.01s", "--format", "json")
    assert (done.code, done.json["groups"][0]["metrics"]["accuracy"]) == (0, 1.0)
    assert "5 of 5 attempts made" in done.err
    assert pennyweight("collect").code == 2
    assert "out" not in pennyweight("runs", "--format", "json").json["runs"][0]


def test_wrong_usage(server, tmp_path):
    wrong = pennyweight("collect", "--deadline", "soon")
    assert (wrong.code, "write 90s, 30m, 6h or 1d" in wrong.err) == (2, True)
    assert "No run waits for batches" in pennyweight("collect").err


def test_the_deadline_has_units(server, tmp_path):
    batch_suite(tmp_path, server)
    server.control(hold=True)
    pennyweight("run", "suite.yaml")
    ended = pennyweight("collect", "--wait", "--poll", "0.01s", "--deadline", "0h")
    assert (ended.code, server.log()["live"]) == (0, 5)
