"""`assay show`: one run in full."""

from __future__ import annotations

import click

from assay.cli.options import format_option, store_option


@click.command("show", epilog="Example: assay show latest ADV-003")
@click.argument("run", default="latest")
@click.argument("task", required=False)
@store_option
@format_option
def command(run: str, task: str | None, store: str | None, format: str) -> None:
    """Show a RUN: what it is made of, what it cost, how its attempts ended.

    With a TASK, its attempts at that scenario: what was asked and said, and
    the verdict of every check with its evidence.
    """
    from assay.errors import UsageError  # noqa: PLC0415
    from assay.report.runs import render_one  # noqa: PLC0415
    from assay.report.scenarios import attempts, render, render_task  # noqa: PLC0415
    from assay.run.judged import judgment_facts  # noqa: PLC0415
    from assay.run.source import RunSource  # noqa: PLC0415
    from assay.store.store import Store  # noqa: PLC0415

    at = Store(store)
    found = at.find(run)
    checked = attempts(RunSource(found, at).frames(), task)
    if task is not None:
        if not checked:
            raise UsageError(f"Run {found.id} has no checked attempt at a task {task!r}.")
        click.echo(render_task(checked, format), nl=False)
        return
    judged = judgment_facts(found, at)
    spent = at.spent(found.id)
    statuses = at.statuses(found.id)
    click.echo(render_one(found, statuses, spent, format, judged, checked), nl=False)
    if checked and format != "json":
        click.echo("\n" + render(checked, format), nl=False)
