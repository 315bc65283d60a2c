"""Two runs side by side: which is the baseline, what changed, and the two replies to a task."""

import html
import json
import re
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from api.pages.test_digest import SETTINGS
from pennyweight import compare
from pennyweight.api.pages.run_sides import RunSide, digest_sides
from pennyweight.store.store import Store
from pennyweight.web.comparison import chart_links, read_side
from store.samples import call, record, run
from web.serving import serving

OLD, NEW = "20260101-000000-aaaa", "20260102-000000-bbbb"
LONG = "word " * 5_000


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server of two runs: of 500 tasks 220 get worse, 210 get better; one has many tiers."""
    folder = tmp_path_factory.mktemp("sides")
    (folder / ".pennyweight").mkdir()
    store = Store(str(folder / ".pennyweight" / "pennyweight.db"))
    tiers = [f"T{i:03}" for i in range(210)]
    for name, made, right in ((OLD, 1.0, lambda i: i < 220), (NEW, 2.0, lambda i: 220 <= i < 430)):
        store.add_run(run(name, created=made, attempts=500, status="done", settings=SETTINGS))
        rows = [
            record(f"t{i:03}", name, target="4", response=f"It is {4 if right(i) else 5}.")
            for i in range(500)
        ]
        rows += [record("tiers", name, tier=t, target="4", response=f"{LONG}{t}") for t in tiers]
        store.write(rows, [call("t000", name)])
    store.close()
    with serving(folder) as server:
        for name in (OLD, NEW):
            server.digest(name)
        yield server


def compared(server, query):
    text = server.get(f"/compare?{query}")[2]
    heads = re.findall(r"<h3>((?:Worse|Better) in [^<]*)", text)
    base = re.search(r'name="a".*?selected>([^<]*)<', text, re.DOTALL)
    return text, heads, base[1]


def test_the_oldest_of_the_chosen_is_the_baseline(served):
    text, heads, base = compared(served, f"run={NEW}&run={OLD}")
    assert base == "A"
    assert re.search(rf"<b>A</b>.*{OLD}.*<b>B</b>.*{NEW}", text, re.DOTALL)
    assert heads == ["Worse in B: 220", "Better in B: 210"]
    assert "200 of 220 shown" in text
    assert "200 of 210 shown" in text
    assert "No task got better." not in text
    assert "B is right" in text or "between B and A" in text


def test_the_sides_are_swapped(served):
    text, _, _ = compared(served, f"run={NEW}&run={OLD}")
    swap = html.unescape(re.search(r'href="/compare\?([^"]*)">Swap', text)[1])
    _, heads, base = compared(served, swap)
    assert base == "B"
    assert heads == ["Worse in A: 210", "Better in A: 220"]


def test_replies_are_of_the_chosen_side_and_say_what_they_leave_out(served):
    sides = [quote(json.dumps([r, {"tier": "T209"}])) for r in (OLD, NEW)]
    text = served.get(f"/compare/task?a={sides[0]}&b={sides[1]}&task=tiers")[2]
    assert text.count("The beginning and the end, 20,000 of 25,004 characters.") == 2
    for name in (OLD, NEW):
        assert f"{name} · m · T209 · 1</a>" in text
        assert f"/runs/{name}/record?key=" in text
    back = html.unescape(re.search(r'class="crumbs"><a href="([^"]*)"', text)[1])
    kept = parse_qs(urlsplit(back).query)
    assert kept["run"] == [OLD, NEW]
    assert [json.loads(kept[n][0]) for n in "ab"] == [
        [OLD, {"tier": "T209"}],
        [NEW, {"tier": "T209"}],
    ]
    assert served.get(back)[0] == 200


OLDEST, MORE, FEWER, OTHER, ALONE = (f"20260201-00000{i}-cccc" for i in range(5))


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """A server of runs with tiers in common, other rules, and no task in common."""
    folder = tmp_path_factory.mktemp("uneven")
    (folder / ".pennyweight").mkdir()
    store = Store(str(folder / ".pennyweight" / "pennyweight.db"))

    def fill(name, tiers, settings=SETTINGS, first=0):
        told = {**settings, "subjects": ["m"], "tiers": list(tiers)}
        made = {"created": float(name[13:15]), "attempts": 30, "status": "done"}
        store.add_run(run(name, **made, settings=told))
        rows = [
            record(f"t{i:02}", name, tier=t, target="4", response=f"It is {4 if right(i) else 5}.")
            for t, right in tiers.items()
            for i in range(first, first + 10)
        ]
        store.write(rows, [call("t00", name)])

    half, none, all_ = (lambda i: i < 5), (lambda _: False), (lambda _: True)
    fill(MORE, {"T0": half, "T1": half, "T2": all_})
    fill(FEWER, {"T0": lambda i: i < 4, "T1": half})
    fill(OTHER, {"T0": half}, {**SETTINGS, "answer": {"kind": "last_line", "value": ""}})
    fill(ALONE, {"T0": none}, first=50)
    fill(OLDEST, {"T0": half, "T1": half, "T2": half}, first=70)
    store.close()
    with serving(folder) as server:
        for name in (OLDEST, MORE, FEWER, OTHER, ALONE):
            server.digest(name)
        yield server


def test_only_what_both_runs_have_is_compared(uneven):
    """What is right only in the tier that one run has changed nothing."""
    text, heads, _ = compared(uneven, f"run={MORE}&run={FEWER}")
    assert "Left out: " in text
    assert heads == ["Worse in B: 1", "Better in B: 0"]
    row = re.search(r'task=t04"><td(?:(?!</tr>).)*', text, re.DOTALL)[0]
    assert re.findall(r"([0-9.]+) %", row) == ["100.0", "50.0"]
    sides = re.search(r'id="chart-sides".*?</figure>', text, re.DOTALL)[0]
    assert re.findall(r"<td>(?:<a [^>]*>)?([AB][^<]*)<", sides) == [
        *("A · T0", "A · T1", "B · T1", "B · T0"),
    ]
    assert "A · T2" not in re.search(r"All metrics.*", text, re.DOTALL)[0]


@pytest.mark.parametrize(
    ("other", "why"),
    [(OTHER, "are graded differently: the answer rule"), (ALONE, "no tasks in common")],
)
def test_runs_that_cannot_be_compared_say_so(uneven, other, why):
    status, _, text = uneven.get(f"/compare?run={MORE}&run={other}")
    assert status == 200
    assert why in text
    for word in ("Tasks that changed", "No task got worse", 'id="chart-sides"'):
        assert word not in text


def test_the_baseline_of_three_runs_shares_tasks_with_another(uneven):
    """The oldest has tasks of its own, which is told."""
    text, _, base = compared(uneven, f"run={OLDEST}&run={MORE}&run={FEWER}")
    assert base == "B"
    assert "A · T0 and B · T0 have no tasks in common" in text
    assert re.search(r'name="b".*?selected>([^<]*)<', text, re.DOTALL)[1] == "C"
    side = quote(json.dumps([OLDEST, {}]))
    assert compared(uneven, f"run={OLDEST}&run={MORE}&run={FEWER}&a={side}")[2] == "A"


def test_a_run_that_is_not_there_is_named(uneven):
    text = uneven.get(f"/compare?run={MORE}&run=nope")[2]
    assert "There is no run nope in this store." in text
    assert "Tasks that changed" in text
    side = quote(json.dumps(["nope", {}]))
    assert uneven.get(f"/compare?run={MORE}&run={FEWER}&b={side}")[0] == 404


def test_one_side_alone_asks_for_another(uneven):
    assert "Choose another run" in uneven.get(f"/compare?run={OTHER}")[2]


STUDY = "20260301-000000-dddd"
GOOD = {("big", "T0"): 9, ("big", "T1"): 9, ("small", "T0"): 5, ("small", "T1"): 1}
"""How many of 12 tasks each side gets right, in both attempts."""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A server of a run of two subjects in two tiers, and of another run of a third subject."""
    folder = tmp_path_factory.mktemp("study")
    (folder / ".pennyweight").mkdir()
    store = Store(str(folder / ".pennyweight" / "pennyweight.db"))

    def fill(name, good):
        subjects, tiers = (list(dict.fromkeys(names)) for names in zip(*good, strict=True))
        told = {**SETTINGS, "subjects": subjects, "tiers": tiers}
        made = {"created": float(len(store.runs())), "attempts": 24 * len(good)}
        store.add_run(run(name, status="done", settings=told, **made))
        rows = [
            record(f"t{i:02}", name, subject=s, tier=t, attempt=n, target="4", category="ab"[i % 2],
                   response=f"It is {4 if i < right else 5}.", extra='{"level": "easy"}')
            for (s, t), right in good.items()
            for i in range(12)
            for n in (2, 5)
        ]  # fmt: skip
        store.write(rows, [call("t00", name)])

    fill(STUDY, GOOD)
    fill("other", {("third", "T0"): 6})
    store.close()
    with serving(folder) as server:
        for name in (STUDY, "other"):
            server.digest(name)
        yield server


