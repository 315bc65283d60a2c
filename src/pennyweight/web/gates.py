"""The page of gates: the verdict of a policy on a run, each gate on a scale with its interval.

Viewing decides but does not save the verdict; a button saves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.requests import Request

from pennyweight.api.gate import (
    Verdict,
    baseline_choices,
    gate_run,
    gate_state,
    keep,
    read_policy,
    side_count,
)
from pennyweight.api.pages.run_list import Store, StoredRun, policy_verdicts
from pennyweight.api.suites import policy_files
from pennyweight.errors import PennyweightError, UsageError
from pennyweight.render.page.gate_grid import gate_grid
from pennyweight.render.verdict import verdict_view
from pennyweight.web.addresses import run_url, url
from pennyweight.web.site import Site

MAX_CHOICES = 200
"""Newest runs to choose from; a run that an address names is a choice, too."""
MAX_SAVED = 60
MAX_DECISIONS = 16
"""Decisions that are remembered."""
NO_POLICY = "There is no such policy in the folders of this server."


def values(request: Request, site: Site) -> dict[str, Any]:
    """Return the values of the page: the choices, and the verdict on what was chosen."""
    query = request.query_params
    runs, policies = site.store.runs(), policy_files(site.suites.folders)
    run = next((r for r in runs if r.id == query.get("run", "")), runs[0] if runs else None)
    policy, baseline = query.get("policy", ""), query.get("baseline", "")
    where = {n: query[n] for n in ("subject", "tier") if query.get(n)}
    named = {run.id if run else "", baseline.partition(":")[2]}
    choices = [*runs[:MAX_CHOICES], *(r for r in runs[MAX_CHOICES:] if r.id in named)]
    page: dict[str, Any] = {
        "runs": choices,
        "run": run,
        "baselines": baseline_choices(choices, run),
        "baseline": baseline,
        "policies": {file.id: file.name for file in policies.values()},
        "policy": policy,
        "where": where,
        "verdict": None,
        "problem": "",
        "saved": saved_verdicts(site, run)[:MAX_SAVED] if run else [],
    }
    if run is None or not policy:
        return page
    if policy not in policies:
        return {**page, "problem": NO_POLICY}
    path = policies[policy].path
    try:
        verdict = _decided(site, run, path, where, baseline)
    except PennyweightError as error:
        return {**page, "problem": str(error).replace(str(path), policies[policy].name)}

    def link(task: str) -> str:
        recorded = task in verdict.evidence.tasks
        return run_url(run.id, "records", task_id=task, **where) if recorded else ""

    def side_href(side: Mapping[str, str]) -> str:
        return url("/gates", run=run.id, policy=policy, baseline=baseline, **where, **side)

    return {
        **page,
        **verdict_view(verdict),
        "among": side_count(run, read_policy([path]).across) if where else 1,
        "link": link,
        "grid": gate_grid(verdict, side_href) if verdict.sides else None,
    }


def saved_verdicts(site: Site, run: StoredRun) -> list[dict[str, Any]]:
    """Return the stored verdicts on a run, each with where its side is decided again."""
    names = ("policy", "side", "verdict", "current", "at")
    return [
        {n: getattr(one, n) for n in names}
        | {"href": url("/gates", run=run.id, **_where(run, one.side))}
        for one in policy_verdicts(site.store, run.id)
    ]


def _where(run: StoredRun, side: str) -> dict[str, str]:
    """Return the subject and the tier that a stored verdict is about."""
    named = side.split(", ")
    return {
        name: next(v for v in values if v in named)
        for name, values in run.sides.items()
        if len(values) > 1 and any(v in named for v in values)
    }


def save(
    site: Site, run: StoredRun, policy: str, where: Mapping[str, str | None], baseline: str = ""
) -> None:
    """Decide on a side of a run, and save the verdict with it."""
    file = policy_files(site.suites.folders).get(policy)
    if file is None:
        raise UsageError(NO_POLICY)
    chosen = {name: value for name, value in where.items() if value}
    keep(_decided(site, run, file.path, chosen, baseline), site.store)


def _decided(
    site: Site, run: StoredRun, policy: Path, where: Mapping[str, str], baseline: str
) -> Verdict:
    """Decide a policy, again only if the run, the policy or the baseline changed."""
    state = gate_state(site.store, run, policy, baseline)
    return _decision(site.store, run.id, policy, tuple(where.items()), baseline, state)


@lru_cache(MAX_DECISIONS)
def _decision(
    store: Store,
    run: str,
    policy: Path,
    where: tuple[tuple[str, str], ...],
    baseline: str,
    state: tuple[Any, ...],
) -> Verdict:
    del state
    return gate_run(store, store.find(run), policy, where=dict(where), baseline=baseline)
