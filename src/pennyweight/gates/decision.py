"""Decide: a policy and records in, a verdict out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Protocol

import polars as pl

from pennyweight.catalogue import FURTHER_NEEDS, METRICS, columns_behind
from pennyweight.errors import UsageError
from pennyweight.gates.baseline_gate import BaselineTest
from pennyweight.gates.early_stopping import EarlyStopPlan
from pennyweight.gates.invariants import attempts_made, must_nots, required
from pennyweight.gates.pending import at_best, ended, settled, waiting
from pennyweight.gates.policy import NORMALIZED, Gate, Policy
from pennyweight.gates.records import GateRecords
from pennyweight.gates.sequential_gate import Sequential
from pennyweight.gates.threshold import shown
from pennyweight.gates.threshold_gate import ThresholdTest
from pennyweight.gates.verdict import Decision, Verdict, Word
from pennyweight.record import FAILED, KEY
from pennyweight.scoring.exam import REGRADED, ExamMatch, how_to_regrade, rows_of
from pennyweight.text.format import plural

Prepared = ThresholdTest | BaselineTest


class GateTest(Protocol):
    """A gate that can be decided at any level."""

    def at(self, pass_level: float, fail_level: float) -> Decision:
        """Decide; the levels are the highest probabilities of a wrong pass and a wrong fail."""


def shared(tests: Sequence[GateTest], error_rate: float, sides: int = 1) -> list[Decision]:
    """Decide gates so that the probability of any wrong fail is at most `error_rate`.

    If the policy is decided on several sides, these share it equally.

    Fails share it: each of m gates is tested at error_rate / m, and each gate that fails leaves its
    share to the others. Passes do not: a policy passes only if all its gates do, so a wrong pass of
    the policy is no more likely than that of a gate.
    """
    failed: dict[int, Decision] = {}
    while True:
        level = error_rate / sides / max(1, len(tests) - len(failed))
        open_ = {i: t.at(error_rate, level) for i, t in enumerate(tests) if i not in failed}
        new = {i: decision for i, decision in open_.items() if decision.verdict == "fail"}
        failed |= new
        if not new or len(failed) == len(tests):
            return [(open_ | failed)[i] for i in range(len(tests))]


def needed_metrics(policy: Policy) -> list[str]:
    """Return the names of the metrics that the gates of a policy use."""
    names = ["pass_rate"]
    for gate in policy.gates:
        formula = policy.composites.get(gate.metric)
        names += [term.metric for term in formula.terms] if formula else [gate.metric]
    read = {NORMALIZED: "latency_p95_ms"}
    return list(dict.fromkeys(read.get(name, name) for name in names))


def decide(
    policy: Policy,
    records: GateRecords,
    baseline: GateRecords | None = None,
    plan: EarlyStopPlan | None = None,
    sides: int = 1,
) -> Verdict:
    """Decide every gate of a policy; `sides` is on how many sides it is decided.

    With a plan, the records are those of a run that tries its tasks in random order: gates on
    intervals get sequential tests, whose error rates hold after any number of looks, and the others
    are inconclusive until all attempts are made.
    """
    if baseline is None and policy.paired:
        raise UsageError("The policy compares with a baseline; --baseline names one.")
    records = records.under(policy)
    baseline = baseline.under(policy) if baseline is not None else None
    if plan is not None:
        records = replace(records, remaining=0)  # the plan counts them
    failed = int((records.frame["status"].cast(pl.String) == FAILED).sum())
    exam = None
    if baseline is not None and policy.paired:
        exam = exam_of(records, baseline, policy.options)
    decisions = [
        *must_nots(records),
        *required(policy, records, plan),
        *attempts_made(policy, records),
    ]
    for level in ("blocking", "warning"):
        gates = tuple(gate for gate in policy.gates if gate.level == level)
        decisions += _Level(policy, gates, baseline, plan, sides, exam).decide(records)
    order = {gate.name: place for place, gate in enumerate(policy.gates)}
    decisions.sort(key=lambda d: order.get(d.name, -1))
    return Verdict(
        policy=policy.name,
        gates=tuple(decisions),
        records=records.frame.height,
        errors=records.errors + failed,
        error_rate=policy.error_rate,
        baseline=baseline.name if baseline is not None else None,
        sequential=plan is not None,
        errors_as=str(policy.options.get("errors", "exclude")),
        notes=(*notes(policy, records), *(exam.remarks() if exam else ())),
        exam=exam,
        pooled={n: number for n, number in records.pooled.items() if n not in policy.across},
    )


def exam_of(records: GateRecords, baseline: GateRecords, options: Mapping[str, Any]) -> ExamMatch:
    """Compare the exam of records with that of their baseline; `options` hold for both."""
    both = pl.concat([baseline.exams("the baseline"), records.exams("these records")])
    regraded = [part for name, part in REGRADED.items() if name in options]
    return ExamMatch.of(rows_of(both), reruns=baseline.reruns, regraded=regraded)


@dataclass(frozen=True, slots=True)
class _Level:
    """The gates of one level; those on intervals share their error rate."""

    policy: Policy
    gates: tuple[Gate, ...]
    baseline: GateRecords | None
    plan: EarlyStopPlan | None
    sides: int
    exam: ExamMatch | None

    def decide(self, records: GateRecords) -> Iterator[Decision]:
        """Decide the gates; a verdict that missing attempts could change is inconclusive."""
        tests: list[tuple[Gate, GateRecords, Prepared, GateTest]] = []
        for gate in self.gates:
            chosen = records.about(gate)
            prepared = ready(gate, records, self.baseline, self.policy, self.exam)
            if isinstance(prepared, Decision):
                yield self.while_running(prepared, gate, chosen)
                continue
            test = self.shared_test(gate, chosen, prepared)
            if test is None:
                yield self.checked(gate, chosen, prepared, self.alone(gate, chosen, prepared))
            else:
                tests.append((gate, chosen, prepared, test))
        decisions = shared([test for *_, test in tests], self.policy.error_rate, self.sides)
        for (gate, chosen, prepared, _), decision in zip(tests, decisions, strict=True):
            yield self.checked(gate, chosen, prepared, decision)

    def shared_test(self, gate: Gate, records: GateRecords, test: Prepared) -> GateTest | None:
        """Return the test of a gate that shares the error rate; None if it is decided alone."""
        if self.plan is not None and Sequential.fits(gate, records):
            return _in_order(gate, test, records, self.plan)
        if gate.on == "value" or self.left(gate, records):
            return None
        return test

    def alone(self, gate: Gate, records: GateRecords, test: Prepared) -> Decision:
        """Decide one gate without the others, at the strictest level that `shared` uses."""
        if gate.on == "value":
            return test.on_value()
        rate = self.policy.error_rate
        fail = rate / self.sides / len(self.gates)
        return (self.shared_test(gate, records, test) or test).at(rate, fail)

    def left(self, gate: Gate, records: GateRecords) -> int:
        """Count the attempts of the plan that have no record yet."""
        return self.plan.remaining(gate, records) if self.plan is not None else 0

    def while_running(self, decision: Decision, gate: Gate, records: GateRecords) -> Decision:
        """Make a failure for lack of a value inconclusive while attempts remain to be made."""
        remaining = self.left(gate, records) or records.remaining
        if not remaining or decision.verdict != "fail":
            return decision
        return replace(decision, verdict="inconclusive", why="nothing has been measured yet.")

    def checked(
        self, gate: Gate, records: GateRecords, test: Prepared, decision: Decision
    ) -> Decision:
        """Make a verdict inconclusive if missing attempts could change it."""
        if decision.verdict == "inconclusive":
            return decision
        if failed := self.errors_decide(gate, records, decision):
            what = plural(failed, "error")
            why = f"{decision.why} No verdict: errors decide. {what} could change the result."
            return replace(decision, verdict="inconclusive", why=why)
        return self.complete(gate, records, test, decision)

    def complete(
        self, gate: Gate, records: GateRecords, test: Prepared, decision: Decision
    ) -> Decision:
        """Make a verdict inconclusive if attempts without a verdict or a record could change it."""
        sequential = self.plan is not None and Sequential.fits(gate, records)
        left = 0 if sequential else self.left(gate, records)
        if left and decision.verdict == "pass":
            what = plural(left, "attempt has", "attempts have")
            why = f"{decision.why} {what} not been made yet."
            return replace(decision, verdict="inconclusive", why=why)
        if undecided := self.waiting(gate, records):
            ends = [self.settled(gate, records, good=good) for good in (True, False)]
            if any(word != decision.verdict for word in ends):
                what = plural(undecided, "attempt has no verdict", "attempts have no verdict")
                why = f"{decision.why} But {what} yet and could change the result."
                return replace(decision, verdict="inconclusive", why=why)
        absent = records.remaining + left
        errors = records.errors
        if not self.policy.errors.exceeded(errors, records.frame.height):
            errors = 0
        if decision.verdict != "fail" or not absent + errors:
            return decision
        word, best = self.completed(gate, records, test, absent=absent, errors=errors)
        what = plural(absent + errors, "attempt has no result", "attempts have no result")
        if not errors:
            what = plural(absent, "attempt has not been made", "attempts have not been made")
        elif not absent:
            what = plural(errors, "attempt") + " could not be made"
        if word == "fail":
            return replace(decision, why=f"{decision.why} {what}, which cannot change that{best}.")
        why = f"{decision.why} But {what}, which could change the result{best}."
        return replace(decision, verdict="inconclusive", why=why)

    def errors_decide(self, gate: Gate, records: GateRecords, decision: Decision) -> int:
        """Count the errors of both sides of a paired gate if they could change its verdict."""
        before = self.baseline.about(gate) if gate.paired and self.baseline else None
        if before is None or METRICS[gate.metric].range != (0, 1):
            return 0
        for good in (True, False):
            now, old = ended(records, good=good), ended(before, good=not good)
            test = ready(gate, now, old, self.policy, self.exam)
            again = test if isinstance(test, Decision) else self.alone(gate, now, test)
            if again.verdict != decision.verdict:
                return records.errors + before.errors
        return 0

    def waiting(self, gate: Gate, records: GateRecords) -> int:
        """Count the attempts without a verdict, including those of the baseline."""
        count = waiting(gate.metric, records)
        if gate.paired and self.baseline is not None:
            count += waiting(gate.metric, self.baseline.about(gate))
        return count

    def settled(self, gate: Gate, records: GateRecords, *, good: bool) -> Word:
        """Decide a gate as if all attempts without a verdict had ended well, or badly."""
        again = self.again(gate, settled(gate.metric, records, good=good), good=good)
        return again.verdict

    def completed(
        self, gate: Gate, records: GateRecords, test: Prepared, *, absent: int, errors: int
    ) -> tuple[Word, str]:
        """Decide a gate as if missing attempts had ended as well as possible; also say the value.

        A gate that no result could let pass fails; where no result is the best one, it may pass.
        """
        now = settled(gate.metric, records, good=True)
        best = at_best(gate.metric, now, absent=absent, errors=errors > 0)
        equal = gate.threshold and gate.threshold.sign == "=" and not gate.threshold.extreme
        if best is None or equal or (gate.paired and absent):
            sure = isinstance(test, ThresholdTest) and not test.hopeful(absent + errors)
            return ("fail" if sure else "inconclusive"), ""
        again = self.again(gate, best, good=True)
        if again.value is None or gate.paired:
            return again.verdict, ""
        return again.verdict, f": at best it would be {shown(again.value, gate.kind)}"

    def again(self, gate: Gate, records: GateRecords, *, good: bool) -> Decision:
        """Decide a gate on other records; the baseline's open attempts end the other way."""
        before = self.baseline
        if before is not None:
            before = settled(gate.metric, before, good=not good)
        test = ready(gate, records, before, self.policy, self.exam)
        return test if isinstance(test, Decision) else self.alone(gate, records, test)


