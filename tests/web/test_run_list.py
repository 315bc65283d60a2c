"""The list of runs: what a row says, and that its cells stay readable."""

import pytest

from api.pages.test_digest import SETTINGS
from pennyweight.store.remarks import add_remark
from pennyweight.store.store import Store
from store.samples import call, record, run
from web.serving import serving

WIDE, PART, PROBE = (f"20260101-000000-000{n}" for n in (1, 2, 3))
SUBJECTS = [f"vendor/model-{i}-instruct-2026" for i in range(2)]
TIERS = ["T0", "T1"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A run of four sides with long names, one that stopped after 2 of 5 attempts, and a probe."""
    folder = tmp_path_factory.mktemp("list")
    store = Store(str(folder / "pennyweight.db"))
    sides = {"subjects": SUBJECTS, "tiers": TIERS}
    made = run(WIDE, status="done", settings={**SETTINGS, **sides}, attempts=8)
    store.add_run(made)
    rows = [
        record(f"t{i}", WIDE, subject=s, tier=t, target="4", response="4" if i else "5")
        for s in SUBJECTS
        for t in TIERS
        for i in range(2)
    ]
    store.write(rows, [call("t0", WIDE)])
    named = "a long-winded name of a suite"
    store.add_run(run(PART, 2.0, suite=named, status="stopped", settings=SETTINGS, attempts=5))
    store.write([record(f"t{i}", PART, target="4", response="4") for i in range(2)], [])
    points = [f"probe@{n}%" for n in (0, 25, 50, 75, 100)]
    probed = {**SETTINGS, "tiers": points}
    store.add_run(run(PROBE, 3.0, status="done", settings=probed, attempts=5))
    store.write([record("t0", PROBE, tier=t, target="4", response="4") for t in points], [])
    store.close()
    with serving(folder, env={"PENNYWEIGHT_STORE": store.address}) as server:
        for name in (WIDE, PART, PROBE):
            server.digest(name)
        yield server


def test_a_row_says_how_many_sides_and_attempts_it_is_about(served):
    text = served.get("/")[2]
    assert "accuracy, best 3 of 4 sides" in text
    assert "2 of 5 attempts" in text
    assert "8 attempts" in text
    assert "of 8 attempts" not in text
    assert "accuracy, last 3 of 5 points" in text


@pytest.mark.parametrize("width", [1180, 390])
def test_the_names_of_sides_keep_their_tier_and_rows_start_at_one_line(served, open_page, width):
    watched = open_page(width=width)
    page = watched.page
    page.goto(served.address)
    shown = page.locator(".best .who").evaluate_all(
        "all => all.map(one => one.lastElementChild.getBoundingClientRect().right"
        " <= one.getBoundingClientRect().right + 1)"
    )
    assert shown == [True] * 7
    if width > 760:
        tops = "row => [...row.cells].slice(1).map(c => c.firstElementChild ?? c)"
        row = page.locator(f"tr[data-run='{PART}']")
        found = row.evaluate(f"row => ({tops})(row).map(c => c.getBoundingClientRect().top)")
        assert max(found[:2]) - min(found[:2]) < 4
    assert watched.overflow() == 0


LONG = "x" * 500


@pytest.fixture
def named(tmp_path):
    """A server of a run with long names that cannot be broken at a space, and one without."""
    store = Store(str(tmp_path / ".pennyweight" / "pennyweight.db"))
    settings = {**SETTINGS, "subjects": [LONG, "m"], "tiers": TIERS}
    store.add_run(run(WIDE, status="done", suite=LONG, settings=settings, attempts=8))
    rows = [
        record(f"t{i}", WIDE, subject=s, tier=t, target="4", response="4" if i or s == "m" else "5")
        for s in settings["subjects"]
        for t in TIERS
        for i in range(2)
    ]
    store.write(rows, [call("t0", WIDE)])
    store.add_run(run(PART, 2.0, status="done", settings=SETTINGS))
    store.write([record("t0", PART, target="4", response="4")], [])
    add_remark(store, WIDE, who="me", note=LONG, tags=[LONG])
    store.close()
    with serving(tmp_path) as server:
        for name in (WIDE, PART):
            server.digest(name)
        yield server


def test_a_chosen_run_has_its_new_title_at_once(named, open_page):
    page = open_page().page
    page.goto(named.address)
    page.locator(f"tr[data-run='{PART}'] input").check()
    for title, before in (("First", "s"), ("Second", "First")):
        page.get_by_role("button", name="Rename").click()
        field = page.locator("[data-ask] input")
        assert field.input_value() == before
        field.fill(title)
        page.locator("[data-yes]").click()
        page.locator("[data-chips]", has_text=title).wait_for()
