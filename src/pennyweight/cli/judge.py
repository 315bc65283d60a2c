"""`pennyweight judge`: judge the attempts of a run."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

import click

from pennyweight.cli.options import (
    by_option,
    format_option,
    names_option,
    option,
    recording_option,
    store_option,
)
from pennyweight.text.safe import clean


@click.command("judge", epilog="Example: pennyweight judge latest --rubric rubric.yaml")
@click.argument("run", default="latest")
@option("--rubric", "Judge by this rubric instead of the suite's.", "FILE")
@names_option("--model", "Ask these judges instead of the suite's.", "MODELS")
@option("--suite", "The suite's file, if it has moved.", "FILE")
@option("--usd", "New cost limit for the run and its judges.", type=click.FloatRange(0))
@recording_option
@by_option
@store_option
@format_option
def command(
    run: str,
    rubric: str | None,
    model: list[str],
    suite: str | None,
    usd: float | None,
    record: Path | None,
    by: list[str],
    store: str | None,
    format: str,
) -> None:
    """Judge the attempts of a RUN by its suite's rubric, and print the scores.

    No attempt is repeated. Valid judgments of the same text by the same rubric
    and judge are reused; only missing ones are requested. The suite's limits
    cover the run and its judges together.
    """
    from pennyweight.api.judge import judge
    from pennyweight.api.runs import find_run
    from pennyweight.api.sources import open_store
    from pennyweight.cli.run import print_scores
    from pennyweight.cli.run_display import RunDisplay
    from pennyweight.render.run_end import judging_sentences

    at = open_store(store)
    click.get_current_context().call_on_close(at.close)
    found, display = find_run(run, at), RunDisplay(at)
    with contextlib.redirect_stdout(display):
        judged = judge(
            found.id, rubric=rubric, models=model, suite=suite, usd=usd, record=record, store=at,
            watch=display,
        )  # fmt: skip
    print_scores(at.find(found.id), at, by, format)
    for sentence in judging_sentences(judged, _command(found.id, rubric, model, usd)):
        click.echo(sentence, err=True)
    if judged.exit_code:
        raise click.exceptions.Exit(judged.exit_code)


def _command(run: str, rubric: str | None, models: list[str], usd: float | None) -> str:
    """Write the command that continues the same judging."""
    words = ["pennyweight", "judge", run]
    words += ["--rubric", rubric] if rubric else []
    words += [word for model in models for word in ("--model", model)]
    words += ["--usd", f"{usd:g}"] if usd is not None else []
    return clean(shlex.join(words))
