"""Digests of exams: equal for what is the same exam, and the parts in which others differ."""

import json

import polars as pl
import pytest

from pennyweight.text.exam import changed_parts, column_digest, digest, offered, part_hash, parts_of


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("4", " 4.0\n"),
        ("1,000", 1000),
        ('["a", "b"]', ["a", "b"]),
        ('{"x": 1, "y": 2}', {"y": "2", "x": 1.0}),
        ('["Paris"]', "Paris"),
        (True, "True"),
        ("false", "False\n"),
        ("one\r\ntwo", "one\ntwo"),
        (["one\r\ntwo", "a"], ["one\ntwo", "a"]),
        (1e400, "inf"),
    ],
)
def test_what_only_looks_different_is_the_same_part(a, b):
    assert part_hash(a) == part_hash(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Paris", "paris"),
        ("4", "5"),
        (["a", "b"], ["b", "a"]),
        ("2 + 2", "2+2"),
        ("9007199254740993", "9007199254740992"),
        ({"x": 1}, {"y": 1}),
        ("[" * 5000, "[" * 5001),
    ],
)
def test_what_is_different_is_another_part(a, b):
    assert part_hash(a) != part_hash(b)


def test_choices_are_a_list_of_texts_however_they_are_written():
    for given in (["red", "blue"], '["red", "blue"]', {"A": "red", "B": "blue"}):
        assert offered(given) == ["red", "blue"]
    assert offered({"text": ["red", "blue"], "label": ["A", "B"]}) == ["red", "blue"]
    assert offered(json.dumps([{"index": 0, "message": {"content": "red"}}])) is None
    assert offered("red|blue") == "red|blue"


def test_a_part_that_one_side_does_not_know_is_no_change_unless_both_name_all_parts():
    few, more = digest({"input": "q"}, ""), digest({"input": "q", "checks": ["a"]}, "")
    assert changed_parts(few, more) == changed_parts(few, None) == ()
    few, more = digest({"input": "q"}), digest({"input": "r", "checks": ["a"], "column:x": "1"})
    assert changed_parts(few, more) == ("input", "checks")
    assert changed_parts(few, more, ignored={"input"}) == ("checks",)
    assert changed_parts(digest({"column:x": "2", "input": "r"}), more) == ("checks", "column:x")


def test_a_digest_of_another_version_says_nothing():
    assert parts_of("2 input=1") == (False, {})
    assert changed_parts("2 input=1", "1 input=2") == ()


def test_the_digest_of_columns_is_that_of_their_values():
    frame = pl.DataFrame(
        {
            "input": ["a", "b", None, "a"],
            "target": [None, "1.0", None, None],
            "choices": [None, '["x", "y"]', None, None],
            "expected": [["b", "a"], None, None, ["a", "b"]],
        }
    )
    found = frame.select(column_digest({n: pl.col(n) for n in frame.columns})).to_series()
    assert found.to_list() == [
        first := digest({"input": "a", "expected": ["a", "b"]}, ""),
        digest({"input": "b", "target": "1", "choices": ["x", "y"]}, ""),
        None,
        first,
    ]
