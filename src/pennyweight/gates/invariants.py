"""Rules of every policy: no violations, required scenarios passed, all attempts made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from pennyweight.gates.early_stopping import EarlyStopPlan
from pennyweight.gates.policy import Policy
from pennyweight.gates.records import MUST_NOT, GateRecords
from pennyweight.gates.verdict import Decider, Decision, Word
from pennyweight.text.format import plural

ATTEMPTS = "attempts"
"""The rule that all attempts are made; its value counts those that are missing."""
NAMES = ("must_not", "required_scenarios", ATTEMPTS, "verdict")
"""Names that no gate of a policy may have."""


def must_nots(records: GateRecords) -> Iterator[Decision]:
    """Fail on any violation; a must-not without a verdict is inconclusive."""
    frame = records.frame
    unknown = pl.col(MUST_NOT).list.len().fill_null(0) > 0
    violated = frame.filter(pl.col("violations") > 0)
    undecided = frame.filter(unknown & (pl.col("violations").fill_null(0) == 0))
    if not frame["violations"].count() and not undecided.height:
        return
    verdict: Word = "pass"
    why = "no must-not was violated."
    if violated.height:
        verdict, who = "fail", plural(violated.height, "attempt")
        why = f"{who} violated a must-not; this always fails the policy."
    elif undecided.height:
        verdict, who = "inconclusive", plural(undecided.height, "attempt has", "attempts have")
        why = f"{who} must-nots without a verdict, so a violation cannot be ruled out."
    yield Decision(
        name="must_not",
        metric="violations",
        verdict=verdict,
        why=why,
        value=float(frame["violations"].fill_null(0).sum()),
        threshold=0.0,
        sign="<=",
        kind="count",
        effect=-float(violated["violations"].sum()),
        records=frame["violations"].count(),
        tasks=violated["task_id"].n_unique(),
        scenarios=(
            *_deciders(violated, "violated", ""),
            *_deciders(undecided, MUST_NOT, "undecided: "),
        ),
    )


def _deciders(rows: pl.DataFrame, column: str, prefix: str) -> Iterator[Decider]:
    """Name the tasks of attempts, each with the must-nots that a column lists."""
    tasks = rows.group_by("task_id", maintain_order=True).agg(
        pl.col(column).list.explode(keep_nulls=False, empty_as_null=False)
    )
    for task, names in tasks.iter_rows():
        listed = ", ".join(dict.fromkeys(names)) or "violated"
        yield Decider(task or "without an id", prefix + listed)


def required(
    policy: Policy, records: GateRecords, plan: EarlyStopPlan | None
) -> Iterator[Decision]:
    """Fail if a required scenario did not pass every attempt, or was not tried."""
    frame = records.frame
    flags = frame["required"].cast(pl.String).str.to_lowercase().is_in(["true", "1"])
    flagged = frame.filter(flags)["task_id"].drop_nulls().unique(maintain_order=True).to_list()
    every = dict.fromkeys((*policy.required, *flagged, *records.unseen))
    names = [n for n in every if n not in policy.optional]
    if not names:
        return
    planned = {task.id for task in plan.tasks} if plan is not None else set()
    failed: list[Decider] = []
    undecided: list[Decider] = []
    for name in names:
        rows = frame.filter(pl.col("task_id") == name)
        scored = rows.filter(pl.col("status").cast(pl.String).ne_missing("error"))
        bad = int((~scored["passed"]).sum()) if scored.height else 0
        if not rows.height:
            later = name in planned or name in records.unseen or records.remaining > 0
            (undecided if later else failed).append(Decider(name, "did not run"))
        elif bad:
            times = f"{bad} of {scored.height} times" if scored.height > 1 else ""
            failed.append(Decider(name, f"did not pass {times}".strip()))
        elif scored.height < rows.height:
            undecided.append(Decider(name, "could not be tried"))
        elif scored["passed"].null_count():
            undecided.append(Decider(name, "has no verdict"))
    deciders = (*failed, *undecided)
    passed = len(names) - len(deciders)
    yield Decision(
        name="required_scenarios",
        metric="passed",
        verdict="fail" if failed else "inconclusive" if undecided else "pass",
        why=_sentence(deciders) or f"all {len(names)} passed.",
        value=passed / len(names),
        threshold=1.0,
        sign=">=",
        effect=passed / len(names) - 1,
        records=frame.filter(pl.col("task_id").is_in(names)).height,
        tasks=len(names),
        scenarios=deciders,
    )


def _sentence(deciders: Sequence[Decider], most: int = 3) -> str:
    """Write the first scenarios as a sentence, and how many more there are."""
    listed = "; ".join(f"{one.id} {one.why}" for one in deciders[:most])
    more = len(deciders) - most
    return f"{listed}; and {more:,} more." if more > 0 else f"{listed}." if listed else ""


def attempts_made(policy: Policy, records: GateRecords) -> Iterator[Decision]:
    """Be inconclusive while attempts remain to be made, or if too many failed with an error.

    A policy can allow errors, but not attempts that were never made.
    """
    errors, remaining, made = records.errors, records.remaining, records.frame.height
    is_open = bool(remaining or records.narrowed)
    if not errors and not is_open:
        return
    over = policy.errors.exceeded(errors, made)
    whys = []
    if errors:
        what = f"{errors:,} of {made:,} attempts could not be made"
        whys.append(f"{what}; the policy allows {policy.errors}.")
    if records.narrowed:
        whys.append(f"The run has {records.narrowed}; a policy is decided on the whole suite.")
    elif remaining:
        have = "has" if remaining == 1 else "have"
        whys.append(f"{remaining:,} of {records.planned:,} attempts {have} not been made yet.")
    can_resume = records.planned is not None
    if can_resume and (over or (remaining and not records.narrowed)):
        whys.append(f"Make them: '{f'pennyweight run --resume {records.run}'.strip()}'.")
    rows = records.frame.filter(pl.col("status").cast(pl.String) == "error")
    names = rows["task_id"].drop_nulls().unique(maintain_order=True)
    yield Decision(
        name=ATTEMPTS,
        metric="errors",
        verdict="inconclusive" if over or is_open else "pass",
        why=" ".join(whys),
        value=float(errors + remaining),
        threshold=policy.errors.value * (made if policy.errors.share else 1),
        sign="<=",
        kind="count",
        records=made,
        scenarios=tuple(Decider(str(n), "could not be made") for n in names) if over else (),
    )
