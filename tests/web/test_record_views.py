"""Records in the browser: trajectories of hundreds of steps, and texts that are too long."""

import csv
import io
import json
import re
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from web.serving import command, serving

STEPS = 500
HERE = "places.get(acts[act]?.id)?.ariaCurrent && act"


def _entry(number, kind, content, **more):
    at = f"2026-01-02T{3 + number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
    message = {"role": kind, "content": content, **more}
    named = {"requestId": f"r{number}"} if kind == "assistant" else {}
    return {
        "type": kind,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}",
        "timestamp": at,
        "sessionId": "long",
        "version": "2.1.233",
        "message": message,
        **named,
    }


def _log():
    """A log of Claude Code."""
    yield _entry(0, "user", "Mend the test.")
    for step in range(STEPS):
        call = {"type": "tool_use", "id": f"t{step}", "name": "Bash",
                "input": {"command": f"cat file{step}.py", "description": "Look"}}  # fmt: skip
        said = [{"type": "thinking", "thinking": f"Thought {step} is **long**. " * 20}, call]
        usage = {"input_tokens": 1, "output_tokens": 1}
        yield _entry(1 + 2 * step, "assistant", said, id=f"m{step}", model="claude-x", usage=usage)
        lines = "\n".join(f"line {n} of <b>{step}</b>" for n in range(step % 50 + 1))
        result = {"type": "tool_result", "tool_use_id": f"t{step}", "content": lines}
        yield _entry(2 + 2 * step, "user", [result | {"is_error": step == 7}])


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, _log())))
    done = command("import", "log.jsonl", folder=folder)
    run = re.search(r"as run ([\w-]+)", done.stdout + done.stderr)[1]
    with serving(folder) as server:
        records = server.json(f"/api/runs/{run}/records")[1]["records"]
        key = [records[0][n] for n in ("task_id", "subject", "tier", "attempt")]
        yield server, f"/runs/{run}/record?key={quote(json.dumps(key), safe='')}"


@pytest.mark.parametrize("width", [390, 1280])
def test_hundreds_of_steps_open_at_once_and_are_completed_in_sight(long_run, open_page, width):
    server, address = long_run
    assert len(server.get(address)[2].encode()) < 200_000
    watched = open_page(width)
    page = watched.page
    page.goto(server.address + address)
    assert page.locator("[data-step]").count() == STEPS
    page.locator("#step-1 .call").get_by_text("cat file0.py").wait_for()
    for number in (400, 8):
        page.get_by_role("link", name=re.compile(f"^{number} Bash")).click()
        step = page.locator(f"#step-{number}")
        step.get_by_text(f"cat file{number - 1}.py").wait_for()
        page.wait_for_timeout(300)  # others beside it are completed too, and it stays in place
        assert 0 <= step.bounding_box()["y"] < 60
        assert page.evaluate("location.hash") == f"#step-{number}"
    assert "✗ error" in page.locator("#step-8").inner_text()
    assert "1,000 ms" in page.locator("#step-8").inner_text()
    assert page.locator("#step-8 strong").first.inner_text() == "long"
    page.keyboard.press("n")
    assert page.evaluate("location.hash") == "#step-9"
    assert watched.overflow() <= 0


def test_the_list_of_steps_follows_the_page(long_run, open_page):
    server, address = long_run
    page = open_page().page
    page.goto(server.address + address)
    for number in (400, 100):
        page.locator(f"#step-{number}").evaluate("step => step.scrollIntoView({block: 'start'})")
        here = page.locator(".steplist a[aria-current]")
        near = f"number => Math.abs({HERE} - number) < 15"
        page.wait_for_function(near, arg=number)
        row, box = here.bounding_box(), page.locator(".steplist").bounding_box()
        assert box["y"] - 1 <= row["y"] <= box["y"] + box["height"] - row["height"] + 1


def test_steps_can_be_read_without_the_script(long_run):
    server, address = long_run
    text = server.get(address)[2]
    assert text.count('name="n"') >= STEPS - 100
    at = address.replace("/record?", "/step?")
    status, _, several = server.get(f"{at}&n=100&to=900")
    assert status == 200
    assert len(re.findall("<li [^>]*data-step", several)) == 16
    assert "cat file114.py" in several
    assert len(several.encode()) < 300_000
    assert "Step 500 of 500" in server.get(f"{at}&n=500")[2]
    assert server.get(f"{at}&n=501")[0] == 404


