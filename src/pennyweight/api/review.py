"""Collect the verdicts of a person on what a suite leaves to people (`human` checks)."""

from __future__ import annotations

from pennyweight.api.sources import open_store
from pennyweight.errors import UsageError
from pennyweight.store.store import Store
from pennyweight.stored_runs.reviews import ReviewQuestion, review_questions


def questions(
    run: str = "latest", *, reviewer: str, again: bool = False, store: str | Store | None = None
) -> list[ReviewQuestion]:
    """List what a person has not answered yet about a run; with `again`, also what they have."""
    if not reviewer.strip():
        raise UsageError("--as needs a name.")
    at = open_store(store)
    return list(review_questions(at.find(run), at, reviewer.strip(), again=again))
