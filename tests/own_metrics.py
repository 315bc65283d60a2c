"""Metrics that a test declares, which no other test of the same process may see."""

from collections.abc import Iterator
from contextlib import contextmanager

from pennyweight.define import MEASURES, METRICS


@contextmanager
def own_catalogue() -> Iterator[None]:
    """Forget at the end which metrics and measures were declared meanwhile."""
    measures, metrics = dict(MEASURES), dict(METRICS)
    try:
        yield
    finally:
        for where, before in ((MEASURES, measures), (METRICS, metrics)):
            where.clear()
            where.update(before)
