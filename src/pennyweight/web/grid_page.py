"""The grid of a run: tasks by sides, on the run's page and on a page of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request

from pennyweight.api.pages.run_list import RunState
from pennyweight.api.pages.task_grid import GridChoice, grid_columns, grid_of, grid_page
from pennyweight.errors import UsageError
from pennyweight.render.page.grid import (
    FILTERS,
    PASSES,
    GridView,
    filter_tabs,
    grid_lines,
    order_tabs,
    rows_for,
)
from pennyweight.render.page.leaderboard import board_of
from pennyweight.web.addresses import run_url
from pennyweight.web.site import Shown, Site

CHOICES = ("by", "rows", "only", "from")
"""What an address says about the grid."""


def grid_view(
    site: Site, run: str, digest: Mapping[str, Any], query: Mapping[str, str]
) -> GridView | None:
    """Return the grid as it was asked for; None where there is nothing to show."""
    given = {name: query[name] for name in CHOICES if query.get(name)}
    place = ("grid", *given.items())
    return site.once(digest, place, lambda: _grid_view(site, run, digest, given))


def _grid_view(
    site: Site, run: str, digest: Mapping[str, Any], given: Mapping[str, str]
) -> GridView | None:
    board = board_of(digest, given.get("by", ""))
    grid = grid_of(digest, board["by"] if board else ())
    if grid is None or not grid["tasks"]:
        return None
    choice, size = GridChoice.of(given), rows_for(len(grid["sides"]))
    rows = grid_page(site.store, run, grid, choice, size)
    place = ("grid sides", *grid["by"])
    sides, columns = site.once(digest, place, lambda: grid_columns(digest, grid, _side_query))

    def address(changed: Mapping[str, str]) -> str:
        chosen = {**given, **changed}
        return run_url(run, "grid", **{n: v for n, v in chosen.items() if v})

    base = run_url(run, "task") + "?task="
    total = grid[choice.only] if choice.only else grid["tasks"]
    later = choice.start + size
    passes = digest["headline"] == "pass_rate"
    return GridView(
        sides=sides,
        lines=grid_lines(rows, sides, columns, base, _quoted),
        orders=order_tabs(choice.order, len(grid["sides"]), address),
        sought=(PASSES if passes else FILTERS)[choice.only][1] if choice.only else "tasks",
        passes=passes,
        filters=filter_tabs(grid, choice.only, address, passes=passes),
        tasks=total,
        every=grid["tasks"],
        start=choice.start,
        size=size,
        columns=columns,
        single=all(c is None or c.attempts <= 1 for row in rows for c in row.cells),
        api="/api" + address({"from": ""}),
        base=base,
        alone=run_url(run, "grid"),
        earlier=address({"from": str(max(0, choice.start - size)) if choice.start > size else ""})
        if choice.start
        else "",
        later=address({"from": str(later)}) if later < total else "",
    )


def _side_query(group: Mapping[str, Any]) -> str:
    return "&" + urlencode(group, errors="replace")


def _quoted(task: str) -> str:
    return quote(task, safe="", errors="replace")


def grid(request: Request, site: Site, now: RunState) -> Shown:
    """Show the grid of a run on a page of its own."""
    run, cached = now.run, site.digests.get(now.run, state=now)
    if cached.digest is None:
        raise UsageError(cached.problem or "The metrics of this run are still being computed.")
    view = grid_view(site, run.id, cached.digest, request.query_params)
    return "grid_page.html", {"run": run, "grid": view}