def _in_order(gate: Gate, test: Prepared, records: GateRecords, plan: EarlyStopPlan) -> Sequential:
    """Test a gate task by task; planned tasks are not missing from the comparison."""
    tasks = plan.chosen(gate)
    if isinstance(test, BaselineTest):
        test = replace(test, missing=test.missing.filter(~test.missing.is_in(list(tasks))))
        old = test.old
        tasks = [task for task in tasks if task in old]
    return Sequential(test, plan, records, tuple(tasks))


def ready(
    gate: Gate,
    records: GateRecords,
    baseline: GateRecords | None,
    policy: Policy,
    exam: ExamMatch | None = None,
) -> Decision | Prepared:
    """Prepare the test of a gate, or decide it where there is nothing to test.

    Of an exam that differs from that of the baseline, only tasks that are the same are compared.
    """

    def untested(word: Word, why: str, value: Any = None) -> Decision:
        limit = None if gate.paired else gate.threshold
        decision = replace(Decision.of(gate, word, why), value=value)
        return replace(decision, threshold=limit.value, sign=limit.sign) if limit else decision

    every, records = records, records.about(gate)
    if not records.frame.height:
        chosen = ", ".join(f"{c} {v!r}" for c, v in gate.select)
        why = f"no record has {chosen}: what was not measured does not pass."
        known = (_list(column, every.values_in(column)) for column, _ in gate.select)
        return untested("fail", " ".join((why, *known)))
    estimate = records.estimate(gate.metric, 1 - 2 * policy.error_rate)
    if not isinstance(estimate.value, float):
        if undecided := waiting(gate.metric, records):
            what = plural(undecided, "attempt has no verdict", "attempts have no verdict")
            return untested("inconclusive", f"it has no value: {what} yet.")
        if records.errors:
            what = plural(records.errors, "attempt")
            return untested("inconclusive", f"it has no value: {what} could not be made.")
        why = "it has no value in these records: what was not measured does not pass."
        return untested("fail", f"{why} {_lacking(gate, records)}".strip())
    if gate.paired:
        assert baseline is not None
        if exam and exam.regraded:
            how = how_to_regrade(exam.regraded)
            return untested("inconclusive", f"{exam.regrading} {how}")
        return _compared(gate, records, baseline.about(gate), exam)
    if gate.threshold is None:
        return untested("inconclusive", f"there is no threshold: {gate.note}.", estimate.value)
    return ThresholdTest(gate, records, estimate)


