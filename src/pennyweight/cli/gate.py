"""`pennyweight gate`: a policy's verdict; made for CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pennyweight.cli.options import pairs, store_option
from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.gates.early_stopping import Plan
    from pennyweight.gates.records import Records
    from pennyweight.gates.verdict import Verdict

FORMATS = ("table", "json", "markdown", "junit", "github")
SUFFIXES = {".json": "json", ".md": "markdown", ".xml": "junit", ".txt": "table"}

EPILOG = """\b
Exit codes: 0 passed, 1 failed, 2 wrong usage, 3 inconclusive.
\b
Examples:
  pennyweight gate latest --policy release.yaml
  pennyweight gate records.jsonl --policy release.json --version v2.1
  pennyweight gate latest --policy release.yaml --baseline main --report gate.xml
"""


@click.command(
    "gate", epilog=EPILOG, context_settings={"max_content_width": 80}, no_args_is_help=True
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--policy", multiple=True, required=True, metavar="FILE", help="What has to hold.")
@click.option("--baseline", metavar="SOURCE|NAME", help="What to compare with.")
@click.option("--version", metavar="V", help="Of what is evaluated, for progressive thresholds.")
@click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="Only these records.")
@click.option("--baseline-where", multiple=True, metavar="COLUMN=VALUE", help="Of the baseline.")
@click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print.",
)
@click.option(
    "--report",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a file: .xml (JUnit), .md, .json or .txt.",
)
@click.option("--ratchet", is_flag=True, help="Raise passed thresholds in the policy's file.")
@click.option("--margin", metavar="SHARE", default="1%", show_default=True, help="Of --ratchet.")
@click.option(
    "--map", "map", multiple=True, metavar="COLUMN=THEIRS", help="As in pennyweight score."
)
@click.option("--skip-bad", is_flag=True, help="Leave out bad records.")
@store_option
def command(
    sources: tuple[str, ...],
    policy: tuple[str, ...],
    baseline: str | None,
    version: str | None,
    where: tuple[str, ...],
    baseline_where: tuple[str, ...],
    format: str,
    report: tuple[Path, ...],
    ratchet: bool,
    margin: str,
    map: tuple[str, ...],
    skip_bad: bool,
    store: str | None,
) -> None:
    """Decide whether records are good enough: pass, fail or inconclusive.

    SOURCE is what `pennyweight score` takes: a run, files, a folder, or '-'. The
    records must be of one subject and one tier; --where picks them. Several
    policies are joined.
    """
    from pennyweight.gates.decision import decide, needed_metrics  # noqa: PLC0415
    from pennyweight.gates.loader import load_policies  # noqa: PLC0415
    from pennyweight.gates.records import read_records  # noqa: PLC0415

    for path in report:
        if path.suffix not in SUFFIXES:
            raise UsageError(f"--report {path}: the name must end in {', '.join(SUFFIXES)}.")
    loaded = load_policies(policy, version)
    metrics = needed_metrics(loaded)
    shares = _margin(margin)
    found = resolved(sources, store)
    records = read_records(
        found,
        metrics,
        loaded.options,
        where=pairs("--where", where),
        map=pairs("--map", map),
        skip_bad=skip_bad,
    )
    if records.left_out:
        were = (
            "1 bad record was"
            if records.left_out == 1
            else f"{records.left_out:,} bad records were"
        )
        click.echo(f"{were} left out; nothing is decided about them.", err=True)
    before = None
    if baseline is not None:
        chosen = pairs("--baseline-where", baseline_where)
        before = baseline_records(baseline, metrics, loaded.options, chosen, store)
    verdict = decide(loaded, records, before, _plan(found, pairs("--where", where)))
    _keep(found, verdict, pairs("--where", where))
    show(verdict, format, report)
    if ratchet:
        _ratchet(verdict, shares)
    raise click.exceptions.Exit(verdict.exit_code)


def resolved(sources: tuple[str, ...], store: str | None) -> list[Any]:
    """Tell runs from files, as `pennyweight score` does."""
    if all(name == "-" or Path(name).exists() for name in sources):
        return list(sources)
    from pennyweight.runs.source import RunSource, resolve  # noqa: PLC0415
    from pennyweight.store.store import Store  # noqa: PLC0415

    found = resolve(sources, Store(store))
    runs = [one for one in found if isinstance(one, RunSource)]
    if runs and len(runs) < len(found):
        raise UsageError(
            "Runs and files cannot be taken together; 'pennyweight export' writes a file."
        )
    return list(found)


def baseline_records(
    name: str, metrics: list[str], options: Any, where: dict[str, str], store: str | None
) -> Records:
    """Read what is compared with: a file, a baseline by its name, or a run."""
    from pennyweight.gates.baseline import is_baseline, load  # noqa: PLC0415
    from pennyweight.gates.records import one_side, read_records  # noqa: PLC0415

    if not Path(name).exists() and is_baseline(name):
        records = load(name, options, metrics).where(list(where.items()))
        if not records.frame.height:
            raise InputError([f"The baseline {name} has no such records."])
        one_side(records.frame)
    else:
        found = _baseline_source(name, store)
        records = read_records(found, metrics, options, where=where, name=name)
    if records.to_come:
        made = (records.planned or 0) - records.to_come
        text = f"the baseline {name} is not whole: {made:,} of {records.planned:,} attempts."
        click.echo(f"Note: {clean(text)}", err=True)
    return records


def _baseline_source(name: str, store: str | None) -> list[Any]:
    """Find a file or a run to compare with; say how a name is given where there is neither."""
    from pennyweight.gates.baseline import names  # noqa: PLC0415

    try:
        return resolved((name,), store)
    except InputError as error:
        known = names()
        there = f"There are {', '.join(known)}." if known else "There is none yet."
        hint = f"'pennyweight baseline set {name} RUN' keeps one. {there}"
        what = unknown("Baseline", name, known, "No file or run has that name either.")
        raise InputError([what], hint=hint) from error


def _keep(sources: list[Any], verdict: Verdict, where: dict[str, str]) -> None:
    """Keep the verdict on a run with it, for those who look at runs."""
    if len(sources) != 1 or not hasattr(sources[0], "run"):
        return
    from pennyweight.store import cache as kept  # noqa: PLC0415
    from pennyweight.store.connection import StoreError  # noqa: PLC0415

    run, store = sources[0].run, sources[0].store
    words = {"policy": verdict.policy, "verdict": verdict.verdict}
    side = ", ".join(where.values())
    try:
        kept.keep_decision(store, run.id, **words, side=side, stamp=kept.stamp(store, run))
    except StoreError as error:
        click.echo(f"The verdict was not kept with the run: {error}", err=True)


def _plan(sources: list[Any], where: dict[str, str]) -> Plan | None:
    """Give the plan of a run that was stopped when it was decided: it is tested as it was."""
    if len(sources) != 1 or isinstance(sources[0], str):
        return None
    from pennyweight.runs.plan import early_stop_plan  # noqa: PLC0415

    return early_stop_plan(sources[0].run, where)


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


def _margin(text: str) -> float:
    from pennyweight.gates.threshold import Quantity  # noqa: PLC0415

    amount = Quantity.parse(text)
    if amount.sign or amount.unit not in {"", "%"} or amount.number < 0:
        raise UsageError(f"--margin {text}: it must be a share such as 1%.")
    return amount.number / 100 if amount.unit or amount.number >= 1 else amount.number


def _ratchet(verdict: Verdict, margin: float) -> None:
    from pennyweight.gates.ratchet import ratchet  # noqa: PLC0415

    if verdict.verdict != "pass":
        click.echo("No threshold was raised: the policy did not pass.", err=True)
        return
    turned = ratchet(verdict, margin)
    for one in turned.raised:
        text = f"{one.file}, line {one.line}: {one.gate} {one.before} → {one.after}"
        click.echo(clean(text), err=True)
    for why in turned.left:
        click.echo(clean(why), err=True)
    if not turned.raised and not turned.left:
        click.echo("No threshold was raised: none was exceeded by more than the margin.", err=True)
