"""The grid of a run: each task, and the result of each side over its attempts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from pennyweight.render.page import visible
from pennyweight.render.page.board import BoardChoice
from pennyweight.render.page.grid import GridCell, GridRow, GridSide, column_heads
from pennyweight.render.page.leaderboard import board_of, leaderboard
from pennyweight.scoring.chart_data import has
from pennyweight.scoring.digest import MEASURES, GridDigest, RecordsDigest
from pennyweight.store.store import Store
from pennyweight.store.task_grid import COLUMNS, FILTERS, ORDERS, grid_rows, save_grid

SIDE_COLUMNS = ("subject", "tier")
MAX_ROWS = 200
"""Tasks that one request returns."""
MAX_SIDES = 200


@dataclass(frozen=True, slots=True)
class GridChoice:
    """What a reader chose: the order, the filter, and where the rows begin."""

    order: str = "difficulty"
    only: str = ""
    start: int = 0

    @classmethod
    def of(cls, query: Mapping[str, str]) -> GridChoice:
        """Read a choice from an address; what makes no sense has no effect."""
        order, only, start = (query.get(name, "") for name in ("rows", "only", "from"))
        return cls(
            order if order in ORDERS else "difficulty",
            only if only in FILTERS else "",
            int(start) if start.isdecimal() and len(start) < 10 else 0,
        )


def save_grids(
    store: Store, run: str, frame: pl.LazyFrame, made: RecordsDigest
) -> list[GridDigest]:
    """Store the grids of a run, one for each way to tell its sides apart."""
    column = MEASURES.get(made["headline"] or "")
    if column is None or not has(frame, "task_id", "status", column):
        return []
    boards: list[Any] = [made, *made["boards"]]
    found = []
    for board in boards:
        by, sides = list(board["by"]), board["sides"]
        if set(by) <= set(SIDE_COLUMNS) and len(sides) <= MAX_SIDES:
            groups = [side["group"] for side in sides] or [{}]
            table = task_table(frame, by, groups, column)
            save_grid(store, run, ",".join(by), table.select(COLUMNS).iter_rows())
            names = [side["name"] for side in sides] or [""]
            differs, wrong, flaky = (int(table[name].sum()) for name in FILTERS)
            found.append(
                GridDigest(
                    by=by,
                    sides=names,
                    tasks=table.height,
                    differs=differs,
                    wrong=wrong,
                    flaky=flaky,
                )
            )
    return found


def task_table(
    frame: pl.LazyFrame, by: Sequence[str], groups: Sequence[Mapping[str, Any]], column: str
) -> pl.DataFrame:
    """Return a row for each task: the mean result of each side, and how much the sides agree.

    A cell is null, the value of a single attempt, or [mean, attempts, errors].
    """
    failed = pl.col("status").fill_null("ok") == "error"
    value = pl.when(~failed).then(pl.col(column).cast(pl.Float64))
    category = pl.col("category") if has(frame, "category") else pl.lit(None, pl.String)
    chosen = frame.select(
        "task_id", *by, value=value, failed=failed, category=category.cast(pl.String)
    ).drop_nulls("task_id")
    v, n = pl.col("value"), pl.col("n")
    cells = chosen.group_by("task_id", *by).agg(
        mean=v.mean(), n=v.count(), errors=pl.col("failed").sum(), varies=v.max() > v.min()
    )
    names = pl.LazyFrame(
        [{name: str(group[name]) for name in by} | {"side": i} for i, group in enumerate(groups)]
    )
    tasks = chosen.group_by("task_id").agg(category=pl.col("category").drop_nulls().first())
    sided = cells.join(names, on=list(by)) if by else cells.with_columns(side=pl.lit(0, pl.Int64))
    every = tasks.select("task_id").join(names.select("side"), how="cross")
    mean = pl.col("mean").round(3).cast(pl.String).fill_null("null")
    written = (
        pl.when(n.is_null())
        .then(pl.lit("null"))
        .when((n == 1) & (pl.col("errors") == 0))
        .then(mean)
        .otherwise(pl.format("[{},{},{}]", mean, n, "errors"))
    )
    mean, same = pl.col("mean"), 1e-9
    rows = (
        every.join(sided, on=["task_id", "side"], how="left")
        .sort("task_id", "side")
        .group_by("task_id", maintain_order=True)
        .agg(
            mean.mean().alias("mean"),
            agreement=-mean.std(ddof=0),
            differs=(mean.max() - mean.min() > same).fill_null(value=False),
            wrong=(mean.max() < same).fill_null(value=False),
            flaky=pl.col("varies").fill_null(value=False).any(),
            cells=written.str.join(","),
        )
        .with_columns(pl.format("[{}]", "cells").alias("cells"))
        .join(tasks, on="task_id", how="left", maintain_order="left")
    )
    return rows.collect()


def grid_of(digest: Mapping[str, Any], by: Sequence[str] = ()) -> Mapping[str, Any] | None:
    """Return the grid by these columns, or the first of a digest; None if there is none."""
    grids = digest.get("grids") or ()
    return next((one for one in grids if one["by"] == list(by)), next(iter(grids), None))


def grid_columns(
    digest: Mapping[str, Any], grid: Mapping[str, Any], query: Callable[[Mapping[str, Any]], str]
) -> tuple[tuple[GridSide, ...], tuple[int, ...]]:
    """Return the sides in the order of the leaderboard, with their places in a task's cells.

    `query` selects the attempts of a side in an address.
    """
    name = " × ".join(grid["by"])
    board = board_of(digest, name)
    if board is None or list(board["by"]) != list(grid["by"]):
        return (GridSide("", ""),), (0,)
    view = leaderboard(digest, BoardChoice(by=name, every=True))
    groups = {side["name"]: side["group"] for side in board["sides"]}
    places = {side: place for place, side in enumerate(grid["sides"])}
    order = [row.name for row in view.rows if row.name in places] if view else []
    brief = column_heads(order)
    sides = tuple(GridSide(one, query(groups[one]), brief[one]) for one in order)
    return sides, tuple(places[one] for one in order)


def grid_page(
    store: Store, run: str, grid: Mapping[str, Any], choice: GridChoice, limit: int
) -> list[GridRow]:
    """Read some rows of a grid."""
    found = grid_rows(
        store,
        run,
        ",".join(grid["by"]),
        order=choice.order,
        only=choice.only,
        start=choice.start,
        limit=min(limit, MAX_ROWS),
    )
    width = len(grid["sides"])
    return [GridRow(task, category, _cells(text, width)) for task, category, text in found]


def grid_answer(
    store: Store,
    run: str,
    digest: Mapping[str, Any] | None,
    by: str,
    query: Mapping[str, str],
    limit: int,
) -> dict[str, Any]:
    """Return some rows of a grid as plain data, with names that are safe to show."""
    board = board_of(digest, by) if digest else None
    grid = grid_of(digest, board["by"] if board else ()) if digest else None
    if grid is None:
        return {"sides": [], "tasks": 0, "rows": []}
    choice = GridChoice.of(query)
    rows = [
        {
            "task": row.task,
            "name": visible(row.task),
            "category": None if row.category is None else visible(row.category),
            "cells": [None if c is None else [c.value, c.attempts, c.errors] for c in row.cells],
        }
        for row in grid_page(store, run, grid, choice, limit)
    ]
    total = grid[choice.only] if choice.only else grid["tasks"]
    return {"sides": list(grid["sides"]), "tasks": total, "rows": rows}


def _cells(text: str, width: int) -> tuple[GridCell | None, ...]:
    """Read the cells of a task; what cannot be read is left empty."""
    found: Any = []
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
    listed = found if isinstance(found, list) else []
    read = [_made(one, 1, 0) if type(one) is float else _cell(one) for one in listed]
    return tuple([*read, *[None] * width][:width])


def _cell(written: Any) -> GridCell | None:
    if isinstance(written, int | float):
        return _made(float(written), 1, 0)
    match written:
        case [int() | float() | None as value, int(n), int(errors)]:
            return _made(None if value is None else float(value), n, errors)
    return None


_made = lru_cache(4_096)(GridCell)
"""The same few cells are on every page."""
