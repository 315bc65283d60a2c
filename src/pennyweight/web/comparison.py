"""The pages of a comparison: sides next to each other, and two replies to one task."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from pennyweight.api.pages.run_list import StoredRun
from pennyweight.api.pages.side_by_side import (
    MAX_REPLY_CHARACTERS,
    MAX_RUNS,
    SIDE_COLUMNS,
    ChangedTasks,
    RunSide,
)
from pennyweight.errors import UsageError
from pennyweight.render.charts.catalogue import charts
from pennyweight.render.view import side_rows
from pennyweight.web.addresses import run_url, write_filter, write_key
from pennyweight.web.site import Shown, Site

MAX_CHOICES = 200
"""Runs to choose from."""
_SIDE_FORM = 'A side has the form ["run", {"tier": "T0"}].'


def read_side(text: str) -> RunSide:
    """Read a side from an address."""
    try:
        run, chosen = json.loads(text)
        pairs = tuple((n, v) for n, v in chosen.items() if n in SIDE_COLUMNS)
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise UsageError(_SIDE_FORM) from None
    if not isinstance(run, str) or not all(isinstance(v, str) for _, v in pairs):
        raise UsageError(_SIDE_FORM)
    return RunSide(run, pairs)


def write_side(side: RunSide) -> str:
    """Write a side for an address."""
    return json.dumps([side.run, dict(side.chosen)], separators=(",", ":"))


def compare(request: Request, site: Site) -> Shown:
    """Show sides next to each other, and the tasks that changed between two of them."""
    query = request.query_params
    everything = site.store.runs()
    names, base = dict.fromkeys(query.getlist("run")), query.get("baseline")
    chosen = sorted(
        (r for r in everything if r.id in names), key=lambda r: (r.id != base, r.created)
    )
    unknown = [n for n in names if n not in {r.id for r in everything}]
    missing = unknown + [r.id for r in chosen[MAX_RUNS:]]
    chosen = chosen[:MAX_RUNS]
    values: dict[str, Any] = {
        "runs": everything[:MAX_CHOICES],
        "chosen": [r.id for r in chosen],
        "unknown": unknown,
        "missing": missing,
        "max_runs": MAX_RUNS,
        "write_side": write_side,
    }
    if not chosen:
        return "compare.html", {**values, "table": None}
    table = site.comparisons.side_by_side(chosen)
    first, second = (read_side(query[n]) if query.get(n) else None for n in "ab")
    for side in filter(None, (first, second)):
        site.run(side.run)
    changed = site.comparisons.changed_tasks(table, first, second)
    link = chart_links(values["chosen"], table.sides)
    return "compare.html", {
        **values,
        "chosen_runs": chosen,
        "swapped": {r.id: _query(chosen, r.id) for r in chosen},
        "turned": _turned(chosen, changed),
        "table": table,
        "charts": charts(table.digest, link) if table.digest else [],
        "families": side_rows(table.digest) if table.digest else [],
        "a": changed.first,
        "b": changed.second,
        "changed": changed.changes,
    }


def _query(runs: Sequence[StoredRun], base: str, **more: str) -> str:
    """Write the query of a comparison with another baseline."""
    return urlencode([*(("run", r.id) for r in runs), ("baseline", base), *more.items()])


def _turned(runs: Sequence[StoredRun], changed: ChangedTasks) -> str:
    """Write the query of the same comparison in the other direction."""
    if changed.first is None or changed.second is None:
        return ""
    base = changed.second.run if len(runs) > 1 else runs[0].id
    return _query(runs, base, a=write_side(changed.second), b=write_side(changed.first))


def chart_links(
    runs: Sequence[str], sides: Sequence[tuple[RunSide, str]]
) -> Callable[[Mapping[str, Any]], str | None]:
    """Return a function that links the marks of charts to records or changed tasks."""
    known = {name.replace(" · ", " / "): side for side, name in sides}

    def link(wanted: Mapping[str, Any]) -> str | None:
        if "pair" not in wanted:
            return run_url(runs[0], "records", **write_filter(wanted)) if len(runs) == 1 else None
        later, earlier = (known.get(name.replace(" · ", " / ")) for name in wanted["pair"])
        if later is None or earlier is None:
            return None
        query = [*(("run", run) for run in runs), ("baseline", runs[0])]
        query += [("a", write_side(earlier)), ("b", write_side(later))]
        return f"/compare?{urlencode(query)}#changed"

    return link


def compare_task(request: Request, site: Site) -> Shown:
    """Show the replies of two sides to one task, with their differences marked."""
    query = request.query_params
    a, b = (read_side(query.get(n, "")) for n in "ab")
    for side in (a, b):
        site.run(side.run)
    task = query.get("task", "")
    found = site.comparisons.replies(a, b, task)
    runs = [("run", run) for run in dict.fromkeys((a.run, b.run))]
    back = [*runs, ("baseline", a.run), ("a", write_side(a)), ("b", write_side(b))]
    return "compare_task.html", {
        "a": a,
        "b": b,
        "task": task,
        "found": found,
        "max_characters": MAX_REPLY_CHARACTERS,
        "write_key": write_key,
        "back": urlencode(back),
    }
