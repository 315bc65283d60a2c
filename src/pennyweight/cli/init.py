"""`pennyweight init`: a first suite."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pennyweight.text.safe import clean


@click.command("init", epilog="Example: pennyweight init my-suite")
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--model", "-m", metavar="PROVIDER/NAME", help="Model that the suite measures.")
@click.option("--scenarios", is_flag=True, help="Create scenarios with checks and a policy.")
@click.option("--force", is_flag=True, help="Replace existing files.")
def command(folder: Path, model: str | None, scenarios: bool, force: bool) -> None:
    """Create a first suite in FOLDER that runs as it is.

    Without --model it measures what is there: a provider whose key is in the
    environment, else a server on this machine (Ollama, vLLM, LM Studio,
    llama.cpp), else a small local model. In a terminal it asks first.
    """
    from pennyweight.api.init import first_model, init

    if model is None and sys.stdin.isatty():
        found = first_model()
        model = click.prompt(f"Model ({found.why})", default=found.model, err=True)
    created = init(folder, model=model, scenarios=scenarios, force=force)
    for path in created.files:
        click.echo(f"Created {path}.", err=True)
    first = created.model
    if first.why != "named":
        click.echo(clean(f"It measures {first.model} ({first.why})."), err=True)
    if first.needs:
        click.echo(f"First: {first.needs}", err=True)
    click.echo(f"Next: pennyweight run {created.suite}", err=True)
    if created.policy:
        click.echo(f"Then: pennyweight gate latest --policy {created.policy}", err=True)
