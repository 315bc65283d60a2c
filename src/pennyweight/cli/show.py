"""`pennyweight show`: one run in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pennyweight.cli.options import format_option, store_option

if TYPE_CHECKING:
    from pennyweight.store.store import Run, Store


@click.command("show", epilog="Example: pennyweight show latest ADV-003")
@click.argument("run", default="latest")
@click.argument("task", required=False)
@store_option
@format_option
def command(run: str, task: str | None, store: str | None, format: str) -> None:
    """Show a RUN: what it is made of, what it cost, how its attempts ended.

    With a TASK, its attempts at it: what was asked and answered, what failed,
    and the verdict of every check with its evidence.
    """
    from pennyweight.cli.runs import as_it_is  # noqa: PLC0415
    from pennyweight.render.runs import render_one  # noqa: PLC0415
    from pennyweight.render.scenarios import NEEDED, attempts, render  # noqa: PLC0415
    from pennyweight.runs.panel import judgment_facts  # noqa: PLC0415
    from pennyweight.runs.source import RunSource  # noqa: PLC0415
    from pennyweight.store.store import Store  # noqa: PLC0415

    at = Store(store)
    found = at.find(run)
    if task is not None:
        click.echo(_task(found, at, task, format), nl=False)
        return
    checked = attempts(RunSource(found, at).frames(NEEDED))
    judged = judgment_facts(found, at)
    spent = at.spent(found.id)
    statuses = at.statuses(found.id)
    click.echo(render_one(as_it_is(found, at), statuses, spent, format, judged, checked), nl=False)
    if checked and format != "json":
        click.echo("\n" + render(checked, format), nl=False)


def _task(run: Run, store: Store, task: str, format: str) -> str:
    """Write the attempts of a run at one task."""
    import polars as pl  # noqa: PLC0415

    from pennyweight.errors import UsageError, unknown  # noqa: PLC0415
    from pennyweight.render.attempts import render_attempts  # noqa: PLC0415
    from pennyweight.render.scenarios import attempts_at  # noqa: PLC0415
    from pennyweight.runs.source import RunSource  # noqa: PLC0415
    from pennyweight.text.extraction import answer  # noqa: PLC0415
    from pennyweight.text.matching import matches  # noqa: PLC0415

    source = RunSource(run, store)
    rules = source.options()
    found_answer = answer(pl.col("response"), rules["answer_rule"])
    right = matches(pl.col("answer"), pl.col("target"), rules["match_rule"])

    def scored(frame: pl.DataFrame) -> pl.DataFrame:
        own = frame.filter(pl.col("task_id") == task)
        return own.with_columns(answer=found_answer).with_columns(correct=right)

    found = attempts_at(task, map(scored, source.frames()))
    if not found:
        known = {id_ for frame in store.records(run.id, {"task_id"}) for id_ in frame["task_id"]}
        where = f"Run {run.id} has {len(known):,} tasks; 'pennyweight export {run.id}' lists them."
        raise UsageError(unknown("Task", task, sorted(known), where))
    return render_attempts(found, format)
