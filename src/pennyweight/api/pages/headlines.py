"""The headline of a run: that of its best side, never of several sides together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from pennyweight.define import metric_named
from pennyweight.metrics.probes import is_probe
from pennyweight.render.format import unit_of
from pennyweight.text.format import estimate, quantity
from pennyweight.text.natural_order import natural

MAX_SIDES = 60


@dataclass(frozen=True, slots=True)
class SideHeadline:
    """The headline metric of a side of a run. A run with one side has no name here."""

    name: str
    subject: str | None
    tier: str | None
    value: float | None
    low: float | None
    high: float | None


def side_headlines(digest: Mapping[str, Any]) -> list[SideHeadline]:
    """Return the headline of each side of a run, the best first; of a probe, its last points."""
    metric = digest["headline"]
    sides = digest["sides"] or [{**digest["whole"], "name": "", "group": {}}]
    found = []
    for side in sides:
        value, low, high = map(_number, (side["estimates"].get(metric) or [None] * 3)[:3])
        subject, tier = (_written(side["group"].get(name)) for name in ("subject", "tier"))
        found.append(SideHeadline(side["name"], subject, tier, value, low, high))
    if are_points(found):
        points = sorted(found, key=lambda side: natural(side.tier or ""), reverse=True)
        return sorted(points, key=lambda side: side.value is None)
    failed = any(side.get("errors") for side in sides)  # values leave out other tasks on each side
    lead = (digest.get("comparison") or {}).get("baseline") if failed else None
    down = metric is not None and metric_named(metric).better == "lower"

    def order(side: SideHeadline) -> tuple[bool, bool, float]:
        value = side.value or 0.0
        return side.value is None, lead is not None and side.name != lead, value if down else -value

    return sorted(found, key=order)


def are_points(sides: Sequence[SideHeadline]) -> bool:
    """Whether sides are the points of a probe, of which none is the best."""
    return all(is_probe(side.tier or "") for side in sides)


def _number(value: Any) -> float | None:
    return value if isinstance(value, float) else None


def _written(value: Any) -> str | None:
    return None if value is None else str(value)


def written(side: SideHeadline, metric: str | None) -> tuple[str, str]:
    """Write the value and the interval of a side's headline."""
    unit = unit_of(metric or "")
    if side.value is None or side.low is None or side.high is None:
        return quantity(side.value, unit), ""
    return estimate(side.value, side.low, side.high, unit)


def pack(sides: list[SideHeadline]) -> str:
    """Write headlines for the store."""
    return json.dumps([asdict(side) for side in sides[:MAX_SIDES]])


def unpack(text: str | None) -> tuple[SideHeadline, ...]:
    """Read headlines from the store; none where they cannot be read."""
    with suppress(ValueError, TypeError, RecursionError):
        return tuple(SideHeadline(**one) for one in json.loads(text or "[]"))
    return ()
