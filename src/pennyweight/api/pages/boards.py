"""The same records by other columns: by subject, by tier, by columns of the tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import polars as pl

from pennyweight.api.pages.measured_records import SIDE_COLUMNS, TASK_COLUMNS, MeasuredRecords
from pennyweight.scoring.chart_data import has
from pennyweight.scoring.digest import BoardDigest, group_digest
from pennyweight.scoring.overview import overview
from pennyweight.scoring.scores import Group

MAX_GROUPS = 60
"""Columns with more values are not offered."""
MAX_TASK_COLUMNS = 6
MAX_TASKS = 20_000
"""The most tasks whose further columns are read."""
MAX_CHARACTERS = 60
"""A column with longer texts does not name groups."""


def boards(
    measured: MeasuredRecords,
    frame: pl.LazyFrame,
    by: Sequence[str],
    metric: str | None,
    groups: Sequence[Group],
) -> list[BoardDigest]:
    """Score and compare the records by each column that tells some of them apart."""
    single = [[name] for name in by if len(by) > 1]
    made = [_board(measured, one, metric) for one in single]
    names = overview(groups or measured.scored([]))
    for column, values in _task_columns(frame, {*by, *SIDE_COLUMNS}):
        table = measured.records.frame
        if column not in table.columns:
            table = table.join(values, on="task_id", how="left", maintain_order="left")
        whole = replace(measured, records=replace(measured.records, frame=table))
        found = whole.scored([column], names)
        sides = [group_digest(g) for g in found if g.group[column] is not None]
        if len(sides) > 1:
            made.append({"by": [column], "sides": sides, "comparison": None})
    return [one for one in made if 1 < len(one["sides"]) <= MAX_GROUPS]


def _board(measured: MeasuredRecords, by: list[str], metric: str | None) -> BoardDigest:
    groups = measured.scored(by)
    compared = measured.compared(groups, by, metric)
    return {"by": by, "sides": [group_digest(g) for g in groups], "comparison": compared}


def _task_columns(frame: pl.LazyFrame, known: set[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the columns of the tasks that have a few values, with the value of each task."""
    if not has(frame, "task_id"):
        return
    there = [n for n in (*TASK_COLUMNS, "extra") if n not in known and has(frame, n)]
    tasks = frame.select("task_id", *there).drop_nulls("task_id").unique("task_id", keep="first")
    table = tasks.head(MAX_TASKS + 1).collect()
    for name in there:
        if name != "extra" and 1 < table[name].drop_nulls().n_unique() <= MAX_GROUPS:
            yield name, table.select("task_id", name)
    if "extra" not in there or table.height > MAX_TASKS:
        return
    read = [_scalars(text) for text in table["extra"]]
    names = dict.fromkeys(name for row in read for name in row)
    offered = 0
    for name in names:
        values = [row.get(name) for row in read]
        kinds = set(values) - {None}
        taken = name in known or name in table.columns or name in frame.collect_schema()
        if taken or not 1 < len(kinds) <= MAX_GROUPS or offered == MAX_TASK_COLUMNS:
            continue
        offered += 1
        yield name, pl.DataFrame({"task_id": table["task_id"], name: values})


def _scalars(text: str | None) -> dict[str, str]:
    """Return the further columns of a task that can name a group."""
    found: Any = {}
    with suppress(ValueError, RecursionError):
        found = json.loads(text or "{}")
    if not isinstance(found, dict):
        return {}
    return {
        name: str(value)
        for name, value in found.items()
        if isinstance(value, str | int | bool) and 0 < len(str(value)) <= MAX_CHARACTERS
    }
