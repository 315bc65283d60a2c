"""Ratios of sums over tasks: against a plain formula, and on simulated costs of a pass."""

import math

import numpy as np
import pytest
from scipy import stats

import pennyweight


def plain_holds(costs, passes, ratio, confidence=0.95):
    """Say whether a cost per pass is in the interval, with every step written down."""
    n, t = len(costs), stats.t.ppf(0.5 + confidence / 2, len(costs) - 1)
    z = stats.norm.ppf(0.5 + confidence / 2)
    cost, rate = sum(costs) / n, sum(passes) / n
    smooth = (rate * n + 1) / (n + 2)
    own = sum((p - rate) ** 2 for p in passes)
    if own > 0:
        least = smooth * (1 - smooth) / n * own / ((n - 1) * rate * (1 - rate))
    else:
        least = smooth * (1 - smooth) / n
    squares = sum((c - cost) ** 2 for c in costs) / (n - 1) ** 2
    both = sum((c - cost) * (p - rate) for c, p in zip(costs, passes, strict=True)) / (n - 1) ** 2
    square = squares - 2 * ratio * both + ratio**2 * max(own / (n - 1) ** 2, least)
    gaps = [c - cost - ratio * (p - rate) for c, p in zip(costs, passes, strict=True)]
    skew = sum(g**3 for g in gaps) / (n - 1) ** 3 / square**1.5
    above = ratio > cost / rate
    tail = max(0, 2 * skew if above else -2 * skew)
    if above:
        tail = max(tail, 6 * math.sqrt(squares * (n - 1) / n) / cost * (squares / square) ** 1.5)
    x = max(min(2 / 3 * z * tail, 1.55), 1e-12)
    reach = t * math.sqrt(square * (n - 1) / n) * math.expm1(x) / x
    return abs(cost - ratio * rate) <= reach


def scored(costs, passes, metric="cost_of_pass", **options):
    rows = [
        {"task_id": str(i), "cost_usd": float(c), "passed": bool(p)}
        for i, (c, p) in enumerate(zip(costs, passes, strict=True))
    ]
    return pennyweight.score(rows, metrics=metric, **options)[metric]


@pytest.mark.parametrize(("n", "rate"), [(12, 0.5), (20, 0.9), (15, 1.0), (40, 0.3)])
def test_the_ends_are_where_the_written_down_formula_ends(n, rate):
    rng = np.random.default_rng(n)
    costs, passes = rng.lognormal(0, 1, n), rng.random(n) < rate
    e = scored(costs, passes)
    for end, inwards in ((e.low, 1.0001), (e.high, 0.9999)):
        if math.isfinite(end):
            assert plain_holds(costs, passes.astype(float), end * inwards)
            assert not plain_holds(costs, passes.astype(float), end / inwards)
    assert e.low < e.value < e.high


def test_costs_in_another_unit_give_the_same_interval_in_that_unit():
    costs, passes = [1.0, 2.0, 5.0, 1.5, 3.0], [1, 1, 0, 1, 1]
    small, large = scored(costs, passes), scored([c * 1e20 for c in costs], passes)
    assert (large.low, large.high) == pytest.approx((small.low * 1e20, small.high * 1e20))


def test_without_a_pass_only_the_lower_end_is_known():
    e = scored([0.1] * 10, [0] * 10)
    assert (e.value, e.high) == (math.inf, math.inf)
    assert 0.2 < e.low < 0.4
    assert scored([0.0] * 3, [1, 1, 0]).high == 0


def test_a_cost_too_small_to_square_is_in_its_interval():
    e = scored([1e-187, 2e-187, 4e-187], [1, 1, 0])
    assert e.low == 0 < e.value <= e.high


@pytest.mark.parametrize(("n", "rate"), [(20, 0.9), (20, 1.0), (50, 0.6)])
def test_intervals_hold_the_cost_of_a_pass(n, rate):
    rng = np.random.default_rng(5)
    sets = 300
    frame = pennyweight.score(
        [
            {"task_id": str(i), "group": s, "cost_usd": c, "passed": bool(p)}
            for s in range(sets)
            for i, (c, p) in enumerate(
                zip(rng.lognormal(0, 1, n).tolist(), rng.random(n) < rate, strict=True)
            )
        ],
        by="group",
        metrics="cost_of_pass",
    )
    truth = math.exp(0.5) / rate
    held = [g["cost_of_pass"].low <= truth <= g["cost_of_pass"].high for g in frame.groups]
    assert np.mean(held) >= 0.93


def test_records_that_all_have_the_same_ratio_have_an_interval_around_it():
    rows = [{"task_id": f"t{i}", "prompt_tokens": 50, "impl_rate": 0.5} for i in range(100)]
    rows = [{**row, "completion_tokens": 40} for row in rows]
    rows.append({"task_id": "x", "prompt_tokens": 0, "completion_tokens": 0, "impl_rate": 0})
    found = pennyweight.score(rows, metrics="token_efficiency").groups[0]["token_efficiency"]
    assert found.low == pytest.approx(found.value) == pytest.approx(found.high)