def side(runs, **chosen):
    return quote(json.dumps([runs, chosen]))


def test_the_two_sides_that_are_chosen_are_tested(study):
    """The numbers are those of all sides, so that no two tables disagree."""
    a, b = side(STUDY, subject="small", tier="T1"), side(STUDY, subject="big", tier="T0")
    text = study.get(f"/compare?run={STUDY}&a={a}&b={b}")[2]
    pair = re.search(r'<section id="pair">.*?<h2 id="all">', text, re.DOTALL)[0].replace(
        "\xa0", " "
    )
    assert "big · T0 is right 66.7 points more often than small · T1" in pair
    assert "big · T1" not in pair
    assert "accuracy: intervals and adjusted p hold for all pairs of sides at once." in pair
    assert "Better in big · T0: 8" in html.unescape(pair)
    grid = re.search(r"Differences from small · T1.*?</table>", text, re.DOTALL)[0]
    assert re.findall(r">((?:big|small) · T\d)</a>", grid) == ["big · T0", "big · T1", "small · T0"]


@pytest.mark.parametrize(
    ("by", "sides"),
    [
        ("subject", ["big", "small"]),
        ("tier", ["T0", "T1"]),
        ("category", ["a", "b"]),
        ("subject,category", ["big / a", "big / b", "small / a", "small / b"]),
    ],
)
def test_sides_are_told_apart_by_any_column(study, by, sides):
    text = study.get(f"/compare?run={STUDY}&by={quote(by)}")[2]
    choice = re.search(r'<select name="a".*?</select>', text, re.DOTALL)[0]
    assert sorted(re.findall(r">([^<\n]+)</option>", choice)) == sides
    assert 'value="level"' in text
    assert "differences are taken within each" in text
    assert ("Differences from" in text) is (
        by == "subject,category"
    )  # two sides, or no common task


