"""`pennyweight judge`: judge the attempts of a run, without making them again."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

import click

from pennyweight.cli.options import format_option, names, store_option
from pennyweight.text.safe import clean


@click.command("judge", epilog="Example: pennyweight judge latest --rubric rubric.yaml")
@click.argument("run", default="latest")
@click.option("--rubric", metavar="FILE", help="Judge by this rubric, not by the suite's.")
@click.option("--model", multiple=True, metavar="MODELS", help="Ask these judges instead.")
@click.option("--usd", type=click.FloatRange(0), help="New cost limit of the whole run.")
@click.option("--record", type=click.Path(path_type=Path), help="Record replies for replay:FILE.")
@click.option("--by", multiple=True, metavar="COLUMNS", help="Group the scores (default: tier).")
@store_option
@format_option
def command(
    run: str,
    rubric: str | None,
    model: tuple[str, ...],
    usd: float | None,
    record: Path | None,
    by: tuple[str, ...],
    store: str | None,
    format: str,
) -> None:
    """Judge the attempts of a RUN as its suite says, and print the scores.

    Valid judgments by the same rubric and judge of the same text are reused;
    only the missing ones are asked for. The suite's limits cover the run and
    its judges together.
    """
    from pennyweight.api.judge import judge  # noqa: PLC0415
    from pennyweight.api.runs import find_run  # noqa: PLC0415
    from pennyweight.api.sources import open_store  # noqa: PLC0415
    from pennyweight.cli.run import print_scores  # noqa: PLC0415
    from pennyweight.cli.run_display import RunDisplay  # noqa: PLC0415
    from pennyweight.render.run_end import judging_sentences  # noqa: PLC0415

    at = open_store(store)
    click.get_current_context().call_on_close(at.close)
    found, models, display = find_run(run, at), names(model), RunDisplay(at)
    with contextlib.redirect_stdout(display):
        judged = judge(
            found.id, rubric=rubric, models=models, usd=usd, record=record, store=at,
            watch=display,
        )  # fmt: skip
    print_scores(at.find(found.id), at, names(by), format)
    for sentence in judging_sentences(judged, _command(found.id, rubric, models, usd)):
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
