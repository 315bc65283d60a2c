"""The panel about reasoning: its charts, and the few metrics of reasoning that have a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pennyweight.render.charts.catalogue import REASONING
from pennyweight.render.charts.svg import Chart
from pennyweight.render.view import figures_of, side_rows

FIGURES = {
    "usr_math": "Wrong equations",
    "usr_math_coverage": "Chains with an equation",
    "answer_follows_rate": "Answer follows from them",
    "usr_rag": "Unsupported sentences",
    "usr_rag_scored": "Of it decided by a scorer",
    "thinking_share": "Tokens spent on thinking",
    "tokens_per_correct": "Tokens per right answer",
    "backtracking_rate": "Chains that backtrack",
}
"""The metrics of the panel, as far as they have a value, with their titles."""
_OF_ALL_TIERS = {
    "truncation_aoc": "Answer changes along the chain",
    "overthinking_tokens": "Tokens beyond what was enough",
}
"""The metrics that compare the tiers of a subject, and so have one value for all sides."""
_REASONED = ("usr_math", "usr_rag", "thinking_share")
"""Metrics that show that there is something to say about reasoning."""


@dataclass(frozen=True, slots=True)
class ReasoningPanel:
    """What a page shows about reasoning: charts, and figures or a table of the sides."""

    charts: Sequence[Chart]
    figures: Sequence[Mapping[str, Any]]
    sides: Sequence[Mapping[str, Any]]


def reasoning_panel(
    digest: Mapping[str, Any], drawn: Iterable[Chart]
) -> tuple[ReasoningPanel | None, list[Chart]]:
    """Return the panel, None if the records lack what it needs, and the charts that are left."""
    every = list(drawn)
    own = [chart for chart in every if chart.name in REASONING]
    whole = digest["whole"]["estimates"]
    of_all = digest["by"] in ([], ["tier"])
    probed = of_all and whole.get("truncation_aoc", [None])[0] is not None
    known = (
        own
        or probed
        or any(
            whole[n][0] is not None and (n != "thinking_share" or whole[n][0] > 0)
            for n in _REASONED
            if n in whole
        )
    )
    if not known:
        return None, every
    rows = [
        {**family, "rows": [row for row in family["rows"] if row["name"] in FIGURES]}
        for family in side_rows(digest)
    ]
    panel = ReasoningPanel(
        own,
        figures_of(digest["whole"], {} if digest["sides"] else FIGURES)
        + figures_of(digest["whole"], _OF_ALL_TIERS if of_all else {}),
        [family for family in rows if family["rows"]],
    )
    return panel, [chart for chart in every if chart.name not in REASONING]
