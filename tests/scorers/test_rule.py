"""Scorers that read the answer by another rule."""

import pytest

from pennyweight import score
from pennyweight.errors import UsageError
from pennyweight.scorers.loader import find_scorers


def test_the_same_replies_are_scored_by_another_rule() -> None:
    rows = [
        {"task_id": "a", "response": "It is 4.", "target": "4"},
        {"task_id": "b", "response": "It is 5.", "target": "4"},
        {"task_id": "c", "response": "It is 5."},
        {"task_id": "d", "response": "none", "target": "4"},
    ]
    number = {"answer": "last_number", "match": {"numeric": 0}}
    scores = score(rows, scorers=[{"by_number": number}, {"by_marker": {"answer": "marker"}}])
    assert (scores["by_number"].value, scores["by_number"].records) == (pytest.approx(1 / 3), 3)
    assert scores["by_marker"].value == 0


def test_a_mistake_in_its_rules_is_named() -> None:
    with pytest.raises(UsageError, match=r"by_number: .*'last_nummer'.*last_number"):
        find_scorers([{"by_number": {"answer": "last_nummer"}}])
    with pytest.raises(UsageError, match="by_number: it takes 'answer' and 'match', not 'n'"):
        find_scorers([{"by_number": {"answer": "last_number", "n": 1}}])
    with pytest.raises(UsageError, match="accuracy: 'accuracy' is the name of a metric"):
        find_scorers([{"accuracy": {"match": "text"}}])
