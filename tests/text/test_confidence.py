from math import exp, log

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pennyweight.text.confidence import from_logprobs, stated


def said(text):
    return pl.DataFrame({"r": [text]}, schema={"r": pl.String}).select(stated(pl.col("r"))).item()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CONFIDENCE: 0.8", 0.8),
        ("Confidence: 85%", 0.85),
        ("**Confidence:** 85 percent", 0.85),
        ('{"confidence": 0.25}', 0.25),
        ("confidence = 8/10", 0.8),
        ("CONFIDENCE: 1.", 1.0),
        ("CONFIDENCE: .5", 0.5),
        ("Confidence: 0.2\nConfidence: 0.9", 0.9),
        ("CONFIDENCE: 80", None),
        ("CONFIDENCE: 120%", None),
        ("CONFIDENCE: -0.1", None),
        ("CONFIDENCE: 0,8", None),
        ("CONFIDENCE: 5/0", None),
        ("CONFIDENCE: 0/0", None),
        ("CONFIDENCE: high", None),
        ("<think>CONFIDENCE: 0.3</think>yes", None),
        ("80%", None),
        (None, None),
    ],
)
def test_a_stated_confidence(text, expected):
    assert said(text) == expected


@given(st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_percentages(percent):
    assert said(f"CONFIDENCE: {percent}%") == percent / 100


def test_probabilities_of_the_answers_tokens():
    tokens = [("4", -9.0), ("2 is", -9.0), (" 4", log(0.5)), ("2", log(0.5)), (".", -9.0)]
    assert from_logprobs(tokens, "42") == pytest.approx(0.25)
    assert from_logprobs([("b", log(0.5))], "B") == pytest.approx(0.5)
    assert from_logprobs([("é".encode()[:1], -1.0), ("é".encode()[1:], -1.0)], "é") == exp(-2.0)


def test_probabilities_that_cannot_be_told():
    assert from_logprobs([], "42") is None
    assert from_logprobs([("a", -1.0)], "42") is None
    assert from_logprobs([("a", -1.0)], " ") is None
    assert from_logprobs([("42", None)], "42") is None
    assert from_logprobs([("42", float("-inf"))], "42") is None
    assert from_logprobs([("42", 1e-9)], "42") == 1.0
