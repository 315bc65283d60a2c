"""`pennyweight show`: one run in full."""

from __future__ import annotations

from typing import Any

import click

from pennyweight.cli.options import format_option, option, store_option
from pennyweight.errors import UsageError

EPILOG = """\b
Examples:
  pennyweight show latest --failed
  pennyweight show latest --tier T1 --task 'ADV-*'
  pennyweight show latest ADV-003
"""


@click.command("show", epilog=EPILOG)
@click.argument("run", default="latest")
@click.argument("task", required=False)
@option("--failed", "Only what did not pass or could not be made.", is_flag=True)
@option("--subject", "Only this subject.", "NAME")
@option("--tier", "Only this tier.", "NAME")
@click.option(
    "--task",
    "tasks",
    metavar="ID",
    multiple=True,
    help="Only these tasks; * and ? stand for any text and character.",
)
@option("--all", "List every task, not only the first 20.", is_flag=True)
@store_option
@format_option
def command(
    run: str,
    task: str | None,
    failed: bool,
    subject: str | None,
    tier: str | None,
    tasks: tuple[str, ...],
    all: bool,
    store: str | None,
    format: str,
) -> None:
    """Show a RUN: its settings, its cost, and how its tasks ended.

    With a TASK, show the attempts at it and why they did not pass: prompts and
    replies, errors, the answer next to the target, every check with its evidence,
    and of agents the commands that verify their work and the changes they made.
    """
    from pennyweight.api.show import TaskFilter, attempts_at_tasks, checked_frames, show_run
    from pennyweight.render import attempts
    from pennyweight.render.runs import render_one
    from pennyweight.render.task_results import first_shown, reasons, render

    if task is not None:
        if tasks:
            raise UsageError(f"Name the task once: TASK ({task}) or --task.")
        one = TaskFilter((task,), subject, tier, failed)
        found = attempts.attempts_of(attempts_at_tasks(run, one, store))
        click.echo(attempts.render(found, format), nl=False)
        return
    details = show_run(run, TaskFilter(tasks, subject, tier, failed), store=store)
    about = details.summary
    facts: dict[str, Any] = {"judgments": details.judgments}
    if about.out:
        from pennyweight.render.runs import out_fact

        facts["out"] = out_fact(about.out, format)
    if format == "json":
        checked = checked_frames(run, attempts.NEEDED, store)
        facts["scenarios"] = attempts.checked_attempts(checked)
        facts["tasks"] = [result.to_dict() for result in details.tasks]
    more = {name: value for name, value in facts.items() if value not in (None, [])}
    click.echo(render_one((about.run, about.records, about.spent), format, **more), nl=False)
    if details.tasks and format != "json":
        shown = first_shown(details.tasks, every=all)
        open_ = TaskFilter(tuple({result.task_id for result in shown if not result.good}))
        whys = reasons(attempts_at_tasks(run, open_, store)) if open_.tasks else {}
        hidden = len(details.tasks) - len(shown)
        click.echo("\n" + render(shown, whys, hidden, format, failed=failed), nl=False)
    elif format == "table":
        what = "such attempt failed" if failed else "such attempt was made"
        click.echo(f"\nNo {what if about.records else 'attempt has a record yet'}.")
