"""Every page and what can be done on it, in real Chromium."""

import json
import re
from urllib.parse import quote

import pytest

from web.serving import replayed, serving

THEMES = ("light", "dark")


def places(run):
    key = quote(json.dumps(["age", "smollm2", "T0", 1]), safe="")
    side = quote(json.dumps([run, {"tier": "T0"}]), safe="")
    other = quote(json.dumps([run, {"tier": "T2"}]), safe="")
    return {
        "runs": "/",
        "run": f"/runs/{run}",
        "records": f"/runs/{run}/records",
        "record": f"/runs/{run}/record?key={key}",
        "raw": f"/runs/{run}/record?key={key}&view=raw",
        "replies": f"/runs/{run}/task?key={key}",
        "review": f"/runs/{run}/review",
        "queue": f"/runs/{run}/review?as=Ada&size=3",
        "compare": f"/compare?run={run}",
        "task": f"/compare/task?a={side}&b={other}&task=steps",
        "gates": f"/gates?run={run}",
        "new": "/new",
        "docs": "/docs",
        "nothing": "/nothing",
    }


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", [390, 1280, 1900])
def test_every_page_opens_at_every_width(site, open_page, theme, width):
    server, run = site
    watched = open_page(width, color_scheme=theme)
    for name, place in places(run).items():
        watched.page.goto(server.address + place)
        assert watched.page.locator("h1").count() == 1, name
        assert watched.overflow() <= 0, name


def test_the_run_page_leads_to_the_records_behind_a_bar(site, open_page):
    server, run = site
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}")
    page.locator("#chart-categories a").first.click()
    assert "category=" in page.url
    category = page.locator("select[name=category]").input_value()
    cells = page.locator("table.rows tbody tr").all()
    assert cells
    assert all(category in row.inner_text() for row in cells)
    page.goto(f"{server.address}/runs/{run}")
    page.locator("#chart-latency a").first.click()
    assert "/records?tier=" in page.url
    assert page.locator("table.rows tbody tr").count() > 0


def test_a_phone_shows_the_answer_first_and_the_attempts_before_the_measures(site, open_page):
    server, run = site
    page = open_page(390, 780).page
    page.goto(server.address + places(run)["record"])
    heads = ("Answer", "Reply", "Your verdict", "All attempts at this task", "Measures")
    tops = [page.get_by_role("heading", name=n, exact=True).bounding_box()["y"] for n in heads]
    assert tops == sorted(tops)


def test_charts_are_no_long_row_of_tab_stops(site, open_page):
    server, run = site
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}")
    assert page.locator("svg.chart a").count() > 20
    assert page.locator("svg.chart a:not([tabindex='-1'])").count() == 0
    page.locator("#chart-latency summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/records\\?tier="))


def test_nothing_is_cut_on_paper(site, open_page, tmp_path):
    server, run = site
    server.digest(run)
    written = tmp_path / "report.html"
    written.write_text(server.get(f"/runs/{run}/report.html")[2])
    page = open_page(688, 1000).page  # A4 without its margins
    page.emulate_media(media="print")
    page.goto(written.as_uri())
    wide = page.evaluate("[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth)")
    assert max(wide) <= 688


def test_metrics_explain_themselves(site, open_page):
    server, run = site
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}")
    page.locator("details:has(td details) > summary").first.click()  # all sides together
    row = page.locator("td details", has_text="accuracy").first
    assert not row.get_by_text("Higher is better").is_visible()
    row.locator("summary").click()
    assert row.get_by_text("Higher is better").is_visible()


def test_records_are_walked_by_keys(site, open_page):
    server, run = site
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}/records")
    first = page.locator("table.rows tbody tr").first.inner_text()
    page.keyboard.press("n")
    page.wait_for_url(re.compile("after="))
    assert page.locator("table.rows tbody tr").first.inner_text() != first
    page.keyboard.press("p")
    page.wait_for_url(re.compile("before="))
    assert page.locator("table.rows tbody tr").first.inner_text() == first
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.locator("tr.at").inner_text() == page.locator("tbody tr").nth(1).inner_text()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/record[?]"))
    title = page.locator(".title").inner_text()
    page.keyboard.press("j")
    page.wait_for_function("text => document.querySelector('.title').innerText !== text", arg=title)
    page.keyboard.press("k")
    page.wait_for_function("text => document.querySelector('.title').innerText === text", arg=title)


