"""Values that several formats share."""

import json

import orjson

from pennyweight.exports.values import conversation, dumped, file_name


def test_names_that_differ_stay_apart():
    names = ["a/b", "a b", "a-b", "..", "", "x" * 90, "x" * 91, "CON"]
    made = [file_name(name, "T0") for name in names]
    assert len(set(made)) == len(names)
    assert all(len(name) < 80 and "/" not in name and not name.startswith(".") for name in made)


def test_text_that_is_no_unicode_is_replaced():
    assert orjson.loads(dumped({"a": ["x\ud800", 1.5, None]})) == {"a": ["x?", 1.5, None]}


def test_results_of_tools_have_the_ids_of_their_calls():
    call = {"name": "f", "arguments": "{}"}
    turns = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "tool_calls": [call, call]},
        *({"role": "tool", "content": text} for text in "xy"),
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "z"},
    ]
    told = conversation({"input": "q", "work": json.dumps({"turns": turns}), "response": "z"})
    assert [one["role"] for one in told] == [one["role"] for one in turns]
    assert [one.get("call_id") for one in told if one["role"] == "tool"] == [
        "call_1", "call_2", "call_3",
    ]  # fmt: skip
