"""What the page of a record makes of its texts."""

import json

from pennyweight.text.extraction import AnswerRule
from pennyweight.web.observed import points
from pennyweight.web.record_view import calls, fold, found_in, thought

REPLY = "FINAL_ANSWER: 4\nConfidence: 94%"


def test_the_answer_is_marked_where_its_rule_found_it():
    pieces = found_in(REPLY, "4", AnswerRule())
    assert pieces == [("FINAL_ANSWER: ", ""), ("4", "found"), ("\nConfidence: 94%", "")]


def test_the_answer_is_seen_inside_what_a_check_rests_on():
    pieces = found_in("So it is 7.", "7", None, [(3, 10), (9, 10)])
    assert pieces == [("So ", ""), ("it is ", "evidence"), ("7", "found"), (".", "")]


def test_a_thought_that_repeats_the_reply_is_left_out():
    measured = {"cot": "It is so.", "step_count": 0, "self_correcting": False}
    assert thought(measured, " It is so.\n") is None
    assert thought(measured, "It is so.\nFINAL_ANSWER: 4") == "It is so."
    assert thought({**measured, "step_count": 2}, "It is so.") == "It is so."
    assert thought({**measured, "cot": None}, "It is so.") is None


def test_calls_show_what_tools_gave():
    row = {
        "tool_calls": json.dumps(
            [
                {
                    "id": "1",
                    "name": "look",
                    "arguments": '{"id": 7}',
                    "latency_ms": 12.3,
                    "started": "2026-01-02",
                },
                {"id": "2", "name": "pay", "arguments": {}, "result": {"paid": True}},
                {"id": "3", "name": "wait"},
            ]
        ),
        "messages": json.dumps(
            [
                {"role": "user", "content": "x"},
                {"role": "tool", "tool_call_id": "1", "content": "7"},
            ]
        ),
        "work": None,
    }
    assert calls(row) == [
        {"name": "look", "arguments": '{"id": 7}', "result": "7", "time": "2026-01-02, 12 ms"},
        {"name": "pay", "arguments": "", "result": '{"paid": true}', "time": ""},
        {"name": "wait", "arguments": "", "result": "", "time": ""},
    ]


def test_a_long_reply_is_folded_between_its_ends():
    pieces = [("a" * 7_000, ""), ("7", "found"), ("b" * 500, "")]
    told = fold(pieces)
    assert told["hidden"] == 7_501 - 3_000
    parts = [*told["head"], *told["middle"], *told["tail"]]
    assert "".join(text for text, _ in parts) == "a" * 7_000 + "7" + "b" * 500
    assert ("7", "found") in told["tail"]
    assert fold(pieces[1:]) == {"head": pieces[1:], "middle": [], "tail": [], "hidden": 0}


def test_marks_have_a_scale():
    items = [{"id": "short", "points": 2.0}]
    assert points({"judge": {"rubric": {"categories": [{"items": items}]}}}) == {"short": 2.0}
    assert points({}) == {}
