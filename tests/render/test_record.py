"""The texts of a record are marked, folded and read from logs."""

import json

from pennyweight.render.record import (
    FoldedText,
    ShownCall,
    folded,
    marked_reply,
    shown_thought,
    tool_calls,
)
from pennyweight.text.extraction import AnswerRule

REPLY = "FINAL_ANSWER: 4\nConfidence: 94%"


def test_the_answer_is_marked_where_its_rule_found_it():
    pieces = marked_reply(REPLY, "4", AnswerRule())
    assert pieces == [("FINAL_ANSWER: ", ""), ("4", "found"), ("\nConfidence: 94%", "")]


def test_the_answer_is_seen_inside_what_a_check_rests_on():
    pieces = marked_reply("So it is 7.", "7", None, [(3, 10), (9, 10)])
    assert pieces == [("So ", ""), ("it is ", "evidence"), ("7", "found"), (".", "")]


def test_a_thought_that_repeats_the_reply_is_left_out():
    measured = {"cot": "It is so.", "step_count": 0, "self_correcting": False}
    assert shown_thought(measured, " It is so.\n") is None
    assert shown_thought(measured, "It is so.\nFINAL_ANSWER: 4") == "It is so."
    assert shown_thought({**measured, "step_count": 2}, "It is so.") == "It is so."
    assert shown_thought({**measured, "cot": None}, "It is so.") is None


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
    assert tool_calls(row) == [
        ShownCall("look", '{"id": 7}', "7", "2026-01-02, 12.3 ms"),
        ShownCall("pay", "", '{"paid": true}'),
        ShownCall("wait"),
    ]


def test_a_long_reply_is_folded_between_its_ends():
    pieces = [("a" * 7_000, ""), ("7", "found"), ("b" * 500, "")]
    told = folded(pieces)
    assert told.hidden == 7_501 - 3_000
    parts = [*told.head, *told.middle, *told.tail]
    assert "".join(text for text, _ in parts) == "a" * 7_000 + "7" + "b" * 500
    assert ("7", "found") in told.tail
    assert folded(pieces[1:]) == FoldedText(pieces[1:])
