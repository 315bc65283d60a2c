"""Products keep the units of both factors, unless a rate is per another unit."""

from pennyweight.text.arithmetic_values import Value, product
from pennyweight.text.units import DIMENSIONS

HOUR, MINUTE, DOLLAR = (DIMENSIONS[name] for name in ("hour", "minute", "dollar"))


def test_a_rate_times_its_unit_has_the_other_unit() -> None:
    pay = product((25, 1), Value((25, 2), units=DOLLAR, rates=HOUR), Value((2, 1), units=HOUR))
    assert pay is not None
    assert pay.units >= DOLLAR
    assert not pay.rates


def test_a_rate_times_another_unit_is_not_read() -> None:
    assert product((25, 1), Value((25, 2), rates=HOUR), Value((2, 1), units=MINUTE)) is None
