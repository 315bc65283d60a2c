"""The page of a run: charts to save, answers compressed, many metrics on a page of their own."""

import gzip
import json
import re
import sqlite3
import urllib.request
from pathlib import Path
from urllib.parse import quote

from batch_serving import batch_server, batch_suite
from cli.command import pennyweight
from pennyweight.store.store import Store
from store.samples import record
from store.samples import run as stored_run
from web.serving import command, serving


def test_charts_are_saved_as_pictures_and_numbers(site):
    server, run = site
    server.digest(run)
    page = server.get(f"/runs/{run}")[2]
    names = re.findall(r'href="(/runs/[^"]+/charts/\w+\.(?:svg|csv))"', page)
    assert len(set(names)) >= 6
    for name in set(names):
        status, headers, text = server.get(name)
        assert status == 200
        assert headers["content-disposition"].startswith("attachment")
        assert text.startswith("<svg") if name.endswith("svg") else text.count("\n") > 1
        assert "var(--" not in text
    assert server.get(f"/runs/{run}/charts/nothing.svg")[0] == 404
    assert server.get(f"/runs/{run}/charts/sides.exe")[0] == 404


def test_a_chart_is_saved_as_png(site, open_page):
    server, run = site
    server.digest(run)
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}")
    with page.expect_download() as download:
        page.locator("a[data-png]").first.click()
    assert download.value.suggested_filename.endswith(".png")
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")


