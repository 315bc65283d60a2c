"""Decide a policy. All verdicts are made here, so that every skin shows the same one."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.api.baseline import baseline_records
from pennyweight.api.score import named_scorers, rules, scored
from pennyweight.api.sources import Given, open_store, rematched, resolve, runs_of, unmixed
from pennyweight.errors import PennyweightError, UsageError
from pennyweight.gates.baseline import Baseline, described, is_baseline, names
from pennyweight.gates.decision import decide, needed_metrics
from pennyweight.gates.early_stopping import EarlyStopPlan
from pennyweight.gates.loader import load_policies, load_policy
from pennyweight.gates.policy import Policy
from pennyweight.gates.ratchet import RatchetResult, ratchet
from pennyweight.gates.records import GateRecords, read_records
from pennyweight.gates.sides import joined, sides_of
from pennyweight.gates.threshold import Quantity
from pennyweight.gates.verdict import SideVerdict, VerdictEvidence
from pennyweight.gates.verdict import Verdict as Verdict  # noqa: PLC0414 - skins use it
from pennyweight.scoring.large.spill import IN_MEMORY
from pennyweight.scoring.pipeline import ScoreRequest
from pennyweight.sources.source import Source
from pennyweight.stored_runs.plan import EarlyStop, early_stop_plan
from pennyweight.stored_runs.source import RunSource

if TYPE_CHECKING:
    from pennyweight.api.score import Scorers
    from pennyweight.scorers.declaration import Scorer
    from pennyweight.store.store import Store, StoredRun

MAX_SHOWN_ATTEMPTS = 200_000
"""Larger runs are decided in the terminal, not on the page."""
MAX_SHOWN_READS = 1_000_000
"""Records that a page reads to decide on all sides: each of them reads the run."""
SAVED, RUN = "kept", "run"
"""Kinds of baselines, as a choice names them: a saved baseline, or a run."""


def gate(
    source: Given,
    policy: str | Path | Policy | Mapping[str, Any] | Sequence[str | Path],
    *,
    baseline: str | Baseline | RunSource | GateRecords | None = None,
    where: Mapping[str, str] | None = None,
    baseline_where: Mapping[str, str] | None = None,
    version: str | None = None,
    map: Mapping[str, str] | None = None,  # noqa: A002
    skip_bad: bool = False,
    each: str | Sequence[str] = (),
    scorers: Scorers = (),
    answer: str | None = None,
    match: str | None = None,
    errors: str | None = None,
    among: int = 1,
    store: str | Store | None = None,
) -> Verdict:
    """Decide whether records are good enough: pass, fail or inconclusive.

    `policy` names one file or several, which are joined, or is a mapping of what a file would
    contain. The records must be of one subject and
    one tier; `where` picks them. `baseline` names a file, a run, or a baseline that was set; its
    records are those of the same subject and tier unless `baseline_where` picks others. `version`
    chooses among progressive thresholds (default: that of the run). A run that was stopped early is
    tested by its plan. `scorers` score the records now, also those of a baseline, as in `score`;
    their files may declare metrics that the policy names. `answer` and `match` are rules for both,
    as in `score`. With `errors="failures"`, attempts that ended in an error count as failures.

    `each` names columns, such as `("subject", "tier")`: the policy is decided on every side that
    they tell apart, and the verdict is the worst. `sides` of the result has that of each side.
    If every gate compares tiers (`truncation_aoc`, `overthinking_tokens`), a side has all tiers.
    Sides share the error rate: those that `each` tells apart, or `among` of them if that is more.
    """
    chosen, scorers = dict(where or {}), named_scorers(scorers)
    reading: dict[str, Any] = {"map": map, "skip_bad": skip_bad}
    request = ScoreRequest(**reading)
    # Before the policy, which may name their scores:
    again = rules(answer, match)
    sources = rematched(_sources(source, chosen, store), again)
    sources, failed = scored(sources, scorers, request)
    version = version or _version(sources)
    loaded = policy if isinstance(policy, Policy) else read_policy(policy, version)
    counted = {"errors": errors} if errors else {}
    loaded = replace(loaded, options={**loaded.options, **again, **counted})
    versus = _Versus(baseline, baseline_where, store, scorers, failed)
    named = [each] if isinstance(each, str) else list(each)
    columns = [column for column in named if column not in loaded.across]
    if not columns:
        return _decided(sources, loaded, chosen, versus, reading, among)
    sides = sides_of(sources, columns, chosen, **reading)
    many = max(among, len(sides))
    found = []
    for side, there in sides:
        if there:
            only = {**chosen, **side}
            kept = [s for s in sources if s.run_id is not None and s.run_id == only.get("run")]
            verdict = _decided(kept or sources, loaded, only, versus, reading, many)
        else:
            verdict = Verdict(loaded.name, (), 0, 0, loaded.error_rate)
        found.append(SideVerdict(side, verdict))
    return joined(found)


@dataclass(frozen=True, slots=True)
class _Versus:
    """What records are compared with."""

    baseline: str | Baseline | RunSource | GateRecords | None
    where: Mapping[str, str] | None
    store: str | Store | None
    scorers: tuple[Scorer, ...] = ()
    """They score the records of both."""
    failed: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """How often each scorer failed on the records that are decided on."""


def _decided(
    sources: list[Source],
    loaded: Policy,
    where: Mapping[str, str],
    versus: _Versus,
    reading: Mapping[str, Any],
    sides: int = 1,
) -> Verdict:
    """Decide a policy on one of so many sides."""
    metrics = needed_metrics(loaded)
    runs = runs_of(sources)
    plan, run = _plan(runs, where), runs[0] if len(runs) == 1 else None
    stamp = _stamp(run) if run else ""
    if run and "judge_pass_rate_corrected" in metrics:  # which changes with each label
        stamp += f" {_newest_label(run.store, run.run.id)}"
    across = loaded.across
    records = read_records(
        sources, metrics, loaded.options, where=where, across=across, paired=loaded.paired,
        **reading,
    )  # fmt: skip
    before = versus.baseline
    if before is not None and not isinstance(before, GateRecords):
        before = baseline_records(
            before, metrics, loaded.options, where=versus.where, side=where,
            run=run.run.id if run else None, store=run.store if run else versus.store,
            scorers=versus.scorers, across=across,
        )  # fmt: skip
    few = records.frame.height <= IN_MEMORY
    evidence = VerdictEvidence(
        run=run.run.id if run else None,
        stamp=stamp,
        side=", ".join(where.values()),
        tasks=frozenset(records.frame["task_id"].drop_nulls() if few else ()),
        left_out=records.left_out,
        baseline_planned=before.planned if before else None,
        baseline_missing=before.remaining if before else 0,
        score_errors=versus.failed,
    )
    return replace(decide(loaded, records, before, plan, sides), evidence=evidence)


def _stamp(run: RunSource) -> str:
    """Return the mark of the run's present records: a verdict is out of date once it changes."""
    from pennyweight.store import cache  # noqa: PLC0415

    return cache.stamp(run.store, run.run)


