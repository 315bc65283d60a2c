"""`pennyweight init`: a first suite."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    "init", epilog="Example: pennyweight init my-suite && cd my-suite && pennyweight run suite.yaml"
)
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--scenarios", is_flag=True, help="A suite of scenarios, with their checks.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
def command(folder: Path, scenarios: bool, force: bool) -> None:
    """Write a first suite into FOLDER; it runs on the local model, without any key."""
    from pennyweight.errors import InputError, UsageError  # noqa: PLC0415
    from pennyweight.suite.starter import first_scenarios, first_suite  # noqa: PLC0415

    files = first_scenarios() if scenarios else first_suite()
    there = [name for name in files if (folder / name).exists()]
    if there and not force:
        raise InputError(
            [f"{folder / n} is already there." for n in there], hint="--force replaces."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
            click.echo(f"Wrote {folder / name}.", err=True)
    except OSError as error:
        raise UsageError(
            f"{error.filename or folder} cannot be written: {error.strerror or error}. "
            "Name another folder: pennyweight init FOLDER."
        ) from error
    click.echo(f"Next: pennyweight run {folder / 'suite.yaml'}", err=True)
    if scenarios:
        click.echo(f"Then: pennyweight gate latest --policy {folder / 'policy.yaml'}", err=True)
