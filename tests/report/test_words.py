import math

import pytest

import assay
from assay.report.words import money, plain, probability, rounded, sentences


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "$0"),
        (0.31, "$0.31"),
        (0.000823, "$0.00082"),
        (4.1, "$4.10"),
        (1234.5, "$1,234.50"),
        (-0.5, "−$0.50"),
        (math.inf, "∞"),
    ],
)
def test_money(value, text):
    assert money(value) == text


def test_numbers():
    assert [plain(x, 3) for x in (0.2012, 24.51, 9750.4, 0)] == ["0.201", "24.5", "9,750", "0"]
    assert [probability(p) for p in (0.0004, 0.0301, 0.342, None)] == [
        "<0.001",
        "0.030",
        "0.34",
        "—",
    ]
    assert [rounded(n) for n in (7, 96, 381, 1234)] == [
        *("7 tasks", "96 tasks", "390 tasks", "1,300 tasks")
    ]


def rows(**sides):
    """Make records of tiers with so many passes, each at its tasks in order, at a cost."""
    return [
        {"tier": tier, "task_id": k, "passed": k < passes, "cost_usd": cost}
        for tier, (passes, tasks, cost) in sides.items()
        for k in range(tasks)
    ]


def said(**sides):
    return sentences(assay.compare(rows(**sides)))


def test_a_difference_that_is_shown():
    first, last = said(T0=(20, 50, 0.1), T1=(40, 50, 0.3))
    assert first == (
        "T1 passes 40 points more often than T0 (95 %: 28 to 54) and costs 3 times as much per "
        "attempt; a pass costs $0.38 instead of $0.25."
    )
    assert last == (
        "The cheapest pass: T0, $0.25. Going from T0 to T1, each further pass costs $0.50."
    )


def test_a_difference_the_other_way():
    first, last = said(T0=(40, 50, 0.3), T1=(20, 50, 0.24))
    assert first.startswith("T1 passes 40 points less often than T0 (95 %: 28 to 54)")
    assert "and costs 20 % less per attempt; a pass costs $0.60 instead of $0.38" in first
    assert "Going from T1 to T0, each further pass costs $0.15." in last


def test_a_difference_that_is_not_shown_says_what_would_be():
    (first, *_) = said(T0=(20, 40, 0.1), T1=(22, 40, 0.1))
    assert first.startswith("No difference in passing could be shown between T1 and T0 (+5 points;")
    assert "40 tasks show one of" in first
    assert "to see one of 5 points you need about" in first
    assert first.endswith("T1 costs the same per attempt; a pass costs $0.18 instead of $0.20.")


def test_a_difference_that_may_be_chance_among_many():
    tiers = {f"T{k}": (12 + 6 * (k == 3), 40, 0.1) for k in range(8)}
    third = said(**tiers)[2]
    assert third.startswith("T3 passes 15 points more often than T0 (95 %:")
    assert "but among 14 comparisons that can be chance (Holm's p = " in third


def test_sides_that_share_nothing():
    data = [{"tier": t, "task_id": f"{t}{k}", "passed": True} for t in ("T0", "T1") for k in "ab"]
    (line,) = sentences(assay.compare(data))
    assert line == (
        "T1 and T0 have no task in common, so they cannot be compared task by task "
        "(they tried 2 and 2)."
    )
    nothing = [{"tier": t, "task_id": k} for t in ("T0", "T1") for k in "ab"]
    assert sentences(assay.compare(nothing)) == [
        "The sides have nothing in common that could be compared task by task."
    ]


def test_records_without_a_side_are_told():
    found = assay.compare([*rows(T0=(1, 2, 0.1), T1=(2, 2, 0.1)), {"task_id": 9, "passed": True}])
    assert sentences(found)[-1] == "1 record has no tier and belongs to no side."
