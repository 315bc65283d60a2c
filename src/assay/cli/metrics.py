"""`assay metrics`: what every number means."""

from __future__ import annotations

import click

from assay.cli.options import format_option


@click.command("metrics", epilog="Example: assay metrics cost_of_pass")
@click.argument("name", required=False)
@format_option
def command(name: str | None, format: str) -> None:
    """Show what every number means: all of them, or NAME in full."""
    from assay.report import catalogue  # noqa: PLC0415

    click.echo(catalogue.render(name, format), nl=False)
