"""`pennyweight gate`: the verdict of a policy on some records."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pennyweight.cli.notes import note_score_errors, note_sources
from pennyweight.cli.options import (
    FILE,
    answer_options,
    baseline_options,
    errors_option,
    format_choice,
    log_options,
    map_option,
    names_option,
    option,
    scorers_option,
    skip_bad_option,
    store_option,
)
from pennyweight.errors import InputError, PennyweightError, UsageError
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.gates.ratchet import RatchetResult
    from pennyweight.gates.verdict import Verdict

SUFFIXES = {".json": "json", ".md": "markdown", ".xml": "junit", ".txt": "table"}

EPILOG = """\b
Exit codes: 0 passed, 1 failed, 2 wrong usage, 3 inconclusive.
Examples:
  pennyweight gate latest --policy release.yaml --report gate.xml
  pennyweight gate latest --policy release.yaml --each subject,tier
"""


@click.command("gate", epilog=EPILOG, no_args_is_help=True)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@option("--policy", "File of gates; repeat it for several.", "FILE", multiple=True, required=True)
@names_option("--each", "Decide on every side: subject,tier. The worst verdict counts.", "COLUMNS")
@baseline_options
@format_choice("table", "json", "markdown", "junit", "github")
@option("--report", "Also write a .xml (JUnit), .md, .json or .txt.", type=FILE, multiple=True)
@option("--ratchet", "Raise the thresholds that passed, in the policy's file.", is_flag=True)
@option(
    "--margin", "How far below the value --ratchet stays; -1% is above it.", "SHARE", default="1%"
)
@map_option
@scorers_option
@answer_options
@errors_option
@log_options
@skip_bad_option
@store_option
def command(
    sources: tuple[str, ...],
    policy: tuple[str, ...],
    format: str,
    report: tuple[Path, ...],
    ratchet: bool,
    margin: str,
    store: str | None,
    **options: Any,
) -> None:
    """Decide whether records are good enough: pass, fail or inconclusive.

    SOURCE is a run or a file, as for 'pennyweight score'. The records must be of
    one subject and one tier; select them with --where, or decide on every side
    with --each.
    """
    from pennyweight.api.gate import gate, keep, margin_share, raise_thresholds
    from pennyweight.api.sources import resolve

    for path in report:
        if path.suffix not in SUFFIXES:
            raise UsageError(f"--report {path}: the name must end in {', '.join(SUFFIXES)}.")
    share = margin_share(margin)
    logs = {name: options.pop(name) for name in ("scorer", "filter")}
    resolved = resolve(sources, store, **logs)
    verdict = gate(resolved, policy, store=store, **options)
    note_sources(resolved, options["map"], options["answer"])
    note_evidence(verdict, options["baseline"])
    try:
        if not any(
            options[name] for name in ("answer", "match", "errors")
        ):  # the page decides by the suite's rules
            keep(verdict, store)
    except PennyweightError as error:
        click.echo(f"The verdict was not saved with the run: {error}", err=True)
    show(verdict, format, report)
    if ratchet:
        note_raised(raise_thresholds(verdict, share))
    raise click.exceptions.Exit(verdict.exit_code)


def note_evidence(verdict: Verdict, baseline: str | None) -> None:
    """Print which records the verdict leaves out, and whether the baseline is incomplete."""
    about = (verdict.sides[0].verdict if verdict.sides else verdict).evidence
    note_score_errors(about.score_errors)
    if about.left_out:
        were = "1 bad record was" if about.left_out == 1 else f"{about.left_out:,} bad records were"
        click.echo(f"{were} left out and not decided on.", err=True)
    if about.baseline_missing:
        planned = about.baseline_planned or 0
        made = f"{planned - about.baseline_missing:,} of {planned:,} attempts"
        click.echo(clean(f"Note: the baseline {baseline} is incomplete ({made})."), err=True)


def show(verdict: Verdict, format: str, reports: tuple[Path, ...] = ()) -> None:
    """Print a verdict, write its reports, and annotate the workflow run on GitHub."""
    from pennyweight.render.verdict import render

    for path in reports:
        try:
            path.write_text(render(verdict, SUFFIXES[path.suffix]), encoding="utf-8")
        except OSError as error:
            raise InputError([f"{path}: cannot be written: {error.strerror}."]) from error
    click.echo(render(verdict, format), nl=False)
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    if format != "github":
        click.echo(render(verdict, "github"), nl=False, err=True)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(render(verdict, "markdown") + "\n")


def note_raised(raised: RatchetResult | None) -> None:
    """Print which thresholds were raised, and which could not be."""
    if raised is None:
        click.echo("No threshold was raised: the policy did not pass.", err=True)
        return
    lines = [f"{r.file}, line {r.line}: {r.gate} {r.before} → {r.after}" for r in raised.raised]
    for line in (*lines, *raised.left):
        click.echo(clean(line), err=True)
    if raised.raised and raised.above:
        click.echo(
            "These thresholds are above the values that were reached: a version that is as good "
            "fails in more than half of the cases. Only a better one passes.",
            err=True,
        )
    if not lines and not raised.left:
        click.echo("No threshold was raised: none was exceeded by more than the margin.", err=True)
