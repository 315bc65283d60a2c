"""Gates on a page: a policy's verdict on a run, each gate on a scale with its interval.

To look decides, but keeps nothing; a verdict is kept when somebody says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError, UsageError
from assay.report.verdicts import shown
from assay.store import kept
from assay.web.suites import files_like, id_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request

    from assay.gates.verdict import Verdict
    from assay.store.store import Run
    from assay.web.site import Site

_POLICY = re.compile(
    rb'(?m)^\s*"?(policy|thresholds|gates|risk_based_thresholds|pass_criteria)"?\s*:'
)
_OTHER = re.compile(rb"(?m)^(suite|tasks|subjects)\s*:")
LARGE = 200_000
"""Attempts from which a policy is decided in the terminal."""


def policies(site: Site) -> dict[str, Path]:
    """Find the policies below the server's folders, by their ids."""
    kinds = ("yaml", "yml", "json")
    found = [p for folder in site.suites.folders for p in files_like(folder, _POLICY, kinds)]
    others = {p for folder in site.suites.folders for p in files_like(folder, _OTHER, kinds)}
    return {id_of(p.resolve()): p for p in found if p not in others}


def values(request: Request, site: Site) -> dict[str, Any]:
    """Gather what the page shows: what can be chosen, and the verdict on what was."""
    query = request.query_params
    runs, known = site.store.runs(), policies(site)
    run = next((r for r in runs if r.id == query.get("run", "")), runs[0] if runs else None)
    policy = query.get("policy", "")
    where = {n: query[n] for n in ("subject", "tier") if query.get(n)}
    told: dict[str, Any] = {
        "runs": runs[:200],
        "run": run,
        "policies": {i: f"{p.resolve().parent.name}/{p.name}" for i, p in known.items()},
        "policy": policy,
        "where": where,
        "verdict": None,
        "problem": "",
        "kept": kept.decisions(site.store, run.id) if run else (),
    }
    if run is None or not policy:
        return told
    if policy not in known:
        return {**told, "problem": "There is no such policy below the folders of this server."}
    if not where:
        where |= _first_side(run)
    try:
        verdict = _decided(site, run, known[policy], where)
    except AssayError as error:
        return {**told, "problem": str(error)}
    return {**told, **shown(verdict), "link": lambda task: _records_of(run, task, where)}


def keep(site: Site, run: Run, policy: str, where: Mapping[str, str | None]) -> None:
    """Decide on a side of a run, and keep the verdict with it."""
    path = policies(site).get(policy)
    if path is None:
        raise UsageError("There is no such policy below the folders of this server.")
    chosen = {name: value for name, value in where.items() if value}
    stamp = kept.stamp(site.store, run)
    verdict = _decided(site, run, path, chosen)
    words = {"policy": verdict.policy, "verdict": verdict.verdict}
    side = ", ".join(chosen.values())
    kept.keep_decision(site.store, run.id, **words, side=side, stamp=stamp)


def _records_of(run: Run, task: str, where: Mapping[str, str]) -> str:
    from assay.web.pages import run_url  # noqa: PLC0415

    return run_url(run.id, "records", task_id=task, **where)


def _first_side(run: Run) -> dict[str, str]:
    """Choose a side where a run has several: gates decide on one."""
    names = {"subject": "subjects", "tier": "tiers"}
    return {
        one: run.settings[many][0]
        for one, many in names.items()
        if len(run.settings.get(many, [])) > 1
    }


def _decided(site: Site, run: Run, path: Path, where: Mapping[str, str]) -> Verdict:
    from assay.gates.decide import decide, needed_metrics  # noqa: PLC0415
    from assay.gates.load import load_policies  # noqa: PLC0415
    from assay.gates.records import read_records  # noqa: PLC0415
    from assay.run.source import RunSource  # noqa: PLC0415

    if run.attempts > LARGE:
        raise AssayError(f"This run is large; in a terminal: assay gate {run.id} --policy {path}")
    loaded = load_policies([path])
    records = read_records(
        [RunSource(run, site.store)], needed_metrics(loaded), loaded.options, where=where
    )
    return decide(loaded, records)
