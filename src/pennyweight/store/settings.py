"""The JSON values that a store returns: a run's settings and the sums of its ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict


class RunSettings(TypedDict, total=False):
    """What a run stores about its suite, in addition to the suite's text."""

    pennyweight: str
    """The version that created the run."""
    python: str
    seed: int | None
    runs: int
    tasks: int
    subjects: list[str]
    tiers: list[str]
    limits: Mapping[str, Any]
    answer: Mapping[str, Any]
    match: Mapping[str, Any]
    confidence: str | None
    judge: Mapping[str, Any]
    """The judges that count, their rubric and their consensus."""
    until_decided: Mapping[str, Any]
    """The plan of a run that stops early."""


class Spending(TypedDict):
    """The sums of a run's ledger. A sum is null if no call has the value."""

    calls: int
    usd: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    held_usd: float | None
    """Reserved for calls whose cost is not known."""
    held_tokens: int | None
    unpriced: int
    """The number of calls whose cost is not known."""