def _newest_label(store: Store, run: str) -> str:
    from pennyweight.api.review import newest  # noqa: PLC0415 - files need no store

    return newest(run, store)


def keep(verdict: Verdict, store: str | Store | None = None) -> bool:
    """Keep the verdict with the run it is about; False where it is not about one run."""
    if verdict.sides:
        saved = [keep(one.verdict, store) for one in verdict.sides if one.verdict.gates]
        return all(saved)
    about = verdict.evidence
    if about.run is None:
        return False
    from pennyweight.store import cache  # noqa: PLC0415

    decided = {"policy": verdict.policy, "verdict": verdict.verdict}
    cache.save_decision(open_store(store), about.run, side=about.side, stamp=about.stamp, **decided)
    return True


def read_policy(
    policy: str | Path | Mapping[str, Any] | Sequence[str | Path], version: str | None = None
) -> Policy:
    """Read a policy, or several that are joined; `version` chooses progressive thresholds."""
    if isinstance(policy, Mapping):
        text = json.dumps(policy, indent=1, default=str)
        return load_policy("policy", version, text)
    return load_policies([policy] if isinstance(policy, str | Path) else list(policy), version)


def margin_share(margin: str) -> float:
    """Read how far below the value a raised threshold stays: `1%` means 0.01, `-1%` is above it."""
    amount = Quantity.parse(margin.replace("−", "-"))
    if amount.sign or amount.unit not in {"", "%"}:
        raise UsageError(f"--margin {margin}: it must be a share such as 1%.")
    return amount.number / 100 if amount.unit or abs(amount.number) >= 1 else amount.number


def raise_thresholds(verdict: Verdict, share: float) -> RatchetResult | None:
    """Raise the thresholds in the policy's files; None if the policy did not pass."""
    if verdict.sides:
        raise UsageError("--ratchet raises thresholds to the values of one side; omit --each.")
    return ratchet(verdict, share) if verdict.verdict == "pass" else None


