import math

import pytest

import assay
from assay.report.compare import as_table
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


def test_a_side_that_is_dominated_is_named_and_passed_over():
    last = said(T0=(50, 100, 0.1), T1=(40, 100, 0.2), T2=(60, 100, 0.3))[-1]
    assert last == (
        "The cheapest pass: T0, $0.20. Going from T0 to T2, each further pass costs $2.00. "
        "T1 costs no less than T0 and passes no more often."
    )


def test_what_is_no_mean_is_said_to_be_none():
    found = assay.compare(rows(T0=(2, 4, 0.1), T1=(3, 4, 0.1)), metrics="cost_of_pass")
    assert sentences(found)[0] == (
        "No chosen metric is a mean over records, so none is compared task by task."
    )


def test_numbers_that_differ_alike_everywhere_have_no_interval():
    found = assay.compare(rows(T0=(2, 9, 0.1), T1=(3, 9, 0.3)), metrics="cost_usd_mean")
    (pair,) = found.pairs
    assert (pair.low, pair.high, pair.detectable) == (None, None, None)
    found = assay.compare(rows(T0=(2, 9, 0.1), T1=(3, 9, 0.3)), metrics="total_tokens_mean")
    assert sentences(found)[0] == (
        "The sides have nothing in common that could be compared task by task."
    )
    tokens = [
        dict(r, input_tokens=5 + 5 * (r["tier"] == "T1")) for r in rows(T0=(2, 9, 0), T1=(3, 9, 0))
    ]
    found = assay.compare(tokens, metrics="prompt_tokens_mean")
    assert "is 5.00 higher in T1 than in T0, at every task by the same." in sentences(found)[0]
    assert "nothing varied" in as_table(found)


def test_what_would_be_seen_is_said_for_all_comparisons():
    (first, *_) = said(T0=(20, 40, 0.1), T1=(22, 40, 0.1))
    assert "four times in five among 2 comparisons" in first
    alone = assay.compare(rows(T0=(20, 40, 0.1), T1=(22, 40, 0.1)), metrics="pass_rate")
    assert "comparisons" not in sentences(alone)[0]
    both = assay.compare(rows(T0=(20, 40, 0.1), T1=(22, 40, 0.1)))
    one, two = alone.pair("T1", "pass_rate"), both.pair("T1", "pass_rate")
    assert one.detectable < two.detectable
    assert one.tasks_for_5_points < two.tasks_for_5_points
