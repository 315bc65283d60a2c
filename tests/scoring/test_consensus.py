"""The numbers of judging, checked by hand."""

import pytest

from pennyweight.scoring.consensus import consensus, differs, disagree, passes, weighted_score
from pennyweight.suite.rubric import DEFAULT, Category, Item, Rubric


def rubric(*categories):
    return Rubric(
        "r",
        tuple(
            Category(name, weight, tuple(Item(f"{name}{i}", "", p) for i, p in enumerate(points)))
            for name, weight, points in categories
        ),
    )


THREE = rubric(("a", 2, [1]), ("b", 2, [1]), ("c", 1, [1]))


def test_categories_are_weighted():
    assert weighted_score(THREE, {"a0": 1.0, "b0": 0.75, "c0": 0.0}) == pytest.approx(0.70)


def test_what_does_not_apply_leaves_both_sides_of_the_ratio():
    assert weighted_score(THREE, {"a0": 1.0, "b0": None, "c0": 0.0}) == pytest.approx(2 / 3)
    many = rubric(("a", 1, [2, 4, 4]), ("b", 3, [1]))
    scores = {"a0": 1.0, "a1": None, "a2": 2.0, "b0": 1.0}
    assert weighted_score(many, scores) == pytest.approx((3 / 6 + 3) / 4)


def test_where_nothing_applies_there_is_no_score():
    score = weighted_score(THREE, {"a0": None, "b0": None, "c0": None})
    assert score is None
    assert passes(score, 0.5) is None


def test_the_default_rubric_weighs_ten_categories():
    weights = [category.weight for category in DEFAULT.categories]
    assert weights == [2, 1.5, 1, 1, 0.5, 1, 0.5, 0.5, 0.5, 1]
    every = dict.fromkeys((item.id for item in DEFAULT.items), 0.0)
    assert weighted_score(DEFAULT, {**every, "functional_correctness": 1.0}) == 2 / 9.5


def test_several_judges_become_one():
    scores, sure = (0.8, 0.85, 0.75), (0.9, 0.7, 0.8)
    assert consensus(scores, sure, "confidence") == pytest.approx(0.797917, abs=5e-7)
    assert consensus(scores, sure, "mean") == pytest.approx(0.8)
    assert consensus([], [], "confidence") is None
    assert consensus((1.0, 0.0), (0.0, 0.0), "confidence") == 0.5
    assert consensus((1.0, 0.0), (None, 0.5), "confidence") == pytest.approx(2 / 3)


def test_a_sum_that_reaches_the_mark_passes():
    assert passes(0.1 + 0.2 + 0.35 - 1e-16, 0.65)
    assert not passes(0.6499, 0.65)


def test_judges_disagree_beyond_the_range_not_at_it():
    assert not disagree((0.9, 0.6), 0.3)
    assert disagree((0.9, 0.7, 0.59), 0.3)
    assert not disagree((0.1,), 0.3)


@pytest.mark.parametrize(
    ("claimed_score", "claimed_passed", "other"),
    [(0.7, True, False), (0.704, None, False), (0.71, True, True), (0.7, False, True)],
)
def test_a_claim_differs_beyond_rounding(claimed_score, claimed_passed, other):
    assert differs(0.7, True, claimed_score, claimed_passed) is other
