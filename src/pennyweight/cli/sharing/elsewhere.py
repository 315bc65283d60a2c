"""`pennyweight run --on workers`: put the attempts of a run up for workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pennyweight.text.format import plural

if TYPE_CHECKING:
    from pennyweight.api.run import Watcher


def put_up(suite: str | None, *, watch: Watcher, **options: Any) -> None:
    """Put the attempts of a run up for workers; print the id of the run."""
    from pennyweight.api.sharing.work import put_up as put_up_run

    run, number = put_up_run(suite, watch=watch, **options)
    click.echo(run.id)
    click.echo(
        f"{plural(number, 'attempt')} of run {run.id} wait for workers: pennyweight work {run.id}",
        err=True,
    )
