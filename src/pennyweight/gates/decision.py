"""Decide: a policy and records in, a verdict out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Protocol

from pennyweight.catalogue import METRICS
from pennyweight.errors import UsageError
from pennyweight.gates.baseline_tests import BaselineTest
from pennyweight.gates.early_stopping import EarlyStopPlan, Sequential
from pennyweight.gates.invariants import attempts_made, must_nots, required
from pennyweight.gates.loader import ALIASES
from pennyweight.gates.pending import settled, waiting
from pennyweight.gates.policy import NORMALIZED, Gate, Policy
from pennyweight.gates.records import GateRecords
from pennyweight.gates.threshold_tests import ThresholdTest
from pennyweight.gates.verdict import Decision, Verdict, Word
from pennyweight.text.format import plural

if TYPE_CHECKING:
    Prepared = ThresholdTest | BaselineTest
    from pennyweight.gates.verdict import Decision


class GateTest(Protocol):
    """A gate that can be decided at any level."""

    def at(self, pass_level: float, fail_level: float) -> Decision:
        """Decide, each wrong decision having this chance at most."""


def shared(tests: Sequence[GateTest], error_rate: float) -> list[Decision]:
    """Decide gates so that even one false alarm among them has a chance of `error_rate` at most.

    Alarms are shared: with m gates each may raise one at error_rate / m, and every gate that has
    failed leaves more to the others. Passes need no sharing: a policy passes only if all its gates
    do, so it passes wrongly no oftener than one of them does.
    """
    failed: dict[int, Decision] = {}
    while True:
        level = error_rate / max(1, len(tests) - len(failed))
        made = {i: t.at(error_rate, level) for i, t in enumerate(tests) if i not in failed}
        new = {i: decision for i, decision in made.items() if decision.verdict == "fail"}
        failed |= new
        if not new or len(failed) == len(tests):
            everything = {**made, **failed}
            return [everything[i] for i in range(len(tests))]


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
    policy: Policy,
    records: GateRecords,
    baseline: GateRecords | None = None,
    plan: EarlyStopPlan | None = None,
) -> Verdict:
    """Decide every gate of a policy.

    With a plan, the records are those of a run whose tasks come in random order: gates on intervals
    are tested so that looking again and again does no harm, and the others are open until the run
    is whole.
    """
    if baseline is None and policy.paired:
        raise UsageError("The policy compares with a baseline; --baseline names one.")
    records = records.under(policy)
    baseline = baseline.under(policy) if baseline is not None else None
    if plan is not None:
        records = replace(records, to_come=0)  # the plan knows what is to come
    made = [*must_nots(records), *required(policy, records, plan), *attempts_made(policy, records)]
    for level in ("blocking", "warning"):
        gates = tuple(gate for gate in policy.gates if gate.level == level)
        made += _Level(policy, gates, baseline, plan).decide(records)
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
        notes=tuple(notes(policy, records)),
    )


@dataclass(frozen=True, slots=True)
class _Level:
    """The gates of one level; those on intervals share their error rate."""

    policy: Policy
    gates: tuple[Gate, ...]
    baseline: GateRecords | None
    plan: EarlyStopPlan | None

    def decide(self, records: GateRecords) -> Iterator[Decision]:
        """Decide the gates; what missing attempts could change is inconclusive."""
        tests: list[tuple[Gate, GateRecords, Prepared, GateTest]] = []
        for gate in self.gates:
            own = records.where(gate.select)
            found = ready(gate, own, self.baseline, self.policy)
            if isinstance(found, Decision):
                yield self.while_running(_with_choice(found, gate, own, records), gate, own)
                continue
            test = self.shared_test(gate, own, found)
            if test is None:
                yield self.checked(gate, own, found, self.alone(gate, own, found))
            else:
                tests.append((gate, own, found, test))
        decisions = shared([test for *_, test in tests], self.policy.error_rate)
        for (gate, own, found, _), decision in zip(tests, decisions, strict=True):
            yield self.checked(gate, own, found, decision)

    def shared_test(self, gate: Gate, records: GateRecords, test: Prepared) -> GateTest | None:
        """Return the test that shares its error rate; None if the gate is decided alone."""
        if self.plan is not None and Sequential.fits(gate, records):
            return _in_order(gate, test, records, self.plan)
        if gate.on == "value" or self.left(gate, records):
            return None
        return test

    def alone(self, gate: Gate, records: GateRecords, test: Prepared) -> Decision:
        """Decide one gate by itself, at the level that it has at the least."""
        if gate.on == "value":
            return test.on_value()
        rate = self.policy.error_rate
        return (self.shared_test(gate, records, test) or test).at(rate, rate / len(self.gates))

    def left(self, gate: Gate, records: GateRecords) -> int:
        """Count the attempts that the plan still makes."""
        return self.plan.remaining(gate, records) if self.plan is not None else 0

    def while_running(self, decision: Decision, gate: Gate, records: GateRecords) -> Decision:
        """Keep a gate without a value open while attempts are outstanding."""
        coming = self.left(gate, records) or records.to_come
        if not coming or decision.verdict != "fail":
            return decision
        return replace(decision, verdict="inconclusive", why="nothing has been measured yet.")

    def checked(
        self, gate: Gate, records: GateRecords, test: Prepared, decision: Decision
    ) -> Decision:
        """Make a verdict inconclusive if missing attempts could change it."""
        if decision.verdict == "inconclusive":
            return decision
        sequential = self.plan is not None and Sequential.fits(gate, records)
        left = 0 if sequential else self.left(gate, records)
        if left and (decision.verdict == "pass" or _hopeful(test, left)):
            what = plural(left, "attempt has", "attempts have")
            why = f"{decision.why} {what} not been made yet."
            return replace(decision, verdict="inconclusive", why=why)
        best = test
        open_ = self.waiting(gate, records)
        if open_:
            ends = [self.settled(gate, records, good=good) for good in (True, False)]
            if any(word != decision.verdict for _, word in ends):
                what = plural(open_, "attempt has no verdict", "attempts have no verdict")
                why = f"{decision.why} But {what} yet and could change the result."
                return replace(decision, verdict="inconclusive", why=why)
            best = ends[0][0] or test
        missing = records.to_come
        if self.policy.errors.exceeded(records.errors, records.frame.height):
            missing += records.errors
        if missing and decision.verdict == "fail" and _hopeful(best, missing):
            what = plural(missing, "attempt has no record", "attempts have no record")
            if missing == records.errors:
                what = plural(missing, "attempt") + " could not be made"
            why = f"{decision.why} But {what}, which could change the result."
            return replace(decision, verdict="inconclusive", why=why)
        return decision

    def waiting(self, gate: Gate, records: GateRecords) -> int:
        """Count the attempts without a verdict, of the baseline too."""
        open_ = waiting(gate.metric, records)
        if gate.paired and self.baseline is not None:
            open_ += waiting(gate.metric, self.baseline.where(gate.select))
        return open_

    def settled(
        self, gate: Gate, records: GateRecords, *, good: bool
    ) -> tuple[Prepared | None, Word]:
        """Decide a gate again, had all that wait for a verdict ended well, or badly."""
        now = settled(gate.metric, records, good=good)
        before = self.baseline
        if before is not None:
            before = settled(gate.metric, before, good=not good)
        again = ready(gate, now, before, self.policy)
        if isinstance(again, Decision):
            return None, again.verdict
        return again, self.alone(gate, now, again).verdict


def _in_order(gate: Gate, test: Prepared, records: GateRecords, plan: EarlyStopPlan) -> Sequential:
    """Test a gate task by task; tasks of the baseline that are to come are not missing."""
    tasks = plan.chosen(gate)
    if isinstance(test, BaselineTest):
        coming, shared_tasks = set(tasks), set(test.old)
        test = replace(test, missing=tuple(t for t in test.missing if t not in coming))
        tasks = [task for task in tasks if task in shared_tasks]
    return Sequential(test, plan, records, tuple(tasks))


def _hopeful(test: Prepared, missing: int) -> bool:
    return test.hopeful(missing) if isinstance(test, ThresholdTest) else missing > 0


def ready(
    gate: Gate, records: GateRecords, baseline: GateRecords | None, policy: Policy
) -> Decision | Prepared:
    """Prepare the test of a gate, or say why there is none."""

    def none(word: Word, why: str, value: Any = None) -> Decision:
        limit = None if gate.paired else gate.threshold
        made = replace(Decision.of(gate, word, why), value=value)
        return replace(made, threshold=limit.value, sign=limit.sign) if limit else made

    if not records.frame.height:
        chosen = ", ".join(f"{c} {v!r}" for c, v in gate.select)
        return none("fail", f"no record has {chosen}: what was not measured does not pass.")
    estimate = records.estimate(gate.metric, 1 - 2 * policy.error_rate)
    if not isinstance(estimate.value, float):
        open_ = waiting(gate.metric, records)
        if open_:
            what = plural(open_, "attempt has no verdict", "attempts have no verdict")
            return none("inconclusive", f"it has no value: {what} yet.")
        if records.errors:
            what = plural(records.errors, "attempt")
            return none("inconclusive", f"it has no value: {what} could not be made.")
        why = "it has no value in these records: what was not measured does not pass."
        return none("fail", f"{why} {_lacking(gate, records)}".strip())
    if gate.paired:
        assert baseline is not None
        pair = BaselineTest.of(gate, records, baseline.where(gate.select))
        return pair.unfit() or pair
    if gate.threshold is None:
        return none("inconclusive", f"there is no threshold: {gate.note}.", estimate.value)
    return ThresholdTest(gate, records, estimate, policy.error_rate)


def _with_choice(
    decision: Decision, gate: Gate, own: GateRecords, records: GateRecords
) -> Decision:
    """List the categories in the records, where a gate's own is not among them."""
    if own.frame.height:
        return decision
    found = (_list(column, records.values_in(column)) for column, _ in gate.select)
    return replace(decision, why=" ".join((decision.why, *found)))


