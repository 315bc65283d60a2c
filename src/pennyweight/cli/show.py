"""`pennyweight show`: one run in full."""

from __future__ import annotations

import click

from pennyweight.cli.options import format_option, store_option


@click.command("show", epilog="Example: pennyweight show latest ADV-003")
@click.argument("run", default="latest")
@click.argument("task", required=False)
@store_option
@format_option
def command(run: str, task: str | None, store: str | None, format: str) -> None:
    """Show a RUN: its settings, its cost, and how its attempts ended.

    With a TASK, the attempts at it: prompts and answers, errors, and the
    verdict of every check with its evidence.
    """
    from pennyweight.api.runs import attempts_at_task, show_run  # noqa: PLC0415
    from pennyweight.render.runs import render_one  # noqa: PLC0415
    from pennyweight.render.scenarios import (  # noqa: PLC0415
        attempts,
        attempts_at,
        render,
        render_attempts,
    )

    if task is not None:
        found = attempts_at(task, attempts_at_task(run, task, store))
        click.echo(render_attempts(found, format), nl=False)
        return
    shown = show_run(run, store)
    checked = attempts(shown.checked)
    about = shown.summary
    text = render_one(about.run, about.records, about.spent, format, shown.judgments, checked)
    click.echo(text, nl=False)
    if checked and format != "json":
        click.echo("\n" + render(checked, format), nl=False)
