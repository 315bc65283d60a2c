"""A function in three lines is a scorer."""

from functools import lru_cache, partial

import numpy as np
import pytest

from pennyweight import scorer
from pennyweight.errors import DeclarationError
from pennyweight.scorers.declaration import as_scorer


@pytest.mark.parametrize(
    ("returned", "score"),
    [
        (3, 3.0),
        (0.25, 0.25),
        (np.float32(0.5), 0.5),
        (True, True),
        (np.bool_(False), False),
        ("rude", "rude"),
        (None, None),
    ],
)
def test_what_a_function_returns_is_its_score(returned, score):
    @scorer
    def mine(response):
        return returned

    assert mine.score({"response": "x"}) == {"mine": score}
    assert type(mine.score({"response": "x"})["mine"]) is type(score)


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (float("nan"), "return None where there is no score"),
        (float("inf"), "it returned inf"),
        ([1, 2], "it returned a list"),
        ("two\nlines", "a label is one line"),
        ("", "a label is one line"),
        ({"two words": 1}, "letters, digits and underscores"),
        ({"accuracy": 1}, "'accuracy' is the name of a metric"),
        ({1: 1}, "1 is no name"),
    ],
)
def test_what_is_no_score_is_an_error(returned, problem):
    @scorer
    def mine(response):
        return returned

    with pytest.raises(TypeError, match=problem):
        mine.score({"response": "x"})


def test_a_dict_gives_several_scores():
    @scorer
    def style(response):
        return {"length": len(response), "tone": "calm"}

    assert style.score({"response": "abc"}) == {"length": 3.0, "tone": "calm"}


def test_parameters_are_the_columns_it_reads():
    @scorer
    def mine(response, target, tone="calm", *, factor=2):
        return {"a": factor * len(response), "b": target is None, "c": tone}

    assert mine.inputs == ("response", "target", "tone")
    row = {"response": "abc", "other": 1}
    assert mine.score(row) == {"a": 6.0, "b": True, "c": "calm"}
    assert mine.with_options({"factor": 3}).score(row)["a"] == 9.0


def test_the_whole_record_can_be_read():
    @scorer
    def mine(record):
        return len(record["response"]) + record["attempt"]

    assert mine.score({"response": "abc", "attempt": 2}) == {"mine": 5.0}


def test_it_can_still_be_called():
    @scorer(range=(0, 1), better="lower", unit="share")
    def mine(response):
        """Say how long it is.

        >>> mine("abc")
        3
        """
        return len(response)

    assert mine("abc") == 3
    assert (mine.summary, mine.range, mine.better) == ("Say how long it is.", (0, 1), "lower")
    assert mine.example.startswith(">>> mine")


def test_names_of_others_and_open_parameters_are_refused():
    with pytest.raises(DeclarationError, match=r"line \d+\): 'accuracy' is the name of a metric"):

        @scorer
        def accuracy(response):
            return 1

    with pytest.raises(DeclarationError, match="name each column"):

        @scorer
        def mine(*columns):
            return 1


def test_what_is_no_function_is_refused_in_words():
    def mine(response):
        return 1

    for other in (partial(mine), len):
        with pytest.raises(DeclarationError, match="is no scorer: write a function"):
            as_scorer(other)
    assert as_scorer(lru_cache(mine)).mark == as_scorer(mine).mark


def test_a_setting_needs_a_default():
    def scaled(response, *, factor):
        return len(response) * factor

    with pytest.raises(DeclarationError, match="its setting 'factor' needs a default"):
        as_scorer(scaled)


def test_its_mark_changes_with_its_settings():
    @scorer
    def mine(response, *, factor=2):
        return factor

    assert mine.mark == mine.with_options({"factor": 2}).mark
    assert mine.mark != mine.with_options({"factor": 3}).mark


@pytest.mark.parametrize(
    ("values", "kind", "labels"),
    [
        ([1.0, None], "number", ()),
        ([True, False, None], "flag", ()),
        ([True, 0.5], "number", ()),
        (["b", "a"], "label", ("a", "b")),
        ([str(i) for i in range(21)], "label", ()),
        ([], "flag", ()),
    ],
)
def test_its_values_say_what_a_score_is(values, kind, labels):
    @scorer
    def mine(response) -> bool:
        return True

    column = mine.column("mine", values)
    assert (column.kind, column.labels) == (kind, labels)
