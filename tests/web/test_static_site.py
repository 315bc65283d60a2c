"""A static site in a real browser, from its folder: it needs no server, no script, no network."""

import pytest

from web.serving import command
from web.test_axe import RUN as SERVED
from web.test_axe import axe

__all__ = ["axe"]
RUN = SERVED.replace("{resultTypes", "{preload: false, resultTypes")  # it may not read style.css


@pytest.fixture(scope="module")
def folder(filled, tmp_path_factory):
    made = tmp_path_factory.mktemp("site") / "pub"
    command("report", "--site", made, folder=filled[0])
    return made


@pytest.mark.parametrize("width", [390, 1280])
def test_a_reader_gets_from_the_list_to_a_reply_and_back(folder, open_page, width):
    watched = open_page(width, java_script_enabled=False)
    page = watched.page
    page.goto((folder / "index.html").as_uri())
    assert page.locator(".best .who").all_inner_texts() == ["T2", "T0", "T1"]
    assert "best" not in page.locator("td.c-value").inner_text()  # all sides are shown
    page.get_by_role("link", name="sums").click()
    page.get_by_role("heading", name="Leaderboard").wait_for()
    page.locator("table.grid tbody a", has_text="boxes").click()
    page.get_by_role("heading", name="Attempts").wait_for()
    page.locator("table.matrix a").nth(3).click()
    page.get_by_role("heading", name="Prompt as sent").wait_for()
    page.get_by_role("link", name="Next →").click()
    page.get_by_role("link", name="records").click()
    assert page.locator("table.rows tbody tr").count() == 192
    page.get_by_role("link", name="Pennyweight").click()
    assert page.locator("table.runs tbody tr").count() == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_are_styled_accessible_and_fit(folder, open_page, axe, theme, width):
    watched = open_page(width, color_scheme=theme, bypass_csp=True)
    page, found = watched.page, {}
    run = next((folder / "runs").iterdir())
    some = [next((run / kind).glob("*.html")) for kind in "rt"]
    names = ("index.html", "grid.html", "records.html")
    for path in [folder / "index.html", *(run / name for name in names), *some]:
        page.goto(path.as_uri())
        assert page.evaluate("getComputedStyle(document.body).margin") == "0px"  # has its style
        assert watched.overflow() <= 0, path
        page.evaluate(axe)
        if problems := page.evaluate(RUN):
            found[path.name] = problems
    assert found == {}
