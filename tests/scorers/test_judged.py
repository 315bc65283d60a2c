"""Scorers that ask judges: those of a suite, and the ready-made ones."""

import pytest

from pennyweight.errors import UsageError
from pennyweight.scorers.loader import find_scorers, unknown_input

READY = {
    "faithfulness": ("response", "context"),
    "answer_relevancy": ("response", "input"),
    "context_precision": ("context", "input", "target"),
    "context_recall": ("target", "input", "context"),
}


def test_ready_made_scorers_name_the_columns_they_need():
    found = find_scorers(READY)
    assert {one.name: one.inputs for one in found} == READY
    for one in found:
        assert one.range == (1, 5)
        assert one.question
        assert not unknown_input(one, ["context"])


def test_a_question_makes_a_scorer():
    (one,) = find_scorers([{"doubt": {"criteria": "It doubts.", "better": "lower"}}])
    assert (one.better, one.range) == ("lower", (1, 5))
    (kind,) = find_scorers([{"kind": {"prompt": "Which?", "choice": ["a", "b"]}}])
    assert kind.column("kind").labels == ("a", "b")
    assert kind.mark != one.mark


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"tone": {"prompt": "?", "rubric": "five"}}, "tone: 'rubric' is a scale"),
        ({"tone": {"prompt": "?", "better": "up"}}, "'better' is higher or lower"),
        ({"response": {"prompt": "?"}}, "response"),
        ({"tone": {"prompt": "?", "choice": ["a", "b\n"]}}, "a label is one line"),
        ({"tone": {"rubric": "1-5"}}, "tone"),
        ({"usr_rag": {"prompt": "?"}}, "usr_rag: it is a share: write 'rubric: 0-1'"),
        ({"usr_rag": {"prompt": "?", "choice": ["a", "b"]}}, "usr_rag: it is a share"),
        ({"usr_math": {"prompt": "?", "rubric": "0-1"}}, "'usr_math' is the name of a metric"),
    ],
)
def test_mistakes_are_told(given, problem):
    with pytest.raises(UsageError, match=problem):
        find_scorers([given])
