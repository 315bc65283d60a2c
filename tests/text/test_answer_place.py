"""The place of an answer is the one that its rule took it from."""

import polars as pl
import pytest

from pennyweight.text.answer_place import place
from pennyweight.text.extraction import AnswerRule, answer

CASES = [
    ("marker", "FINAL_ANSWER: 4\nConfidence: 94%", "FINAL_ANSWER: [4]\nConfidence: 94%"),
    ("marker", "4? No.\n**Final_Answer:** `4`. 4!", "4? No.\n**Final_Answer:** `[4`. 4!]"),
    ("marker=ANSWER 1:", "ANSWER 1: 1\n11", "ANSWER 1: [1]\n11"),
    ("choice", "(B). Because of Bayes", "([B]). Because of Bayes"),
    ("choice", "B. Because B. says so", "[B]. Because B. says so"),
    ("choice", "The answer is C, not (A) and no Cat", "The answer is [C], not (A) and no Cat"),
    ("choice", "So\nB\nBecause of Bayes", "So\n[B]\nBecause of Bayes"),
    ("last_number", "It is $1,000.", "It is $[1,000]."),
    ("last_number", "94 of them, so -$5 each", "94 of them, so [-$5] each"),
    ("last_line", "7\nIt is 7.\n\n", "7\n[It is 7].\n\n"),
    ("boxed", r"b or \boxed{b}, b", r"b or \boxed{[b]}, b"),
    ("json=$.answer", '{"b": "a", "answer": "b"} b', '{"b": "a", "answer": "[b]"} b'),
    ("regex=so (\\d)", "Q4: so 4, 4", "Q4: so [4], 4"),
    ("regex=(?:\\pL+) (\\d)", "4: Well 4, 4", "4: Well [4], 4"),
    ("marker", "<think>FINAL_ANSWER: 7</think>FINAL_ANSWER: 8", "FINAL_ANSWER: [8]"),
]


STATED = [
    ("last_number", "So 4.\nCONFIDENCE: 80%", "So [4].\nCONFIDENCE: 80%"),
    ("last_number", "80, no: 8 (confidence: 8/10)", "80, no: [8] (confidence: 8/10)"),
    ("marker", "FINAL_ANSWER: 4 (CONFIDENCE: 80 %)", "FINAL_ANSWER: [4] (CONFIDENCE: 80 %)"),
    ("marker", "FINAL_ANSWER: 0.8, with confidence: 0.8.", "ANSWER: [0.8], with confidence: 0.8."),
    ("last_line", "Paris.\n**My confidence: 0.9**\n", "[Paris].\n**My confidence: 0.9**\n"),
    ("choice", "Answer: A confidence: 80%", "Answer: [A] confidence: 80%"),
    ("json=answer", '{"answer": 4, "confidence": 0.8}', '{"answer": [4], "confidence": 0.8}'),
    ("regex=: (\\d+)", "Confidence: 80%", "Confidence: [80]%"),
]


@pytest.mark.parametrize(("rule", "said", "marked"), STATED)
def test_a_confidence_that_is_asked_for_is_no_part_of_the_answer(rule, said, marked):
    read = AnswerRule.parse(rule).with_confidence("stated")
    found = pl.select(answer(pl.lit(said), read)).item()
    start, end = place(said, found, read)
    assert f"{said[:start]}[{said[start:end]}]{said[end:]}".endswith(marked)
    assert found == said[start:end]


@pytest.mark.parametrize(("rule", "said", "marked"), CASES)
def test_an_answer_is_marked_where_it_was_found(rule, said, marked):
    read = AnswerRule.parse(rule)
    found = pl.select(answer(pl.lit(said), read)).item()
    start, end = place(said, found, read)
    assert f"{said[:start]}[{said[start:end]}]{said[end:]}".endswith(marked)


@pytest.mark.parametrize("rule", ["marker", "choice", "last_number", "last_line", "regex=a(b)"])
@pytest.mark.parametrize(
    "said", ["<think>", "FINAL_ANSWER ", "answer ", " ", "\n", "B", "(B", "1,"]
)
def test_no_reply_takes_long(rule, said):
    """Two million characters end: an attempt that grows with their square would not."""
    text = said + " " * 1_000_000 + said * (1_000_000 // len(said))
    place(text, "B", AnswerRule.parse(rule))


@pytest.mark.parametrize(
    ("said", "given", "span"),
    [
        ("94, 4 and 47", "4", (4, 5)),
        ("It costs $1,000.", "1000", (10, 15)),
        ("It costs 1000.50", "1000", None),
        ("B is in Bayes", "B", (0, 1)),
        ("nothing", "x", None),
        ("nothing", None, None),
        ("", "7", None),
    ],
)
def test_an_answer_that_was_given_is_found_as_a_word(said, given, span):
    assert place(said, given, None) == span
