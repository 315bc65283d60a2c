"""`pennyweight baseline`: records saved under a name, to compare with later."""

from __future__ import annotations

import click

from pennyweight.cli.options import format_option, map_option, store_option, where_option
from pennyweight.text.format import plural
from pennyweight.text.safe import clean


@click.group("baseline", epilog="Example: pennyweight baseline set main latest")
def command() -> None:
    """Save records under a name, to compare with later.

    Each baseline is a file in .pennyweight/baselines. It contains every measure
    and its origin, but no prompts or replies. It does not depend on its run, and
    can be committed to version control.
    """


@command.command("set", epilog="Example: pennyweight baseline set main latest --where tier=T1")
@click.argument("name")
@click.argument("source")
@where_option
@map_option
@store_option
def set_(
    name: str, source: str, where: dict[str, str], map: dict[str, str], store: str | None
) -> None:
    """Save the records of SOURCE (a run or a file) as the baseline NAME."""
    from pennyweight.api.baseline import set_baseline
    from pennyweight.render.runs import moment

    done = set_baseline(name, source, where=where, map=map, store=store)
    made, old = done.baseline, done.replaced
    text = f"Saved {plural(made.records, 'record')} of {made.source} as {made.path}"
    if done.replaces:
        text += f". Replaced: {old.source}, {moment(old)}" if old else ". Replaced a damaged file"
    click.echo(clean(f"{text}."), err=True)
    if done.narrowed:
        part = f"The baseline is incomplete: the run has {done.narrowed}."
        click.echo(clean(f"{part} Run the whole suite, then set it again."), err=True)
    elif done.missing:
        missing = f"{done.missing:,} of {plural(done.planned or 0, 'attempt')} of the run"
        resume = f"'pennyweight run --resume {done.run}' makes them; then set the baseline again."
        click.echo(clean(f"The baseline is incomplete: {missing} are missing. {resume}"), err=True)


@command.command("list", epilog="Example: pennyweight baseline list --format json")
@format_option
def list_(format: str) -> None:
    """List the baselines with their origin."""
    from pennyweight.api.baseline import baselines
    from pennyweight.render.runs import render_baselines

    found, problems = baselines()
    for problem in problems:
        click.echo(clean(problem), err=True)
    if not found and not problems and format != "json":
        click.echo(
            "There is no baseline yet. 'pennyweight baseline set NAME RUN' creates one.", err=True
        )
        return
    click.echo(render_baselines(found, format), nl=False)


@command.command("rm", epilog="Example: pennyweight baseline rm main")
@click.argument("names", nargs=-1, required=True)
def rm(names: tuple[str, ...]) -> None:
    """Delete baselines."""
    from pennyweight.api.baseline import remove

    for name in names:
        remove(name)
        click.echo(f"Deleted the baseline {name}.", err=True)
