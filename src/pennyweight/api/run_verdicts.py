"""Verdicts of policies on stored runs: decide one, list what was saved and what to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pennyweight.errors import PennyweightError, UsageError
from pennyweight.store.cache import PolicyVerdict, policy_verdicts
from pennyweight.store.store import Run, Store

if TYPE_CHECKING:
    from pennyweight.gates.baseline import Baseline
    from pennyweight.gates.verdict import Verdict
    from pennyweight.runs.source import RunSource

__all__ = ["PolicyVerdict", "baseline_choices", "decide_run", "first_side", "policy_verdicts"]

MAX_ATTEMPTS = 200_000
"""Larger runs are decided in the terminal."""
SAVED, RUN = "kept", "run"
"""Kinds of baselines, as a choice names them: a saved baseline, or a run."""


def baseline_choices(runs: Sequence[Run], run: Run | None) -> dict[str, str]:
    """List what a policy can compare a run with: choices and their titles."""
    from pennyweight.gates.baseline import names  # noqa: PLC0415

    saved = {f"{SAVED}:{name}": f"{name} · saved baseline" for name in names()}
    others = (other for other in runs if run is None or other.id != run.id)
    return saved | {f"{RUN}:{other.id}": f"{other.suite} · {other.id}" for other in others}


def first_side(run: Run) -> dict[str, str]:
    """Return the first subject and tier of a run that has several: a policy decides on one."""
    return {name: values[0] for name, values in run.sides.items() if len(values) > 1}


def decide_run(
    store: Store, run: Run, policy: Path, *, where: Mapping[str, str], baseline: str = ""
) -> Verdict:
    """Decide a policy on a side of a run, as `pennyweight gate` does.

    `baseline` is one of `baseline_choices`; a policy that compares requires it.
    """
    from pennyweight.api.gate import gate  # noqa: PLC0415
    from pennyweight.gates.loader import load_policies  # noqa: PLC0415
    from pennyweight.runs.source import RunSource  # noqa: PLC0415

    if run.attempts > MAX_ATTEMPTS:
        raise PennyweightError(
            f"This run is too large to decide here. Use the terminal: "
            f"pennyweight gate {run.id} --policy {policy}"
        )
    loaded = load_policies([policy])
    if loaded.paired and not baseline:
        raise UsageError("This policy compares with a baseline. Choose one, then decide.")
    before = _baseline(store, baseline) if loaded.paired else None
    return gate(RunSource(run, store), loaded, baseline=before, where=where)


def _baseline(store: Store, choice: str) -> Baseline | RunSource:
    from pennyweight.gates.baseline import described, is_baseline  # noqa: PLC0415
    from pennyweight.runs.source import RunSource  # noqa: PLC0415

    kind, _, name = choice.partition(":")
    if kind == SAVED and is_baseline(name):
        return described(name)
    if kind != RUN:
        raise UsageError("There is no such baseline. Choose one from the list.")
    run = store.find(name)
    if run.attempts > MAX_ATTEMPTS:
        raise UsageError(
            f"The baseline is too large to compare with here. Use the terminal: "
            f"pennyweight gate --baseline {run.id}"
        )
    return RunSource(run, store)
