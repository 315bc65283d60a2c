"""`pennyweight gate`: a policy's verdict; made for CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pennyweight.cli.options import (
    baseline_options,
    format_choice,
    map_option,
    skip_bad_option,
    store_option,
)
from pennyweight.errors import InputError, PennyweightError, UsageError
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.gates.ratchet import RatchetResult
    from pennyweight.gates.verdict import Verdict

FORMATS = ("table", "json", "markdown", "junit", "github")
SUFFIXES = {".json": "json", ".md": "markdown", ".xml": "junit", ".txt": "table"}

EPILOG = """\b
Exit codes: 0 passed, 1 failed, 2 wrong usage, 3 inconclusive.
Example: pennyweight gate latest --policy release.yaml --report gate.xml
"""


@click.command("gate", epilog=EPILOG, no_args_is_help=True)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "--policy",
    multiple=True,
    required=True,
    metavar="FILE",
    help="File of gates; several are joined.",
)
@baseline_options
@format_choice(FORMATS, "Output format.")
@click.option(
    "--report",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a file: .xml (JUnit), .md, .json or .txt.",
)
@click.option("--ratchet", is_flag=True, help="Raise passed thresholds in the policy's file.")
@click.option("--margin", metavar="SHARE", default="1%", show_default=True, help="For --ratchet.")
@map_option
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

    SOURCE is what 'pennyweight score' takes. The records must be of one subject
    and one tier; --where picks them.
    """
    from pennyweight.api.gate import gate, keep, margin_share, raise_thresholds  # noqa: PLC0415

    for path in report:
        if path.suffix not in SUFFIXES:
            raise UsageError(f"--report {path}: the name must end in {', '.join(SUFFIXES)}.")
    share = margin_share(margin)
    verdict = gate(sources, policy, store=store, **options)
    note_evidence(verdict, options["baseline"])
    try:
        keep(verdict, store)
    except PennyweightError as error:
        click.echo(f"The verdict was not kept with the run: {error}", err=True)
    show(verdict, format, report)
    if ratchet:
        note_raised(raise_thresholds(verdict, share))
    raise click.exceptions.Exit(verdict.exit_code)


def note_evidence(verdict: Verdict, baseline: str | None) -> None:
    """Tell which records the verdict leaves out, and whether the baseline is incomplete."""
    about = verdict.evidence
    if about.left_out:
        were = "1 bad record was" if about.left_out == 1 else f"{about.left_out:,} bad records were"
        click.echo(f"{were} left out; nothing is decided about them.", err=True)
    if about.baseline_missing:
        planned = about.baseline_planned or 0
        made = f"{planned - about.baseline_missing:,} of {planned:,} attempts"
        click.echo(f"Note: {clean(f'the baseline {baseline} is not whole: {made}.')}", err=True)


def show(verdict: Verdict, format: str, reports: tuple[Path, ...] = ()) -> None:
    """Print a verdict, write its reports, and tell GitHub where it is asked for."""
    from pennyweight.render.verdict import render  # noqa: PLC0415

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
    """Tell which thresholds were raised, and which could not be."""
    if raised is None:
        click.echo("No threshold was raised: the policy did not pass.", err=True)
        return
    lines = [f"{r.file}, line {r.line}: {r.gate} {r.before} → {r.after}" for r in raised.raised]
    for line in (*lines, *raised.left):
        click.echo(clean(line), err=True)
    if not lines and not raised.left:
        click.echo("No threshold was raised: none was exceeded by more than the margin.", err=True)
