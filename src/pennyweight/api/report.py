"""Report on any sources: what they scored, how they compare, and what a policy decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pennyweight.api.gate import gate
from pennyweight.render.verdict_scales import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def verdicts(
    sources: Sequence[Any], policies: Sequence[str], digest: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Decide on each side that a digest has: gates decide on one subject in one tier."""
    sides = [side["group"] for side in digest["sides"]] or [{}]
    found = []
    for side in sides:
        where = {name: str(value) for name, value in side.items() if value is not None}
        verdict = gate(sources, policies, where=where)
        found.append({**shown(verdict), "side": " · ".join(where.values())})
    return found
