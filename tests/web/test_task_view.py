"""All attempts at a task: a matrix to move in, distinct replies once, differences marked."""

import json
from urllib.parse import quote

from pennyweight.render.transcript.replies import reply_parts
from web.serving import command, serving


def place(task, tier="T0", attempt=1):
    return quote(json.dumps([task, "smollm2", tier, attempt]))


def test_the_keys_move_in_the_matrix(site, open_page):
    server, run = site
    server.digest(run)
    page = open_page().page
    page.goto(f"{server.address}/runs/{run}/record?key={place('steps')}")
    page.get_by_role("link", name="Replies side by side").click()
    current = page.locator(".matrix [aria-current]")
    assert current.count() == 1
    seen = []
    for key in ("j", "j", "k", "r", "w"):
        page.keyboard.press(key)
        page.wait_for_load_state()
        seen.append(current.get_attribute("title").split(",")[1:])
    assert seen[0] == seen[2] != seen[1]
    assert "passed" in seen[3][1]
    assert "not passed" in seen[4][1]
    page.keyboard.press("Enter")
    page.wait_for_url("**/record?*")


def test_equal_replies_are_one_and_the_chosen_one_is_first(site):
    server, run = site
    server.digest(run)
    _, _, page = server.get(f"/runs/{run}/task?key={place('steps', 'T2')}")
    assert 'class="panel at"><h2>Reply A' in page
    first = page.split("<article")[1]
    assert "smollm2 · T2 · 1" in first
    assert page.count('<mark class="after">') > 0
    assert server.get(f"/runs/{run}/task?key={place('no such')}")[0] == 404


def test_equal_lines_are_folded_away_from_differences():
    text = "".join(f"{n}\n" for n in range(20))
    parts = list(reply_parts([(text, False), ("x", True), (text, False)]))
    assert "".join(p.text for p in parts) == f"{text}x{text}"
    assert [p.lines for p in parts] == [18, 0, 0, 0, 17]
    assert [p.lines for p in reply_parts([(text, False)])] == [0]


def test_long_texts_are_folded_too():
    text = "".join(f"{n}\n" for n in range(200))
    for pieces in ([(text, False)], [("x", False), (text, True)]):
        parts = list(reply_parts(pieces))
        assert "".join(p.text for p in parts) == "".join(text for text, _ in pieces)
        (folded,) = (p for p in parts if p.lines)
        assert (folded.lines, folded.equal, folded.differs) == (164, False, pieces[-1][1])


def test_replies_that_are_too_long_for_the_page_are_told_apart_and_show_their_ends(tmp_path):
    said = "".join(f"Line {n} of a long thought.\n" for n in range(900))
    other = said.replace("Line 555", "Part 555")  # which the page does not show
    replies = [f"{said}So it is 42."] * 2 + [f"{text}So it is 41." for text in (said, other)]
    rows = [
        {"task_id": "sum", "subject": "m", "attempt": n, "target": "42", "answer": reply[-3:-1],
         "response": reply}
        for n, reply in enumerate(replies, 1)
    ]  # fmt: skip
    (tmp_path / "records.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command("import", "records.jsonl", "--as", "long", folder=tmp_path)
    with serving(tmp_path) as server:
        server.digest("long")
        key = quote(json.dumps(["sum", "m", "T0", 1]))
        page = server.get(f"/runs/long/task?key={key}")[2]
    assert "3 distinct replies in 4 attempts" in page
    first, second, _ = page.split("<article")[1:]
    assert "So it is <mark" in first
    assert 'class="after">41</mark>' in second
    assert "[…]" in second
    assert "equal lines" in second
    assert "The beginning and the end, 12,000 of" in second
