"""The grid in a browser: cells lead to replies, rows come as one scrolls."""

import re
from html import unescape

import pytest
from bench.sample_store import a_run

from pennyweight.store.store import Store
from store.samples import call, record
from web.serving import serving

RUN = "20260101-000000-0777"


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A run of 600 tasks and two tiers, whose later tasks are harder."""
    folder = tmp_path_factory.mktemp("grid")
    store = Store(str(folder / "pennyweight.db"))
    described = a_run(RUN, 1200)
    described.settings.update(subjects=["m"], tiers=["T0", "T1"], tasks=600)
    store.add_run(described)
    rows = [
        record(
            f"task {task:03}", run=RUN, subject="m", tier=tier, target="4",
            category=f"kind {task % 3}",
            response=f"It is {4 if task < 500 or (tier == 'T1' and task < 590) else 5}",
        )
        for task in range(600)
        for tier in ("T0", "T1")
    ]  # fmt: skip
    store.write(rows, [call("task 000", run=RUN)])
    store.close()
    with serving(folder, env={"PENNYWEIGHT_STORE": store.address}) as server:
        server.digest(RUN)
        yield server


def test_cells_lead_to_replies_and_rows_come_as_one_scrolls(large, open_page):
    watched = open_page()
    page = watched.page
    page.goto(f"{large.address}/runs/{RUN}/grid")
    box = page.locator("[data-grid]")
    assert page.locator("table.grid tbody tr:not(.space)").count() < 60
    box.evaluate("box => box.scrollTo(0, box.scrollHeight)")
    page.get_by_role("rowheader", name="task 499").wait_for()
    heights = "rows => [...new Set(rows.map((row) => row.getBoundingClientRect().height))]"
    written = page.locator("table.grid tbody tr:not(.space)")
    assert written.evaluate_all(heights) == [27], "rows are as high as the script takes them to be"
    assert page.locator("table.grid tbody tr").count() < 120
    page.get_by_role("link", name="differs 90").click()
    page.wait_for_url("**only=differs")
    page.get_by_text("90 tasks; scroll").wait_for()
    row = page.get_by_role("row", name="task 500")
    assert row.locator("td").all_text_contents() == ["✓", "✗"]
    row.locator("td a").nth(1).click()
    page.wait_for_url("**/task?**")
    assert "It is 5" in page.inner_text("article >> nth=0")
    assert watched.overflow() == 0


def test_arrow_keys_move_between_cells(large, open_page):
    page = open_page().page
    page.goto(f"{large.address}/runs/{RUN}/grid?only=differs&rows=task")
    page.get_by_role("row", name="task 501").locator("a").first.focus()
    held = "document.activeElement.closest('tr').rowIndex + ',' + "
    held += "document.activeElement.closest('td, th').cellIndex"
    steps = {"Right": "2,1", "Down": "3,1", "Up": "2,1", "Left": "2,0"}
    for key, place in steps.items():
        page.keyboard.press(f"Arrow{key}")
        assert page.evaluate(held) == place, key
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**/task?task=task%20501**")


def test_the_page_works_without_scripts(large):
    _, _, page = large.get(f"/runs/{RUN}/grid?rows=task&from=40")
    assert "task 040" in page
    assert "task 039" not in page
    assert "41 to 80 of 600 tasks" in page
    assert len(page) < 300_000
    assert "task 000" in large.get(f"/runs/{RUN}?rows=task")[2]
    assert large.get(f"/runs/{RUN}/task?task=nothing")[0] == 404
    assert large.get(f"/runs/{RUN}/task?task=%00")[0] == 404
    assert large.get(f"/api/runs/{RUN}/grid?limit=201")[0] == 422


def test_what_failed_leads_to_as_many_records(large):
    page = large.get(f"/runs/{RUN}")[2]
    part = page.split('id="failed"')[1].split("</section>")[0]
    rows = re.findall(r'<a href="[^"]*\?([^"]+)">[^<]*</a></td><td class="num">([\d,]+)', part)
    assert len(rows) == 3
    for query, failed in rows:
        found = large.json(f"/api/runs/{RUN}/count?{unescape(query)}")[1]
        assert found["count"] == int(failed.replace(",", ""))
