import json
import re
import time

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pennyweight.errors import UsageError
from pennyweight.text.extraction import AnswerRule, answer, cot
from pennyweight.text.scanning import last_boxed, last_json


def both(rule, text, reasoning=None):
    parsed = AnswerRule.parse(rule)
    frame = pl.DataFrame(
        {"text": [text], "reasoning": [reasoning]},
        schema={"text": pl.String, "reasoning": pl.String},
    )
    return frame.select(
        a=answer(pl.col("text"), parsed), c=cot(pl.col("text"), pl.col("reasoning"), parsed)
    ).row(0)


def found(rule, text):
    return both(rule, text)[0]


def test_the_last_match_of_a_pattern_is_the_answer():
    text = "So 12, or rather 109. It costs $5"
    assert both({"last_regex": "[0-9]+"}, text) == ("5", "So 12, or rather 109. It costs $")
    assert found({"last_regex": "rather ([0-9]+)"}, text) == "109"
    assert found({"last_regex": "x"}, text) is None
    assert found({"regex": "[0-9]+"}, text) == "12"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("So it is.\nFINAL_ANSWER: 42", "42"),
        ("final_answer: 42", "42"),
        ("**FINAL_ANSWER:** 42", "42"),
        ("**FINAL_ANSWER: 42**", "42"),
        ("**FINAL_ANSWER**: `42`", "42"),
        ("`FINAL_ANSWER: 42`", "42"),
        (r"FINAL\_ANSWER: 42", "42"),
        ("FINAL_ANSWER ： 42", "42"),
        ("FINAL_ANSWER: 41\nNo.\nFINAL_ANSWER: 42\nDone.", "42"),
        ("FINAL_ANSWER: 41 FINAL_ANSWER: 42", "42"),
        ("FINAL_ANSWER:\n\n  42\nDone.", "42"),
        ("FINAL_ANSWER: 42\r\nDone.", "42"),
        ("FINAL_ANSWER: 42.", "42"),
        ("FINAL_ANSWER: 3.14.", "3.14"),
        ("FINAL_ANSWER: Paris.", "Paris"),
        ("FINAL_ANSWER: **Paris.**", "Paris"),
        ("FINAL_ANSWER: the U.S.", "the U.S."),
        ("FINAL_ANSWER: 9 a.m.", "9 a.m."),
        ("FINAL_ANSWER: …", "…"),
        ("FINAL_ANSWER: 北京", "北京"),
        ("FINAL_ANSWER:", None),
        ("FINAL_ANSWER:  \n ", None),
        ("FINAL_ANSWER 42", None),
        ("", None),
        (None, None),
    ],
)
def test_a_marker(text, expected):
    assert found("marker", text) == expected


def test_a_marker_is_taken_literally():
    assert found({"marker": "=> ("}, "a => (b") == "b"
    assert found("marker=The answer is", "So THE ANSWER IS four") == "four"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3 and then 1,234.50", "1,234.50"),
        ("It costs $1,000.", "1,000"),
        ("-$5", "-5"),
        ("$-5", "-5"),
        ("it is −7", "-7"),
        ("x = -3", "-3"),
        ("10 - 3 = 7.", "7"),
        ("5-3", "3"),
        ("pages 12-15", "15"),
        ("x-3", "3"),
        ("1.5e-3", "1.5e-3"),
        ("80%", "80"),
        (".5", ".5"),
        ("1,2,3", "3"),
        ("1,0000", "0000"),
        ("**42**", "42"),
        ("none", None),
        ("", None),
    ],
)
def test_the_last_number(text, expected):
    assert found("last_number", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The answer is (B).", "B"),
        ("Answer: c", "C"),
        ("**Answer:** **D**", "D"),
        ("FINAL_ANSWER: B", "B"),
        ("I think (A), no, (C)", "C"),
        (r"So $\boxed{\text{E}}$", "E"),
        ("**B**", "B"),
        ("B", "B"),
        ("b)", "B"),
        ("B. Paris", "B"),
        ("The answer is A because it is.", "A"),
        ("The answer is A man.", None),
        ("The answer is a secret.", None),
        ("Because.", None),
    ],
)
def test_a_choice(text, expected):
    assert found("choice", text) == expected


