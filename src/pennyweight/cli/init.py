"""`pennyweight init`: a first suite, or one from the suite of another tool."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pennyweight.errors import UsageError
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.api.init import CreatedSuite

_EXAMPLES = """\
Examples: pennyweight init my-suite

pennyweight init my-suite --from promptfooconfig.yaml"""


@click.command("init", epilog=_EXAMPLES)
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--model", "-m", metavar="PROVIDER/NAME", help="Model that the suite measures.")
@click.option("--scenarios", is_flag=True, help="Create scenarios with checks and a policy.")
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Suite or data set of another tool to convert; FILE#NAME for one of several.",
)
@click.option(
    "--code", is_flag=True, help="With --from: carry over JavaScript assertions; node runs them."
)
@click.option(
    "--partial",
    is_flag=True,
    help="With --from: write the suite although parts of its exam are missing. What they decide "
    "has no verdict.",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
def command(
    folder: Path,
    model: str | None,
    scenarios: bool,
    source: Path | None,
    code: bool,
    partial: bool,
    force: bool,
) -> None:
    """Create a first suite in FOLDER that runs as it is.

    Without --model it measures what is there: a provider whose key is in the
    environment, else a server on this machine (Ollama, vLLM, LM Studio,
    llama.cpp), else a small local model. In a terminal it asks first.

    With --from the suite is made from a promptfoo configuration, a task of
    lm-evaluation-harness, a data set of Inspect AI, or an eval or samples of
    OpenAI Evals. If a part of the exam cannot be carried over, nothing is
    written unless --partial is given. Nothing in the file is run.
    """
    from pennyweight.api.init import first_model, init, init_from

    if source is not None:
        if scenarios:
            raise UsageError("--scenarios cannot be combined with --from.")
        created = init_from(source, folder, model=model, code=code, partial=partial, force=force)
        _tell(created, source)
        return
    if code or partial:
        raise UsageError(f"--{'code' if code else 'partial'} needs --from.")
    if model is None and sys.stdin.isatty():
        found = first_model()
        model = click.prompt(f"Model ({found.why})", default=found.model, err=True)
    created = init(folder, model=model, scenarios=scenarios, force=force)
    _tell_files(created)
    first = created.model
    if first and first.why != "named":
        click.echo(clean(f"It measures {first.model} ({first.why})."), err=True)
    if first and first.needs:
        click.echo(f"First: {first.needs}", err=True)
    click.echo(f"Next: pennyweight run {created.suite}", err=True)
    if created.policy:
        click.echo(f"Then: pennyweight gate latest --policy {created.policy}", err=True)


def _tell_files(created: CreatedSuite) -> None:
    for path in created.files:
        click.echo(f"Created {path}.", err=True)


def _tell(created: CreatedSuite, source: Path) -> None:
    """Print what was created, and what was not carried over."""
    click.echo(clean(f"Read {source} as {created.tool}."), err=True)
    _tell_files(created)
    for title, lines in (
        ("Missing, as every run of it says", created.missing),
        ("Not carried over", created.left_out),
        (f"Different from {created.tool}", created.notes),
    ):
        if lines:
            click.echo(f"{title}:", err=True)
        for line in lines:
            click.echo(clean(f"  {line}"), err=True)
    if created.runs_code:
        click.echo("The suite runs code of that file. Read it first.", err=True)
    click.echo(f"Next: pennyweight run {created.suite} --limit 3", err=True)
