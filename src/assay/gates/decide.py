"""Decide: a policy and records in, a verdict out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from assay.catalogue import METRICS
from assay.errors import UsageError
from assay.gates.confident import Against
from assay.gates.formula import NORMALIZED
from assay.gates.load import ALIASES
from assay.gates.paired import Pair
from assay.gates.running import Sequential
from assay.gates.share import shared
from assay.gates.verdict import Decider, Decision, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.gates.policy import Gate, Policy
    from assay.gates.records import Records
    from assay.gates.running import Plan
    from assay.gates.share import Test

SHOWN = 10
_PASSED = ("pass_rate", "safety_rate")
"""The metrics that every attempt has to have a verdict for."""


def needed_metrics(policy: Policy) -> list[str]:
    """Name every metric that deciding takes."""
    names = ["pass_rate"]
    for gate in policy.gates:
        formula = policy.composites.get(gate.metric)
        if formula is None:
            names.append(gate.metric)
        else:
            names += [ALIASES.get(t.metric, t.metric) for t in formula.terms]
    names = ["latency_p95_ms" if n == NORMALIZED else n for n in names]
    return list(dict.fromkeys(names))


def decide(
    policy: Policy, records: Records, baseline: Records | None = None, plan: Plan | None = None
) -> Verdict:
    """Decide every gate of a policy.

    With a plan, the records are those of a run whose tasks come in random order: gates on intervals
    are tested so that looking again and again does no harm, and the others are open until the run
    is whole.
    """
    if baseline is None and any(gate.paired for gate in policy.gates):
        raise UsageError("The policy compares with a baseline; --baseline names one.")
    records = records.under(policy)
    baseline = baseline.under(policy) if baseline is not None else None
    made = [*_must_not(records), *_required(policy, records, plan), *_attempts(policy, records)]
    for level in ("blocking", "warning"):
        gates = [gate for gate in policy.gates if gate.level == level]
        made += _level(policy, gates, records, baseline, plan)
    order = {gate.name: place for place, gate in enumerate(policy.gates)}
    made.sort(key=lambda d: order.get(d.name, -1))
    return Verdict(
        policy=policy.name,
        gates=tuple(made),
        records=records.frame.height,
        errors=records.errors,
        error_rate=policy.error_rate,
        baseline=baseline.name if baseline is not None else None,
        sequential=plan is not None,
    )


def _level(
    policy: Policy,
    gates: list[Gate],
    records: Records,
    baseline: Records | None,
    plan: Plan | None,
) -> Iterator[Decision]:
    """Decide the gates of one level; those on intervals share their error rate."""
    tests: list[tuple[Gate, Test, Against | Pair]] = []
    for gate in gates:
        own = records.where(gate.select)
        test = _ready(gate, own, baseline, policy)
        if isinstance(test, Decision):
            yield _while_running(test, gate, own, plan)
            continue
        if plan is None or not (Sequential.fits(gate, own) or plan.remaining(gate, own)):
            if gate.on == "value":
                yield _checked(policy, gate, test.on_value(), test, own, None)
            else:
                tests.append((gate, test, test))
        elif Sequential.fits(gate, own):
            tests.append((gate, _in_order(gate, test, own, plan), test))
        else:
            rate = policy.error_rate
            now = test.on_value() if gate.on == "value" else test.at(rate, rate / len(gates))
            yield _checked(policy, gate, now, test, own, plan)
    decisions = shared([test for _, test, _ in tests], policy.error_rate)
    for (gate, _, test), decision in zip(tests, decisions, strict=True):
        yield _checked(policy, gate, decision, test, records.where(gate.select), None)


def _in_order(gate: Gate, test: Against | Pair, records: Records, plan: Plan) -> Sequential:
    """Test a gate task by task; tasks of the baseline that are to come are not missing."""
    tasks = plan.chosen(gate)
    if isinstance(test, Pair):
        coming, shared_tasks = set(tasks), set(test.old)
        test = replace(test, missing=tuple(t for t in test.missing if t not in coming))
        tasks = [task for task in tasks if task in shared_tasks]
    return Sequential(test, plan, records, tuple(tasks))


def _ready(
    gate: Gate, records: Records, baseline: Records | None, policy: Policy
) -> Decision | Against | Pair:
    """Prepare the test of a gate, or say why there is none."""

    def none(word: Any, why: str, value: Any = None) -> Decision:
        limit = gate.threshold
        return Decision(gate.name, gate.metric, word, why, gate.level, gate.on, value,
                        threshold=limit.value if limit else None,
                        sign=limit.sign if limit else None, kind=gate.kind, rule=gate)  # fmt: skip

    if not records.frame.height:
        chosen = ", ".join(f"{c} {v!r}" for c, v in gate.select)
        return none("fail", f"no record has {chosen}: what was not measured has not passed.")
    estimate = records.estimate(gate.metric, 1 - 2 * policy.error_rate)
    if not isinstance(estimate.value, float):
        if records.errors:
            why = f"it has no value: {records.errors:,} attempts could not be made."
            return none("inconclusive", why)
        why = "it has no value in these records: what was not measured has not passed."
        return none("fail", f"{why} {_lacking(gate, records)}".strip())
    if gate.paired:
        assert baseline is not None
        if records.values(gate.metric) is None:
            why = "it is no mean over records, so tasks cannot be paired; compare one that is."
            return none("inconclusive", why, estimate.value)
        pair = Pair.of(gate, records, baseline.where(gate.select))
        return pair.unfit() or pair
    if gate.threshold is None:
        return none("inconclusive", f"there is no threshold: {gate.note}.", estimate.value)
    return Against(gate, records, estimate, policy.error_rate)


def _lacking(gate: Gate, records: Records) -> str:
    """Say what a metric without a value lacks."""
    if gate.metric in records.composites:
        parts = [t.metric for t in records.composites[gate.metric].terms]
        lacking = [p for p in parts if records.part(p, 0.9).value is None]
        return f"It lacks {', '.join(lacking)}."
    needs = METRICS[gate.metric].inputs
    return f"It needs {' and '.join(needs)}." if needs else ""


def _while_running(decision: Decision, gate: Gate, records: Records, plan: Plan | None) -> Decision:
    """What has no value yet is open as long as attempts are to come."""
    if plan is None or not plan.remaining(gate, records) or decision.verdict != "fail":
        return decision
    return decision.turned("inconclusive", "nothing has been measured yet.")


def _checked(
    policy: Policy,
    gate: Gate,
    decision: Decision,
    test: Against | Pair,
    records: Records,
    plan: Plan | None,
) -> Decision:
    """Take a verdict back that attempts which are not there could have turned."""
    left = plan.remaining(gate, records) if plan is not None else 0
    if left and (decision.verdict == "pass" or _hopeful(test, left)):
        return decision.turned("inconclusive", f"{decision.why} {left:,} attempts are to come.")
    errors = records.errors
    if policy.errors.exceeded(errors, records.frame.height):
        if decision.verdict == "fail" and _hopeful(test, errors):
            why = f"{decision.why} But {errors:,} attempts could not be made; they could turn it."
            return decision.turned("inconclusive", why)
        return decision
    unknown = _unknown(gate.metric, records) if decision.verdict == "pass" else 0
    if policy.errors.exceeded(unknown, records.frame.height):
        what = "1 attempt has" if unknown == 1 else f"{unknown:,} attempts have"
        return decision.turned("inconclusive", f"{decision.why} But {what} no verdict.")
    return decision


def _hopeful(test: Against | Pair, missing: int) -> bool:
    return test.hopeful(missing) if isinstance(test, Against) else missing > 0


def _unknown(metric: str, records: Records) -> int:
    """Count the attempts that a pass rate leaves out because nobody knows whether they passed."""
    parts = {metric, *_parts(metric, records)} & set(_PASSED)
    if not parts:
        return 0
    rows = records.scored
    if "pass_rate" not in parts:
        category = pl.col("category").str.strip_chars().str.to_lowercase()
        rows = rows.filter(category == "adversarial")
    return rows["passed"].null_count()


def _parts(metric: str, records: Records) -> Sequence[str]:
    """Name the metrics that another is made of."""
    if metric in records.composites:
        return [term.metric for term in records.composites[metric].terms]
    return METRICS[metric].part_names(records.options)


def _must_not(records: Records) -> Iterator[Decision]:
    """Fail on any violation: nothing can mask it."""
    frame = records.frame
    if not frame["violations"].count():
        return
    rows = frame.filter(pl.col("violations") > 0)
    tasks = rows.group_by("task_id", maintain_order=True).agg(
        pl.col("violations").sum(),
        pl.col("violated").list.explode(keep_nulls=False, empty_as_null=False),
    )
    named = tuple(
        Decider(
            row["task_id"] or "without an id",
            ", ".join(dict.fromkeys(row["violated"])) or "violated",
        )
        for row in tasks.head(SHOWN).iter_rows(named=True)
    )
    count = rows.height
    why = "no must-not was violated."
    if count:
        who = "1 attempt" if count == 1 else f"{count:,} attempts"
        why = f"{who} violated a must-not; nothing makes up for that."
    yield Decision(
        name="must_not",
        metric="violations",
        verdict="fail" if count else "pass",
        why=why,
        value=float(frame["violations"].fill_null(0).sum()),
        threshold=0.0,
        sign="<=",
        kind="",
        effect=-float(rows["violations"].sum()),
        records=frame["violations"].count(),
        tasks=tasks.height,
        scenarios=named,
    )


def _required(policy: Policy, records: Records, plan: Plan | None) -> Iterator[Decision]:
    """Fail if a required scenario did not pass, each time it was tried, or was not tried."""
    frame = records.frame
    flags = frame["required"].cast(pl.String).str.to_lowercase().is_in(["true", "1"])
    own = frame.filter(flags)["task_id"].drop_nulls().unique(maintain_order=True).to_list()
    names = [n for n in dict.fromkeys((*policy.required, *own)) if n not in set(policy.optional)]
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
            (open_ if name in coming else failed).append(Decider(name, "did not run"))
        elif bad:
            times = f"{bad} of {scored.height} times" if scored.height > 1 else ""
            failed.append(Decider(name, f"did not pass {times}".strip()))
        elif scored.height < rows.height:
            open_.append(Decider(name, "could not be tried"))
        elif scored["passed"].null_count():
            open_.append(Decider(name, "has no verdict"))
    passed = len(names) - len(failed) - len(open_)
    said = "; ".join(f"{d.id} {d.why}" for d in (*failed, *open_)[:3])
    end = "; …" if len(failed) + len(open_) > 3 else "."
    yield Decision(
        name="required_scenarios",
        metric="passed",
        verdict="fail" if failed else "inconclusive" if open_ else "pass",
        why=said + end if said else f"all {len(names)} passed.",
        value=passed / len(names),
        threshold=1.0,
        sign=">=",
        effect=passed / len(names) - 1,
        records=frame.filter(pl.col("task_id").is_in(names)).height,
        tasks=len(names),
        scenarios=tuple((*failed, *open_)[:SHOWN]),
    )


def _attempts(policy: Policy, records: Records) -> Iterator[Decision]:
    """Decide nothing where too many attempts could not be made: the subject did not fail."""
    errors, attempts = records.errors, records.frame.height
    if not errors:
        return
    over = policy.errors.exceeded(errors, attempts)
    rows = records.frame.filter(pl.col("status").cast(pl.String) == "error")
    names = rows["task_id"].drop_nulls().unique(maintain_order=True).head(SHOWN)
    why = f"{errors:,} of {attempts:,} attempts could not be made, {policy.errors} may."
    yield Decision(
        name="attempts",
        metric="errors",
        verdict="inconclusive" if over else "pass",
        why=f"{why} Make them: 'assay run --resume'." if over else why,
        value=float(errors),
        threshold=policy.errors.value * (attempts if policy.errors.share else 1),
        sign="<=",
        kind="",
        records=attempts,
        scenarios=tuple(Decider(str(n), "could not be made") for n in names) if over else (),
    )