def test_a_choice_of_more_letters():
    assert found("choice", "Answer: J") is None
    assert found("choice=A-J", "Answer: J") == "J"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\boxed{1} then \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"\boxed{\text{yes}}", "yes"),
        (r"\boxed{1} and \boxed{2", "1"),
        (r"\boxed{}", None),
        (r"\boxed", None),
    ],
)
def test_boxed(text, expected):
    assert found("boxed", text) == expected


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("$.answer", '{"answer": 1.50}', "1.50"),
        ("answer.value", 'Sure:\n```json\n{"answer": {"value": "x"}}\n```\nDone.', "x"),
        ("answer", 'Sure:\n```json\n{"answer": 4}', "4"),
        ("a[1]", '{"a": [1, 2]}', "2"),
        ("a.1", '{"a": [1, 2]}', "2"),
        ('$["a b"]', '{"a b": true}', "true"),
        ("a", '{"a": {"b": [1.0, "x"]}}', '{"b": [1.0, "x"]}'),
        ("a", r'\frac{1}{2} {"a": "}"} {"b": 1}', "}"),
        ("a", '{"a": 1} {"a": 2}', "2"),
        ("a", '{"a": 1', None),
        ("a", '{"a": null}', None),
        ("a", "[]", None),
        ("a", "no", None),
    ],
)
def test_json(path, text, expected):
    assert found({"json": path}, text) == expected


def test_a_regular_expression_gives_its_first_group_or_all_of_it():
    assert found(r"regex=answer: (\w+)", "the answer: yes, answer: no") == "yes"
    assert found(r"regex=y\w+", "say yes") == "yes"
    assert found(r"regex=z", "say yes") is None


def test_the_last_line():
    assert both("last_line", "a\nb\n**c.**\n\n") == ("c", "a\nb")
    assert found("last_line", " \n ") is None


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("marker", "One.\nTwo.\n**FINAL_ANSWER:** 3", "One.\nTwo."),
        ("marker", "FINAL_ANSWER: 3", None),
        ("marker", "I never get there", "I never get there"),
        ("last_number", "So 1 and 2", "So 1 and"),
        ("boxed", r"So \boxed{2}", "So"),
        ("choice", "Thus. Answer: B", "Thus."),
        ("json=a", 'Well:\n```json\n{"a": 1}\n```', "Well:"),
        (r"regex=is (\d)", "Then it is 4", "Then it"),
        ("marker", " ", None),
        ("marker", None, None),
    ],
)
def test_the_thought_is_what_stands_before_the_answer(rule, text, expected):
    assert both(rule, text)[1] == expected


def test_thinking_aloud_is_reasoning_and_no_answer():
    text = "<think>FINAL_ANSWER: 1</think>Hm.\nFINAL_ANSWER: 2"
    assert both("marker", text) == ("2", "FINAL_ANSWER: 1\nHm.")
    assert both("marker", "begun</think>FINAL_ANSWER: 2") == ("2", "begun")
    assert both("marker", "<think>cut FINAL_ANSWER: 1") == (None, "cut FINAL_ANSWER: 1")
    assert both("marker", "Hm.\nFINAL_ANSWER: 2", "channel") == ("2", "channel\nHm.")
    assert both("marker", "FINAL_ANSWER: 2", "  ") == ("2", None)
    assert both("marker", None, "channel") == (None, "channel")


