"""What each task contributes to a comparison."""

from __future__ import annotations

from pennyweight.errors import UsageError
from pennyweight.render.comparison import TEXT_WIDTH, sides_table
from pennyweight.render.format import unit_of
from pennyweight.render.plain import (
    csv_table,
    json_text,
    markdown_table,
    one_line,
    side_line,
    wrapped,
)
from pennyweight.render.terminal import Terminal
from pennyweight.scoring.comparison import Comparison
from pennyweight.text.format import difference, points, quantity
from pennyweight.text.notation import SHARE


def render(comparison: Comparison, format: str) -> str:  # noqa: A002
    """Write what each common task contributes, the most influential first."""
    common = comparison.common
    if not common:
        raise UsageError("The sides have no tasks in common, so there are no tasks to list.")
    effects = common.effects(comparison.baseline)
    if format == "json":
        return json_text({"tasks": common.to_dict(comparison.baseline, len(effects))})
    head = ["task", *common.sides, "mean", "difficulty", "discrimination", "influence", "on"]
    rows = [
        [e.task, *e.values, e.mean, e.difficulty, e.discrimination, e.influence, e.side]
        for e in effects
    ]
    if format == "csv":
        return csv_table([head, *rows])
    unit = unit_of(common.metric)
    keep = [i for i in range(len(head)) if any(row[i] is not None for row in rows)]
    shown = [
        [
            one_line(e.task, 40),
            *(quantity(v, unit) for v in (*e.values, e.mean)),
            difference(e.difficulty),
            difference(e.discrimination),
            points(e.influence) if unit == SHARE else difference(e.influence),
            side_line(e.side, 24),
        ]
        for e in effects
    ]
    cells = [[row[i] for i in keep] for row in (head, *shown)]
    if format == "markdown":
        return markdown_table(cells, right=range(1, len(keep) - 1))
    terminal = Terminal()
    terminal.print(sides_table(cells[0], cells[1:]))
    text = (
        f"{common.metric} of each side and their mean. discrimination: correlation with the other "
        "tasks. influence: how far the task moves the difference between the side in the last "
        f"column and {comparison.baseline}."
    )
    terminal.print("\n".join(wrapped(text, width=min(terminal.width, TEXT_WIDTH))), style="dim")
    return terminal.text()
