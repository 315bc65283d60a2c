"""Metrics: values computed from many records. One family per file.

Every metric is also tested by the properties in tests/test_catalogue.py.

Tested elsewhere:
    attempts.py: tests/test_catalogue.py
    cost.py: tests/test_catalogue.py
    diversity.py: tests/test_catalogue.py
    efficiency.py: tests/test_catalogue.py
    reasoning.py: tests/test_catalogue.py
    scenario.py: tests/test_catalogue.py
"""

import pennyweight.measures  # noqa: F401
from pennyweight.metrics import (  # noqa: F401
    answer,
    attempts,
    calibration,
    cost,
    diversity,
    efficiency,
    judge,
    reasoning,
    scenario,
)
