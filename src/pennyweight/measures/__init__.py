"""Measures: what is computed from one record. One family a file; the order is what they read."""

from pennyweight.measures import answer, reasoning, efficiency, behaviour, cost, judge  # noqa: F401, I001
