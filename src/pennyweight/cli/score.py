"""`pennyweight score`: metrics of any records."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pennyweight.cli.options import format_option, names, numbers, pairs, settings, store_option
from pennyweight.errors import InputError, UsageError
from pennyweight.record import COLUMNS
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

ALIASES = "; ".join(f"{c.name} ← {', '.join(c.aliases)}" for c in COLUMNS if c.aliases)

EPILOG = f"""\b
Examples:
  pennyweight score records.jsonl
  pennyweight score results/ --by tier --metric accuracy,cost_of_pass
  pennyweight score log.csv --map answer=output --map task_id=case --format json
  zcat log.jsonl.gz | pennyweight score -

Names that are understood: {ALIASES}.
"""


@click.command(
    "score", epilog=EPILOG, context_settings={"max_content_width": 80}, no_args_is_help=True
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--by", multiple=True, metavar="COLUMNS", help="Group by these columns.")
@click.option("--metric", multiple=True, metavar="NAMES", help="Only these metrics.")
@format_option
@click.option("--answer", metavar="RULE", help="How answers are found, such as last_number.")
@click.option("--match", metavar="RULE", help="How answers are matched, such as numeric=0.01.")
@click.option(
    "--map",
    "map",
    multiple=True,
    metavar="COLUMN=THEIRS",
    help="Take a column from theirs; from several joined (A,B); or ignore it (no name).",
)
@click.option("--checks", metavar="SUITE", help="Check a run anew, by this suite.")
@click.option("--prices", metavar="FILE", help="Price a run anew: YAML or JSON, by model.")
@click.option("--per-task", metavar="FILE", help="Write each record with its measures.")
@click.option("--positive", metavar="LABEL", help="The label precision and recall are about.")
@click.option("--weight", multiple=True, metavar="METRIC=W", help="A part of weighted_score.")
@click.option("--set", "set", multiple=True, metavar="OPTION=VALUE", help="Set a metric's option.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of draws.")
@store_option
@click.option("--skip-bad", is_flag=True, help="Leave out bad records and say how many.")
def command(
    sources: tuple[str, ...],
    by: tuple[str, ...],
    metric: tuple[str, ...],
    format: str,
    answer: str | None,
    match: str | None,
    map: tuple[str, ...],
    checks: str | None,
    prices: str | None,
    per_task: str | None,
    positive: str | None,
    weight: tuple[str, ...],
    set: tuple[str, ...],
    confidence: float,
    seed: int,
    skip_bad: bool,
    store: str | None,
) -> None:
    """Compute metrics of any records, each with its interval.

    SOURCE is a run (its id, a beginning of it, or 'latest'), a file (JSONL,
    JSON, CSV or Parquet, plain, .gz or .zst), a folder of such files, or '-'
    for standard input.
    """
    from pennyweight.render import scores as report  # noqa: PLC0415
    from pennyweight.scoring.pipeline import score  # noqa: PLC0415

    options: dict[str, Any] = settings(set)
    if positive is not None:
        options["positive"] = positive
    if weight:
        options["weights"] = numbers("--weight", weight)
    rules = _rules(answer, match)
    asked = _checked(_resolved(sources, store, prices), checks)
    own = tuple(names(by))
    asked = [replace(one, own=own) if hasattr(one, "own") else one for one in asked]
    found = score(
        asked,
        by=names(by),
        metrics=names(metric),
        confidence=confidence / 100 if 1 < confidence < 100 else confidence,
        seed=seed,
        map=pairs("--map", map),
        skip_bad=skip_bad,
        per_task=per_task,
        progress=_Progress() if sys.stderr.isatty() else None,
        **options,
        **rules,
    )
    if found.left_out:
        lines = "\n".join(f"  {problem}" for problem in found.problems[:5])
        were = "bad record was" if found.left_out == 1 else "bad records were"
        click.echo(clean(f"{found.left_out:,} {were} left out:\n{lines}"), err=True)
    if found.unused:
        names_ = clean(", ".join(found.unused[:12]))
        more = f" and {len(found.unused) - 12} more" if len(found.unused) > 12 else ""
        click.echo(f"Not used: {names_}{more}. --map COLUMN=THEIRS says what one is.", err=True)
    if not sum(group.records for group in found.groups):
        raise InputError(["There are no records to score."])
    click.echo(report.render(found, format), nl=False)
    note_unfinished(asked)
    if "accuracy" in found.groups[0].estimates:
        from pennyweight.cli.run import note_unanswered  # noqa: PLC0415

        runs = [one for one in asked if hasattr(one, "run")]
        note_unanswered(runs, rules.get("answer_rule"))
    if per_task:
        click.echo(f"Wrote every record with its measures to {per_task}.", err=True)


def _resolved(sources: tuple[str, ...], store: str | None, prices: str | None) -> list[Any]:
    """Tell runs from files."""
    found = _found(sources, store)
    if prices is None:
        return found
    from pennyweight.runs.price_list import PriceList  # noqa: PLC0415
    from pennyweight.runs.source import RunSource  # noqa: PLC0415

    listed = PriceList.read(prices)
    runs = [one for one in found if isinstance(one, RunSource)]
    if not runs:
        raise UsageError("--prices prices runs anew; a file keeps the cost it has.")
    for one in runs:
        kept = [name for name in one.run.settings["subjects"] if name not in listed.of(one.run)]
        if kept:
            click.echo(
                clean(f"{prices} names no price for {', '.join(kept)}: the cost stays."), err=True
            )
    return [replace(one, prices=listed) if isinstance(one, RunSource) else one for one in found]


def _checked(found: list[Any], checks: str | None) -> list[Any]:
    """Check runs by another suite than the one they were made with."""
    if checks is None:
        return found
    from pennyweight.runs.source import RunSource  # noqa: PLC0415
    from pennyweight.suite.loader import load_suite  # noqa: PLC0415

    if not all(isinstance(one, RunSource) for one in found):
        raise UsageError("--checks checks runs anew; a file keeps what was observed in it.")
    suite = load_suite(checks)
    return [replace(one, checks=suite) for one in found]


def _found(sources: tuple[str, ...], store: str | None) -> list[Any]:
    if all(name == "-" or Path(name).exists() for name in sources):
        return list(sources)
    from pennyweight.runs.source import resolve  # noqa: PLC0415
    from pennyweight.store.store import Store  # noqa: PLC0415

    return list(resolve(sources, Store(store)))


def note_unfinished(sources: Sequence[Any]) -> None:
    """Say of runs that attempts are missing: then no score is of the whole suite."""
    runs = [one for one in sources if hasattr(one, "run")]
    if not runs:
        return
    from pennyweight.cli.runs import as_it_is  # noqa: PLC0415
    from pennyweight.render.runs import answered  # noqa: PLC0415

    for source in runs:
        run, made = source.run, answered(source.store.statuses(source.run.id))
        if made < run.attempts:
            of = f"{made:,} of {run.attempts:,} attempts of run {run.id}"
            status = as_it_is(run, source.store).status
            click.echo(f"Note: {of} {'is' if made == 1 else 'are'} made ({status}).", err=True)


def _rules(answer: str | None, match: str | None) -> dict[str, Any]:
    """Read the rules given as options, which go before a suite's own."""
    from pennyweight.text.extraction import AnswerRule  # noqa: PLC0415
    from pennyweight.text.matching import MatchRule  # noqa: PLC0415

    given: dict[str, Any] = {}
    if answer is not None:
        given["answer_rule"] = AnswerRule.parse(answer)
    if match is not None:
        given["match_rule"] = MatchRule.parse(match)
        if missing := given["match_rule"].missing():
            raise UsageError(missing)
    return given


class _Progress:
    """Says on the terminal how many records were read, once reading takes a while."""

    def __init__(self) -> None:
        self.next = time.monotonic() + 1

    def __call__(self, records: int) -> None:
        now = time.monotonic()
        if now > self.next:
            self.next = now + 0.2
            click.echo(f"\r{records:,} records read … ", err=True, nl=False)
