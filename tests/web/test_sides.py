"""Two runs side by side: which is the baseline, what changed, and the two replies to a task."""

import html
import json
import re
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from assay.store.store import Store
from report.test_copied import SETTINGS
from store.samples import call, record, run
from web.serving import serving

OLD, NEW = "20260101-000000-aaaa", "20260102-000000-bbbb"
LONG = "word " * 5_000


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server of two runs: of 500 tasks 220 get worse, 210 get better; one has many tiers."""
    folder = tmp_path_factory.mktemp("sides")
    (folder / ".assay").mkdir()
    store = Store(str(folder / ".assay" / "assay.db"))
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
    heads = re.findall(r"<h2>((?:Worse|Better) in [^<]*)", text)
    base = re.search(r"run[^>]*>([^<]*)</a>(?:(?!</tr>).)*baseline</span>", text, re.DOTALL)
    return text, heads, base[1]


def test_the_oldest_of_the_chosen_is_the_baseline(served):
    text, heads, base = compared(served, f"run={NEW}&run={OLD}")
    assert base == OLD
    assert heads == ["Worse in B: 220", "Better in B: 210"]
    assert "200 of 220 shown" in text
    assert "200 of 210 shown" in text
    assert "No task got better." not in text
    assert "B − A" in text


def test_the_sides_are_swapped(served):
    text, _, _ = compared(served, f"run={NEW}&run={OLD}")
    swap = html.unescape(re.search(r'href="/compare\?([^"]*)">Swap', text)[1])
    _, heads, base = compared(served, swap)
    assert base == NEW
    assert heads == ["Worse in B: 210", "Better in B: 220"]
    other = html.unescape(re.search(r'href="/compare\?([^"]*)">take as', text)[1])
    assert compared(served, other)[2] == NEW


def test_replies_are_of_the_chosen_side_and_say_what_they_leave_out(served):
    sides = [quote(json.dumps([r, {"tier": "T209"}])) for r in (OLD, NEW)]
    text = served.get(f"/compare/task?a={sides[0]}&b={sides[1]}&task=tiers")[2]
    assert text.count("The first 20,000 of 25,004 characters.") == 2
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
