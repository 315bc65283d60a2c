"""The same records by other columns: by subject, by tier, by columns of the tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from pennyweight.api.pages.measured_records import SIDE_COLUMNS, TASK_COLUMNS, MeasuredRecords
from pennyweight.scoring.chart_data import has
from pennyweight.scoring.digest import BoardDigest, group_digest
from pennyweight.scoring.overview import overview
from pennyweight.scoring.scores import Group

MAX_GROUPS = 60
"""Columns with more values are not offered."""
MAX_FURTHER = 4
"""How many further columns of the tasks are offered at most, and how many values each has."""
MAX_VALUES = 20
MAX_TASKS = 20_000
"""The most tasks whose columns are read."""
MAX_CHARACTERS = 60
"""A column with longer texts does not name groups."""


def boards(
    measured: MeasuredRecords,
    frame: pl.LazyFrame,
    by: Sequence[str],
    metric: str | None,
    groups: Sequence[Group],
    further: Sequence[str] = (),
) -> list[BoardDigest]:
    """Score and compare the records by each column that tells some of them apart.

    `further` names columns of the user's own that may be some of the tasks.
    """
    single = [[name] for name in by if len(by) > 1]
    made = [_board(measured, one, metric) for one in single]
    names = overview(groups or measured.scored([]))
    named = [n for n in (*TASK_COLUMNS, *further) if n not in {*by, *SIDE_COLUMNS}]
    for column, values in _task_columns(frame, named):
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


def _task_columns(frame: pl.LazyFrame, names: Sequence[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the columns of the tasks that have a few values, with the value of each task."""
    if not has(frame, "task_id"):
        return
    there = [n for n in names if has(frame, n)]
    own = [n for n in there if n in TASK_COLUMNS]
    tasks = frame.select("task_id", *own).drop_nulls("task_id").unique("task_id", keep="first")
    table = tasks.head(MAX_TASKS + 1).collect()
    for name in own:
        if 1 < table[name].drop_nulls().n_unique() <= MAX_GROUPS:
            yield name, table.select("task_id", name)
    if table.height <= MAX_TASKS:
        yield from _further_columns(frame, [n for n in there if n not in TASK_COLUMNS])


def _further_columns(
    frame: pl.LazyFrame, names: Sequence[str]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield columns of the user's own in which all attempts at a task have the same short text."""
    texts = {name: pl.col(name).cast(pl.String).drop_nulls() for name in names}
    first = (values.first().alias(name) for name, values in texts.items())
    several = ((values.n_unique() > 1).alias(f"{name}/several") for name, values in texts.items())
    each = frame.drop_nulls("task_id").group_by("task_id").agg(*first, *several).collect()
    offered = 0
    for name in names:
        kinds = each[name].drop_nulls().unique()
        short = not (kinds.str.len_chars() > MAX_CHARACTERS).any()
        of_tasks = not each[f"{name}/several"].any()
        if of_tasks and short and 1 < len(kinds) <= MAX_VALUES and offered < MAX_FURTHER:
            offered += 1
            yield name, each.select("task_id", name)
