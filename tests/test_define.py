"""Mistakes in a declaration fail when it is made; a good one works everywhere at once."""

import polars as pl
import pytest

import pennyweight
from own_metrics import own_catalogue
from pennyweight.define import evaluate, measure, metric
from pennyweight.errors import DeclarationError


@pytest.fixture(autouse=True)
def _own_catalogue():
    with own_catalogue():
        yield


def test_a_metric_of_ten_lines_works_everywhere():
    @measure(unit="tokens")
    def answer_words(answer: pl.Expr) -> pl.Expr:
        """How many words the answer has."""
        return answer.str.split(" ").list.len()

    @metric(formula="max words_i", unit="words", range=(0, None), better="lower")
    def longest_answer(answer_words: pl.Expr) -> pl.Expr:
        """The longest answer, in words."""
        return answer_words.max()

    rows = [{"task_id": str(i), "answer": "x " * (i % 7) + "x"} for i in range(50)]
    assert evaluate(longest_answer, answer=["a b", "a"]) == 2
    estimate = pennyweight.score(rows, metrics=["longest_answer"])["longest_answer"]
    assert estimate.value == 7.0
    assert estimate.low <= 7.0 <= estimate.high


def test_a_metric_without_a_known_shape_is_resampled_whatever_its_size():
    @metric(formula="σ / μ")
    def spread(latency_ms: pl.Expr) -> pl.Expr:
        """Coefficient of variation of the latency."""
        return latency_ms.std() / latency_ms.mean()

    widths = []
    for n in (200, 20_000):
        rows = pl.DataFrame({"task_id": [str(i) for i in range(n)]}).with_columns(
            latency_ms=pl.int_range(n).hash(1) % 1000 / 10.0
        )
        e = pennyweight.score(rows, metrics=["spread"])["spread"]
        assert e.low < e.value < e.high
        widths.append(e.high - e.low)
    assert 5 < widths[0] / widths[1] < 20  # a hundred times the records, a tenth of the width


def unknown_input():
    @metric(formula="x")
    def broken(corect: pl.Expr) -> pl.Expr:
        """It reads a name that is not there."""
        return corect.mean()


def unknown_column():
    @measure()
    def broken(anser: pl.Expr) -> pl.Expr:
        """It reads a column that is not there."""
        return anser


def no_docstring():
    @metric(formula="x")
    def broken(correct: pl.Expr) -> pl.Expr:
        return correct.mean()


def empty_range():
    @metric(formula="x", range=(1, 0))
    def broken(correct: pl.Expr) -> pl.Expr:
        """Its range is empty."""
        return correct.mean()


def wrong_direction():
    @metric(formula="x", better="more")
    def broken(correct: pl.Expr) -> pl.Expr:
        """Its direction is not one."""
        return correct.mean()


def strange_need():
    @metric(formula="x", needs=("answer",))
    def broken(correct: pl.Expr) -> pl.Expr:
        """It needs what it does not read."""
        return correct.mean()


def taken_name():
    @metric(formula="x")
    def accuracy(correct: pl.Expr) -> pl.Expr:
        """Another metric has its name."""
        return correct.mean()


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (unknown_input, "Did you mean 'correct'"),
        (unknown_column, "Did you mean 'answer'"),
        (no_docstring, "docstring"),
        (empty_range, "range"),
        (wrong_direction, "neither 'higher' nor 'lower'"),
        (strange_need, "needs"),
        (taken_name, "has its name"),
    ],
)
def test_a_wrong_declaration_fails_at_import_and_says_where(declare, message):
    with pytest.raises(DeclarationError, match=message) as error:
        declare()
    assert "test_define.py, line" in str(error.value)
