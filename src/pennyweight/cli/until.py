"""`pennyweight run --until-decided`: make attempts only while the verdict is open."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from pennyweight.cli.gate import show
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.engine.early_stop import Until
    from pennyweight.gates.verdict import Verdict
    from pennyweight.store.store import Run, Store
    from pennyweight.suite.values import Suite


def until_decided(
    suite: Suite,
    run: Run,
    store: Store,
    policies: tuple[str, ...],
    baseline: str | None,
    version: str | None,
    format: str,
    *,
    fresh: bool,
) -> int:
    """Make ever larger parts of a suite until its policy is decided; gives the exit code."""
    from pennyweight.api.baseline import baseline_records  # noqa: PLC0415
    from pennyweight.engine.early_stop import Until  # noqa: PLC0415
    from pennyweight.engine.resume import held, renew  # noqa: PLC0415
    from pennyweight.gates.decision import needed_metrics  # noqa: PLC0415
    from pennyweight.gates.loader import load_policies  # noqa: PLC0415
    from pennyweight.runs.plan import EarlyStop  # noqa: PLC0415

    stored = None if fresh else EarlyStop.of(run)
    version = version or (stored.version if stored else None)
    policy = load_policies(policies, version)
    before = None
    if baseline is not None:
        metrics = needed_metrics(policy)
        before = baseline_records(baseline, metrics, policy.options, store=store)
    seed = stored.seed if stored else None
    until = Until.of(suite, policy, before, seed=seed, version=version)
    if not fresh:
        with held(store, run.id):
            renew(run.id, until.suite, store)
    run = replace(run, settings={**run.settings, **until.settings()})
    most = len(suite.tasks) * suite.runs
    click.echo(f"Run {run.id}: at most {most:,} attempts of {clean(suite.name)}.", err=True)
    with contextlib.redirect_stdout(sys.stderr):  # what functions of the user print
        verdict, code, made = _make(until, run, store, fresh=fresh)
    settings = store.find(run.id).settings
    store.set_run(run.id, attempts=made, settings={**settings, **until.settings()})
    click.echo(f"{made:,} of at most {most:,} attempts made. Run {run.id}.", err=True)
    if verdict is None:
        return code or 4
    if code != 130 and verdict.verdict != "inconclusive":
        store.set_run(run.id, status="done")
    show(verdict, "table" if format == "csv" else format)
    return code or verdict.exit_code


def _make(until: Until, run: Run, store: Store, *, fresh: bool) -> tuple[Verdict | None, int, int]:
    """Make part after part; gives the last verdict, an exit code, and the attempts made."""
    from pennyweight.cli import run as command  # noqa: PLC0415
    from pennyweight.cli.ending import tell_retried  # noqa: PLC0415
    from pennyweight.engine.execution import execute  # noqa: PLC0415

    verdict: Any = None
    began = time.monotonic()
    for part in until.parts():
        progress = command._progress(part)
        try:
            outcome = execute(part, run, store, watch=progress, fresh=fresh, began=began)
        finally:
            progress.end()
        fresh = False
        command._observe(outcome, until.suite, store)
        code = command._judge(outcome, until.suite, store, None, began)
        made = sum(store.statuses(run.id).values())
        if made:
            verdict = until.look(run, store)
        if outcome.interrupted:
            return verdict, 130, made
        if code or outcome.tally.exhausted:
            if outcome.tally.exhausted:
                tell_retried(outcome.tally)
                click.echo(clean(outcome.tally.exhausted), err=True)
            return verdict, code, made
        if verdict is None or verdict.verdict != "inconclusive":
            break
        if until.policy.errors.exceeded(verdict.errors, verdict.records):
            break  # more attempts cannot make it a pass
    return verdict, 0, made
