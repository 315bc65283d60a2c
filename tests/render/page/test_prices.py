"""Prices of passes in words: nothing is called the same, or not less, that is not."""

import math

import numpy as np
import pytest

from pennyweight.api.pages.digest import digest
from pennyweight.api.sources import resolve
from pennyweight.render.page.conclusion import conclusion
from pennyweight.render.page.prices import compared_price
from pennyweight.scoring.estimates import Estimate


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (0.01, 0.01, ", at the same price: $0.01 per pass"),
        (0.01, 0.0097, ", at about the same price: $0.01 per pass"),
        (0.01, 0.005, ", which costs half per pass"),
        (0.01, 0.02, ", and costs half per pass"),
        (0.01, math.inf, ", which never passes; a pass costs $0.01"),
        (math.inf, 0.01, ""),
        (math.inf, math.inf, ""),
        (0.0, 0.01, ", and costs nothing instead of $0.01 per pass"),
        (0.01, 0.0, ", which costs nothing instead of $0.01 per pass"),
        (0.0, 0.0, ""),
        (0.0, math.inf, ", which never passes; a pass costs $0"),
        (None, 0.01, ""),
    ],
)
def test_a_price_beside_another(first, second, said):
    assert compared_price(*(Estimate(price, price, price) for price in (first, second))) == said


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ((0.01, 0.008, 0.012), (0.005, 0.004, 0.007), ", which costs half per pass"),
        ((0.01, 0.006, 0.012), (0.005, 0.004, 0.007),
         ", which costs $0.005 instead of $0.01 per pass (may be chance)"),
        ((0.005, 0.004, 0.007), (0.01, 0.006, 0.012),
         ", and costs $0.005 instead of $0.01 per pass (may be chance)"),
        ((0.01, None, None), (0.005, None, None),
         ", which costs $0.005 instead of $0.01 per pass (may be chance)"),
        ((0.01, 0.008, math.inf), (0.005, 0.004, 0.007), ", which costs half per pass"),
    ],
)  # fmt: skip
def test_a_price_is_called_lower_only_if_the_intervals_are_apart(first, second, said):
    assert compared_price(Estimate(*first), Estimate(*second)) == said


def test_sides_whose_passes_cost_the_same_are_not_said_to_differ():
    rng = np.random.default_rng(4)
    claimed = 0
    for _ in range(12):
        passed = rng.random((2, 40)) < np.array([[0.8], [0.4]])
        given = [
            {"subject": name, "task_id": f"t{n}", "passed": bool(passed[side, n]),
             "cost_usd": (0.02, 0.01)[side] * rng.lognormal(0, 0.5)}
            for side, name in enumerate("ab")
            for n in range(40)
        ]  # fmt: skip
        said = str(conclusion(digest(resolve(given))))
        claimed += not any(w in said for w in ("may be chance", "about the same", "much less"))
    assert claimed == 0


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ((1.0, 1.0, 1.0), "none of them costs less per pass ($2.00)"),
        ((1.0, 0.97, 1.0), "none of them costs much less per pass ($2.00)"),
        ((1.0, 1.5, 2.0), "none of them costs less per pass ($2.00)"),
        (
            (1.0, 0.0, 2.0),
            "b, with 50.0 %, may be as good and costs nothing instead of $2.00",
        ),
        ((0.0, 0.0, 0.0), "none of them costs less per pass ($0)"),
    ],
)
def test_the_cheapest_of_sides_that_may_be_the_best(costs, said):
    given = [
        {"subject": name, "task_id": f"t{n}", "passed": n % 2 > 0, "cost_usd": cost}
        for name, cost in zip("abc", costs, strict=True)
        for n in range(20)
    ]
    assert said in str(conclusion(digest(resolve(given))))


def test_prices_of_different_tasks_are_said_to_be():
    def records(name, right, tasks):
        return [
            {"subject": name, "task_id": f"t{n}", "passed": n % 10 < right, "cost_usd": 0.01}
            for n in tasks
        ]

    same = conclusion(digest(resolve([*records("a", 9, range(60)), *records("b", 2, range(60))])))
    more = conclusion(digest(resolve([*records("a", 9, range(60)), *records("b", 2, range(80))])))
    assert str(same).endswith(" per pass.")
    assert "own tasks" not in str(same)
    assert str(more).endswith(" per pass (each over its own tasks).")
    tied = [*records("a", 9, range(20)), *records("b", 8, range(30))]
    cheap = [{**row, "cost_usd": 0.001} if row["subject"] == "b" else row for row in tied]
    assert "per pass (each over its own tasks)." in str(conclusion(digest(resolve(cheap))))


def test_sides_that_tried_the_same_tasks_have_prices_of_the_same_tasks():
    """T2 and T10 pass equally often: pages and comparisons agree on which of them is first."""
    given = [
        {"tier": name, "task_id": f"t{n}", "passed": n < right, "cost_usd": cost}
        for name, right, cost in (("T10", 20, 0.02), ("T2", 20, 0.01), ("T3", 19, 0.001))
        for n in range(30)
    ]
    said = conclusion(digest(resolve(given)))
    assert str(said).startswith("None of the 3 sides is shown to be better than the others. T2 and")
    assert str(said).endswith("T3, with 63.3 %, may be as good and costs a tenth per pass.")
    assert "With 30 tasks, a true difference of" in said.notes[0]