def test_a_rule_is_written_the_same_way_everywhere():
    assert AnswerRule.parse("marker") == AnswerRule("marker", "FINAL_ANSWER:")
    assert AnswerRule.parse("marker=X:") == AnswerRule.parse({"marker": "X:"})
    assert AnswerRule.parse({"json": "$.a"}) == AnswerRule.parse("json=$.a")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("last_numbr", "Did you mean 'last_number'"),
        ({"regex": "(a"}, "unclosed group"),
        ({"regex": "(?=a)"}, "look-around"),
        ("regex", "needs a value"),
        ({"marker": ""}, "needs a value"),
        ("boxed=1", "takes no value"),
        ("json=$", "at least one key"),
        ("json=a[", "not a path"),
        ("choice=x", "range of letters"),
        ({}, "One of these"),
        (["marker"], "One of these"),
        ({"marker": 3}, "needs text"),
    ],
)
def test_a_wrong_rule_says_what_is_wrong(given, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        AnswerRule.parse(given)


MEGABYTE = 1_000_000
HOSTILE = [
    "a" * MEGABYTE + "!",
    "\n" * MEGABYTE,
    " " * MEGABYTE,
    "FINAL_ANSWER: " * (MEGABYTE // 14),
    "FINAL_ANSWER:" + "\n" * MEGABYTE,
    "{" * MEGABYTE,
    "[" * MEGABYTE,
    "[1," * (MEGABYTE // 3),
    '{"a":' * (MEGABYTE // 5),
    '{"a":1,' * (MEGABYTE // 7),
    "\\boxed{" * (MEGABYTE // 7),
    "1-" * (MEGABYTE // 2),
    "1" + ",000" * (MEGABYTE // 4) + "a",
    "<think>" * (MEGABYTE // 7),
    "</think>" * (MEGABYTE // 8),
    "**(A" * (MEGABYTE // 4),
    "answer " * (MEGABYTE // 7),
    "```json\n" * (MEGABYTE // 8),
]


@pytest.mark.parametrize(
    "rule", ["marker", "regex=(a+)+$", "last_line", "last_number", "boxed", "choice", "json=a.b"]
)
def test_hostile_text_takes_no_long_time(rule):
    for text in HOSTILE:
        start = time.perf_counter()
        both(rule, text)
        assert time.perf_counter() - start < 8, (rule, text[:10])


def plain_marker(text):
    """The marker rule for text without Markdown, in plain Python."""
    _, marker, rest = text.rpartition("FINAL_ANSWER:")
    lines = [line.strip(" \t\r") for line in rest.split("\n")]
    line = next((line for line in lines if line), "") if marker else ""
    return line or None


words = st.text("ab1 \n", max_size=12)


@given(st.lists(st.sampled_from(["FINAL_ANSWER:", "x", "7", " ", "\n"]), max_size=12), words)
@settings(max_examples=200, deadline=None)
def test_the_marker_agrees_with_plain_python(parts, tail):
    text = "".join(parts) + tail
    assert found("marker", text) == plain_marker(text)


@given(st.integers(-(10**12), 10**12), st.text("abc ,.\n", max_size=20))
@settings(max_examples=100, deadline=None)
def test_a_number_after_words_is_found(number, prose):
    assert found("last_number", f"{prose} {number}") == str(number)
    assert found("last_number", f"{prose} {number:,}.") == f"{number:,}"


@given(st.text("{}\\x ", max_size=30), st.text("xy \\", max_size=5))
@settings(max_examples=200, deadline=None)
def test_boxes_are_balanced(prose, inside):
    inside = inside.replace("\\", "")
    text = prose + "\\boxed{" + inside + "}"
    result = last_boxed(text)
    if not prose.endswith("\\"):
        assert result is not None
        assert result[0] == inside.strip()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(json_values, st.text('a{}[" `\n', max_size=15))
@settings(max_examples=200, deadline=None)
def test_json_is_found_amid_prose(value, prose):
    text = f"{prose}\n{json.dumps({'answer': value})} end"
    result = last_json(text, ("answer",))
    if value is None:
        return
    assert result is not None
    read = result[0] if isinstance(value, str) else json.loads(result[0])
    assert read == value


@given(
    st.lists(st.text(max_size=40) | st.none(), max_size=5),
    st.sampled_from(["marker", "last_line", "last_number", "choice", "boxed", "json=a"]),
)
@settings(max_examples=100, deadline=None)
def test_any_text_gives_an_answer_with_content_or_null(texts, rule):
    parsed = AnswerRule.parse(rule)
    frame = pl.DataFrame({"t": texts}, schema={"t": pl.String})
    out = frame.select(a=answer(pl.col("t"), parsed), c=cot(pl.col("t"), pl.lit(None), parsed))
    assert out.height == len(texts)
    for row, text in zip(out.iter_rows(), texts, strict=True):
        assert all(cell is None or (cell != "" and text is not None) for cell in row)
