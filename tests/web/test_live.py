"""A run under way, watched in real Chromium: what is new comes, what is half typed stays."""

import re

import pytest

from run.serving import server as model_server
from run.serving import suite as written
from web.serving import serving


@pytest.fixture
def under_way(tmp_path):
    """A server that makes a run of some 25 seconds; also the run's id."""
    with model_server(0.2) as address:
        written(tmp_path, address, tasks=250, limits="{concurrency: 2}")
        with serving(tmp_path) as server:
            (suite,) = server.json("/api/suites")[1]
            yield server, server.post("/api/runs", {"suite": suite["id"]})[1]["run"]


def loads(page):
    seen = []
    page.on("load", lambda _: seen.append(page.url))
    return seen


def test_metrics_come_by_themselves_and_a_note_stays(under_way, open_page):
    server, run = under_way
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}")
    seen = loads(page)
    page.locator("input[name=note]").fill("half a no")
    page.get_by_text("Every metric").wait_for(timeout=60_000)
    assert page.locator("[data-status]").inner_text() == "running"
    assert page.get_by_text("Attempts made", exact=True).count() == 0
    page.locator("[data-status]", has_text="done").wait_for(timeout=120_000)
    page.get_by_text("250 of 250", exact=True).wait_for(timeout=60_000)
    page.locator("[data-progress]").wait_for(state="hidden")
    page.locator("[data-stale]").wait_for(state="detached")
    assert page.locator("input[name=note]").input_value() == "half a no"
    assert seen == []


def test_records_offer_what_is_newer(under_way, open_page):
    server, run = under_way
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}")
    page.get_by_text("Every metric").wait_for(timeout=60_000)
    page.goto(f"{server.address}/runs/{run}/records?correct=no")
    page.locator("[data-stale]").wait_for()
    seen = loads(page)
    page.locator("input[name=q]").fill("typing")
    page.get_by_text("Newer records are measured.").wait_for(timeout=60_000)
    assert page.locator("input[name=q]").input_value() == "typing"
    assert seen == []
    with page.expect_navigation():
        page.get_by_role("button", name="Show").click()


def test_nothing_chosen_is_nothing_run(site, open_page):
    server, _ = site
    page = open_page().page
    page.goto(f"{server.address}/new")
    start = page.get_by_role("button", name="Start")
    page.get_by_text("192 attempts").wait_for()
    for box in page.locator("[data-tiers] input").all():
        box.uncheck()
    page.get_by_text("Choose at least one of the tiers.").wait_for()
    assert start.is_disabled()
    assert page.get_by_text(re.compile("[0-9]+ attempts")).count() == 0
    page.locator("[data-tiers] input").first.check()
    page.get_by_text("64 attempts:").wait_for()
    page.locator("[data-start]:not([disabled])").wait_for()


def test_two_windows_keep_each_others_tags(site, open_page):
    server, run = site
    one, other = open_page().page, open_page().page
    for page in (one, other):
        page.goto(f"{server.address}/runs/{run}")
    for page, tag in ((one, "mine"), (other, "yours")):
        field = page.locator("input[name=tags]")
        field.fill(f"{field.input_value()}, {tag}")
        with page.expect_navigation():
            page.get_by_role("button", name="Keep").click()
    tags = next(r["tags"] for r in server.json("/api/runs")[1]["runs"] if r["id"] == run)
    assert {"mine", "yours"} <= set(tags)
