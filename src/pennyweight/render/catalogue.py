"""The catalogue of measures and metrics, as a table, a page or data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pennyweight.catalogue import (
    FAMILIES,
    FURTHER_NEEDS,
    MEASURES,
    METRICS,
    canonical,
    chosen,
    columns_behind,
    standard,
)
from pennyweight.define import Declaration, Metric
from pennyweight.errors import UsageError, unknown
from pennyweight.render.plain import csv_table, json_text, markdown_table, wrapped
from pennyweight.scoring.groups import interval_text
from pennyweight.scoring.large.values import parts_text
from pennyweight.scoring.scores import Group
from pennyweight.text.format import plural

Row = TypeVar("Row")
_OVER = {
    "scored": "attempts whose status is not error",
    "all": "all attempts",
    "tasks": "tasks, from their attempts whose status is not error",
}
_REPEATED = "several attempts at a task"
REPEATS_SHOWN = ("pass_at_k", "pass_hat_k", "majority_accuracy")
"""The metrics of repeated attempts that a table of all metrics shows."""

OF_LABELS = ("precision", "recall", "f1")
"""The metrics that mean something only if targets are labels."""


TWINS = {
    "usr": "error_rate",
    "ece_mean_confidence": "ece_agreement",
    "auroc_mean_confidence": "auroc_agreement",
}
"""Metrics that say nothing of their own where they equal another one."""


def twins(values: Mapping[str, Sequence[object]]) -> set[str]:
    """Return the metrics whose values are those of a metric that says the same.

    >>> twins({"usr": [0.5], "error_rate": [0.5], "ece_agreement": [0.1]})
    {'usr'}
    """
    return {name for name, other in TWINS.items() if values.get(name, 0) == values.get(other, 1)}


def tabled(known: Mapping[str, bool], *, labelled: bool = True) -> list[str]:
    """Return the metrics that a table shows, given which have a value: those asked for by name.

    Of all metrics, those of repeated attempts are shown as far as tasks were repeated, and those of
    labels if targets are labels.
    """
    if not set(standard()) <= set(known):
        return list(known)
    family = {name: METRICS[name].family if name in METRICS else "" for name in known}
    return [
        name
        for name, there in known.items()
        if (family[name] != "repeats" or (there and name in REPEATS_SHOWN))
        and (labelled or name not in OF_LABELS)
    ]


def render(name: str | None, format: str) -> str:  # noqa: A002
    """Write the whole catalogue, or the metric and the measure of one name."""
    if name is None:
        if format == "json":
            every = {"measures": MEASURES.values(), "metrics": METRICS.values()}
            return json_text({kind: [facts(d) for d in all_] for kind, all_ in every.items()})
        if format == "table":
            return _table()
        return (csv_table if format == "csv" else markdown_table)(_overview())
    found = named(name)
    if format == "json":
        return json_text({_kind(d): facts(d) for d in found})
    if format == "csv":
        rows = [[_kind(d), *map(str, row)] for d in found for row in facts(d).items()]
        return csv_table([["kind", "field", "value"], *rows])
    if format == "markdown":
        return "\n".join(page(d) for d in found)
    return "\n".join(_card(d) for d in found)


def named(name: str) -> list[Declaration]:
    """Find the metric and the measure of a name; both may exist."""
    if name not in METRICS and name not in MEASURES:
        name = canonical(name) if canonical(name) in METRICS else name.casefold()
    found: list[Declaration] = [where[name] for where in (METRICS, MEASURES) if name in where]
    if not found:
        known = [*METRICS, *MEASURES]
        raise UsageError(unknown("Metric", name, known, "'pennyweight metrics' lists them all."))
    return found


def metric_facts() -> dict[str, dict[str, Any]]:
    """Return the facts about every metric, by name."""
    return {name: facts(metric) for name, metric in METRICS.items()}


def facts(declaration: Declaration) -> dict[str, Any]:
    """Return a declaration as plain data."""
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
        "also": list(declaration.also),
        "formula": declaration.formula,
        "range": list(declaration.range) if declaration.range else None,
        "better": declaration.better,
        "interval": interval_text(declaration),
        "large_tables": parts_text(declaration),
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
    """Describe a declaration in labelled texts."""

    def quoted(names: Any) -> str:
        return ", ".join(f"{code}{n}{code}" for n in names)

    rows = []
    if isinstance(declaration, Metric):
        if declaration.also:
            rows.append(("Also called", quoted(declaration.also)))
        rows.append(("Formula", f"{code}{declaration.formula}{code}"))
        rows.append(("Better", declaration.better or "neither"))
        if declaration.range:
            low, high = declaration.range
            ends = ("−∞" if low is None else f"{low:g}", "∞" if high is None else f"{high:g}")
            rows.append(("Range", " to ".join(ends)))
    if declaration.unit:
        rows.append(("Unit", declaration.unit))
    rows.append(("Reads", quoted(declaration.inputs) or "the metrics named in its weights"))
    if isinstance(declaration, Metric):
        if declaration.needs != declaration.inputs and declaration.needs:
            rows.append(("Leaves out", f"records without {quoted(declaration.needs)}"))
        rows.append(("Over", _OVER[declaration.over]))
        rows.append(("Interval", interval_text(declaration)))
        rows.append(("Large tables", parts_text(declaration)))
    if declaration.options:
        settings = (f"{n}={d}" for n, d in declaration.options.items())
        rows.append(("Options", quoted(settings)))
    rows.append(("Specification", declaration.spec or "—"))
    return rows


def _card(declaration: Declaration) -> str:
    """Write a declaration for the terminal."""
    from rich.text import Text  # noqa: PLC0415 - most of this module is used without a terminal

    from pennyweight.render.terminal import Terminal, labelled  # noqa: PLC0415

    terminal = Terminal()
    terminal.print(Text.assemble((declaration.name, "bold"), (f"  {_kind(declaration)}", "dim")))
    for text in filter(None, (declaration.summary, *declaration.details.split("\n\n"))):
        terminal.print("\n".join(wrapped(text.replace("`", ""), width=terminal.width)))
    terminal.print(labelled(_labelled(declaration)))
    terminal.print("Example", style="dim")
    for line in declaration.example.splitlines():
        more = "  ...     " if line.startswith((">>>", "...")) else "  "
        for part in textwrap.wrap(
            line, terminal.width, initial_indent="  ", subsequent_indent=more
        ):
            terminal.print(part)
    return terminal.text()


def _table() -> str:
    from rich.text import Text  # noqa: PLC0415

    from pennyweight.render.terminal import Terminal, borderless  # noqa: PLC0415

    terminal = Terminal()
    table = borderless()
    table.add_column("metric", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what it says")
    arrows = {"higher": "↑", "lower": "↓", None: ""}
    for title, members in by_family({m.name: m for m in chosen(None)}):
        table.add_row(Text(title, style="bold"))
        for metric in members:
            table.add_row(f"  {metric.name}", arrows[metric.better], metric.summary)
    terminal.print(table)
    terminal.print(
        "↑ higher is better, ↓ lower. 'pennyweight metrics NAME' explains one.",
        style="dim",
    )
    terminal.print(f"Measures of one record: {', '.join(MEASURES)}.", style="dim")
    return terminal.text()


def by_family(rows: Mapping[str, Row]) -> list[tuple[str, list[Row]]]:
    """Group what belongs to metrics, by their names, under the titles of their families."""
    families: dict[str, list[Row]] = {family: [] for family in FAMILIES}
    for name, row in rows.items():
        families.setdefault(METRICS[name].family, []).append(row)
    return [(FAMILIES.get(f, f.capitalize()), found) for f, found in families.items() if found]


def _overview() -> list[list[str]]:
    rows = [["metric", "family", "better", "unit", "formula", "what it says"]]
    rows += [[m.name, m.family, m.better or "", m.unit, m.formula, m.summary] for m in chosen(None)]
    return rows


def _kind(declaration: Declaration) -> str:
    return "metric" if isinstance(declaration, Metric) else "measure"


def why_missing(name: str, group: Group) -> str:
    """Explain why a metric has no value."""
    metric = METRICS[name]
    if metric.open_parts:
        return "needs --weight for metrics that have a value"
    if metric.parts:
        missing = [n for n in metric.parts if n not in group.estimates or group[n].value is None]
        return f"needs {', '.join(missing)}"
    if group.records and group.errors == group.records and metric.over != "all":
        return "no attempt could be made"
    if metric.over == "tasks":
        if group.repeats is None:
            return f"needs {_REPEATED}"
        if group.repeats.k > group.repeats.most:
            return f"no task has {plural(group.repeats.k, 'attempt')}"
    lacking = group[name].lacks or _not_counted(metric, group)
    if not lacking and name not in FURTHER_NEEDS:
        return "not defined for these records"
    return f"needs {_listed(lacking) if lacking else _further(metric)}"


def _not_counted(metric: Metric, group: Group) -> Sequence[str]:
    """Guess what a metric lacks from the others: what none of those with a value needs."""
    if (group[metric.name].records and metric.needs) or metric.name in FURTHER_NEEDS:
        return ()
    counted = (METRICS[n].needs for n, e in group.estimates.items() if e.records)
    present = {column for needs in counted for column in needs}
    needed = metric.needs or metric.inputs
    return [column for column in needed if column not in present] or needed


def _listed(inputs: Iterable[str]) -> str:
    return " and ".join(columns_behind(inputs))


def needs(name: str) -> str:
    """List what a metric needs, for any records."""
    metric = METRICS[name]
    if metric.over == "tasks":
        return f"{_listed(metric.needs or metric.inputs)} of {_REPEATED}"
    if metric.open_parts:
        return "weights"
    listed = _listed(metric.parts or metric.needs or metric.inputs)
    return f"{listed}, and {_further(metric)}" if name in FURTHER_NEEDS else listed


def _further(metric: Metric) -> str:
    return FURTHER_NEEDS[metric.name] + (" (--by subject)" if metric.across else "")