@pytest.mark.parametrize("width", [390, 1280])
def test_a_blind_review_loads_all_steps_and_tells_nobody_who_answered(long_run, open_page, width):
    server, record = long_run
    watched = open_page(width)
    page, run = watched.page, record.split("/record?")[0]
    page.goto(f"{server.address}{run}/review?as=Ada&size=1&at=1&blind=1")
    steps, more = page.locator("#steps [data-step]"), page.locator("[data-later]")
    shown = steps.count()
    many = shown + int(more.inner_text().split()[0])
    page.get_by_label("Note").fill("kept")
    while more.count():
        assert "claude" not in more.get_attribute("href")
        more.click()
        page.locator(f"#step-{shown + 1}").wait_for()
        shown = steps.count()
    assert [int(one.get_attribute("value")) for one in steps.all()] == [*range(1, many + 1)]
    assert page.get_by_label("Note").input_value() == "kept"
    assert watched.overflow() <= 0
    for first in (1, many, 99_999):
        text = server.get(f"{run}/review?as=Ada&size=1&at=1&blind=1&from={first}")[2]
        assert f'id="step-{min(first, many)}"' in text
        assert "claude-x" not in text
        assert "record?key=" not in text
        assert "step?key=" not in text


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("short")
    rows = [
        {"task_id": "sum", "subject": s, "attempt": a, "input": "6 * 7?", "target": "42",
         "response": "" if a == 3 else f"It is {40 + a}.", "answer": str(40 + a)}
        for s in ("one", "two") for a in (1, 2, 3)
    ]  # fmt: skip
    rows[0] |= {"status": "error", "error": "=gone", "error_kind": "rate_limit", "response": None}
    (folder / "records.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command("import", "records.jsonl", "--as", "short", folder=folder)
    with serving(folder) as server:
        yield server


def test_the_first_look_at_a_record_shows_the_results_of_all_attempts(short_run, open_page):
    page = open_page().page
    key = quote(json.dumps(["sum", "two", "T0", 2]), safe="")
    page.goto(f"{short_run.address}/runs/short/record?key={key}")
    cells = page.locator(".matrix td").all_inner_texts()
    assert cells == ["!", "✓", "✗", "✗", "✓", "✗"]
    page.keyboard.press("w")
    page.get_by_text("two · T0 · attempt 3").wait_for()


def test_the_keys_of_attempts_keep_the_filter_of_the_list(short_run, open_page):
    short_run.digest("short")
    page = open_page().page
    page.goto(f"{short_run.address}/runs/short/records?correct=no&subject=one&sort=attempt")
    page.locator("table.rows tbody a").first.click()
    page.get_by_text("one · T0 · attempt 3").wait_for()
    page.keyboard.press("r")
    page.get_by_text("two · T0 · attempt 2").wait_for()
    for link in page.locator(".matrix a").all():
        query = parse_qs(urlsplit(link.get_attribute("href")).query)
        assert (query["correct"], query["subject"], query["sort"]) == (["no"], ["one"], ["attempt"])
    page.keyboard.press("j")
    page.get_by_text("one · T0 · attempt 3").wait_for()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("menu", ["More", "Columns", "Download"])
def test_menus_of_the_records_lie_above_the_layout(short_run, open_page, width, menu):
    short_run.digest("short")  # nothing renews itself under our hands
    watched = open_page(width)
    page = watched.page
    page.goto(f"{short_run.address}/runs/short/records")
    still = [page.locator("summary", has_text=n) for n in ("More", "Columns", "Download")]
    still.append(page.locator("table.rows"))
    before = [one.bounding_box() for one in still]
    page.locator("summary", has_text=menu).click()
    assert [one.bounding_box() for one in still] == before
    box = page.locator("details.menu[open] > .panel").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert watched.overflow() <= 0
    if menu == "Columns":
        page.get_by_label("response").check()
        page.get_by_role("button", name="Apply").click()
        page.get_by_text("It is 41.").wait_for()


def test_a_table_tells_an_empty_reply_from_none(short_run):
    _, _, text = short_run.get("/runs/short/records.csv")
    head, *rows = text.splitlines()
    at = head.split(",").index("response")
    assert [row.split(",")[at] for row in rows] == [
        "",
        "It is 42.",
        '""',
        "It is 41.",
        "It is 42.",
        '""',
    ]
    (first, *_), errors = csv.DictReader(io.StringIO(text)), head.split(",").index("error")
    assert first["error"] == "'=gone"  # no spreadsheet takes it for a formula
    assert rows[0].split(",")[errors] == "'=gone"


def test_a_text_that_is_too_long_to_search_for_is_refused(short_run):
    status, _, text = short_run.get(f"/runs/short/records?q={'a' * 501}")
    assert status == 200
    assert "at most 500 characters" in text
    assert "table class=" not in text
    assert short_run.get(f"/runs/short/records?q={'a' * 500}")[0] == 200


@pytest.mark.parametrize(
    ("written", "found"),
    [('"it is 42"', 2), ('"it is 4"', 0), ("it is 4*", 3), ("t is 4*", 0), ('"it is 42', 0),
     ('""', 0), ("*", 6), ("\0", 0), ('"\0" OR response:NEAR(*', 0), ('"6 * 7?"', 6),
     ("42 it", 2), ("it * 42", 2), ('4* "it is"', 3), ("42 it zebra", 0)],
)  # fmt: skip
def test_a_quoted_phrase_finds_the_same_in_the_list_the_api_and_downloads(
    short_run, open_page, written, found
):
    page, query = open_page().page, f"q={quote(written)}"
    page.goto(f"{short_run.address}/runs/short/records?{query}")
    if "\0" not in written:
        assert page.get_by_label("Text").first.input_value() == written
    assert page.locator("table.rows tbody tr").count() == found
    assert len(short_run.json(f"/api/runs/short/records?{query}")[1]["records"]) == found
    assert short_run.json(f"/api/runs/short/count?{query}")[1]["count"] == found
    assert len(short_run.get(f"/runs/short/records.jsonl?{query}")[2].splitlines()) == found


def test_kinds_of_errors_are_offered_and_found(short_run, open_page):
    short_run.digest("short")
    page = open_page().page
    page.goto(f"{short_run.address}/runs/short/records")
    page.locator("summary", has_text="More").click()
    field = page.locator("select[name=error_kind]")
    assert field.locator("option").all_inner_texts() == ["any", "rate_limit"]
    field.select_option("rate_limit")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="Clear").wait_for()
    assert page.locator("table.rows tbody tr").count() == 1
    assert field.input_value() == "rate_limit"
    page.goto(f"{short_run.address}/runs/short/records?error_kind=time")
    assert field.input_value() == "time"
    assert page.locator("table.rows tbody tr").count() == 0


def test_only_a_run_with_a_suite_shows_it(short_run, site):
    server, run = site
    assert "Suite as run" in server.get(f"/runs/{run}")[2]
    assert "Suite as run" not in short_run.get("/runs/short")[2]
