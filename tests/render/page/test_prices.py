"""Prices of passes in words: nothing is called the same, or not less, that is not."""

import math

import pytest

from pennyweight.api.pages.digest import digest
from pennyweight.api.sources import resolve
from pennyweight.render.page.conclusion import conclusion
from pennyweight.render.page.prices import compared_price


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (0.01, 0.01, ", at the same price: $0.01 per pass"),
        (0.01, 0.0097, ", at about the same price: $0.01 per pass"),
        (0.01, 0.005, ", which costs half per pass"),
        (0.01, 0.02, ", and costs half per pass"),
        (0.01, math.inf, ", which never passes; a pass costs $0.01"),
        (math.inf, 0.01, ""),
        (math.inf, math.inf, ""),
        (0.0, 0.01, ""),
        (None, 0.01, ""),
    ],
)
def test_a_price_beside_another(first, second, said):
    assert compared_price(first, second) == said


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ((1.0, 1.0, 1.0), "none of them costs less per pass ($2.00)"),
        ((1.0, 0.97, 1.0), "none of them costs much less per pass ($2.00)"),
        ((1.0, 1.5, 2.0), "none of them costs less per pass ($2.00)"),
    ],
)
def test_the_cheapest_of_sides_that_may_be_the_best(costs, said):
    given = [
        {"subject": name, "task_id": f"t{n}", "passed": n % 2 > 0, "cost_usd": cost}
        for name, cost in zip("abc", costs, strict=True)
        for n in range(20)
    ]
    assert said in str(conclusion(digest(resolve(given))))
