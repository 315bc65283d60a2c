"""What a probe shows: its points are one curve, and none of them is the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pennyweight.metrics.probes import point_of
from pennyweight.render.format import estimate_cells, unit_of
from pennyweight.render.page.metric_titles import metric_title
from pennyweight.render.view import estimate
from pennyweight.text.format import quantity


def probe_words(
    digest: Mapping[str, Any], sides: Sequence[Mapping[str, Any]], metric: str
) -> tuple[str, ...]:
    """Return what a probe shows in a sentence, and what else a reader must know."""
    why = "The points of a probe are not ranked."
    if len({side["group"].get("subject") for side in sides}) > 1:
        return "What each subject answers after a part of its chain of thought.", why
    known = [side for side in sides if side_value(side, metric) is not None]
    chain = "the chain of thought"
    text = f"{metric_title(metric).title.capitalize()} is {_at_point(known[0], metric, chain)}"
    if len(known) > 1:
        text += f" and {_at_point(known[-1], metric, 'it')}"
    area = estimate(digest["whole"]["estimates"].get("truncation_aoc", (None,) * 5))
    notes = [why]
    if area.value is not None:
        value, ends = estimate_cells("truncation_aoc", area)
        sure = f" ({ends})" if ends else ""
        fixed = "at 0 the answer is fixed before the chain begins."
        notes.insert(0, f"The area over the curve is {value}{sure}: {fixed}")
    return f"{text}.", *notes


def _at_point(side: Mapping[str, Any], metric: str, chain: str) -> str:
    """Write the value at a point of a probe, and where in the chain of thought that is."""
    value = quantity(side_value(side, metric), unit_of(metric))
    point = next(p for v in side["group"].values() if (p := point_of(str(v))) is not None)
    if point == 0:
        return f"{value} before {chain}"
    return f"{value} after {'all' if point == 100 else f'{point} %'} of {chain}"


def side_value(side: Mapping[str, Any], metric: str) -> float | None:
    """Return the value that a side has in a metric; None if it has none."""
    value = estimate(side["estimates"][metric]).value if metric in side["estimates"] else None
    return value if isinstance(value, float | int) else None
