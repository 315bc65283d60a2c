"""Ready-made scorers of numbers and JSON."""

import pytest

import pennyweight
from pennyweight.scorers import json_similarity, numeric_closeness


@pytest.mark.parametrize(
    ("said", "wanted", "value"),
    [
        ("100", "100", 1.0),
        ("The sum is 1,090.", "1000", 1000 / 1090),
        ("50", "100", 0.5),
        ("-1", "1", 0.0),
        ("0", "0", 1.0),
        ("none", "1", 0.0),
        (None, "1", 0.0),
        ("1", "no number", None),
        ("1e400", "1", 0.0),
    ],
)
def test_numbers_are_as_good_as_they_are_close(said, wanted, value):
    assert numeric_closeness(said, wanted) == (value if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("said", "wanted", "value"),
    [
        ('{"a": 1}', '{"a": 1.0}', 1.0),
        ('{"a": 1}', '{"a": 1, "b": 2}', 0.5),
        ('```json\n{"a": "x"}\n```', '{"a": "x"}', 1.0),
        ("[1, 2]", "[2, 2]", 0.75),
        ("true", "1", 0.0),
        ("null", "null", 1.0),
        ("no JSON", "{}", 0.0),
        ("{}", "{}", 1.0),
        ("{}", "no JSON", None),
        ('"abcd"', '"abcx"', 0.75),
    ],
)
def test_json_is_compared_value_by_value(said, wanted, value):
    assert json_similarity(said, wanted) == (value if value is None else pytest.approx(value))


def test_they_are_named_in_score_with_their_settings():
    rows = [{"task_id": "a", "answer": "$5", "target": "5"}]
    named = ["numeric_closeness", {"exact_match": {"punctuation": False, "currency": True}}]
    found = pennyweight.score(rows, scorers=named)
    assert (found["numeric_closeness"].value, found["exact_match"].value) == (1.0, 1.0)
    with pytest.raises(pennyweight.errors.UsageError, match="Did you mean 'currency'"):
        pennyweight.score(rows, scorers=[{"exact_match": {"curency": True}}])