def _compared(
    gate: Gate, records: GateRecords, baseline: GateRecords, exam: ExamMatch | None
) -> Decision | BaselineTest:
    """Prepare a comparison with a baseline; it is not decided if the exam has changed."""
    tried = (side.frame["task_id"].drop_nulls().implode() for side in (records, baseline))
    if exam is None or not all(exam.left.is_in(tasks).any() for tasks in tried):
        pair = BaselineTest.of(gate, records, baseline)
        return pair.unfit() or pair
    pair = BaselineTest.of(gate, records.without(exam.left), baseline.without(exam.left))
    rest = f" On the others: {pair.shown()}." if len(pair.tasks) else ""
    return pair.decision("inconclusive", f"the exam has changed: {exam.changes}{rest} {exam.again}")


def _lacking(gate: Gate, records: GateRecords) -> str:
    if gate.metric in records.composites:
        parts = [t.metric for t in records.composites[gate.metric].terms]
        lacking = [p for p in parts if records.part(p, 0.9).value is None]
        return f"It lacks {', '.join(lacking)}."
    metric = METRICS[gate.metric]
    needs = [n for n in metric.inputs if n in metric.needs or n not in KEY]
    frame = records.scored
    absent = [n for n in needs if n not in frame.columns or not frame[n].count()]
    if not absent and metric.over == "tasks":
        return "No task has enough attempts: it needs as many as k, and more than one without k."
    if not absent and metric.across and frame[metric.across].n_unique() < 2:
        return (
            f"It compares the {metric.across}s of a subject: decide on all of them at once, with a "
            f"policy whose gates all do."
        )
    if not absent and gate.metric in FURTHER_NEEDS:
        return f"It needs {FURTHER_NEEDS[gate.metric]}."
    if not absent:
        return f"No record counts for it: {METRICS[gate.metric].summary}" if needs else ""
    columns = " and ".join(columns_behind(absent))
    return f"No record has {columns}, which it needs: {METRICS[gate.metric].summary}"