def test_every_chart_of_many_sides_is_saved_as_png(tmp_path, open_page):
    rows = [
        {"task_id": f"t{n}", "subject": f"m{i:02}", "passed": n < i, "category": "ab"[n % 2]}
        for i in range(12)
        for n in range(12)
    ]
    (tmp_path / "records.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command("import", "records.jsonl", "--as", "many", folder=tmp_path)
    with serving(tmp_path) as server:
        server.digest("many")
        page = open_page().page
        page.goto(f"{server.address}/runs/many/metrics")
        for link in (links := page.locator("a[data-png]")).all():
            with page.expect_download() as download:
                link.click()
            assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
        assert links.count()


def test_answers_are_compressed_for_those_who_can_read_it(site):
    server, run = site
    server.digest(run)
    asked = urllib.request.Request(
        f"{server.address}/runs/{run}", headers={"Accept-Encoding": "gzip"}
    )
    with urllib.request.urlopen(asked) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        assert "content-security-policy" in answer.headers
        text = gzip.decompress(answer.read()).decode()
    assert text == server.get(f"/runs/{run}")[2]


def test_many_metrics_have_a_page_and_wrong_numbers_have_no_effect(site):
    server, run = site
    server.digest(run)
    for page in ("", "?page=99", "?page=-1", "?page=x"):
        assert "side by side" in server.get(f"/runs/{run}/metrics{page}")[2]


def test_a_run_that_waits_for_batches_says_what_is_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with batch_server(tmp_path) as provider:
        batch_suite(tmp_path, provider, limits={}, answer="last_line")
        provider.control(hold=True)
        assert pennyweight("run", "suite.yaml", "--batch").code == 0
        (run,) = pennyweight("runs", "--format", "json").json["runs"]
        with serving(tmp_path) as server:
            page = server.get(f"/runs/{run['id']}")[2]
    assert "5 requests in 1 batch, 0 of them answered. Resume collects what is done." in page
    assert re.search(r"<button[^>]*data-resume>Resume", page)


def test_differences_from_a_chosen_baseline_follow_a_run_that_changed(tmp_path):
    rows = [
        {"task_id": f"t{n}", "subject": subject, "passed": n < passes}
        for subject, passes in (("first", 38), ("second", 24), ("third", 12))
        for n in range(40)
    ]
    (tmp_path / "records.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command("import", "records.jsonl", "--as", "one", folder=tmp_path)

    def differences():
        page = server.get("/runs/one?baseline=third")[2]
        return re.findall(r'aria-label="([+−0-9.]+) points, shown', page)

    with serving(tmp_path) as server:
        server.digest("one")
        assert differences() == ["+65.0", "+30.0"]
        with sqlite3.connect(tmp_path / ".pennyweight" / "pennyweight.db") as store:
            store.execute("UPDATE pennyweight_record SET passed = 0 WHERE subject = 'first'")
            store.execute("UPDATE pennyweight_run SET ended = ended + 1")
        for _ in range(2):
            assert differences() == ["+30.0", "−30.0"]


def test_what_is_searched_unfolded_and_chosen_stays_when_the_order_changes(tmp_path, open_page):
    rows = [
        {"task_id": f"t{n}", "subject": f"model-{i:02}", "passed": n * 5 < 4 * i, "cost_usd": 0.1}
        for i in range(20)
        for n in range(16)
    ]
    rows += [{"task_id": f"t{n}", "subject": "down", "status": "error"} for n in range(16)]
    (tmp_path / "records.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command("import", "records.jsonl", "--as", "many", folder=tmp_path)
    with serving(tmp_path) as server:
        server.digest("many")
        page = open_page().page
        page.goto(f"{server.address}/runs/many")
        sides, box = page.locator("tr[data-name]:visible"), page.locator(".scroll.board")
        fits = "box => box.scrollHeight <= box.clientHeight + 1"
        assert sides.count() == 15
        apart = page.get_by_text("not ranked: no pass rate")
        assert not apart.is_visible(), "it is about a side that is folded"
        assert box.evaluate(fits), "a folded board does not scroll in itself"
        page.get_by_placeholder("part of a name").fill("nobody")
        none = page.get_by_text("No side has this in its name.")
        assert none.evaluate("cell => getComputedStyle(cell).paddingLeft") == "12px"
        page.get_by_placeholder("part of a name").fill("-13 Mod")
        assert sides.locator(".name").all_inner_texts() == ["model-13"]
        page.get_by_placeholder("part of a name").fill("model-1")
        assert sides.count() == 10
        page.get_by_label("Sort by").focus()
        page.get_by_label("Sort by").select_option("cost_usd_mean")
        page.wait_for_url("**sort=cost_usd_mean*")
        page.locator("th[aria-sort]", has_text="cost per attempt").wait_for()
        assert page.evaluate("document.activeElement.name") == "sort"
        assert sides.count() == 10
        page.get_by_placeholder("part of a name").fill("")
        page.get_by_role("link", name=re.compile("Show . more side")).click()
        assert sides.count() == 21
        page.locator("#grid").get_by_role("link", name=re.compile("^differs")).click()
        page.wait_for_url("**only=differs*")
        page.get_by_role("link", name="pass rate", exact=True).click()
        page.wait_for_url("**sort=pass_rate*")
        page.locator("th[aria-sort]", has_text="pass rate").wait_for()
        assert sides.count() == 21
        assert apart.is_visible()
        chosen = page.locator("#grid [aria-current]").first
        assert chosen.inner_text().startswith("differs")
        page.reload()
        assert chosen.inner_text().startswith("differs")
        page.locator("#grid tbody td a").first.click()
        page.wait_for_url("**/task?**")
        page.go_back()
        page.locator("table.board").wait_for()
        assert sides.count() == 21, "the board is as it was left"


def test_a_run_that_is_over_is_not_preliminary_because_attempts_failed(tmp_path):
    store = Store(str(tmp_path / ".pennyweight" / "pennyweight.db"))
    for number, made in enumerate((3, 2)):
        name = f"20260101-000000-000{number}"
        store.add_run(stored_run(name, status="failed", ended=2.0, attempts=3))
        lost = {"status": "error", "error": "HTTP 500"}
        store.write([record(f"t{n}", name, **({} if n else lost)) for n in range(made)], [])
    store.close()
    with serving(tmp_path) as server:
        whole, part = (server.get(f"/runs/20260101-000000-000{n}")[2] for n in range(2))
    assert "Preliminary" not in whole
    assert "Preliminary: 2 of 3 attempts are measured" in part


def test_bars_of_all_sides_are_below_each_other(site, open_page):
    server, run = site
    server.digest(run)
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}?sort=cost_of_pass")
    bars = page.locator("table.board svg.range")
    assert bars.count() > 1
    assert len({round(bars.nth(i).bounding_box()["x"]) for i in range(bars.count())}) == 1
    head = page.locator("th.drawn")
    title, axis = head.locator("a").bounding_box(), head.locator(".axis").bounding_box()
    assert axis["x"] + axis["width"] <= title["x"]


def test_a_column_of_the_tasks_has_a_tab_and_an_unknown_one_is_told(tmp_path):
    rows = [
        {"task_id": f"t{n}", "subject": subject, "target": "1", "answer": str(n % 3),
         "difficulty": ["easy", "<b>hard"][n % 2]}
        for n in range(8)
        for subject in ("one", "two")
    ]  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command("import", "rows.jsonl", "--as", "own", folder=tmp_path)
    with serving(tmp_path) as server:
        server.digest("own")
        plain = server.get("/runs/own")[2]
        own = server.get("/runs/own?by=difficulty")[2]
        unknown = server.get("/runs/own?by=%3Cb%3Edifficult")[2]
        key = quote(json.dumps(["t1", "one", "T0", 1]))
        one = server.get(f"/runs/own/record?key={key}")[2]
    assert re.search(r'href="/runs/own\?by=difficulty#board"[^>]*>difficulty</a>', plain)
    assert 'aria-current="true">difficulty</a>' in own
    names = re.findall(r'<tr class="[^"]*" data-name="([^"]*)">(.*?)</th>', own)
    assert sorted(name for name, _ in names) == ["&lt;b&gt;hard", "easy"]
    assert not any("href" in cell for _, cell in names)  # records cannot be filtered by it
    told = "There is no leaderboard by {}; this one is by subject."
    assert told.format("&lt;b&gt;difficult") in unknown
    assert "There is no leaderboard" not in plain + own
    assert '<th scope="row">difficulty</th><td>&lt;b&gt;hard</td>' in one
