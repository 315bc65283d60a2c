"""Metrics: values computed from many records. One family per file.

tests/test_catalogue.py states the properties that every metric must have.

Tested elsewhere:
    *.py: tests/test_catalogue.py
"""

import pennyweight.measures  # noqa: F401
from pennyweight.metrics import (  # noqa: F401
    answer,
    attempts,
    calibration,
    calibration_detail,
    confidence,
    cost,
    diversity,
    efficiency,
    judge,
    probes,
    reasoning,
    repeats,
    scenario,
)
