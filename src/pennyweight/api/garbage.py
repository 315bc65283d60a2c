"""Collect garbage less often while a run works: most of its objects live as long as it does."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (100_000, 50, 100)
_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []
"""The thresholds before the runs that work now; several may work at once, in threads."""


@contextmanager
def rare_collection() -> Iterator[None]:
    """Raise the thresholds of the garbage collector for a block, unless they are as high."""
    with _lock:
        _before.append(gc.get_threshold())
        if 0 < gc.get_threshold()[0] < THRESHOLDS[0]:
            gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        with _lock:
            first = _before[0]
            _before.pop()
            if not _before and gc.get_threshold() == THRESHOLDS:
                gc.set_threshold(*first)
