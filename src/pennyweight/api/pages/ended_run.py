"""The numbers of a run that has just ended, computed before anybody opens its page."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pennyweight.store.store import Store, StoredRun

MAX_SHARE = 0.05
"""Numbers that would take a larger share of the run's time are left to the page."""
START, PER_SIDE, PER_RECORD = 1.0, 0.1, 2e-4
"""About how many seconds a digest takes: in any case, for each side, for each record."""
MIN_TOLD = 3.0
"""Seconds of waiting that are announced."""


def digest_seconds(run: StoredRun) -> float:
    """Estimate how long the digest of a run takes."""
    sides = 1
    for names in run.sides.values():
        sides *= max(1, len(names))
    return START + PER_SIDE * sides + PER_RECORD * run.attempts


def compute_ahead(store: Store, name: str, tell: Callable[[str], None] = lambda _: None) -> bool:
    """Compute the digest of a run that is done, if that adds little to the time that it took.

    The records are stored already, and a digest can be computed at any time: an interrupt or an
    error here loses nothing. Return whether the digest is stored.
    """
    try:
        return _computed(store, name, tell)
    except KeyboardInterrupt:
        return False
    except Exception as error:  # the run has its exit code, whatever happens here
        what = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        with suppress(Exception):
            tell(f"The numbers of the page are left to 'pennyweight serve' ({what}).")
        return False


def _computed(store: Store, name: str, tell: Callable[[str], None]) -> bool:
    run = store.find(name)
    seconds = digest_seconds(run)
    if run.status != "done" or seconds > MAX_SHARE * ((run.ended or 0.0) - run.created):
        return False
    from pennyweight.api.pages.digest_cache import DigestCache  # noqa: PLC0415 - quick runs need none

    if seconds >= MIN_TOLD:
        tell("Computing the numbers of the page. Ctrl-C leaves them to 'pennyweight serve'.")
    digests = DigestCache(store)
    try:
        return digests.now(run).digest is not None
    finally:
        digests.close()
