"""Units of one dimension are told apart; others say nothing about each other."""

import pytest

from pennyweight.text.units import DIMENSIONS, NONE, mixed


@pytest.mark.parametrize(
    ("a", "b", "differ"),
    [
        ("hour", "minutes", True),
        ("cents", "dollars", True),
        ("kg", "g", True),
        ("hour", "hours", False),
        ("hour", "dollars", False),
    ],
)
def test_units_that_differ_within_a_dimension(a: str, b: str, differ: bool) -> None:
    assert mixed(DIMENSIONS[a], DIMENSIONS[b]) is mixed(DIMENSIONS[b], DIMENSIONS[a]) is differ


def test_a_number_without_a_unit_fits_every_unit() -> None:
    assert not any(mixed(unit, NONE) for unit in DIMENSIONS.values())