def _sources(source: Given, where: Mapping[str, str], store: str | Store | None) -> list[Source]:
    """Resolve the sources; of several runs only the one that `where` names is needed."""
    sources = unmixed(resolve(source, store))
    chosen = [s for s in sources if s.run_id is not None and s.run_id == where.get("run")]
    return chosen or sources


def _version(sources: Sequence[Source]) -> str | None:
    """Return the evaluated version that a run was started with, if there is one run."""
    runs = runs_of(sources)
    stored = EarlyStop.of(runs[0].run) if len(runs) == 1 else None
    return stored.version if stored else None


def _plan(runs: Sequence[RunSource], where: Mapping[str, str]) -> EarlyStopPlan | None:
    """Find the plan of an early-stopped run: its gates are tested as they were while it ran."""
    plans = [early_stop_plan(source.run, where) for source in runs]
    if len(plans) > 1 and any(plans):
        raise UsageError(
            "One of these runs was stopped as soon as it was decided, so it is decided by itself. "
            "Name one run, or pick it with --where run=ID."
        )
    return plans[0] if plans else None


def baseline_choices(runs: Sequence[StoredRun], run: StoredRun | None) -> dict[str, str]:
    """List what a policy can compare a run with: choices and their titles."""
    saved = {f"{SAVED}:{name}": f"{name} · saved baseline" for name in names()}
    others = (other for other in runs if run is None or other.id != run.id)
    return saved | {f"{RUN}:{other.id}": f"{other.suite} · {other.id}" for other in others}


def several_columns(run: StoredRun) -> list[str]:
    """Return what tells the sides of a run apart: subject, tier, both, or nothing."""
    return [name for name, values in run.sides.items() if len(values) > 1]


def side_count(run: StoredRun, across: Collection[str] = ()) -> int:
    """Return how many sides a run has, except for columns that gates compare across."""
    return prod(len(run.sides[name]) for name in several_columns(run) if name not in across)


def gate_run(
    store: Store, run: StoredRun, policy: Path, *, where: Mapping[str, str], baseline: str = ""
) -> Verdict:
    """Decide a policy on a run that is not too large for a page, on every side that `where` leaves.

    All sides of the run share the error rate, so that a side has the same verdict alone as in the
    grid; `gate` with a `where` decides it as if there were no others. `baseline` is one of
    `baseline_choices`; a policy that compares requires it.
    """
    if run.attempts > MAX_SHOWN_ATTEMPTS:
        raise PennyweightError(
            f"This run is too large to decide here. Use the terminal: "
            f"pennyweight gate {run.id} --policy {policy}"
        )
    loaded = load_policies([policy])
    if loaded.paired and not baseline:
        raise UsageError("This policy compares with a baseline. Choose one, then decide.")
    before = _chosen_baseline(store, baseline) if loaded.paired else None
    columns = [n for n in several_columns(run) if n not in where and n not in loaded.across]
    many = prod(len(run.sides[name]) for name in columns)
    if columns and run.attempts * many > MAX_SHOWN_READS:
        raise UsageError(
            "This run has too many records to decide on all its sides here. Choose one, or use the "
            f"terminal: pennyweight gate {run.id} --policy {policy} --each {','.join(columns)}"
        )
    among = side_count(run, loaded.across)
    source = RunSource(run, store)
    return gate(source, loaded, baseline=before, where=where, each=columns, among=among)


def gate_state(store: Store, run: StoredRun, policy: Path, baseline: str = "") -> tuple[Any, ...]:
    """Return what changes whenever `gate_run` may decide differently."""
    from pennyweight.store import cache  # noqa: PLC0415

    text: bytes | None = None
    before: Any = None
    with suppress(OSError, PennyweightError):  # deciding says what is wrong with them
        text = policy.read_bytes()
        before = _chosen_baseline(store, baseline) if baseline else None
    if isinstance(before, RunSource):
        before = (before.run.id, before.run.attempts, cache.stamp(store, before.run))
    return text, run.attempts, cache.stamp(store, run), _newest_label(store, run.id), before


def _chosen_baseline(store: Store, choice: str) -> Baseline | RunSource:
    kind, _, name = choice.partition(":")
    if kind == SAVED and is_baseline(name):
        return described(name)
    if kind != RUN:
        raise UsageError("There is no such baseline. Choose one from the list.")
    run = store.find(name)
    if run.attempts > MAX_SHOWN_ATTEMPTS:
        raise UsageError(
            f"The baseline is too large to compare with here. Use the terminal: "
            f"pennyweight gate --baseline {run.id}"
        )
    return RunSource(run, store)
