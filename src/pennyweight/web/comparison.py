"""The pages of a comparison: sides next to each other, and two replies to one task."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from pennyweight.api.pages.run_list import StoredRun
from pennyweight.api.pages.run_sides import RunSide
from pennyweight.api.pages.side_by_side import (
    FILTERED,
    MAX_REPLY_CHARACTERS,
    MAX_RUNS,
)
from pennyweight.errors import UsageError
from pennyweight.render.charts.catalogue import charts
from pennyweight.render.view import difference_grid, side_rows
from pennyweight.web.addresses import run_url, write_filter, write_key
from pennyweight.web.site import Shown, Site

MAX_CHOICES = 200
"""Runs to choose from."""
_SIDE_FORM = 'A side has the form ["run", {"tier": "T0"}].'


def read_side(text: str) -> RunSide:
    """Read a side from an address."""
    try:
        runs, chosen = json.loads(text)
        pairs = tuple((n, v) for n, v in chosen.items() if n in FILTERED)
        names = (runs,) if isinstance(runs, str) else tuple(runs)
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise UsageError(_SIDE_FORM) from None
    texts = [*names, *(value for _, value in pairs)]
    if not names or not all(isinstance(text, str) for text in texts):
        raise UsageError(_SIDE_FORM)
    return RunSide(names, pairs)


def write_side(side: RunSide) -> str:
    """Write a side for an address."""
    runs = side.runs[0] if len(side.runs) == 1 else side.runs
    return json.dumps([runs, dict(side.chosen)], separators=(",", ":"))


def compare(request: Request, site: Site) -> Shown:
    """Show sides next to each other, and the test of two of them."""
    query = request.query_params
    everything, names = site.store.runs(), dict.fromkeys(query.getlist("run"))
    chosen = sorted((r for r in everything if r.id in names), key=lambda r: r.created)
    unknown = [n for n in names if n not in {r.id for r in everything}]
    missing = unknown + [r.id for r in chosen[MAX_RUNS:]]
    chosen = chosen[:MAX_RUNS]
    wanted = query.get("find", "").lower().split()
    others = [r for r in everything if r not in chosen and _fits(r, wanted)]
    values: dict[str, Any] = {
        "any": bool(everything),
        "others": others[:MAX_CHOICES],
        "more": len(others) - MAX_CHOICES,
        "find": query.get("find", ""),
        "chosen": chosen,
        "unknown": unknown,
        "missing": missing,
        "max_runs": MAX_RUNS,
        "write_side": write_side,
        "searched": _searched,
    }
    if not chosen:
        return "compare.html", {**values, "table": None}
    first, second = (read_side(query[n]) if query.get(n) else None for n in "ab")
    for side in filter(None, (first, second)):
        for run in side.runs:
            site.run(run)
    by = [name for name in query.get("by", "").split(",") if name]
    table = site.comparisons.side_by_side(chosen, by, first, second)
    ids = [r.id for r in chosen]
    shown = [(side, title) for title, side in table.shown.items()]
    link = chart_links(ids, shown, table.letters, table.shown_by)
    sides = {title: side for side, title in table.sides}
    compared = table.digest["comparison"] if table.digest else None

    def pair_query(a: str, b: str) -> str:
        if a in sides and b in sides:
            return _query(ids, table.by, sides[a], sides[b])
        return _query(ids, table.shown_by, table.shown[a], table.shown[b])

    return "compare.html", {
        **values,
        "table": table,
        "asked": second is not None,
        "sides": sides,
        "pair_query": pair_query,
        "grid": difference_grid(compared["pairs"]) if compared else None,
        "charts": charts(table.digest, link) if table.digest else [],
        "families": side_rows(table.digest) if table.digest else [],
    }


def _searched(run: StoredRun) -> str:
    """Return the text of a run that is searched, here and while somebody types."""
    return " ".join((run.id, run.suite, *run.sides["subject"], *run.sides["tier"]))


def _fits(run: StoredRun, wanted: Sequence[str]) -> bool:
    """Whether a run has these words in its id, suite, subjects or tiers."""
    text = _searched(run).lower()
    return all(word in text for word in wanted)


def _query(runs: Sequence[str], by: Sequence[str], first: RunSide, second: RunSide) -> str:
    """Write the query of a comparison of two sides."""
    query = [*(("run", run) for run in runs), ("by", ",".join(by))]
    return urlencode([*query, ("a", write_side(first)), ("b", write_side(second))])


def chart_links(
    runs: Sequence[str],
    sides: Sequence[tuple[RunSide, str]],
    letters: Mapping[str, str] | None = None,
    by: Sequence[str] = (),
) -> Callable[[Mapping[str, Any]], str | None]:
    """Return a function that links the marks of charts to records, or to the test of two sides."""
    known = {name.replace(" · ", " / "): side for side, name in sides}
    ids = {letter: run for run, letter in (letters or {}).items()}

    def link(wanted: Mapping[str, Any]) -> str | None:
        if "pair" not in wanted:
            where = dict(wanted)
            run = ids.get(where.pop("run", "")) or (runs[0] if len(runs) == 1 else None)
            return run_url(run, "records", **write_filter(where)) if run else None
        later, earlier = (known.get(name.replace(" · ", " / ")) for name in wanted["pair"])
        if later is None or earlier is None:
            return None
        columns = by or [name for name, _ in earlier.chosen]
        return f"/compare?{_query(runs, columns, earlier, later)}#pair"

    return link


def compare_task(request: Request, site: Site) -> Shown:
    """Show the replies of two sides to one task, with their differences marked."""
    query = request.query_params
    a, b = (read_side(query.get(n, "")) for n in "ab")
    for run in (*a.runs, *b.runs):
        site.run(run)
    task = query.get("task", "")
    found = site.comparisons.replies(a, b, task)
    runs = list(dict.fromkeys((*a.runs, *b.runs)))
    by = [*(["run"] if a.runs != b.runs else []), *dict(a.chosen)]
    return "compare_task.html", {
        "a": a,
        "b": b,
        "task": task,
        "found": found,
        "max_characters": MAX_REPLY_CHARACTERS,
        "write_key": write_key,
        "back": _query(runs, by, a, b),
    }
