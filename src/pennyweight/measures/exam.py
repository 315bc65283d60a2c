"""What was asked and how it is decided, so that two records of one exam can be told from others."""

from __future__ import annotations

import polars as pl

from pennyweight.define import measure
from pennyweight.text.exam import column_digest


@measure(spec="Pennyweight")
def task_digest(
    task_digest: pl.Expr,
    input: pl.Expr,  # noqa: A002 - the column's name
    context: pl.Expr,
    choices: pl.Expr,
    target: pl.Expr,
    expected_behaviors: pl.Expr,
    pass_score: pl.Expr,
    tool: pl.Expr,
) -> pl.Expr:
    """What was asked and how it is decided: a short hash of each part of the task.

    The given one, such as a run stores it, else that of the columns there are. The record of
    another tool's log (`tool`) has no other than the given one: its input may be the prompt.
    Comparisons pair the records of a task only if no part that both sides know has changed.

    >>> evaluate(task_digest, input=["2 + 2?"], target=["4"])
    ['input=a067e2f620a7 target=f7d3f7388f5f']
    """
    columns = {
        "input": input,
        "context": context,
        "choices": choices,
        "target": target,
        "expected": expected_behaviors,
        "pass_score": pass_score,
    }
    return pl.coalesce(task_digest, pl.when(tool.is_null()).then(column_digest(columns)))
