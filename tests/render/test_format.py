import math

import pytest

from pennyweight.render.format import cell, difference_cells, estimate_cells, measured, unit_of
from pennyweight.scoring.estimates import Estimate


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("accuracy", None, "—"),
        ("accuracy", 0.12345, "12.3 %"),
        ("ece", 0.0561, "0.056"),
        ("composite_median", 0.907, "0.907"),
        ("sce", 2.7831, "2.78"),
        ("latency_p95_ms", math.inf, "∞"),
        ("latency_p95_ms", 5410.4, "5,410 ms"),
        ("latency_p95_ms", 12345.6, "12.3 s"),
        ("latency_p95_ms", 12.3456, "12.3 ms"),
        ("cost_of_pass", 0.00012345, "$0.000123"),
        ("total_tokens_mean", 1234.5, "1,234"),
        ("grade", "A", "A"),
        ("grade", "A\x1b[31m", "A"),
    ],
)
def test_values_are_written_in_the_unit_of_their_metric(name, value, text):
    assert estimate_cells(name, Estimate(value)) == (text, "")


@pytest.mark.parametrize(
    ("name", "numbers", "value", "interval"),
    [
        ("accuracy", (0.5, 0.4, 0.6), "50.0 %", "40.0 to 60.0 %"),
        ("accuracy", (0.50045, 0.50038, 0.50052), "50.045 %", "50.038 to 50.052 %"),
        ("accuracy", (1.0, 1.0 - 1e-16, 1.0), "100.0 %", "100.0 to 100.0 %"),
        ("latency_mean_ms", (1234.56, 1234.52, 1234.61), "1,234.56 ms", "1,234.52 to 1,234.61 ms"),
        ("latency_mean_ms", (12.346, 12.31, 12.39), "12.35 ms", "12.31 to 12.39 ms"),
        ("cost_usd_mean", (0.25, 0.25, 0.25), "$0.25", "$0.250 to $0.250"),
        ("cost_of_pass", (math.inf, 2.0, math.inf), "∞", "more than $2.00"),
        ("grade", ("B", "C", "A"), "B", "C to A"),
    ],
)
def test_an_end_looks_like_the_value_only_where_it_is_equal(name, numbers, value, interval):
    assert estimate_cells(name, Estimate(*numbers)) == (value, interval)


def test_a_narrow_cell_repeats_no_unit():
    e = Estimate(0.000494, 0.000457, 0.000531)
    assert estimate_cells("cost_usd_mean", e, narrow=True) == ("$0.000494", "0.00046 to 0.00053")
    assert estimate_cells("pass_rate", Estimate(0.5, 0.4, 0.6), narrow=True)[1] == "40.0 to 60.0"


def test_times_next_to_each_other_have_one_unit():
    short, long = Estimate(900.0, 800.0, 1000.0), Estimate(31_200.0, 30_000.0, 32_000.0)
    row = [short, long]
    cells = [estimate_cells("latency_mean_ms", e, others=row) for e in row]
    assert cells == [("0.900 s", "0.80 to 1.00 s"), ("31.2 s", "30.0 to 32.0 s")]


def test_differences_of_shares_are_points_and_of_scores_are_not():
    assert difference_cells("pass_rate", 0.01, -0.02, 0.04) == (
        "+1.0 points",
        "−2.0 to +4.0 points",
    )
    assert difference_cells("ece", -0.05, -0.1, 0.0) == ("−0.050", "−0.100 to 0.000")
    assert difference_cells("pass_rate", None, None, None) == ("—", "")


def test_values_of_a_record():
    assert unit_of("latency_ms") == "ms"
    assert unit_of("nothing") == ""
    assert [measured("passed", x) for x in (True, False, None)] == ["yes", "no", "—"]
    assert measured("attempt", 1) == "1"
    assert (cell(1, ""), cell(1.0, ""), cell(True, "")) == ("1", "1.000", "yes")
