"""Measures: values computed from one record. One family per file, in the order of dependencies.

tests/scoring/test_pipeline.py compares every measure with the plain Python of tests/reference.py.

Tested elsewhere:
    *.py: tests/test_catalogue.py
"""

from pennyweight.measures import answer, reasoning, support, efficiency, behaviour  # noqa: F401, I001
from pennyweight.measures import cost, judge, exam  # noqa: F401
