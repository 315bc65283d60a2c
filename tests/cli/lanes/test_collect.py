"""`pennyweight collect`: what it prints, and with which code it exits."""

import shlex

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


def test_the_command_that_is_shown_collects_what_options_changed(server, tmp_path):
    path = batch_suite(tmp_path, server, limits={}, answer="last_line")
    own, given = server.base_url("openai"), "http://127.0.0.1:9/v1"
    path.write_text(path.read_text().replace(own, given))
    server.control(hold=True)
    change = f"subjects.m.base_url={own}"
    ran = pennyweight("run", "suite.yaml", "--limit", "3", "--set", change, "--batch")
    server.control(hold=False)
    unsure = pennyweight("collect")
    assert (unsure.code, "It would:" in unsure.err) == (2, True)
    for said in (ran.err, unsure.err):
        shown = said.splitlines()[-1].partition("pennyweight collect ")[2]
        assert shlex.split(shown)[1:] == ["--set", change, "--set", "limits.lane=batch"]
    done = pennyweight("collect", *shlex.split(shown))
    assert (done.code, "3 of 3 attempts made" in done.err) == (0, True)


POLICY = "on: confident\nthresholds: {accuracy: {threshold: '≥ 60%', indifference: 10%}}\n"


def test_a_policy_that_is_decided_ends_a_run_in_batches(server, tmp_path):
    batch_suite(tmp_path, server, tasks=300, limits={}, answer="last_line")
    (tmp_path / "policy.yaml").write_text(POLICY)
    until = ("--until-decided", "policy.yaml", "--version", "2")
    ran = pennyweight("run", "suite.yaml", "--batch", *until)
    codes = []
    while codes[-1:] in ([], [3]):
        shown = ran.err.strip().splitlines()[-1].partition("pennyweight collect ")[2]
        ran = pennyweight("collect", *(shlex.split(shown) or until))
        codes.append(ran.code)
    assert (codes, server.submissions()) == ([3, 0], [10, 10])
    assert "Passed: policy.yaml" in ran.out


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
