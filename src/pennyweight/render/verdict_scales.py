"""The verdicts of a policy in a report: of each side, each gate on a scale with its interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pennyweight.gates.threshold import FRACTIONS
from pennyweight.render import verdict as writing

if TYPE_CHECKING:
    from pennyweight.gates.verdict import Decision, Verdict

WIDTH = 220
MAX_SCENARIOS = 50


def shown(verdict: Verdict) -> dict[str, Any]:
    """Arrange a verdict for a page or a report."""
    gates = [_row(gate) for gate in verdict.gates]
    return {"verdict": verdict, "headline": writing.headline(verdict), "gates": gates}


def _row(gate: Decision) -> dict[str, Any]:
    value, interval = writing.estimate_of(gate)
    return {
        "name": writing.name_of(gate),
        "level": gate.level,
        "verdict": gate.verdict,
        "sign": writing.sign(gate),
        "value": value,
        "interval": interval,
        "threshold": writing.threshold_of(gate),
        "why": gate.why,
        "test": writing.test_of(gate),
        "scenarios": gate.scenarios[:MAX_SCENARIOS],
        "failing": len(gate.scenarios),
        "scale": scale(gate),
    }


def scale(gate: Decision) -> dict[str, Any] | None:
    """Place a gate's value, its interval and its threshold on a line."""
    given = [gate.value, gate.low, gate.high, gate.threshold]
    known = [v for v in given if isinstance(v, int | float) and math.isfinite(v)]
    if gate.value is None or gate.threshold is None or len(known) < 2:
        return None
    first, last = (
        (0.0, 1.0) if gate.kind in FRACTIONS else (min(0.0, *known), max(known) * 1.15 or 1.0)
    )
    first, last = min([first, *known]), max([last, *known])
    span = (last - first) or 1.0

    def place(value: float | None, other: float) -> float:
        at = other if value is None else min(last, max(first, value))
        return round(6 + (WIDTH - 12) * (at - first) / span, 1)

    limit = place(gate.threshold, first)
    right = (gate.sign or "").startswith((">", "≥"))
    return {
        "first": writing.amount(gate, first),
        "last": writing.amount(gate, last),
        "value": place(gate.value, first),
        "low": place(gate.low, gate.value),
        "high": place(gate.high, gate.value),
        "limit": limit,
        "from": limit if right else 6.0,
        "width": round(WIDTH - 6 - limit if right else limit - 6, 1),
    }