def test_only_columns_with_values_are_offered(study, uneven):
    for server, runs, offered in (
        (study, f"run={STUDY}", ["subject,tier", "subject", "tier", "category", "level"]),
        (uneven, f"run={MORE}", ["tier"]),
    ):
        choice = re.search(r'<select name="by".*?</select>', server.get(f"/compare?{runs}")[2])[0]
        assert re.findall(r'value="([^"]*)"', choice) == offered


def test_runs_of_other_subjects_are_compared_by_subject(study):
    _, heads, base = compared(study, f"run={STUDY}&run=other&by=subject")
    assert base == "big"
    assert heads == ["Worse in third: 3", "Better in third: 0"]
    assert "nope" in study.get(f"/compare?run={STUDY}&by=nope")[2]


def test_attempts_have_the_numbers_of_their_records(study):
    a, b = side(STUDY, subject="big", tier="T0"), side(STUDY, subject="small", tier="T1")
    text = study.get(f"/compare/task?a={a}&b={b}&task=t01")[2]
    assert re.findall(r"<h2>([^<]*)</h2>", text) == ["attempt 2", "attempt 5"]
    wide = study.get(f"/compare/task?a={side(STUDY, subject='big')}&b={b}&task=t01")[2]
    assert re.findall(r"<h2>([^<]*)</h2>", wide) == [
        f"T{tier} · attempt {n}" for tier in (0, 1) for n in (2, 5)
    ]


DIGEST = {
    "by": ["subject", "tier"],
    "sides": [{"name": f"s · {t}", "group": {"subject": "s", "tier": t}} for t in ("T0", "T1")],
}


def test_a_difference_leads_to_the_tasks_that_changed():
    link = chart_links(["r"], digest_sides("r", DIGEST))
    where = urlsplit(link({"pair": ["s / T1", "s / T0"]}))
    query = parse_qs(where.query)
    assert (where.path, where.fragment, query["run"]) == ("/compare", "pair", ["r"])
    assert read_side(query["a"][0]) == RunSide(("r",), (("subject", "s"), ("tier", "T0")))
    assert read_side(query["b"][0]) == RunSide(("r",), (("subject", "s"), ("tier", "T1")))


def test_what_is_no_side_leads_nowhere():
    assert chart_links(["r"], [])({"pair": ["x", "y"]}) is None
    assert chart_links(["r", "q"], [])({"tier": "T0"}) is None
    assert chart_links(["r"], [])({"tier": "T0"}) == "/runs/r/records?tier=T0"
    assert digest_sides("r", {**DIGEST, "by": ["run"]}) == []


ALIKE = {("a / b", "c"): 11, ("a", "b / c"): 2, ("a", "x"): 6}
"""How many of 12 tasks each side gets right; the first two would have one name."""


