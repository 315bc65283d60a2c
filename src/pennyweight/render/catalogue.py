"""The catalogue of measures and metrics, as a table, a page or data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from rich.text import Text

from pennyweight.catalogue import FAMILIES, MEASURES, METRICS, chosen
from pennyweight.define import Declaration, Metric
from pennyweight.errors import UsageError, unknown
from pennyweight.render.plain import csv_table, markdown_table
from pennyweight.render.terminal import Terminal, borderless
from pennyweight.scoring.groups import interval_text
from pennyweight.scoring.scores import Group

_FURTHER_NEEDS = {"sce_normalized": "two different answers"}
"""What a metric needs although its columns are there."""

SOURCES = {
    "correct": "answer and target",
    "normalized_answer": "answer",
    "normalized_target": "target",
    "cot_tokens": "cot",
    "cot_chars": "cot",
    "step_count": "cot",
    "ra_ratio": "cot",
    "self_correcting": "cot",
    "total_tokens": "prompt_tokens and completion_tokens",
    "scenario_score": "observed",
    "quality": "a score or answers",
    "composite_score": "passed and impl_rate",
    "judges": "judge_scores",
    "judge_mean": "judge_scores",
    "judge_variance": "judge_scores",
    "judge_difference": "judge_scores",
}
"""The columns behind a measure that is not itself a column of the record."""


def render(name: str | None, format: str) -> str:  # noqa: A002
    """Write the whole catalogue, or all that bears one name, in one of the formats."""
    if name is None:
        everything: dict[str, Callable[[], str]] = {
            "json": lambda: _json({"measures": _all(MEASURES), "metrics": _all(METRICS)}),
            "csv": lambda: csv_table(_overview()),
            "markdown": lambda: markdown_table(_overview()),
            "table": _table,
        }
        return everything[format]()
    found = named(name)
    if format == "json":
        return _json({_kind(d): facts(d) for d in found})
    if format == "csv":
        rows = [[_kind(d), *map(str, row)] for d in found for row in facts(d).items()]
        return csv_table([["kind", "field", "value"], *rows])
    if format == "markdown":
        return "\n".join(page(d) for d in found)
    return "\n".join(_card(d) for d in found)


def named(name: str) -> list[Declaration]:
    """Find the metric and the measure of a name; there may be both."""
    found: list[Declaration] = [where[name] for where in (METRICS, MEASURES) if name in where]
    if not found:
        known = [*METRICS, *MEASURES]
        raise UsageError(unknown("Metric", name, known, "'pennyweight metrics' lists them all."))
    return found


def metric_facts() -> dict[str, dict[str, Any]]:
    """Return the facts about every metric, by name."""
    return {name: facts(metric) for name, metric in METRICS.items()}


def facts(declaration: Declaration) -> dict[str, Any]:
    """Give all that a declaration says, as plain data."""
    common = {
        "name": declaration.name,
        "family": declaration.family,
        "summary": declaration.summary,
        "details": declaration.details,
        "unit": declaration.unit,
        "reads": list(declaration.inputs),
        "options": dict(declaration.options),
        "example": declaration.example,
        "spec": declaration.spec,
    }
    if not isinstance(declaration, Metric):
        return common
    return common | {
        "formula": declaration.formula,
        "range": list(declaration.range) if declaration.range else None,
        "better": declaration.better,
        "interval": interval_text(declaration),
        "needs": list(declaration.needs or declaration.parts),
        "over": declaration.over,
    }


def page(declaration: Declaration, level: int = 2) -> str:
    """Write a declaration as a Markdown section."""
    lines = [f"{'#' * level} `{declaration.name}`", "", declaration.summary, ""]
    if declaration.details:
        lines += [declaration.details, ""]
    lines += [f"- {label}: {text}" for label, text in _labelled(declaration, code="`")]
    lines += ["", "```pycon", declaration.example, "```", ""]
    return "\n".join(lines)


def _labelled(declaration: Declaration, code: str = "") -> list[tuple[str, str]]:
    """List what is worth saying about a declaration, with labels."""

    def quoted(names: Any) -> str:
        return ", ".join(f"{code}{n}{code}" for n in names)

    rows = []
    if isinstance(declaration, Metric):
        rows.append(("Formula", f"{code}{declaration.formula}{code}"))
        rows.append(("Better", declaration.better or "neither way"))
        if declaration.range:
            low, high = ("∞" if x is None else f"{x:g}" for x in declaration.range)
            rows.append(("Range", f"{low} to {high}"))
    if declaration.unit:
        rows.append(("Unit", declaration.unit))
    rows.append(("Reads", quoted(declaration.inputs) or "the metrics named in its weights"))
    if isinstance(declaration, Metric):
        if declaration.needs != declaration.inputs and declaration.needs:
            rows.append(("Leaves out", f"records without {quoted(declaration.needs)}"))
        over = "all attempts" if declaration.over == "all" else "attempts whose status is not error"
        rows.append(("Over", over))
        rows.append(("Interval", interval_text(declaration)))
    if declaration.options:
        settings = (f"{n}={d}" for n, d in declaration.options.items())
        rows.append(("Options", quoted(settings)))
    rows.append(("Specification", declaration.spec or "—"))
    return rows


def _card(declaration: Declaration) -> str:
    """Write a declaration for the terminal."""
    terminal = Terminal()
    terminal.print(Text.assemble((declaration.name, "bold"), (f"  {_kind(declaration)}", "dim")))
    terminal.print(declaration.summary)
    if declaration.details:
        terminal.print(declaration.details)
    table = borderless(header=False)
    table.add_column(style="dim")
    table.add_column()
    for row in _labelled(declaration):
        table.add_row(*row)
    terminal.print(table)
    terminal.print("Example", style="dim")
    for line in declaration.example.splitlines():
        terminal.print(f"  {line}")
    return terminal.text()


def _table() -> str:
    terminal = Terminal()
    families = {**FAMILIES, **{m.family: m.family.capitalize() for m in METRICS.values()}}
    families.update(FAMILIES)
    table = borderless()
    table.add_column("metric", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what it says")
    arrows = {"higher": "↑", "lower": "↓", None: ""}
    for family, title in families.items():
        members = [m for m in chosen(None) if m.family == family]
        if members:
            table.add_row(Text(title, style="bold"))
        for metric in members:
            table.add_row(f"  {metric.name}", arrows[metric.better], metric.summary)
    terminal.print(table)
    terminal.print(
        "↑ higher is better, ↓ lower is better. 'pennyweight metrics NAME' says more.", style="dim"
    )
    terminal.print(f"Measures of one record: {', '.join(MEASURES)}.", style="dim")
    return terminal.text()


def _overview() -> list[list[str]]:
    rows = [["metric", "family", "better", "unit", "formula", "what it says"]]
    rows += [[m.name, m.family, m.better or "", m.unit, m.formula, m.summary] for m in chosen(None)]
    return rows


def _all(where: Any) -> list[dict[str, Any]]:
    return [facts(d) for d in where.values()]


def _kind(declaration: Declaration) -> str:
    return "metric" if isinstance(declaration, Metric) else "measure"


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def why_missing(name: str, group: Group) -> str:
    """Explain why a metric has no value."""
    metric = METRICS[name]
    if metric.open_parts:
        return "name its parts with --weight, each with a value"
    if metric.parts:
        missing = [n for n in metric.parts if n not in group.estimates or group[n].value is None]
        return f"needs {', '.join(missing)}"
    if group[name].records == 0 or not metric.needs:
        return f"needs {needed_columns(name, metric.inputs)}"
    return "not defined for these records"


def needed_columns(name: str, inputs: Iterable[str]) -> str:
    """List the columns that a metric with these inputs needs."""
    columns = dict.fromkeys(SOURCES.get(n, n) for n in inputs)
    return _FURTHER_NEEDS.get(name) or " and ".join(columns)


def needs(name: str) -> str:
    """List what a metric needs, whatever the records are."""
    metric = METRICS[name]
    if metric.open_parts:
        return "weights"
    return needed_columns(name, metric.parts or metric.needs or metric.inputs)
