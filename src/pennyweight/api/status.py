"""The status of a run as it is now: the store knows only what its process wrote last."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pennyweight.store.store import Run, Store

INTERRUPTED = "interrupted"


def status_of(run: Run, store: Store, *, starting: float = 0.0) -> str:
    """Return `running`, `interrupted`, `done`, `stopped` or `failed`.

    A run whose process is gone before it ended was interrupted. For `starting` seconds after its
    creation it is taken to be running: its process may not have taken it yet.
    """
    if run.status != "running" or time.time() - run.created < starting:
        return run.status
    return run.status if store.is_made(run.id) else INTERRUPTED
