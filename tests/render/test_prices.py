"""Prices of passes in words: nothing is called the same, or not less, that is not."""

import math

import numpy as np
import pytest

from pennyweight.api.pages.digest import digest
from pennyweight.api.sources import resolve
from pennyweight.render.page.conclusion import conclusion
from pennyweight.render.prices import lower_price
from pennyweight.scoring.estimates import Estimate


def two_sides(costs, rates=(1.0, 0.5), tasks=60):
    """Make records of two sides that pass every so many tasks and cost so much an attempt."""
    return [
        {"subject": name, "task_id": f"t{n}", "passed": n % 10 < 10 * rate, "cost_usd": cost}
        for name, cost, rate in zip("ab", costs, rates, strict=True)
        for n in range(tasks)
    ]


def concluded(records):
    return str(conclusion(digest(resolve(records))))


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ((0.001, 0.018), ", and costs 1/36 as much per pass: $0.001 instead of $0.036."),
        ((0.03, 0.01), ", but costs 50.0 % more per pass: $0.03 instead of $0.02."),
        ((0.02, 0.01), "; a pass costs $0.02 on both sides."),
        ((0.021, 0.01), "; a pass costs $0.021 against $0.02 (intervals overlap)."),
        ((0.0, 0.01), ", and costs nothing per pass instead of $0.02."),
        ((0.01, 0.0), ", but costs $0.01 per pass instead of nothing."),
        ((0.0, 0.0), "; a pass costs $0 on both sides."),
    ],
)
def test_the_best_side_has_its_price_beside_that_of_the_next(costs, said):
    found = concluded(two_sides(costs))
    assert found.startswith("a is best: 50.0 points (95 %: ")
    assert found.endswith(said)


def test_a_leader_that_is_not_shown_to_be_better_may_be_shown_to_be_cheaper():
    """What was called "neither costs less" of a leader that costs a thirty-sixth."""
    found = concluded(two_sides((0.001, 0.031), (0.9, 0.8), 20))
    assert found.startswith("No difference in pass rate is shown between a and b. a is ahead by ")
    assert found.endswith(", and costs 1/35 as much per pass: $0.00111 instead of $0.0387.")
    even = concluded(two_sides((0.01, 0.04), (0.8, 0.8)))
    assert even.endswith(". a costs a quarter as much per pass: $0.0125 instead of $0.05.")
    dear = concluded(two_sides((0.04, 0.01), (0.8, 0.8)))
    assert dear.endswith(". b costs a quarter as much per pass: $0.0125 instead of $0.05.")


def test_a_side_that_never_passed_has_no_price():
    found = concluded(two_sides((0.01, 0.01), (0.9, 0.0)))
    assert found.endswith("; b never passed, and a pass of a costs $0.0111.")
    assert "costs" not in concluded(two_sides((0.01, 0.01), (0.0, 0.0)))


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ((0.005, 0.004, 0.007), (0.01, 0.008, 0.012), True),
        ((0.005, 0.004, 0.007), (0.01, 0.006, 0.012), False),
        ((0.005, None, None), (0.01, None, None), False),
        ((0.005, 0.004, 0.007), (0.01, 0.008, math.inf), True),
        ((0.01, 0.008, 0.012), (0.005, 0.004, 0.007), False),
        ((0.005, 0.004, 0.007), (math.inf, 0.1, math.inf), False),
        ((math.inf, 0.1, math.inf), (math.inf, 0.1, math.inf), False),
    ],
)
def test_a_price_is_called_lower_only_if_the_intervals_are_apart(first, second, shown):
    assert bool(lower_price(Estimate(*first), Estimate(*second))) == shown


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ((1.0, 1.0, 1.0), "All have 50.0 %; a pass of these sides costs $2.00."),
        ((1.0, 0.97, 1.0), "All have 50.0 %; a pass of these sides costs $1.94 to $2.00."),
        ((1.0, 9.0, 9.9), "; a costs least: $2.00 per pass, the others $18 to $19.8."),
        ((1.0, 9.0, 1.1), "; a pass of these sides costs $2.00 to $18."),
        (
            (9.0, 1.0, 8.0),
            "b, with 50.0 %, is not shown to be worse and costs a ninth as much per pass: "
            "$2.00 instead of $18.",
        ),
        ((1.0, 0.0, 2.0), "worse and costs nothing per pass instead of $2.00."),
        ((0.0, 0.0, 0.0), "; a pass of these sides costs $0."),
    ],
)
def test_the_cheapest_of_sides_that_may_be_the_best(costs, said):
    given = [
        {"subject": name, "task_id": f"t{n}", "passed": n % 2 > 0, "cost_usd": cost}
        for name, cost in zip("abc", costs, strict=True)
        for n in range(20)
    ]
    assert concluded(given).endswith(said)


def test_equal_sides_are_rarely_said_to_differ_in_price():
    """Of equal sides, no sentence may say that one costs less, beyond one in twenty."""
    rng, worlds, claimed = np.random.default_rng(4), 30, 0
    for _ in range(worlds):
        hard = rng.beta(2, 1, 40)
        given = [
            {"subject": name, "task_id": f"t{n}", "passed": bool(ease > rng.random()),
             "cost_usd": 0.02 * rng.lognormal(0, 0.5)}
            for n, ease in enumerate(hard)
            for name in "abc"
        ]  # fmt: skip
        found = concluded(given)
        claimed += any(w in found for w in ("costs least", " as much", " less per", " more per"))
    assert claimed <= 4, "more than 4 of 30 are unlikely (1.6 %) if the level of 5 % holds"


def test_prices_of_different_tasks_are_said_to_be():
    def records(name, right, tasks):
        return [
            {"subject": name, "task_id": f"t{n}", "passed": n % 10 < right, "cost_usd": 0.01}
            for n in tasks
        ]

    same = concluded([*records("a", 9, range(60)), *records("b", 2, range(60))])
    more = concluded([*records("a", 9, range(60)), *records("b", 2, range(80))])
    assert same.endswith(" per pass: $0.0111 instead of $0.05.")
    assert more.endswith(" per pass: $0.0111 instead of $0.05 (each over its own tasks).")
    tied = [*records("a", 9, range(20)), *records("b", 8, range(30))]
    cheap = [{**row, "cost_usd": 0.001} if row["subject"] == "b" else row for row in tied]
    assert concluded(cheap).endswith(" instead of $0.00125 (each over its own tasks).")


def test_sides_that_tried_the_same_tasks_have_prices_of_the_same_tasks():
    """T2 and T10 pass equally often: pages and comparisons agree on which of them is first."""
    given = [
        {"tier": name, "task_id": f"t{n}", "passed": n < right, "cost_usd": cost}
        for name, right, cost in (("T10", 20, 0.02), ("T2", 20, 0.01), ("T3", 19, 0.001))
        for n in range(30)
    ]
    said = conclusion(digest(resolve(given)))
    assert str(said).startswith("None of the 3 sides is shown to be better than the others. T2 and")
    assert str(said).endswith(
        "T3, with 63.3 %, is not shown to be worse and costs a tenth as much per pass: "
        "$0.00158 instead of $0.015."
    )
    assert "With 30 tasks, a true difference of" in said.notes[0]
