"""Runs as a table or as data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pennyweight.render.format import MISSING, count, declared
from pennyweight.render.plain import cost_text, csv_table, markdown_table, one_line
from pennyweight.render.terminal import Terminal, borderless

if TYPE_CHECKING:
    from pennyweight.store.store import Run, Spending

Entry = "tuple[Run, dict[str, int], dict[str, Any]]"


def facts(run: Run, statuses: dict[str, int], spent: Spending) -> dict[str, Any]:
    """Give what a run is, as plain data."""
    return {
        "id": run.id,
        "suite": run.suite,
        "status": run.status,
        "attempts": run.attempts,
        "records": statuses,
        "spent": spent,
        "created": datetime.fromtimestamp(run.created, UTC).isoformat(timespec="seconds"),
        "path": run.place,
        "data_hash": run.data_hash,
        "settings": run.settings,
    }


def answered(statuses: dict[str, int]) -> int:
    """Count the attempts that were made: an error is none.

    >>> answered({"ok": 3, "truncated": 1, "error": 2})
    4
    """
    return sum(statuses.values()) - statuses.get("error", 0)


def _rows(entries: Sequence[Any]) -> list[list[str]]:
    rows = [["run", "suite", "status", "made", "errors", "cost"]]
    for run, statuses, spent in entries:
        made = f"{count(answered(statuses))}/{count(run.attempts)}"
        cost = cost_text(spent) or MISSING
        errors = count(statuses.get("error", 0))
        rows.append([run.id, one_line(run.suite, 24), run.status, made, errors, cost])
    return rows


def _plain_rows(entries: Sequence[Any]) -> list[list[Any]]:
    """Lay runs out for programs: plain numbers, and nothing where nothing is known."""
    rows: list[list[Any]] = [["run", "suite", "status", "made", "attempts", "errors", "cost_usd"]]
    for run, statuses, spent in entries:
        counts = [answered(statuses), run.attempts, statuses.get("error", 0)]
        rows.append([run.id, run.suite, run.status, *counts, spent["usd"]])
    return rows


def render(entries: Sequence[Any], format: str) -> str:  # noqa: A002
    """Write a list of runs; however narrow it is, no id is cut."""
    if format == "json":
        return _json({"runs": [facts(*entry) for entry in entries]})
    if format == "csv":
        return csv_table(_plain_rows(entries))
    if format == "markdown":
        return markdown_table(_rows(entries), right=(3, 4, 5))
    terminal = Terminal()
    table = borderless()
    head, *body = _rows(entries)
    for index, name in enumerate(head):
        whole = None if index else max((len(row[0]) for row in body), default=None)
        table.add_column(name, justify="right" if index > 2 else "left", min_width=whole)
    for row in body:
        table.add_row(*row)
    terminal.print(table)
    return terminal.text()


def render_one(
    run: Run,
    statuses: dict[str, int],
    spent: Spending,
    format: str,  # noqa: A002
    judgments: dict[str, Any] | None = None,
    scenarios: Sequence[dict[str, Any]] = (),
) -> str:
    """Write one run in full."""
    found = facts(run, statuses, spent)
    if judgments is not None:
        found["judgments"] = judgments
    if format == "json":
        own = {"scenarios": scenarios} if scenarios else {}
        return _json({**found, **own, "text": run.text})
    rows = [[k, v if isinstance(v, str) else json.dumps(v, default=str)] for k, v in found.items()]
    if format == "csv":
        return csv_table([["field", "value"], *rows])
    if format == "markdown":
        return markdown_table([["field", "value"], *rows])
    terminal = Terminal()
    table = borderless(header=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in found.items():
        table.add_row(name, one_line(_words(value), 400))
    terminal.print(table)
    terminal.print(f"pennyweight score {run.id} computes its metrics again.", style="dim")
    return terminal.text()


def _words(value: Any) -> str:
    """Write a fact for a person: what is not known is left out.

    >>> _words({"ok": 1200, "spent": None, "settings": {"seed": 1}})
    'ok 1,200, settings {"seed": 1}'
    """
    if isinstance(value, dict):
        told = ((k, v) for k, v in value.items() if v is not None)
        words = (
            f"{k} {json.dumps(v, default=str) if isinstance(v, dict) else _words(v)}"
            for k, v in told
        )
        return ", ".join(words) or "none"
    if isinstance(value, int) and not isinstance(value, bool):
        return count(value)
    if isinstance(value, float):
        return declared(value)
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
