"""The texts of a record are marked and read from logs."""

import json

import pytest

from pennyweight.render.transcript.record import (
    agent_work,
    conversation,
    marked_reply,
    prompt_turns,
    shortened,
    shown_text,
    shown_thought,
    unmarked_text,
)
from pennyweight.text.extraction import AnswerRule

REPLY = "FINAL_ANSWER: 4\nConfidence: 94%"


def test_the_answer_is_marked_where_its_rule_found_it():
    pieces = marked_reply(REPLY, "4", AnswerRule())
    assert pieces == [("FINAL_ANSWER: ", ""), ("4", "found"), ("\nConfidence: 94%", "")]


def test_the_answer_is_seen_inside_what_a_check_rests_on():
    pieces = marked_reply("So it is 7.", "7", None, [(3, 10), (9, 10)])
    assert pieces == [("So ", ""), ("it is ", "evidence"), ("7", "found"), (".", "")]


def test_a_thought_that_is_part_of_the_reply_is_left_out():
    measured = {"cot": "It is so."}
    assert shown_thought(measured, " It is so.\n") is None
    assert shown_thought(measured, "It is so.\nFINAL_ANSWER: 4") is None
    assert shown_thought(measured, "FINAL_ANSWER: 4") == "It is so."
    assert shown_thought({"cot": None}, "It is so.") is None
    both = {"cot": "Hm. Well.\nIt is so."}
    assert shown_thought(both, "It is so.\nFINAL_ANSWER: 4", "Hm. Well.\n") == "Hm. Well."
    assert shown_thought(both, "FINAL_ANSWER: 4", "Hm. Well.\n") == both["cot"]


def test_the_prompt_is_shown_message_by_message():
    turns = prompt_turns('[{"role": "system", "content": "**Be** brief."}]', "x", raw=False)
    assert [(t.role, str(t.content.head)) for t in turns] == [
        ("system", "<p><strong>Be</strong> brief.</p>\n")
    ]
    assert prompt_turns(None, "a **b**", raw=True)[0].content.head == "a **b**"
    assert prompt_turns("no json", "x", raw=True)[0].content.head == "no json"


DIFF = """--- a/x.py
+++ b/x.py
@@ -1,1 +1,2 @@
-a
+b
+c
--- /dev/null
+++ b/y
@@ -0,0 +1,1 @@
+d"""
WORK = {
    "exit_code": 0,
    "ended": "exit",
    "stdout": "one\ntwo\n",
    "stderr": "",
    "diff": DIFF,
    "files": {"added": 1, "changed": 1, "removed": 0},
    "checks": [
        {"check": "verify", "command": "pytest", "before": 1, "after": 0, "ended": "exit",
         "holds": True, "output": "1 passed"},
        {"check": "keep", "command": "test -s x", "ended": "timeout", "holds": False},
    ],
    "left_out": [{"path": "link", "why": "leads out of the workspace"}],
}  # fmt: skip


def test_the_work_of_an_agent_is_read():
    work = agent_work({"work": json.dumps(WORK), "response": "other"})
    assert [(f.path, f.added, f.removed) for f in work.diff] == [("x.py", 2, 1), ("y", 1, 0)]
    assert '<span class="add">+b</span>' in work.diff[0].lines.head
    assert work.files == "1 added, 1 changed"
    first, second = work.checks
    assert (first.holds, first.note) == (True, "exit code 1 before, 0 after")
    assert (second.holds, second.note, second.output) == (False, "timeout", None)
    assert "1 passed" in first.output.head
    assert work.facts == (("exit_code", 0), ("ended", "exit"))
    assert [name for name, _ in work.outputs] == ["stdout"]
    assert work.left_out == ("link: leads out of the workspace",)


def test_work_of_any_shape_is_read():
    for odd in (None, "[]", "no json", '"x"', "7", '{"turns": 7, "diff": 7, "checks": [7, {}]}',
                '{"files": [1], "left_out": {"a": 1}, "checks": {"holds": "yes"}}'):  # fmt: skip
        agent_work({"work": odd, "response": None})


def test_a_long_conversation_fits_on_a_page_with_the_end_of_every_turn():
    shown = conversation([("user", "word " * 5_000 + f"end {n}") for n in range(70)])
    assert len(shown) == 60
    sizes = [len((f.head + f.middle + f.tail).encode()) for _, f in shown]
    assert sum(sizes) < 250_000
    assert all(f"end {n}" in f.head + f.tail for n, (_, f) in enumerate(shown))
    ((who, only),) = conversation([("user", "word " * 3_000)])
    assert (who, only.cut) == ("user", False)


def test_the_end_of_a_text_that_is_too_long_is_shown():
    """Answers are there."""
    rules = "".join(f"{n}. Line **{n}**\n" for n in range(1, 9_000))
    for text in (rules, rules[:43_000], "word " * 60_000, "<&" * 60_000, "漢字" * 60_000):
        pieces = [(f"Begin {text}\n\n", ""), ("7", "found")]
        for raw in (True, False):
            shown = shown_text(shortened(pieces, 70_000), 70_000, raw=raw)
            whole = shown.head + shown.middle + shown.tail
            assert "Begin" in shown.head
            assert '<mark class="found">7</mark>' in shown.tail
            assert "The middle of this text is left out here." in whole
            assert shown.cut
            assert len(whole.encode()) < 75_000
    assert shortened([("short", "found")], 70_000) == [("short", "found")]


def test_long_code_stays_code_where_its_middle_is_left_out():
    lines = "".join(f"def f{n}(x):\n    return {n}\n\n" for n in range(4_000))
    shown = unmarked_text(f"Code:\n\n```python\n{lines}```\n\nSo **7**.", 70_000)
    assert "<p>So <strong>7</strong>.</p>" in shown.tail
    assert shown.middle.count('class="language"') == 1
    assert "return 3999" not in shown.head
    assert '<pre class="code">' in shown.middle
    assert "```" not in shown.head + shown.middle + shown.tail


@pytest.mark.parametrize("size", [12_000, 26_000, 39_000])
@pytest.mark.parametrize(
    "line", ['{"id": "a1", "ok": "yes"}\n', '<a b="c">"d"</a>\n', "- a\n", "a\n\n", '"a" "b"\n']
)
@pytest.mark.parametrize("fence", ["", "```json\n"])
def test_the_end_is_shown_of_a_text_that_is_much_longer_as_html(line, size, fence):
    body = (line * size)[:size].rpartition("\n")[0]
    pieces = [(f"{fence}{body}\n{fence[:3]}\n\nIt is ", ""), ("7", "found"), (".", "")]
    shown = shown_text(shortened(pieces, 70_000), 70_000)
    whole = shown.head + shown.middle + shown.tail
    assert '<mark class="found">7</mark>.' in (shown.tail or shown.head)
    assert shown.cut == ("The middle of this text is left out here." in whole)
    assert len(whole.encode()) < 75_000
