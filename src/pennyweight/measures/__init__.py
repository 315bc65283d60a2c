"""Measures: values computed from one record. One family per file, in the order of dependencies.

Every measure is compared with a plain-Python reference in tests/test_catalogue.py.

Tested elsewhere:
    answer.py: tests/test_catalogue.py
    behaviour.py: tests/test_catalogue.py
    cost.py: tests/test_catalogue.py
    efficiency.py: tests/test_catalogue.py
    judge.py: tests/test_catalogue.py
    reasoning.py: tests/test_catalogue.py
"""

from pennyweight.measures import answer, reasoning, efficiency, behaviour, cost, judge  # noqa: F401, I001
