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

    With a TASK, show the attempts at it: prompts and replies, errors, and the
    verdict of every check with its evidence.
    """
    from pennyweight.api.runs import attempts_at_task, show_run
    from pennyweight.render import scenarios
    from pennyweight.render.runs import render_one

    if task is not None:
        found = scenarios.attempts_at(task, attempts_at_task(run, task, store))
        click.echo(scenarios.render_attempts(found, format), nl=False)
        return
    details = show_run(run, store)
    checked, about = scenarios.attempts(details.checked), details.summary
    facts = {"judgments": details.judgments, "scenarios": checked}
    more = {name: value for name, value in facts.items() if value not in (None, [])}
    click.echo(render_one((about.run, about.records, about.spent), format, **more), nl=False)
    if checked and format != "json":
        click.echo("\n" + scenarios.render(checked, format), nl=False)