def test_sides_whose_columns_read_alike_stay_apart(tmp_path):
    """As in Python, so on the pages: the subject 'a / b' in tier 'c' is not 'a' in 'b / c'."""
    rows = [
        record(f"t{i:02}", STUDY, subject=s, tier=t, target="4",
               response=f"It is {4 if i < right else 5}.")
        for (s, t), right in ALIKE.items()
        for i in range(12)
    ]  # fmt: skip
    plain = [
        {"subject": s, "tier": t, "task_id": f"t{i:02}", "passed": i < right}
        for (s, t), right in ALIKE.items()
        for i in range(12)
    ]
    found = compare(plain, by=["subject", "tier"], metrics=["pass_rate"])
    rates = {side.name: side["pass_rate"].value for side in found.sides}
    names = ['"a / b" / c', 'a / "b / c"', "a / x"]
    assert rates == pytest.approx(dict(zip(names, (11 / 12, 2 / 12, 6 / 12), strict=True)))
    assert {(p.a, p.b): p.tasks for p in found.pairs}[names[0], names[1]] == 12

    (tmp_path / ".pennyweight").mkdir()
    store = Store(str(tmp_path / ".pennyweight" / "pennyweight.db"))
    told = {**SETTINGS, "subjects": ["a / b", "a"], "tiers": ["c", "b / c", "x"]}
    store.add_run(run(STUDY, status="done", settings=told, attempts=36))
    store.write(rows, [call("t00", STUDY)])
    store.close()
    titles = ['"a / b" · c', 'a · "b / c"', "a · x"]
    with serving(tmp_path) as server:
        shown = server.digest(STUDY)
        assert {s["name"]: s["estimates"]["accuracy"][0] for s in shown["sides"]} == pytest.approx(
            dict(zip(titles, rates.values(), strict=True))
        )
        for path in (f"/runs/{STUDY}", f"/compare?run={STUDY}"):
            text = html.unescape(server.get(path)[2])
            assert all(f">{title}<" in text for title in titles), path
        first, second = (
            side(STUDY, subject="a", tier="b / c"),
            side(STUDY, subject="a / b", tier="c"),
        )
        text = html.unescape(server.get(f"/compare?run={STUDY}&a={first}&b={second}")[2])
        assert f"Better in {titles[0]}: 9" in text


def test_typing_finds_runs_by_what_the_server_finds_them_by(uneven, open_page):
    page = open_page().page
    page.goto(f"{uneven.address}/compare")
    shown = "rows => rows.filter(row => !row.hidden).map(row => row.querySelector('input').value)"
    both = [OLDEST, MORE]
    for typed, found in (("T2", both), ("t1", [*both, FEWER]), ("aaaa T9", [])):
        page.get_by_role("searchbox").fill(typed)
        assert sorted(page.locator("[data-found]").evaluate_all(shown)) == found, typed
        assert page.get_by_text("No run matches.").is_visible() is not bool(found)
        text = uneven.get(f"/compare?find={quote(typed)}")[2]
        assert sorted(re.findall(r'data-found[^>]*><input[^>]*value="([^"]*)"', text)) == found


@pytest.mark.parametrize(
    ("place", "by", "strange"), [("a", "category", "T0"), ("a", "tier", "T9"), ("b", "tier", "T9")]
)
def test_a_side_that_is_none_of_the_comparison_has_no_effect(study, place, by, strange):
    notice = re.compile(r'<div class="notice">([^<]*)</div>\s*')
    default = study.get(f"/compare?run={STUDY}&by={by}")[2]
    status, _, text = study.get(f"/compare?run={STUDY}&by={by}&{place}={side(STUDY, tier=strange)}")
    assert status == 200
    assert notice.search(text)[1] == (
        f"The address names what is no side of this comparison, so it has no effect: {strange}."
    )
    if place == "a":
        assert notice.sub("", text).split() == default.split()


def test_choosing_other_columns_drops_the_sides_of_the_columns_before(study, open_page):
    page = open_page().page
    page.goto(f"{study.address}/compare?run={STUDY}&by=tier")
    page.get_by_label("Baseline").select_option("T1")
    page.wait_for_url("**a=*")
    for by in ("subject", "category"):
        page.get_by_label("Compare by").select_option(by)
        page.wait_for_url(f"**by={by}*")
        assert {*parse_qs(urlsplit(page.url).query)} == {"run", "by"}
        page.get_by_role("heading", name="All metrics").wait_for()
        assert page.locator(".notice").count() == 0
