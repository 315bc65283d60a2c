"""Thresholds as people write them."""

import pytest

from pennyweight.catalogue import metric_named
from pennyweight.errors import UsageError
from pennyweight.gates.threshold import Threshold

ACCURACY, ERRORS, P95, COST, STEPS = map(
    metric_named, ("accuracy", "error_rate", "latency_p95_ms", "cost_usd_mean", "step_count_mean")
)


@pytest.mark.parametrize(
    "written", ["≥ 85%", ">= 0.85", 85, 0.85, "85", "85 %", ".85", "≥85%", "=> 85%", " >=  85.0% "]
)
def test_the_ways_to_write_a_rate(written):
    assert Threshold.parse(written, ACCURACY) == Threshold(">=", 0.85)


@pytest.mark.parametrize(
    ("written", "sign", "value"),
    [("< 5000ms", "<", 5000), ("5s", "<=", 5000), (5000, "<=", 5000), ("≤ 0.5 min", "<=", 30_000),
     ("< 5e3", "<", 5000)],
)  # fmt: skip
def test_the_ways_to_write_a_time(written, sign, value):
    assert Threshold.parse(written, P95) == Threshold(sign, value, "ms")


def test_a_metric_has_its_own_direction_and_its_own_unit():
    assert Threshold.parse("10%", ERRORS) == Threshold("<=", 0.1)
    assert Threshold.parse("$0.02", COST) == Threshold("<=", 0.02, "US$")
    assert Threshold.parse("> 3", STEPS) == Threshold(">", 3, "steps")
    assert Threshold.parse(1, ACCURACY).value == 1  # 1 is 100 %, not 1 %
    assert Threshold.parse("1%", ACCURACY).value == 0.01
    assert Threshold.parse("1.5%", ACCURACY).value == 0.015
    assert Threshold.parse("100%", ERRORS).value == 1


@pytest.mark.parametrize(
    ("written", "metric", "why"),
    [
        ("85 ms", ACCURACY, "its unit is %"),
        (850, ACCURACY, "not between 0 and 100 %"),
        ("-3%", ACCURACY, "not between 0 and 100 %"),
        ("much", ACCURACY, "is not a threshold"),
        (True, ACCURACY, "is not a threshold"),
        (None, ACCURACY, "an empty value is not a threshold"),
        ("95%", P95, "takes ms or s"),
        ("5 kg", P95, "takes ms or s"),
        (3, STEPS, "write a sign"),
        (1.5, ACCURACY, "could be a share or a percentage; write 1.5%"),
        ("<= 60", ACCURACY, "is better when higher, so ≤ 60.0 % asks for bad values.*'≥ 60.0 %'"),
        (">= 5s", P95, "is better when lower.*'≤ 5,000 ms'"),
        (1, ERRORS, "1 means 100 %, which every value meets; write 1% or 100%"),
    ],
)
def test_what_makes_no_sense_is_refused(written, metric, why):
    with pytest.raises(UsageError, match=why):
        Threshold.parse(written, metric)


def test_a_value_at_the_limit_is_on_the_side_that_the_sign_says():
    tenth = sum([0.1] * 8) + 0.05  # 0.8499999999999999 in floating point
    assert Threshold.parse("≥ 85%", ACCURACY).holds(tenth)
    assert not Threshold.parse("> 85%", ACCURACY).holds(tenth)
    assert Threshold.parse("< 5s", P95).holds(4999.99)
    assert not Threshold.parse("< 5s", P95).holds(5000.0)
    assert Threshold.parse("= 100%", ACCURACY).holds(1.0)
    assert not Threshold.parse("= 100%", ACCURACY).holds(0.999)
