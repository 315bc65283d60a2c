"""`pennyweight init`: a first suite."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("init", epilog="Example: pennyweight init my-suite")
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--scenarios", is_flag=True, help="Create scenarios with checks and a policy.")
@click.option("--force", is_flag=True, help="Replace existing files.")
def command(folder: Path, scenarios: bool, force: bool) -> None:
    """Create a first suite in FOLDER. It runs on the local model, without any key."""
    from pennyweight.api.init import init

    created = init(folder, scenarios=scenarios, force=force)
    for path in created.files:
        click.echo(f"Created {path}.", err=True)
    click.echo(f"Next: pennyweight run {created.suite}", err=True)
    if created.policy:
        click.echo(f"Then: pennyweight gate latest --policy {created.policy}", err=True)
