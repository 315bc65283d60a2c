"""A run under way, watched in real Chromium: what is new comes, what is half typed stays."""

import re

import pytest

from engine.serving import server as model_server
from engine.serving import suite as written
from web.serving import serving
from web.test_rest import until


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
    page.get_by_role("heading", name="All metrics").wait_for(timeout=60_000)
    assert page.locator("[data-status]").inner_text() == "running"
    page.get_by_text(re.compile(r"^Preliminary: \d+ of 250 attempts are measured")).wait_for()
    assert page.get_by_text("Attempts made", exact=True).count() == 0
    page.locator("[data-status]", has_text="done").wait_for(timeout=120_000)
    page.get_by_text("250 of 250", exact=True).wait_for(timeout=60_000)
    assert page.locator("[data-progress]").is_visible()  # what is below it stays where it is
    for name in ("Stop", "Resume"):
        assert not page.get_by_role("button", name=name).is_visible()
    page.locator("[data-stale]").wait_for(state="detached")
    page.get_by_text("Preliminary:").wait_for(state="detached")
    assert page.locator("input[name=note]").input_value() == "half a no"
    assert seen == []


def test_a_list_of_runs_follows_one_to_its_end_and_shows_its_true_number(under_way, open_page):
    """A number of the half-made run was kept; it is not shown as that of the whole."""
    server, run = under_way
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}")
    page.get_by_role("heading", name="All metrics").wait_for(timeout=60_000)
    part = listed(server, run)
    assert 0 < part["records"] < 250
    page.goto(server.address)
    seen = loads(page)
    row = page.locator(f"tr[data-run='{run}']")
    row.get_by_text("so far").wait_for()
    row.locator("input").check()
    row.locator(".tag", has_text="done").wait_for(timeout=120_000)
    row.get_by_text("so far").wait_for(state="detached")
    page.wait_for_function(
        "run => /^\\d+\\.\\d %$/.test(document.querySelector(`tr[data-run='${run}'] .c-value .num`)"
        "?.textContent.trim())", arg=run, timeout=60_000,
    )  # fmt: skip
    whole = listed(server, run)
    assert whole["records"] == 250
    assert f"{100 * whole['value']:.1f} %" in row.locator(".c-value").inner_text()
    assert row.locator("input").is_checked()
    assert seen == []


def listed(server, run):
    return next(r for r in server.json("/api/runs")[1]["runs"] if r["id"] == run)


def test_records_offer_what_is_newer(under_way, open_page):
    server, run = under_way
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}")
    page.get_by_role("heading", name="All metrics").wait_for(timeout=60_000)
    page.goto(f"{server.address}/runs/{run}/records?correct=no")
    page.locator("[data-stale]").wait_for()
    seen = loads(page)
    page.locator("input[name=q]").fill("typing")
    page.get_by_text("Newer records have been measured.").wait_for(timeout=60_000)
    assert page.locator("input[name=q]").input_value() == "typing"
    assert seen == []
    with page.expect_navigation():
        page.get_by_role("button", name="Show").click()


def test_a_run_that_is_stopped_says_so_and_tells_its_pace_in_calm_words(under_way, open_page):
    server, run = under_way
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}")
    pace = page.locator("[data-rate]")
    page.get_by_text(re.compile("per second, about ([0-9]*[05] s|[0-9]+ minutes) left")).wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Stopping …").wait_for()
    page.locator("[data-status]", has_text="stopped").wait_for(timeout=60_000)
    assert pace.inner_text() == ""
    resume = page.get_by_role("button", name="Resume")
    resume.click()
    page.locator("[data-status]", has_text="running").wait_for(timeout=60_000)
    assert page.get_by_role("button", name="Stop", exact=True).is_enabled()


def test_a_run_that_outlived_its_server_is_stopped_by_the_next(tmp_path):
    with model_server(0.2) as address:
        written(tmp_path, address, tasks=250, limits="{concurrency: 2}")
        with serving(tmp_path) as server:
            (suite,) = server.json("/api/suites")[1]
            run = server.post("/api/runs", {"suite": suite["id"]})[1]["run"]
            server.process.kill()
        with serving(tmp_path) as server:
            state = server.json(f"/api/runs/{run}")[1]
            assert (state["status"], state["here"]) == ("running", True)
            assert "data-stop>Stop" in server.get(f"/runs/{run}")[2]
            assert server.post(f"/api/runs/{run}/stop", {})[0] == 202
            until(lambda: server.json(f"/api/runs/{run}")[1], lambda s: s["status"] == "stopped")
            state = server.json(f"/api/runs/{run}")[1]
            assert (state["here"], 0 < state["made"] < 250) == (False, True)


def test_nothing_chosen_is_nothing_run(site, open_page):
    server, _ = site
    page = open_page().page
    page.goto(f"{server.address}/new")
    start = page.get_by_role("button", name="Start")
    page.locator("[data-suite]").select_option(index=1)
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
            page.get_by_role("button", name="Save").click()
    tags = next(r["tags"] for r in server.json("/api/runs")[1]["runs"] if r["id"] == run)
    assert {"mine", "yours"} <= set(tags)
