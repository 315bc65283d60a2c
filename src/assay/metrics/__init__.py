"""Metrics: what is computed from many records. One family a file."""

from assay.metrics import (  # noqa: F401, I001
    answer,
    calibration,
    diversity,
    reasoning,
    efficiency,
    cost,
    scenario,
    attempts,
)
