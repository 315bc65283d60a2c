"""Ready-made scorers of texts agree with the implementations that others use."""

import random

import pytest

from pennyweight.errors import UsageError
from pennyweight.scorers import bleu, chrf, exact_match, rouge_l, text, token_f1

WORDS = "the a cat dog sat on under mat, Paris. London! 5 1,000 is".split()


def pairs(count=60):
    rng = random.Random(3)
    for _ in range(count):
        yield tuple(" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(2))


def test_rouge_l_is_that_of_rouge_score():
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    for said, wanted in pairs():
        expected = scorer.score(wanted, said)["rougeL"].fmeasure
        assert rouge_l(said, wanted) == pytest.approx(expected)


def test_bleu_and_chrf_are_those_of_sacrebleu():
    sacrebleu = pytest.importorskip("sacrebleu")
    for said, wanted in pairs(20):
        expected = sacrebleu.BLEU(effective_order=True).sentence_score(said, [wanted]).score
        assert bleu(said, wanted) == pytest.approx(expected / 100)
        expected = sacrebleu.CHRF().sentence_score(said, [wanted]).score
        assert chrf(said, wanted) == pytest.approx(expected / 100)


def test_without_sacrebleu_the_extra_is_named(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(text, "import_module", missing)
    with pytest.raises(UsageError, match=r"pennyweight\[bleu\]"):
        bleu("a", "a")


@pytest.mark.parametrize(
    ("said", "wanted", "value"),
    [
        ("Paris", "paris", 1.0),
        ("in Paris, France", "Paris", 0.5),
        ("the", "a", 1.0),
        ("London", "Paris", 0.0),
        (None, "Paris", 0.0),
        ("Paris", None, None),
        ("cat cat", "cat", 2 / 3),
    ],
)
def test_token_f1_counts_shared_words(said, wanted, value):
    assert token_f1(said, wanted) == (value if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("said", "wanted", "settings", "same"),
    [
        ("The Eiffel Tower.", "eiffel  tower", {}, True),
        ("The Eiffel Tower", "Eiffel Tower", {"articles": False}, False),
        ("Paris!", "Paris", {"punctuation": False}, False),
        ("$1,200", "1200", {"currency": True}, True),
        ("1200 euros", "1200", {"currency": True}, True),
        ("$5", "5", {}, True),
        ("5 km", "5", {"units": True}, True),
        ("5 km", "5", {}, False),
        ("1.5", "15", {}, False),
        ("b", "a|b", {"separator": "|"}, True),
        (None, "a", {}, False),
        ("a", None, {}, None),
    ],
)
def test_exact_match_ignores_what_is_named(said, wanted, settings, same):
    assert exact_match(said, wanted, **settings) is same
