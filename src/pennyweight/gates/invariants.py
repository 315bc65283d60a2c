"""Rules of every policy: no violations, required scenarios passed, all attempts made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from pennyweight.gates.records import MUST_NOT, GateRecords
from pennyweight.gates.verdict import Decider, Decision
from pennyweight.text.format import plural

if TYPE_CHECKING:
    from pennyweight.gates.early_stopping import EarlyStopPlan
    from pennyweight.gates.policy import Policy

NAMES = ("must_not", "required_scenarios", "attempts", "verdict")
"""Names that no gate of a policy may have."""


def must_nots(records: GateRecords) -> Iterator[Decision]:
    """Fail on any violation: nothing can mask it. What nobody has looked at is not clean."""
    frame = records.frame
    unknown = pl.col(MUST_NOT).list.len().fill_null(0) > 0
    violated = frame.filter(pl.col("violations") > 0)
    open_ = frame.filter(unknown & (pl.col("violations").fill_null(0) == 0))
    if not frame["violations"].count() and not open_.height:
        return
    named = (*_named(violated, "violated", ""), *_named(open_, MUST_NOT, "undecided: "))
    why = "no must-not was violated."
    if violated.height:
        who = plural(violated.height, "attempt")
        why = f"{who} violated a must-not; this always fails the policy."
    elif open_.height:
        who = plural(open_.height, "attempt has", "attempts have")
        why = f"{who} must-nots without a verdict, so a violation cannot be ruled out."
    yield Decision(
        name="must_not",
        metric="violations",
        verdict="fail" if violated.height else "inconclusive" if open_.height else "pass",
        why=why,
        value=float(frame["violations"].fill_null(0).sum()),
        threshold=0.0,
        sign="<=",
        kind="count",
        effect=-float(violated["violations"].sum()),
        records=frame["violations"].count(),
        tasks=violated["task_id"].n_unique(),
        scenarios=named,
    )


def _named(rows: pl.DataFrame, column: str, word: str) -> Iterator[Decider]:
    """Name the tasks of some attempts with what a column lists of them."""
    tasks = rows.group_by("task_id", maintain_order=True).agg(
        pl.col(column).list.explode(keep_nulls=False, empty_as_null=False)
    )
    for row in tasks.iter_rows(named=True):
        said = ", ".join(dict.fromkeys(row[column])) or "violated"
        yield Decider(row["task_id"] or "without an id", word + said)


def required(
    policy: Policy, records: GateRecords, plan: EarlyStopPlan | None
) -> Iterator[Decision]:
    """Fail if a required scenario did not pass, each time it was tried, or was not tried."""
    frame = records.frame
    flags = frame["required"].cast(pl.String).str.to_lowercase().is_in(["true", "1"])
    own = frame.filter(flags)["task_id"].drop_nulls().unique(maintain_order=True).to_list()
    every = dict.fromkeys((*policy.required, *own, *records.unseen))
    names = [n for n in every if n not in set(policy.optional)]
    if not names:
        return
    coming = {task.id for task in plan.tasks} if plan is not None else set()
    failed: list[Decider] = []
    open_: list[Decider] = []
    for name in names:
        rows = frame.filter(pl.col("task_id") == name)
        scored = rows.filter(pl.col("status").cast(pl.String).ne_missing("error"))
        bad = int((~scored["passed"]).sum()) if scored.height else 0
        if not rows.height:
            later = name in coming or name in records.unseen or records.to_come > 0
            (open_ if later else failed).append(Decider(name, "did not run"))
        elif bad:
            times = f"{bad} of {scored.height} times" if scored.height > 1 else ""
            failed.append(Decider(name, f"did not pass {times}".strip()))
        elif scored.height < rows.height:
            open_.append(Decider(name, "could not be tried"))
        elif scored["passed"].null_count():
            open_.append(Decider(name, "has no verdict"))
    passed = len(names) - len(failed) - len(open_)
    yield Decision(
        name="required_scenarios",
        metric="passed",
        verdict="fail" if failed else "inconclusive" if open_ else "pass",
        why=_said([*failed, *open_]) or f"all {len(names)} passed.",
        value=passed / len(names),
        threshold=1.0,
        sign=">=",
        effect=passed / len(names) - 1,
        records=frame.filter(pl.col("task_id").is_in(names)).height,
        tasks=len(names),
        scenarios=(*failed, *open_),
    )


def _said(deciders: Sequence[Decider], most: int = 3) -> str:
    """Write the first scenarios as a sentence, and how many more there are."""
    said = "; ".join(f"{one.id} {one.why}" for one in deciders[:most])
    more = len(deciders) - most
    return f"{said}; and {more:,} more." if more > 0 else f"{said}." if said else ""


def attempts_made(policy: Policy, records: GateRecords) -> Iterator[Decision]:
    """Decide nothing where attempts are to come, or too many could not be made.

    The subject did not fail in them. A policy may excuse those that could not be made, and never
    those that nobody has tried.
    """
    errors, coming, made = records.errors, records.to_come, records.frame.height
    if not errors and not coming:
        return
    over = policy.errors.exceeded(errors, made)
    whys = []
    if errors:
        what = f"{errors:,} of {made:,} attempts could not be made"
        whys.append(f"{what}; the policy allows {policy.errors}.")
    if coming:
        have = "has" if coming == 1 else "have"
        whys.append(f"{coming:,} of {records.planned:,} attempts {have} not been made yet.")
    if over or coming:
        whys.append(
            f"Make them: 'pennyweight run --resume{f' {records.run}' if records.run else ''}'."
        )
    rows = records.frame.filter(pl.col("status").cast(pl.String) == "error")
    names = rows["task_id"].drop_nulls().unique(maintain_order=True)
    yield Decision(
        name="attempts",
        metric="errors",
        verdict="inconclusive" if over or coming else "pass",
        why=" ".join(whys),
        value=float(errors + coming),
        threshold=policy.errors.value * (made if policy.errors.share else 1),
        sign="<=",
        kind="count",
        records=made,
        scenarios=tuple(Decider(str(n), "could not be made") for n in names) if over else (),
    )
