"""`pennyweight judge`: judge the attempts of a run, without making them again."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pennyweight.cli.options import format_option, names, store_option
from pennyweight.errors import UsageError
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennyweight.judges.judging import Judged
    from pennyweight.store.store import Run, Store
    from pennyweight.suite.values import Judging, Limits, Price

EPILOG = """\b
Examples:
  pennyweight judge latest
  pennyweight judge 20260101-120000-ab12 --rubric rubric.yaml --model openai/judge-model
"""


@click.command("judge", epilog=EPILOG, context_settings={"max_content_width": 80})
@click.argument("run", default="latest")
@click.option("--rubric", metavar="FILE", help="Judge by this rubric, not by the suite's.")
@click.option("--model", multiple=True, metavar="MODELS", help="Ask these judges instead.")
@click.option("--usd", type=click.FloatRange(0), help="The most the whole run may cost, anew.")
@click.option("--record", type=click.Path(path_type=Path), help="Write a file for replay:FILE.")
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

    What was judged already by the same rubric, judge and text stands; only
    what has no valid judgment is asked for. The suite's limits hold for the
    run and its judges together.
    """
    from pennyweight.cli.run import print_scores  # noqa: PLC0415
    from pennyweight.store.store import Store  # noqa: PLC0415

    at = Store(store)
    click.get_current_context().call_on_close(at.close)
    found = at.find(run)
    judging, limits, prices = _asked(found, rubric, names(model))
    limits = limits if usd is None else replace(limits, usd=usd)
    judged = judge(found, judging, at, limits=limits, prices=prices, record=record)
    print_scores(at.find(found.id), at, list(by), format)
    code = tell(judged, _again(found.id, rubric, names(model), usd))
    if code:
        raise click.exceptions.Exit(code)


def _again(run: str, rubric: str | None, models: list[str], usd: float | None) -> str:
    """Write the command that goes on with the same judging."""
    words = ["pennyweight", "judge", run]
    words += ["--rubric", rubric] if rubric else []
    words += [word for model in models for word in ("--model", model)]
    words += ["--usd", f"{usd:g}"] if usd is not None else []
    return clean(shlex.join(words))


def _asked(
    run: Run, rubric: str | None, models: list[str]
) -> tuple[Judging, Limits, Mapping[str, Price]]:
    """Put together who judges by what: the options over the suite's own."""
    from pennyweight.suite.loader import load_judging  # noqa: PLC0415
    from pennyweight.suite.rubric import DEFAULT, load_rubric  # noqa: PLC0415
    from pennyweight.suite.values import Judging, Subject  # noqa: PLC0415

    text = None if Path(run.path).is_file() else run.text
    own, limits, prices = load_judging(run.path, text)
    if not own and not models:
        raise UsageError(
            f"The suite of run {run.id} names no judge. Name one with --model, or add 'judge:' "
            f"to {run.place}."
        )
    known = {s.name: s for s in (*own.judges, *own.more)} if own else {}
    judges = tuple(known.get(name) or Subject(name, name) for name in models)
    judging = own or Judging(judges, DEFAULT)
    if judges:
        more = tuple(s for s in judging.more if s not in judges)
        judging = replace(judging, judges=judges, more=more)
    if rubric:
        judging = replace(judging, rubric=load_rubric(rubric))
    return judging, limits, prices


def judge(
    run: Run,
    judging: Judging,
    store: Store,
    *,
    limits: Limits,
    prices: Mapping[str, Price],
    record: Path | None = None,
    began: float | None = None,
) -> Judged:
    """Judge with a line of progress."""
    from pennyweight.engine.progress import Progress  # noqa: PLC0415
    from pennyweight.judges.judging import judge_run  # noqa: PLC0415
    from pennyweight.models.prices import Prices  # noqa: PLC0415

    who = ", ".join(s.name for s in judging.judges)
    click.echo(clean(f"Judging run {run.id} by the rubric {judging.rubric.name}: {who}."), err=True)

    for model in Prices(prices).unknown((*judging.judges, *judging.more)):
        note = f"Note: The price of {model} is not known: what it costs as a judge is null."
        click.echo(clean(note), err=True)

    def nothing(_: list[Any]) -> tuple[int, int]:
        return 0, 0

    progress = Progress(nothing)
    try:
        return judge_run(
            run,
            judging,
            store,
            limits=limits,
            prices=prices,
            watch=progress,
            record=record,
            began=began,
        )
    finally:
        progress.end()


def tell(judged: Judged, again: str) -> int:
    """Say how judging ended; gives the exit code for it."""
    from pennyweight.cli.ending import is_limit, tell_retried  # noqa: PLC0415
    from pennyweight.render.plain import one_line  # noqa: PLC0415

    tally = judged.tally
    paid = f", ${judged.usd:.4g}" if judged.usd else ""
    click.echo(f"{judged.valid:,} of {tally.total:,} judgments made{paid}.", err=True)
    for judge_, count in sorted(judged.invalid.items()):
        what = "judgment is" if count == 1 else "judgments are"
        click.echo(
            f"{count:,} {what} invalid: {clean(judge_)} gave no reply that could be read.", err=True
        )
    failed = sum(tally.errors.values())
    if failed:
        example = f" For example: {one_line(tally.said, 300)}" if tally.said else ""
        click.echo(f"Judgments that could not be made: {failed:,}.{example}", err=True)
    if judged.unjudged:
        click.echo(f"Attempts without any valid judgment: {judged.unjudged:,}.", err=True)
    if judged.interrupted:
        click.echo(f"Interrupted; go on with: {again}", err=True)
        return 130
    if tally.exhausted:
        tell_retried(tally)
        said = clean(tally.exhausted)
        what = "Raise limits in the suite, then" if is_limit(said) else "Go on later with"
        click.echo(f"{said} {what}: {again}", err=True)
        return 4
    if failed or judged.unjudged:
        click.echo(f"Try them again: {again}", err=True)
        return 4
    return 0
