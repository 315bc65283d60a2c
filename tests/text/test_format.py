import math

import pytest

from pennyweight.text.format import (
    column,
    declared,
    difference,
    duration,
    estimate,
    interval,
    money,
    number,
    plural,
    points,
    probability,
    quantity,
    share,
    tick,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "$0"),
        (0.31, "$0.31"),
        (0.000823, "$0.000823"),
        (4.1, "$4.10"),
        (12.5, "$12.5"),
        (99.96, "$100"),
        (999.6, "$1,000"),
        (1234.5, "$1,230"),
        (-0.5, "−$0.50"),
        (math.inf, "∞"),
        (None, "—"),
    ],
)
def test_money(value, text):
    assert money(value) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (0.25, "0.250 ms"),
        (999.6, "1,000 ms"),
        (9_999, "9,999 ms"),
        (10_000, "10.0 s"),
        (119_960, "120 s"),
        (120_000, "2 min 0 s"),
        (7_199_999, "120 min 0 s"),
        (86_400_000, "24 h 0 min"),
        (math.inf, "∞"),
        (None, "—"),
    ],
)
def test_times_have_the_unit_of_their_size(milliseconds, text):
    assert duration(milliseconds) == text


def test_seconds_are_times_too():
    assert [quantity(s, "seconds") for s in (0.5, 31.24, 125)] == ["500 ms", "31.2 s", "2 min 5 s"]


def test_no_share_but_0_and_1_is_written_as_none_or_all():
    assert [share(x) for x in (0, 1, 0.0004, 0.9999, 1e-12)] == [
        *("0.0 %", "100.0 %", "0.04 %", "99.99 %", "0.0 %")
    ]


def test_a_difference_that_rounds_to_nothing_has_no_sign():
    assert [points(x) for x in (0.0004, -0.0004, 0.0006, -0.0006)] == [
        *("0.0 points", "0.0 points", "+0.1 points", "−0.1 points")
    ]
    assert difference(0.0, "US$") == "$0"


def test_plurals():
    assert [plural(n, "task") for n in (0, 1, 2)] == [
        "0 tasks",
        "1 task",
        "2 tasks",
    ]


def test_p_values():
    assert [probability(p) for p in (0.0004, 0.0301, 0.342, 1.0, None)] == [
        *("< 0.001", "0.030", "0.342", "1.000", "—")
    ]


def test_numbers():
    assert [number(x) for x in (0.2012, 24.51, 9750.4, 0)] == ["0.201", "24.5", "9,750", "0"]
    assert [tick(x) for x in (0.1 + 0.2, 1e9, 12_345)] == ["0.3", "1G", "12.3k"]


def test_what_a_person_chose_is_not_rounded():
    assert declared(0.85 + 1e-12, "share") == "85.0 %"
    assert [declared(x, "US$") for x in (2, 1234.56, 0.0125)] == ["$2", "$1,234.56", "$0.0125"]
    assert [declared(x, "tokens") for x in (1, 2, 1500)] == ["1 token", "2 tokens", "1,500 tokens"]
    assert [declared(x, "ms") for x in (1, 2500, 5000)] == ["1 ms", "2,500 ms", "5,000 ms"]


def test_intervals_have_one_notation():
    assert interval(-math.inf, 0.5, "share") == "−∞ to 50.0 %"
    assert interval(125_000, 250_000, "ms") == "2 min 5 s to 4 min 10 s"
    assert interval(1_200, 3_400, "tokens") == "1,200 to 3,400"


@pytest.mark.parametrize("unit", ["share", "US$", "ms", "tokens", ""])
@pytest.mark.parametrize("value", [0.5, 0.123456, 1.0, 0.99995])
@pytest.mark.parametrize("gap", [0.1, 1e-2, 1e-4, 1e-6])
def test_a_value_never_looks_like_an_end(unit, value, gap):
    written, ends = estimate(value, value - gap, value, unit, bare=True)
    low, high = (end.rstrip("ms %") for end in ends.split(" to "))
    assert low != high
    assert float(low) != float(written.strip("$ms %"))


def test_a_column_of_times_has_one_unit():
    assert column([5.0, None, 20_000.0], "ms") == ["0.00500 s", "—", "20.0 s"]


def test_an_end_that_differs_only_by_rounding_adds_no_digits() -> None:
    written = estimate(0.00096, 0.0009599999999999998, 0.0009600000000000001, "US$")
    assert written == ("$0.00096", "$0.000960 to $0.000960")