def test_a_filter_lives_in_the_address(site, open_page):
    server, run = site
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}/records")
    page.keyboard.press("/")
    page.keyboard.type("basket")
    page.locator("select[name=result]").select_option("no")
    page.locator("[data-range]").select_option("cot_tokens")
    page.locator("input[placeholder=below]").fill("1,000")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url(re.compile("cot_tokens_max=1%2C000"))
    assert page.locator("[data-range]").count() == 2
    page.locator("input[name=cot_tokens_max]").fill("12")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url(re.compile("q=basket"))
    assert "result=no" in page.url
    assert "cot_tokens_max=12" in page.url
    assert "status=" not in page.url
    page.wait_for_function("document.querySelector('[data-count]').textContent.trim() !== ''")
    count = int(page.locator("[data-count]").inner_text())
    assert count == page.locator("table.rows tbody tr").count() > 0
    page.locator("details", has_text="Columns").locator("summary").first.click()
    page.locator("[data-columns] input[value=response]").check()
    page.locator("[data-columns] input[value=finish]").check()
    assert "columns=" not in page.url
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url(re.compile("columns="))
    assert page.locator("th", has_text="response").count() == 1
    assert "result=no" in page.url


def seconds(written):
    """Read a latency such as `12.7 s` or `850 ms`."""
    number, unit = written.replace(",", "").split()
    return float(number) * {"s": 1, "ms": 0.001, "min": 60}[unit]


def test_records_are_sorted_by_a_column(site, open_page):
    server, run = site
    server.digest(run)
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}/records?tier=T1")
    head = page.locator("thead th", has_text="latency")
    head.locator("a").click()
    page.wait_for_url(re.compile("sort=latency_ms&order=down"))
    assert "tier=T1" in page.url
    assert head.get_attribute("aria-sort") == "descending"
    place = page.locator("thead th").evaluate_all(
        "heads => heads.findIndex(h => h.textContent.startsWith('latency'))"
    )
    cells = page.locator(f"table.rows tbody td:nth-child({place + 1})").all_inner_texts()
    values = [seconds(cell) for cell in cells]
    assert values == sorted(values, reverse=True)
    page.keyboard.press("n")
    page.wait_for_url(re.compile("after="))
    further = page.locator(f"table.rows tbody td:nth-child({place + 1})").first.inner_text()
    assert seconds(further) <= values[-1]
    page.keyboard.press("p")
    page.wait_for_url(re.compile("before="))
    page.locator("table.rows tbody tr a").first.click()
    page.wait_for_url(re.compile("record\\?.*sort=latency_ms"))
    page.keyboard.press("j")
    page.wait_for_url(lambda url: "sort=latency_ms" in url and "before=" not in url)
    page.locator(".crumbs a", has_text="records").click()
    page.wait_for_url(re.compile("sort=latency_ms"))


def test_a_person_leaves_a_verdict(site, open_page):
    server, run = site
    page = open_page().page
    page.goto(server.address + places(run)["record"])
    page.locator("input[value=wrong]").check()
    page.locator("textarea[name=note]").fill("<b>not bold</b>")
    page.locator("input[name=who]").fill("Grace")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("<b>not bold</b>").wait_for()
    assert page.get_by_text("Grace").count() == 1
    page.goto(f"{server.address}/runs/{run}")
    assert page.locator("input[name=who]").input_value() == "Grace"
    page.locator("input[name=tags]").fill("smoke, night")
    with page.expect_navigation():
        page.get_by_role("button", name="Save").click()
    page.goto(f"{server.address}/?tag=night")
    assert page.locator("table.rows tbody tr").count() == 1
    assert page.locator(".tag", has_text="smoke").count() == 1


def test_two_sides_are_compared_to_the_word(site, open_page):
    server, run = site
    page = open_page().page
    page.goto(f"{server.address}/compare?run={run}")
    assert page.get_by_text(re.compile("was shown between|more often")).count() > 0
    assert page.locator("#chart-differences .dot").count() == 2
    page.locator("#chart-differences a .hit").last.click()
    page.wait_for_url(re.compile("#pair$"))
    page.locator("section.panel", has_text="Better in T2").locator("a").first.click()
    page.wait_for_url(re.compile("/compare/task"))
    assert page.locator("mark.before").count() > 0
    assert page.locator("mark.after").count() > 0


