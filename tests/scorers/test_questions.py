"""Questions of scorers, as a suite writes them."""

import pytest

from pennyweight.errors import UsageError
from pennyweight.scorers.questions import Question


def test_a_question_names_what_it_shows():
    question = Question.of({"prompt": "Does {{ context }} support {{response}}, {{ context }}?"})
    assert question.inputs == ("context", "response")
    assert question.text == "Does the context support the response, the context?"
    assert question.scores == (1, 2, 3, 4, 5)
    assert Question.of({"prompt": "Is it kind?"}).inputs == ("input", "response")
    assert Question.of({"criteria": "It is {kind}."}).inputs == ("response", "input")


def test_a_scale_or_labels():
    assert Question.of({"prompt": "?", "rubric": "0–2"}).scores == (0, 1, 2)
    question = Question.of({"prompt": "?", "choice": ["a", "b", "c"]})
    assert question.scores == (1, 2, 3)
    assert [question.label(given) for given in ([3], [1, 1, 2], [1, 2], [])] == [
        "c",
        "a",
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"prompt": "?", "scale": "1-5"}, "scale"),
        ({"prompt": "?", "criteria": "?"}, "either 'prompt' or 'criteria'"),
        ({"prompt": " "}, "are texts"),
        ({"prompt": "?", "rubric": "5-1"}, "a scale such as 1-5"),
        ({"prompt": "?", "rubric": 5}, "a scale such as 1-5"),
        ({"prompt": "?", "rubric": "1-5", "choice": ["a", "b"]}, "one of 'rubric', 'choice'"),
        ({"prompt": "?", "choice": ["a", "a"]}, "2 to 20 labels"),
        ({"prompt": "?", "choice": [True, False]}, "quote yes, no"),
    ],
)
def test_mistakes_are_told(given, problem):
    with pytest.raises(UsageError, match=problem):
        Question.of(given)