def notes(policy: Policy, records: GateRecords) -> Iterator[str]:
    """Report names in a policy that no record has: they may be misspelled."""
    for column, weights in policy.weights.items():
        known = records.values_in(column)
        if absent := [name for name in weights if name not in known]:
            yield f"weights.by_{column}: {_absent(absent, known)} {_list(column, known)}"
    for gate in policy.gates:
        if gate.threshold is not None and gate.threshold.vacuous:
            yield f"{gate.name}: any value meets {gate.threshold}."
        if gate.metric in METRICS and METRICS[gate.metric].over == "tasks":
            found = records.about(gate).estimate(gate.metric, 0.9)
            if found.skipped and found.value is not None:
                what = plural(found.skipped, "attempt")
                yield f"{gate.name}: {what} without a verdict, or at tasks with too few, left out."
    tasks = records.frame["task_id"]
    absent = [name for name in policy.optional if not (tasks == name).any()]
    if absent and not records.remaining:
        yield f"optional_scenarios: {_absent(absent, tasks.drop_nulls().unique().sort().to_list())}"


def _absent(names: Sequence[str], known: Sequence[str]) -> str:
    """List names that no record has, each with the closest one that exists."""
    listed = []
    for name in names:
        near = get_close_matches(name, known, n=1, cutoff=0.6)
        listed.append(f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name))
    return f"no record has {', '.join(listed)}."


def _list(column: str, known: Sequence[str]) -> str:
    return f"The records have {', '.join(known)}." if known else f"No record has a {column}."
