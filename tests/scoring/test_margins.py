import pytest

from pennyweight import compare
from pennyweight.errors import UsageError
from pennyweight.stats.paired import holm


def rows(tasks, cost=1.02):
    return [
        {
            "task_id": task,
            "tier": f"T{side}",
            "passed": bool(task % 4 or side) if task % 25 else True,
            "cost_usd": (1 + task % 7) * (cost if side else 1) * (1 + 0.02 * ((task + side) % 3)),
        }
        for task in range(tasks)
        for side in (0, 1)
    ]


def test_each_pair_is_held_against_the_margin():
    found = compare(rows(100), metrics=["pass_rate", "cost_usd_mean"], margin="10%")
    passes, costs = (pair.held for pair in found.pairs)
    assert (passes.margin, passes.margin_of) == (0.1, "difference")
    assert (passes.no_worse, passes.equivalent) == (True, False)
    assert (costs.margin, costs.margin_of) == (0.1, "ratio")
    assert (costs.no_worse, costs.equivalent) == (True, True)
    assert 1 < costs.low < 1.02 < costs.high < 1.1


def test_tests_of_margins_are_corrected_for_their_number():
    found = compare(rows(100), metrics=["pass_rate", "cost_usd_mean"], margin=0.1)
    tests = [pair.held for pair in found.pairs]
    assert [one.p_no_worse_adjusted for one in tests] == holm([one.p_no_worse for one in tests])


def test_json_has_the_margin_only_if_one_was_given():
    plain = compare(rows(30), metrics="cost_usd_mean").pairs[0].to_dict()
    asked = compare(rows(30), metrics="cost_usd_mean", margin="5 points").pairs[0].to_dict()
    assert not {"margin", "equivalent"} & set(plain)
    assert asked["margin"] == 0.05
    assert asked["margin_interval"][0] < asked["ratio"] < asked["margin_interval"][1]
    assert asked["no_worse"] is (asked["p_no_worse_adjusted"] <= 0.05)


@pytest.mark.parametrize("margin", ["0", "100%", "2", "two", "2 dollars", 5])
def test_a_margin_that_is_none_is_refused(margin):
    with pytest.raises(UsageError, match=r"such as 2% or 0\.02"):
        compare(rows(10), margin=margin)


def test_sides_that_share_no_task_have_no_margin():
    apart = [row | {"task_id": f"{row['tier']}/{row['task_id']}"} for row in rows(10)]
    assert all(pair.held is None for pair in compare(apart, margin="2%").pairs)
