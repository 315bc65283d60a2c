"""Nothing serious is found by axe-core, in light and in dark."""

from importlib.util import find_spec
from pathlib import Path

import pytest

import services
from web.serving import replayed, serving
from web.test_grid_page import RUN as GRID
from web.test_grid_page import large
from web.test_pages import THEMES, places

__all__ = ["large"]
RUN = """() => axe.run(document, {resultTypes: ["violations"]}).then((found) =>
  found.violations.filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 160)).slice(0, 3).join(" | ")}`))"""


@pytest.fixture(scope="module")
def axe():
    package = find_spec("axe_playwright_python")
    if package is None:
        services.missing("axe-core")
    return Path(package.origin).with_name("axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("theme", THEMES)
def test_pages_are_accessible(site, open_page, axe, theme):
    server, run = site
    server.digest(run)  # nothing renews itself under our hands
    page = open_page(color_scheme=theme).page
    found = {}
    for name, place in places(run).items():
        page.goto(server.address + place)
        page.wait_for_load_state("networkidle")
        page.evaluate(axe)
        if problems := page.evaluate(RUN):
            found[name] = problems
    assert found == {}


def test_a_run_with_a_title_tags_and_a_note_is_accessible_in_the_list(tmp_path, open_page, axe):
    """What is beside the link of a run must not make it part of a text."""
    run = replayed(tmp_path)
    with serving(tmp_path) as server:
        server.digest(run)
        note = {"note": "seen in the list", "tags": ["longer than the title", "two"], "who": "me"}
        assert server.post(f"/api/runs/{run}/remarks", note)[0] == 201
        assert server.post(f"/api/runs/{run}/label", {"title": "First try"})[0] == 201
        page = open_page().page
        page.goto(server.address)
        page.get_by_text("seen in the list").wait_for()
        page.evaluate(axe)
        assert page.evaluate(RUN) == []


@pytest.mark.parametrize("theme", THEMES)
def test_the_report_is_accessible(site, open_page, axe, theme, tmp_path):
    server, run = site
    path = tmp_path / "report.html"
    path.write_text(server.get(f"/runs/{run}/report.html")[2], encoding="utf-8")
    page = open_page(color_scheme=theme).page
    page.goto(path.as_uri())
    page.evaluate(axe)
    assert page.evaluate(RUN) == []


def test_a_grid_whose_rows_are_loaded_is_accessible(large, open_page, axe):
    page = open_page().page
    page.goto(f"{large.address}/runs/{GRID}/grid?rows=task")
    page.locator("table.grid tbody a").first.focus()
    page.keyboard.press("Control+End")
    page.get_by_role("rowheader", name="task 599").wait_for()
    page.evaluate(axe)
    assert page.evaluate(RUN) == []
