"""Raise the thresholds of a policy that its records exceed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennyweight.errors import UsageError
from pennyweight.gates.ratchet import Ratcheted, ratchet
from pennyweight.gates.threshold import Quantity

if TYPE_CHECKING:
    from pennyweight.gates.verdict import Verdict


def margin_share(margin: str) -> float:
    """Read how far below the value a raised threshold stays: `1%` means 0.01."""
    amount = Quantity.parse(margin)
    if amount.sign or amount.unit not in {"", "%"} or amount.number < 0:
        raise UsageError(f"--margin {margin}: it must be a share such as 1%.")
    return amount.number / 100 if amount.unit or amount.number >= 1 else amount.number


def raise_thresholds(verdict: Verdict, share: float) -> Ratcheted | None:
    """Raise the thresholds in the policy's files; None if the policy did not pass."""
    return ratchet(verdict, share) if verdict.verdict == "pass" else None
