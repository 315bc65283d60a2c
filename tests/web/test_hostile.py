"""A run full of scripts, control characters, bidi marks and megabyte lines: nothing executes."""

import json
from urllib.parse import quote

import pytest

from pennyweight.store.remarks import add_remark
from pennyweight.store.store import RECORD_COLUMNS, Store, StoredRun
from web.serving import command, serving

SCRIPT = '<script>window.owned=1</script><img src=x onerror="window.owned=1">'
QUOTE = "\"'><svg onload=alert(1)>{{7*7}}</title></textarea>"
BIDI = "\u202egnp.exe\u2066 \x00\x1b]0;owned\x07\x9b31m\u2028\ufeff"
LINK = "[click](javascript:alert(1)) ![p](http://evil.example/p.png) <http://evil.example>"
LONG = "x" * 1_000_000
NASTY = (SCRIPT, QUOTE, BIDI.replace("\x00", ""), LINK, "a/../../b?x=1#y", "=cmd()", "%00%2e")

OUTSIDE = """
[...document.querySelectorAll("a")].map((a) => new URL(a.href.baseVal ?? a.href, location))
  .filter((url) => url.origin !== location.origin).map(String)
"""
"""Where links lead that leave this server."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    store = Store(str(folder / ".pennyweight" / "pennyweight.db"))
    name = "".join(NASTY).replace("/", "")
    rules = {"kind": "exact", "absolute": "0", "relative": "0", "separator": "", "each": "exact"}
    settings = {
        "subjects": list(NASTY[:3]),
        "tiers": list(NASTY[3:5]),
        "tasks": 9,
        "runs": 1,
        "answer": {"kind": "last_line", "value": ""},
        "match": rules,
        "seed": None,
    }
    run = StoredRun(
        *(name, SCRIPT + QUOTE + BIDI.replace("\x00", ""), SCRIPT, f"suite: {SCRIPT}", QUOTE),
        *("done", 40, 1.0, 2.0, settings),
    )
    store.add_run(run)
    rows = []
    for index, text in enumerate((*NASTY, LONG)):
        for tier in NASTY[3:5]:
            said = f"1. {text}\nActually {SCRIPT}\n{text}"
            row = {
                "run": name,
                "subject": NASTY[index % 3],
                "tier": tier,
                "attempt": 1,
                "task_id": f"{index}{text[:2000]}",
                "fingerprint": "f",
                "status": "ok",
                "input": text,
                "target": text,
                "response": said,
                "reasoning": said,
                "category": text[:300],
                "capability": QUOTE,
                "model": SCRIPT,
                "finish": QUOTE,
                "messages": json.dumps([{"role": SCRIPT, "content": said}]),
                "tool_calls": json.dumps([{"name": SCRIPT, "arguments": text}]),
                "error": None,
                "latency_ms": 1.5,
                "prompt_tokens": 1,
                "completion_tokens": 2,
                "work": json.dumps({SCRIPT: text}),
                "price_source": SCRIPT,
            }
            rows.append(tuple(map(row.get, RECORD_COLUMNS)))
    store.write(rows, [])
    add_remark(store, name, who=SCRIPT, note=QUOTE + BIDI, tags=[SCRIPT, QUOTE])
    store.close()
    return folder, name


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_executes_and_nothing_breaks(hostile, open_page, width):
    folder, run = hostile
    with serving(folder) as server:
        watched = open_page(width)
        page = watched.page
        at = f"{server.address}/runs/{quote(run, safe='')}"
        page.goto(at)
        page.get_by_role("heading", name="All metrics").wait_for(timeout=60_000)
        page.goto(f"{at}/records")
        links = page.locator("tbody tr a").all()
        assert len(links) == 16
        addresses = [server.address + link.get_attribute("href") for link in links]
        query = quote(SCRIPT)
        side = quote(json.dumps([run, {"tier": NASTY[3]}]), safe="")
        addresses += [
            *(f"{server.address}/", f"{server.address}/?q={query}&suite={query}", at),
            *(f"{at}/records?q={query}", f"{at}/records?category={query}&columns={query}"),
            *(f"{server.address}/compare?run={quote(run, safe='')}", f"{server.address}/{query}"),
            f"{server.address}/compare/task?a={side}&b={side}&task={quote('0' + SCRIPT)}",
            *(f"{server.address}/gates?policy={query}", f"{server.address}/new?suite={query}"),
            *(f"{one}&view=raw" for one in addresses[::3]),
            *(one.replace("/record?", "/task?") for one in addresses[::3]),
            *(one.replace("/record?", "/step?") + "&n=1" for one in addresses[::5]),
            *(f"{at}/review?as={query}&at={n}" for n in (1, 2, 7)),
            f"{at}/review?as={query}&at=end",
        ]
        for address in addresses:
            page.goto(address)
            assert page.evaluate("window.owned") is None, address
            assert watched.overflow() <= 0, address
            if "/record?" in address and "view=" not in address:
                high = page.evaluate("document.documentElement.scrollHeight")
                assert high < 12_000, address  # texts of a megabyte are folded
            assert page.locator("main script, main img, main iframe").count() == 0
            assert page.evaluate(OUTSIDE) == []
            assert not set("\u202e\u2066\x1b\x9b") & set(page.locator("main").inner_text())


def test_a_whole_text_is_given_as_text(hostile):
    folder, run = hostile
    with serving(folder) as server:
        key = quote(json.dumps([f"0{SCRIPT}", NASTY[0], NASTY[3], 1]), safe="")
        status, headers, text = server.get(
            f"/runs/{quote(run, safe='')}/raw?part=response&key={key}"
        )
        assert status == 200
        assert headers["content-type"].startswith("text/plain")
        assert SCRIPT in text
        assert server.get(f"/runs/{quote(run, safe='')}/raw?part=run&key={key}")[0] == 404


def test_the_report_of_it_is_quiet_too(hostile, open_page):
    folder, run = hostile
    with serving(folder) as server:
        _, headers, text = server.get(f"/runs/{quote(run, safe='')}/report.html")
    assert "attachment" in headers["content-disposition"]
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    watched = open_page()
    watched.page.goto(path.as_uri())
    assert watched.page.evaluate("window.owned") is None
    assert watched.page.locator("script, img, iframe, link").count() == 0
    assert watched.overflow() <= 0
    assert len(text) < 3_000_000


def test_the_site_of_it_is_quiet_too(hostile, open_page, tmp_path):
    folder, _ = hostile
    command("report", "--site", tmp_path / "pub", folder=folder)
    pages = sorted((tmp_path / "pub").rglob("*.html"))
    assert len(pages) > 30
    watched = open_page()
    for path in pages:
        watched.page.goto(path.as_uri())
        assert watched.page.evaluate("window.owned") is None, path
        assert watched.page.locator("script, img, iframe").count() == 0, path
        assert watched.overflow() <= 0, path
        outside = watched.page.evaluate(OUTSIDE.replace("origin", "protocol"))
        assert outside == [], path
        assert not set("\u202e\u2066\x1b\x9b") & set(watched.page.locator("main").inner_text())
        assert path.stat().st_size < 300_000, path
