"""Checks and judgments on a record's page, with their evidence marked."""

import json
import shutil
from urllib.parse import quote

import pytest

from web.serving import ROOT, command, serving


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checked")
    shutil.copytree(ROOT / "examples", folder / "examples")
    command("run", "examples/support/suite.yaml", folder=folder)
    with serving(folder) as server:
        yield server, server.json("/api/runs")[1]["runs"][0]["id"]


def test_a_violation_is_marked_where_it_stands(checked, open_page):
    server, run = checked
    key = quote(json.dumps(["ADV-001", "support-agent", "T0", 1]), safe="")
    told = server.json(f"/api/runs/{run}/record?key={key}")[1]
    (check,) = [c for c in told["checks"] if c["role"] == "must not"]
    (found,) = check["evidence"]
    assert check["good"] is False
    assert told["measures"]["passed"] is False
    assert told["measures"]["violations"] == 1
    assert told["record"]["response"][found["start"] : found["end"]] == found["text"]
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}/record?key={key}")
    reply = page.locator("section", has_text="Reply").first
    assert reply.locator("mark.evidence").inner_text() == found["text"]
    assert page.locator("section", has_text="tells the secret").locator(".bad").count() > 0


def test_what_was_passed_agrees_with_the_scores(checked):
    server, run = checked
    digest = server.digest(run)
    rows = server.json(f"/api/runs/{run}/records?limit=200")[1]["records"]
    passed = [r["passed"] for r in rows if r["passed"] is not None]
    assert digest["whole"]["estimates"]["pass_rate"][0] == sum(passed) / len(passed)