def _lacking(gate: Gate, records: GateRecords) -> str:
    if gate.metric in records.composites:
        parts = [t.metric for t in records.composites[gate.metric].terms]
        lacking = [p for p in parts if records.part(p, 0.9).value is None]
        return f"It lacks {', '.join(lacking)}."
    needs = METRICS[gate.metric].inputs
    frame = records.scored
    if all(name in frame.columns and frame[name].count() for name in needs):
        return f"No record counts for it: {METRICS[gate.metric].summary}"
    return f"It needs {' and '.join(needs)}." if needs else ""


def notes(policy: Policy, records: GateRecords) -> Iterator[str]:
    """Report names of a policy that no record has: they may be misspelled."""
    for column, weights in policy.weights.items():
        there = records.values_in(column)
        if absent := [name for name in weights if name not in there]:
            yield f"weights.by_{column}: {_absent(absent, there)} {_list(column, there)}"
    for gate in policy.gates:
        if gate.threshold is not None and gate.threshold.vacuous:
            yield f"{gate.name}: any value meets {gate.threshold}."
    ids = set(records.frame["task_id"].drop_nulls())
    absent = [name for name in policy.optional if name not in ids]
    if absent and not records.to_come:
        yield f"optional_scenarios: {_absent(absent, sorted(ids))}"


def _absent(names: Sequence[str], there: Sequence[str]) -> str:
    """List names that no record has, each with the closest one that exists."""
    found = []
    for name in names:
        near = get_close_matches(name, there, n=1, cutoff=0.6)
        found.append(f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name))
    return f"no record has {', '.join(found)}."


def _list(column: str, there: Sequence[str]) -> str:
    return f"The records have {', '.join(there)}." if there else f"No record has a {column}."
