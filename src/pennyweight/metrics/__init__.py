"""Metrics: what is computed from many records. One family a file."""

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
