"""The worked examples of the specification of repeated runs, and what they leave open."""

import math

import pytest

from pennyweight.api.compare import compare
from pennyweight.render.comparison import render
from pennyweight.scoring.tiers import (
    Dominated,
    Frontier,
    delta,
    frontier,
    steps,
    uplift,
    variance,
)

MEDIANS = {"T0": 0.70, "T1": 0.80, "T2": 0.85, "T3": 0.90}


def test_uplifts_of_the_worked_example():
    found = [uplift(score, MEDIANS["T0"]) for score in MEDIANS.values()]
    assert found == pytest.approx([0, 0.143, 0.214, 0.286], abs=0.0005)
    assert uplift(0.90, 0.75) == pytest.approx(0.20)


def test_variance_of_the_worked_example():
    assert variance(MEDIANS.values()) == pytest.approx(0.00547, abs=0.000005)


def test_uplift_over_nothing_is_not_known():
    assert uplift(0.5, 0.0) is None
    assert uplift(None, 0.5) is None


def test_what_is_not_known_stays_out():
    assert variance([0.5, None]) is None
    assert variance([0.5, None, 0.7]) == pytest.approx(0.01)
    assert delta([0.1, None, 0.4]) == pytest.approx(0.3)
    assert delta([0.1]) is None


def test_frontier_is_the_cheapest_pass():
    assert frontier({"T0": 0.5, "T1": None, "T2": 0.3, "T3": 0.3}) == Frontier("T2", 0.3)
    assert frontier({"T0": math.inf, "T1": math.inf}) == Frontier(None, math.inf)
    assert frontier({"T0": None}) is None


def test_steps_go_from_each_side_to_the_next_dearer_one_that_passes_more():
    sides = [("T2", 0.9, 0.7), ("T0", 0.1, 0.5), ("T1", 0.3, 0.6), ("T3", None, 0.9)]
    found, worse = steps(sides)
    assert [(s.start, s.end) for s in found] == [("T0", "T1"), ("T1", "T2")]
    assert [s.cost_of_further_pass for s in found] == pytest.approx([2.0, 6.0])
    assert found[1].cost_difference == pytest.approx(0.6)
    assert worse == []


def test_dominated_sides_are_no_steps_but_named():
    found, worse = steps([("T0", 0.1, 0.5), ("T1", 0.2, 0.4), ("T2", 0.3, 0.6), ("T3", 0.4, 0.6)])
    assert [(s.start, s.end, s.cost_of_further_pass) for s in found] == [
        ("T0", "T2", pytest.approx(2.0))
    ]
    assert worse == [Dominated("T1", "T0"), Dominated("T3", "T2")]
    same, none = steps([("a", 0.1 + 0.2, 0.5), ("b", 0.3, 0.5), ("c", 0.3, 0.4)])
    assert (same, none) == ([], [Dominated("c", "a")])


def test_yes_or_no_is_not_graded_by_its_median() -> None:
    rows = [
        {"tier": tier, "task_id": n, "passed": n < right, "impl_rate": float(n < right)}
        for tier, right in (("T0", 9), ("T1", 11))
        for n in range(20)
    ]
    found = compare(rows, by="tier")
    assert [side.to_dict()["grade"] for side in found.sides] == ["F", "A"], "as specified"
    assert found.sides[1].to_dict()["mean_uplift"] == pytest.approx(2 / 9)
    for format_ in ("table", "markdown"):
        text = render(found, format_)
        assert "grade" not in text
        assert not {"A", "F", "(A)", "(F)"} & set(text.replace("|", " ").split())
        assert all(number in text for number in ("45.0 %", "55.0 %", "+22.2 %"))
    graded = [{**row, "impl_rate": 0.5 + row["impl_rate"] / 4} for row in rows]
    assert "grade" in render(compare(graded, by="tier"), "markdown")
