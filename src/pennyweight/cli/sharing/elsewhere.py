"""`pennyweight run --on workers`: put the attempts of a run up for workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pennyweight.api.run import Watcher
    from pennyweight.store.store import Store


def put_up(suite: str | None, *, store: Store, watch: Watcher, **options: Any) -> None:
    """Put the attempts of a run up for workers; print the id of the run."""
    from pennyweight.api.sharing.work import put_up as put_up_run
    from pennyweight.render.run_end import offer_sentence, resume_command

    run, number = put_up_run(suite, store=store, watch=watch, **options)
    command = resume_command(store.address, run.id, None, (), settings=run.settings)
    click.echo(run.id)
    click.echo(offer_sentence(run.id, number, command), err=True)
