"""Gates on a page: a policy's verdict on a run, each gate on a scale with its interval.

To look decides, but keeps nothing; a verdict is kept when somebody says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pennyweight.errors import PennyweightError, UsageError
from pennyweight.render.verdict_scales import shown
from pennyweight.store import cache as kept
from pennyweight.web.addresses import run_url
from pennyweight.web.suite_files import files_like, id_of
from pennyweight.web.suite_preview import read_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from starlette.requests import Request

    from pennyweight.gates.baseline import Baseline
    from pennyweight.gates.verdict import Verdict
    from pennyweight.runs.source import RunSource
    from pennyweight.store.store import Run
    from pennyweight.web.site import Site

SAYS = {
    *("thresholds", "gates", "risk_based_thresholds", "progressive_thresholds", "pass_criteria"),
    "required_scenarios",
}
"""What a policy says, at least one of it."""
OTHERS = {"suite", "tasks", "subjects", "properties"}
"""What stands at the top of suites and schemas."""
_LIKE = re.compile(rb'(?m)^\s*"?(%s)"?\s*:' % "|".join(sorted(SAYS)).encode())
LONGEST = 500_000
"""Bytes of a policy."""
KEPT, RUN = "kept", "run"
"""Kinds of what a policy may compare with: a baseline that was kept, or a run."""
MOST = 200
"""Runs that can be chosen from."""
LARGE = 200_000
"""Attempts from which a policy is decided in the terminal."""


def policies(site: Site) -> dict[str, Path]:
    """Find the policies below the server's folders, by their ids."""
    kinds = ("yaml", "yml", "json")
    found = [p for folder in site.suites.folders for p in files_like(folder, _LIKE, kinds)]
    return {id_of(p.resolve()): p for p in found if _is_policy(p)}


def _is_policy(path: Path) -> bool:
    """Look at the names at the top of a file; one that cannot be read is told when it is chosen."""
    try:
        if path.stat().st_size > LONGEST:
            return False
        text = path.read_bytes().decode("utf-8-sig", "replace")
        names = read_tree(text, is_json=path.suffix.lower() == ".json").keys()
    except OSError:
        return False
    except UsageError:
        return True
    return bool(names & SAYS) and not names & OTHERS


def _baselines(runs: Sequence[Run], run: Run | None) -> dict[str, str]:
    """List what a policy may compare with, as requests name it, and as people do."""
    from pennyweight.gates.baseline import names  # noqa: PLC0415

    found = {f"{KEPT}:{name}": f"{name} · kept" for name in names()}
    others = [r for r in runs[:MOST] if run is None or r.id != run.id]
    return found | {f"{RUN}:{r.id}": f"{r.suite} · {r.id}" for r in others}


def values(request: Request, site: Site) -> dict[str, Any]:
    """Gather what the page shows: what can be chosen, and the verdict on what was."""
    query = request.query_params
    runs, known = site.store.runs(), policies(site)
    run = next((r for r in runs if r.id == query.get("run", "")), runs[0] if runs else None)
    policy, baseline = query.get("policy", ""), query.get("baseline", "")
    where = {n: query[n] for n in ("subject", "tier") if query.get(n)}
    told: dict[str, Any] = {
        "runs": runs[:MOST],
        "run": run,
        "baselines": _baselines(runs, run),
        "baseline": baseline,
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
        verdict = _decided(site, run, known[policy], where, baseline)
    except PennyweightError as error:
        return {**told, "problem": str(error)}

    def link(task: str) -> str:
        return _records_of(run, task, where) if task in verdict.evidence.tasks else ""

    return {**told, **shown(verdict), "link": link}


def keep(
    site: Site, run: Run, policy: str, where: Mapping[str, str | None], baseline: str = ""
) -> None:
    """Decide on a side of a run, and keep the verdict with it."""
    from pennyweight.api import gate as decision  # noqa: PLC0415

    path = policies(site).get(policy)
    if path is None:
        raise UsageError("There is no such policy below the folders of this server.")
    chosen = {name: value for name, value in where.items() if value}
    decision.keep(_decided(site, run, path, chosen, baseline), site.store)


def _records_of(run: Run, task: str, where: Mapping[str, str]) -> str:
    return run_url(run.id, "records", task_id=task, **where)


def _first_side(run: Run) -> dict[str, str]:
    """Choose a side where a run has several: gates decide on one."""
    return {name: values[0] for name, values in run.sides.items() if len(values) > 1}


def _decided(site: Site, run: Run, path: Path, where: Mapping[str, str], baseline: str) -> Verdict:
    """Decide as `pennyweight gate` does; a baseline is of the same side, where it has several."""
    from pennyweight.api.gate import gate  # noqa: PLC0415
    from pennyweight.gates.loader import load_policies  # noqa: PLC0415
    from pennyweight.runs.source import RunSource  # noqa: PLC0415

    if run.attempts > LARGE:
        raise PennyweightError(
            f"This run is large; in a terminal: pennyweight gate {run.id} --policy {path}"
        )
    policy = load_policies([path])
    if policy.paired and not baseline:
        raise UsageError("This policy compares with a baseline: choose one above, and decide.")
    before = _baseline(site, baseline) if policy.paired else None
    return gate(RunSource(run, site.store), policy, baseline=before, where=where)


def _baseline(site: Site, chosen: str) -> Baseline | RunSource:
    """Find the baseline that a request names: one that was kept, or a run."""
    from pennyweight.gates.baseline import described, is_baseline  # noqa: PLC0415
    from pennyweight.runs.source import RunSource  # noqa: PLC0415

    kind, _, name = chosen.partition(":")
    if kind == KEPT and is_baseline(name):
        return described(name)
    if kind != RUN:
        raise UsageError("There is no such baseline; choose one of the list.")
    run = site.run(name)
    if run.attempts > LARGE:
        raise UsageError(
            f"The baseline is large; in a terminal: pennyweight gate --baseline {run.id}"
        )
    return RunSource(run, site.store)