def test_gates_decide(site, open_page):
    server, run = site
    page = open_page().page
    page.goto(f"{server.address}/gates?run={run}&tier=T0")
    assert page.get_by_text("Failed: release").count() == 0
    page.locator("select[name=policy]").select_option(index=1)
    page.get_by_role("button", name="Decide").click()
    page.get_by_text("Failed: release").wait_for()
    assert page.locator("svg.scale:visible .limit").count() == 2  # accuracy, and no must-not
    page.locator("select[name=tier]").select_option("T2")
    page.get_by_role("button", name="Decide").click()
    page.get_by_text("Passed: release").wait_for()
    (found,) = [r for r in server.json("/api/runs")[1]["runs"] if r["id"] == run]
    assert found["verdict"] is None
    page.get_by_role("button", name="Save this verdict").click()
    saved = page.locator("tr", has_text="release").filter(has_text="T2")
    saved.locator(".tag", has_text="pass").wait_for()
    page.goto(server.address)
    row = page.locator(f"tr[data-run='{run}']")
    assert row.locator(".tag", has_text="pass").inner_text() == "pass"
    assert "T2" in row.inner_text()
    (found,) = [r for r in server.json("/api/runs")[1]["runs"] if r["id"] == run]
    assert (found["verdict"], found["policy"], found["side"]) == ("pass", "release", "T2")


def test_the_theme_is_kept(site, open_page):
    server, _ = site
    page = open_page(color_scheme="light").page
    page.goto(server.address)
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    page.locator("[data-theme-switch]").click()
    dark = page.evaluate(colour)
    assert dark != before
    page.reload()
    assert page.evaluate(colour) == dark


def test_a_new_run_is_begun_watched_and_found(tmp_path, open_page):
    replayed(tmp_path)
    with serving(tmp_path) as server:
        page = open_page().page
        page.goto(f"{server.address}/new")
        page.locator("[data-suite]").select_option(index=1)
        page.get_by_text("192 attempts").wait_for()
        page.locator("[data-tiers] input[value=T1]").uncheck()
        page.get_by_text("128 attempts").wait_for()
        page.locator("input[name=runs]").fill("1")
        page.locator("input[name=runs]").blur()
        page.get_by_text("64 attempts:").wait_for()
        page.get_by_role("button", name="Start").click()
        page.wait_for_url(re.compile("/runs/2"))
        page.reload()
        page.locator("[data-status]", has_text="done").wait_for(timeout=60_000)
        page.get_by_role("heading", name="All metrics").wait_for(timeout=60_000)
        page.goto(server.address)
        assert page.locator("table.rows tbody tr").count() == 2
        assert page.locator("svg.chart.wide .dot").count() == 0  # of whole runs alone
        for box in page.locator("input[type=checkbox][name=run]").all():
            box.check()
        page.locator("[data-to-compare]").click()
        page.wait_for_url(re.compile("run=.*run="))
        page.get_by_text("Tasks that changed").wait_for()


def test_a_data_set_is_uploaded(tmp_path, open_page):
    with serving(tmp_path) as server:
        page = open_page().page
        page.goto(server.address)
        assert page.get_by_text("No runs yet.").count() == 1
        page.goto(f"{server.address}/new")
        held = b'{"id": "a", "input": "1 + 1?", "target": "2"}\n'
        file = {"name": "mine.jsonl", "mimeType": "application/jsonl", "buffer": held}
        page.locator("[data-upload]").set_input_files(file)
        page.locator("input[name=subject]").fill("nowhere/model")
        page.locator("[data-send]").click()
        page.locator("[role=alert]", has_text="nowhere").wait_for()
        page.locator("input[name=subject]").fill("local/smollm2-135m")
        page.locator("[data-send]").click()
        page.get_by_text("1 attempt:").wait_for()


def test_the_docs_name_every_endpoint(site, open_page):
    server, _ = site
    page = open_page().page
    page.goto(f"{server.address}/docs")
    told = server.json("/openapi.json")[1]
    text = page.locator("main").inner_text()
    assert all(path in text for path in told["paths"])
