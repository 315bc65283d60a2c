"""The pages of a run of a site: its conclusion, leaderboard, grid, charts and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pennyweight.api.pages.board_verdicts import board_verdicts
from pennyweight.api.pages.task_grid import GridChoice, grid_columns, grid_of, grid_page
from pennyweight.api.runs import status_of
from pennyweight.api.static_site.lists import RecordLists
from pennyweight.api.static_site.places import page_file, task_file
from pennyweight.render.charts.catalogue import charts
from pennyweight.render.page.board import BoardChoice
from pennyweight.render.page.conclusion import conclusion
from pennyweight.render.page.grid import (
    FILTERS,
    PASSES,
    GridView,
    filter_tabs,
    grid_lines,
    rows_for,
)
from pennyweight.render.page.leaderboard import board_of, leaderboard
from pennyweight.render.page.reasoning_panel import reasoning_panel
from pennyweight.render.page.what_failed import what_failed
from pennyweight.render.repeats import repeat_words
from pennyweight.render.static_site import page_text
from pennyweight.render.view import families, key_figures, narrowed_to, run_facts, side_rows
from pennyweight.store.store import Store, StoredRun

MAX_INLINE_SIDES = 9
"""The metrics of more sides are on pages of their own, this many on each."""
FIRST_CHARTS = ("sides", "frontier")
"""With many sides, the other charts are on the first page of metrics."""
CELLS = 2_400
"""About how many cells a page of the grid has."""
MAX_GRID_ROWS = 200
ROOT = "../../"


@dataclass(frozen=True, slots=True)
class SiteRun:
    """A run of a site; without a digest, `problem` says why it has no numbers."""

    run: StoredRun
    store: Store
    digest: Mapping[str, Any] | None
    records: bool = True
    """Whether its records have pages."""
    problem: str = ""
    title: str | None = None
    """The title that somebody gave it."""

    @property
    def status(self) -> str:
        """The status that pages show."""
        return status_of(self.run, self.store)


def run_pages(at: SiteRun, lists: RecordLists) -> Iterator[tuple[str, str]]:
    """Yield the page of a run, and those of its grid and its metrics."""
    digest = at.digest
    values: dict[str, Any] = {
        "run": at.run,
        "title": at.title,
        "status": at.status,
        "problem": at.problem,
        "narrowed": narrowed_to(at.run),
        "digest": digest,
        "records": lists.link({}, "Records") if at.records and digest else "",
        "facts": run_facts(replace(at.run, status=at.status), {}, {}, live=True),
    }
    if digest is None:
        yield "index.html", page_text("site_run.html", ROOT, values)
        return
    side = lists.side if at.records else _nowhere
    anything = lists.link if at.records else _nowhere
    inline = len(digest["sides"]) <= MAX_INLINE_SIDES
    board = board_of(digest)
    drawn = charts(digest, side)
    panel, others = reasoning_panel(digest, drawn) if inline else (None, drawn)
    values |= {
        "facts": run_facts(replace(at.run, status=at.status), digest["statuses"], digest["spent"]),
        "conclusion": conclusion(digest),
        "figures": [] if digest["sides"] else key_figures(digest["whole"]),
        "board": leaderboard(
            digest,
            BoardChoice(every=True),
            verdicts=board_verdicts(at.store, at.run, board) if board else {},
            link=side,
        ),
        "grid": _grid(at, "", 1, rows_for(len(board["sides"]) if board else 1)),
        "failed": anything({"status": "error"}) if digest["failures"] else None,
        "weak": what_failed(digest, anything),
        "inline": inline,
        "charts": [c for c in others if inline or c.name in FIRST_CHARTS],
        "reasoning": panel,
        "families": families(digest["whole"]),
        "sides": side_rows(digest) if inline else [],
        "repeats": repeat_words(digest),
    }
    yield "index.html", page_text("site_run.html", ROOT, values)
    yield from _grid_pages(at)
    if not inline:
        rest = [c for c in drawn if c.name not in FIRST_CHARTS]
        yield from _metric_pages(at.run, digest, rest)


def _nowhere(wanted: Mapping[str, Any]) -> str | None:
    del wanted
    return None


def _grid_name(only: str) -> str:
    return f"grid-{only}" if only else "grid"


def grid_rows_for(sides: int) -> int:
    """Return how many tasks a page of the grid has.

    >>> grid_rows_for(1), grid_rows_for(36), grid_rows_for(200)
    (200, 66, 12)
    """
    return max(8, min(MAX_GRID_ROWS, CELLS // max(1, sides)))


def _grid_pages(at: SiteRun) -> Iterator[tuple[str, str]]:
    for only in ("", *FILTERS):
        number, more = 1, True
        while more:
            view = _grid(at, only, number)
            if view is None:
                return
            page = page_text("site_grid.html", ROOT, {"run": at.run, "grid": view})
            yield page_file(_grid_name(only), number), page
            number, more = number + 1, bool(view.later)


def _grid(at: SiteRun, only: str, number: int, first: int = 0) -> GridView | None:
    """Return a page of the grid, or its first tasks; None where there is nothing to show."""
    digest = at.digest or {}
    board = board_of(digest)
    grid = grid_of(digest, board["by"] if board else ())
    if grid is None or not grid["tasks"]:
        return None
    size = first or grid_rows_for(len(grid["sides"]))
    choice = GridChoice(only=only, start=(number - 1) * size)
    rows = grid_page(at.store, at.run.id, grid, choice, size)
    sides, columns = grid_columns(digest, grid, lambda _: "")
    base = "t/" if at.records else ""
    total = grid[only] if only else grid["tasks"]
    name = _grid_name(only)

    def address(changed: Mapping[str, str]) -> str:
        return page_file(_grid_name(changed.get("only", only)), 1)

    passes = digest["headline"] == "pass_rate"
    return GridView(
        sides=sides,
        lines=grid_lines(rows, sides, columns, base, task_file if at.records else lambda _: ""),
        orders=(),
        filters=filter_tabs(grid, only, address, passes=passes),
        sought=(PASSES if passes else FILTERS)[only][1] if only else "tasks",
        passes=passes,
        tasks=total,
        every=grid["tasks"],
        start=choice.start,
        size=size,
        columns=columns,
        single=all(c is None or c.attempts <= 1 for row in rows for c in row.cells),
        api="",
        base=base,
        earlier=page_file(name, number - 1) if number > 1 else "",
        later=page_file(name, number + 1) if not first and choice.start + size < total else "",
        alone=page_file(name, 1),
    )


def _metric_pages(
    run: StoredRun, digest: Mapping[str, Any], drawn: list[Any]
) -> Iterator[tuple[str, str]]:
    """Yield the metrics of some sides at a time, the best first."""
    view = leaderboard({**digest, "boards": []}, BoardChoice(every=True))
    known = {side["name"]: side for side in digest["sides"]}
    order = [known[row.name] for row in view.rows] if view else []
    starts = range(0, len(order), MAX_INLINE_SIDES)
    for number, first in enumerate(starts, 1):
        shown = {**digest, "sides": order[first : first + MAX_INLINE_SIDES]}
        values = {
            "run": run,
            "shown": shown,
            "sides": side_rows(shown),
            "charts": drawn if number == 1 else [],
            "first": first + 1,
            "total": len(order),
            "previous": page_file("metrics", number - 1) if number > 1 else "",
            "next": page_file("metrics", number + 1) if number < len(starts) else "",
        }
        yield page_file("metrics", number), page_text("site_metrics.html", ROOT, values)
