"""Decide a policy. Every verdict of Pennyweight is made here, so that all of them agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.api.baseline import baseline_records
from pennyweight.api.sources import open_store, resolve, unmixed
from pennyweight.errors import UsageError
from pennyweight.gates.decision import decide, needed_metrics
from pennyweight.gates.loader import load_policies
from pennyweight.gates.policy import Policy
from pennyweight.gates.records import Records, read_records
from pennyweight.gates.verdict import Evidence
from pennyweight.runs.plan import early_stop_plan
from pennyweight.runs.source import RunSource
from pennyweight.store import cache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennyweight.gates.baseline import Baseline
    from pennyweight.gates.early_stopping import Plan
    from pennyweight.gates.verdict import Verdict
    from pennyweight.store.store import Store


def gate(
    source: str | RunSource | Sequence[Any],
    policy: str | Path | Policy | Sequence[str | Path],
    *,
    baseline: str | Baseline | RunSource | Records | None = None,
    where: Mapping[str, str] | None = None,
    baseline_where: Mapping[str, str] | None = None,
    version: str | None = None,
    map: Mapping[str, str] | None = None,  # noqa: A002
    skip_bad: bool = False,
    store: str | Store | None = None,
) -> Verdict:
    """Decide whether records are good enough: pass, fail or inconclusive.

    `policy` names one file or several, which are joined. The records must be of one subject and
    one tier; `where` picks them. `baseline` names a file, a run, or a baseline that was set; its
    records are those of the same subject and tier unless `baseline_where` picks others. `version`
    chooses among progressive thresholds. A run that was stopped early is tested by its plan.
    """
    loaded = policy if isinstance(policy, Policy) else load_policies(_paths(policy), version)
    metrics = needed_metrics(loaded)
    where = where or {}
    sources = _sources(source, where, store)
    plan, run = _plan(sources, where), _run(sources)
    stamp = cache.stamp(run.store, run.run) if run else ""
    records = read_records(
        sources, metrics, loaded.options, where=where, map=map, skip_bad=skip_bad
    )
    before = baseline
    if before is not None and not isinstance(before, Records):
        before = baseline_records(
            before, metrics, loaded.options, where=baseline_where, beside=where,
            run=run.run.id if run else None, store=run.store if run else store,
        )  # fmt: skip
    evidence = Evidence(
        run=run.run.id if run else None,
        stamp=stamp,
        side=", ".join(where.values()),
        tasks=frozenset(records.frame["task_id"].drop_nulls()),
        left_out=records.left_out,
        baseline_planned=before.planned if before else None,
        baseline_missing=before.to_come if before else 0,
    )
    return replace(decide(loaded, records, before, plan), evidence=evidence)


def keep(verdict: Verdict, store: str | Store | None = None) -> bool:
    """Keep the verdict with the run it is about; False where it is not about one run."""
    about = verdict.evidence
    if about.run is None:
        return False
    cache.keep_decision(
        open_store(store),
        about.run,
        policy=verdict.policy,
        side=about.side,
        verdict=verdict.verdict,
        stamp=about.stamp,
    )
    return True


def _paths(policy: str | Path | Sequence[str | Path]) -> list[str | Path]:
    return [policy] if isinstance(policy, str | Path) else list(policy)


def _sources(
    source: str | RunSource | Sequence[Any], where: Mapping[str, str], store: str | Store | None
) -> list[Any]:
    """Resolve the sources; of several runs only the one that `where` names is needed."""
    given = [source] if isinstance(source, str | RunSource) else list(source)
    names = [one for one in given if isinstance(one, str)]
    sources = unmixed(resolve(names, store) if len(names) == len(given) else given)
    chosen = [s for s in sources if isinstance(s, RunSource) and s.run.id == where.get("run")]
    return chosen or sources


def _run(sources: Sequence[Any]) -> RunSource | None:
    only = sources[0] if len(sources) == 1 else None
    return only if isinstance(only, RunSource) else None


def _plan(sources: Sequence[Any], where: Mapping[str, str]) -> Plan | None:
    """Find the plan of an early-stopped run: its gates are tested as they were while it ran."""
    plans = [early_stop_plan(s.run, where) for s in sources if isinstance(s, RunSource)]
    if len(plans) > 1 and any(plans):
        raise UsageError(
            "One of these runs was stopped as soon as it was decided, so it is decided by itself. "
            "Name one run, or pick it with --where run=ID."
        )
    return plans[0] if plans else None
