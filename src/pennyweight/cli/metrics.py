"""`pennyweight metrics`: what every metric means."""

from __future__ import annotations

import click

from pennyweight.cli.options import format_option


@click.command("metrics", epilog="Example: pennyweight metrics cost_of_pass")
@click.argument("name", required=False)
@format_option
def command(name: str | None, format: str) -> None:
    """List all metrics, or explain the metric NAME in full."""
    from pennyweight.render import catalogue

    click.echo(catalogue.render(name, format), nl=False)
