"""Gates on a page: a policy's verdict on a run, each gate on a scale with its interval."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError
from assay.web.suites import files_like, id_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request

    from assay.gates.verdict import Decision, Verdict
    from assay.store.store import Run
    from assay.web.site import Site

_POLICY = re.compile(
    rb'(?m)^\s*"?(policy|thresholds|gates|risk_based_thresholds|pass_criteria)"?\s*:'
)
_OTHER = re.compile(rb"(?m)^(suite|tasks|subjects)\s*:")
LARGE = 200_000
"""Attempts from which a policy is decided in the terminal."""
WIDTH = 220


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
    policy = query.get("policy", next(iter(known), ""))
    where = {n: query[n] for n in ("subject", "tier") if query.get(n)}
    told: dict[str, Any] = {
        "runs": runs[:200],
        "run": run,
        "policies": {i: f"{p.resolve().parent.name}/{p.name}" for i, p in known.items()},
        "policy": policy,
        "where": where,
        "verdict": None,
        "problem": "",
    }
    if run is None or policy not in known:
        return told
    if not where:
        where |= _first_side(run)
    try:
        verdict = _decided(site, run, known[policy], where)
    except AssayError as error:
        return {**told, "problem": str(error)}
    return {**told, **shown(verdict)}


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


def shown(verdict: Verdict) -> dict[str, Any]:
    """Arrange a verdict for the page."""
    from assay.report import gate as writing  # noqa: PLC0415

    rows = [
        {
            "name": gate.name,
            "level": gate.level,
            "verdict": gate.verdict,
            "sign": writing.sign(gate),
            "value": writing.value_of(gate),
            "interval": writing.ends_of(gate),
            "threshold": writing.threshold_of(gate),
            "why": gate.why,
            "scenarios": gate.scenarios[:50],
            "scale": scale(gate),
        }
        for gate in verdict.gates
    ]
    return {"verdict": verdict, "headline": writing.headline(verdict), "gates": rows}


def scale(gate: Decision) -> dict[str, float] | None:
    """Place a gate's value, its interval and its threshold on a line."""
    given = [gate.value, gate.low, gate.high, gate.threshold]
    known = [v for v in given if isinstance(v, int | float) and math.isfinite(v)]
    if gate.value is None or gate.threshold is None or len(known) < 2:
        return None
    first, last = (0.0, 1.0) if gate.kind == "rate" else (min(0.0, *known), max(known) * 1.15)
    first, last = min([first, *known]), max([last, *known])
    span = (last - first) or 1.0

    def place(value: float | None, other: float) -> float:
        at = other if value is None else min(last, max(first, value))
        return round(6 + (WIDTH - 12) * (at - first) / span, 1)

    limit = place(gate.threshold, first)
    right = (gate.sign or "").startswith((">", "≥"))
    return {
        "value": place(gate.value, first),
        "low": place(gate.low, gate.value),
        "high": place(gate.high, gate.value),
        "limit": limit,
        "from": limit if right else 6.0,
        "width": round(WIDTH - 6 - limit if right else limit - 6, 1),
    }
