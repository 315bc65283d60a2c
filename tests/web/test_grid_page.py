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


HELD = """() => {
  const cell = document.activeElement.closest("td, th");
  return cell && [one("th", cell.parentElement).innerText.split("\\n")[0], cell.cellIndex];
}"""


def test_keys_move_between_cells(large, open_page):
    page = open_page().page
    page.goto(f"{large.address}/runs/{RUN}/grid?only=differs&rows=task")
    page.get_by_role("row", name="task 501").locator("a").first.focus()
    steps = {
        "ArrowRight": (501, 1), "ArrowDown": (502, 1), "ArrowUp": (501, 1), "ArrowLeft": (501, 0),
        "End": (501, 2), "Control+End": (589, 2), "ArrowDown ": (589, 2), "Home": (589, 0),
        "Control+Home": (500, 0), "ArrowRight ": (500, 1),
    }  # fmt: skip
    for key, (task, column) in steps.items():
        page.keyboard.press(key.strip())
        page.wait_for_function(f"() => ({HELD})()?.[0] === 'task {task}'")
        assert page.evaluate(HELD) == [f"task {task}", column], key
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/task?task=task%20501**")


def test_page_keys_keep_the_focus_and_lead_to_rows_that_are_loaded(large, open_page):
    page = open_page().page
    page.goto(f"{large.address}/runs/{RUN}/grid?rows=task")
    page.locator("table.grid tbody td a").first.focus()
    tasks = ["task 000"]
    for key, times in (("PageDown", 5), ("PageUp", 5)):
        for _ in range(times):
            page.keyboard.press(key)
            page.wait_for_function(f"() => ({HELD})() && ({HELD})()[0] !== {tasks[-1]!r}")
            tasks.append(page.evaluate(HELD)[0])
    assert tasks[:6] == tasks[:4:-1]
    assert int(tasks[5].split()[1]) > 60
    assert page.evaluate(HELD)[1] == 1
    page.locator("[data-grid]").hover()
    page.mouse.wheel(0, 9000)
    page.get_by_role("rowheader", name="task 350").wait_for()
    assert page.evaluate("document.activeElement.matches('[data-grid]')")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(HELD) == ["task 001", 1]


def test_the_grid_is_one_tab_stop(large, open_page):
    page = open_page().page
    page.goto(f"{large.address}/runs/{RUN}/grid?rows=task")
    box = page.locator("[data-grid]")
    stops = (
        "box => [box, ...box.querySelectorAll('a, [tabindex]')].filter(e => e.tabIndex >= 0).length"
    )
    assert box.evaluate(stops) == 1
    box.evaluate("box => box.scrollTo(0, 6000)")
    page.get_by_role("rowheader", name="task 230").wait_for()
    assert box.evaluate(stops) == 1
    page.get_by_role("row", name="task 230").locator("a").nth(2).focus()
    assert box.evaluate(stops) == 1


def test_back_leads_to_the_place_in_the_grid(large, open_page):
    page = open_page().page
    page.goto(f"{large.address}/runs/{RUN}/grid?rows=task")
    box = page.locator("[data-grid]")
    box.evaluate("box => box.scrollTo(0, 4000)")
    page.get_by_role("row", name="task 155").locator("td a").first.click()
    page.wait_for_url("**/task?**")
    page.go_back()
    page.get_by_role("row", name="task 155").wait_for()
    assert box.evaluate("box => box.scrollTop") == 4000
    page.get_by_role("link", name="differs 90").click()
    page.get_by_text("90 tasks; scroll").wait_for()
    assert box.evaluate("box => box.scrollTop") == 0
    page.go_back()
    page.get_by_text("600 tasks; scroll").wait_for()
    assert box.evaluate("box => box.scrollTop") == 4000


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
