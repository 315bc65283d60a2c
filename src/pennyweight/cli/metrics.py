"""`pennyweight metrics`: what every number means."""

from __future__ import annotations

import click

from pennyweight.cli.options import format_option


@click.command("metrics", epilog="Example: pennyweight metrics cost_of_pass")
@click.argument("name", required=False)
@format_option
def command(name: str | None, format: str) -> None:
    """Show what every number means: all of them, or NAME in full."""
    from pennyweight.render import catalogue  # noqa: PLC0415

    click.echo(catalogue.render(name, format), nl=False)
