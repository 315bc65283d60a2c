"""Carry out a run: make the attempts, run the checks, ask the judges, decide a policy early."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from pennyweight.api.audit import audit_notes
from pennyweight.api.event_loop import awaitable, outside_a_loop
from pennyweight.api.garbage import rare_collection
from pennyweight.api.runs import Run
from pennyweight.api.sources import open_store
from pennyweight.api.watching import ExportingWatcher, ShowProgress, check_whole, watcher
from pennyweight.api.watching import Watcher as Watcher  # noqa: PLC0414 - skins use it
from pennyweight.engine.advice import ANSWERED_BY, shared
from pennyweight.engine.batches.pending import lane_subjects
from pennyweight.engine.budget import Budget
from pennyweight.engine.ending import EndKind, RunEnd
from pennyweight.engine.execution import AttemptsResult, Helpers, execute, model_of, new_run
from pennyweight.engine.execution import open_suite as open_suite  # noqa: PLC0414 - skins use it
from pennyweight.engine.preflight import fetched, missing_keys, warnings
from pennyweight.engine.resume import held, renew, resume_plan
from pennyweight.errors import StoreError, UsageError, unknown
from pennyweight.judges.phases import Phase, PhaseKind, judge_phases, unpriced_judges
from pennyweight.models.failure import CallError
from pennyweight.store.lease import break_lease
from pennyweight.store.store import Store, StoredRun
from pennyweight.stored_runs.failures import failures
from pennyweight.stored_runs.observations import save_suite_scenarios
from pennyweight.suite.definition import GivenSuite
from pennyweight.suite.edits import parsed_value as parsed_value  # noqa: PLC0414 - skins use it
from pennyweight.suite.implied import question_suite
from pennyweight.suite.narrowing import Narrowing, NarrowingOptions
from pennyweight.suite.plan import attempts, count
from pennyweight.suite.values import LoadedSuite

if TYPE_CHECKING:
    from pennyweight.engine.batches.waiting import BatchWait
    from pennyweight.gates.verdict import Verdict
    from pennyweight.judges.judging import JudgingResult


Probe = Literal["truncation"]
_SIDES = ("subjects", "tiers")
"""The options that say which side of a run is probed."""


@dataclass(frozen=True, slots=True)
class Until:
    """A policy that ends a run as soon as it is decided."""

    policy: str | Path | Sequence[str | Path]
    baseline: str | None = None
    """A file, a run or a named baseline that the policy compares with."""
    version: str | None = None
    """The evaluated version, for progressive thresholds."""


def run(
    suite: GivenSuite = "suite.yaml",
    *,
    ask: str | None = None,
    store: str | Store | None = None,
    text: str | None = None,
    record: str | Path | None = None,
    by: Sequence[str] = (),
    watch: Watcher | None = None,
    progress: ShowProgress = None,
    until: Until | None = None,
    otel: str | None = None,
    on: str | None = None,
    probe: Probe | None = None,
    **options: Unpack[NarrowingOptions],
) -> Run:
    """Make the attempts of a suite, check and judge them, and store their records.

    `suite` is a file, a mapping with the same keys, or a `Suite` built in Python. With `models` it
    may also be a file of tasks, or a question with a space in it; `ask` is any question, in place
    of a suite. `progress` shows
    a line that is updated: by default in notebooks and terminals; or it is a function that is
    called with the attempts made and their number. `watch` receives every event instead.
    `text` replaces the content of the suite's file. `record` names a file that `replay:FILE`
    answers from later. `by` names columns the records will be grouped by; unknown ones are refused
    before the first call. `otel` is the address of an OpenTelemetry endpoint that every attempt is
    sent to as a trace. `on` is `ray`, or `ray://HOST:PORT` of a cluster whose nodes make the
    attempts. `options` narrow the suite (`limit`, `tasks`, `sample` with `seed`, `subjects`,
    `tiers`) or change it (`models`, `runs`, `concurrency`, `temperature`, `set`); they are stored.
    With `probe`, `suite` is a run, whose chains of thought are cut: each of its tasks is answered
    again after 0, 25, … 100 % of its chain.
    """
    watch = watcher(watch, progress)
    if probe:
        suite, options = _probed(probe, suite, store, watch, options)
    if ask is not None:
        suite, text = question_suite(ask)
    chosen = open_suite(suite, text, by, Narrowing.of(**options))
    check_whole(chosen, until)
    tape = None if record is None else Path(record)
    job = _Job(chosen, new_run(chosen), open_store(store), watch, tape, is_probe=bool(probe))
    return outside_a_loop(lambda: _exported(job, until, otel, on))


def resume(
    run: str | Path = "latest",
    *,
    suite: GivenSuite | None = None,
    store: str | Store | None = None,
    record: str | Path | None = None,
    by: Sequence[str] = (),
    watch: Watcher | None = None,
    progress: ShowProgress = None,
    until: Until | None = None,
    as_stored: bool = False,
    force: bool = False,
    otel: str | None = None,
    batches: BatchWait | None = None,
    on: str | None = None,
    **options: Unpack[NarrowingOptions],
) -> Run:
    """Continue a run: make the attempts that are missing, failed, or changed in the suite.

    `run` is a run's id, a unique prefix, `latest`, or a suite's file, which means its latest run.
    `suite` is the suite's file if it is not where the run was started, or the suite that was built
    in Python. Without it, the suite is taken from the store, by the rules of uploads unless
    `watch.trust` returns true; `as_stored` takes it from there even if the file has changed.
    `force` takes the run over from another process, unless that is alive on this machine. A run
    that was narrowed stays so; `options` may repeat what it was started with, or set limits. With
    `batches` failed attempts stay as they are, and the batches of the run may be waited for.
    """
    from pennyweight.api.resumption import resumed  # noqa: PLC0415 - a new run starts without it

    watch, at, asked = watcher(watch, progress), open_store(store), Narrowing.of(**options)
    typed = "collect" if batches else "run --resume"
    tape = None if record is None else Path(record)
    found, loaded = resumed(
        run, at, by, watch, asked, typed, file=suite, as_stored=as_stored, record=tape
    )
    check_whole(loaded, until)
    if force:
        break_lease(at, found.id)
    job = _Job(loaded, found, at, watch, tape, fresh=False, batches=batches)
    return outside_a_loop(lambda: _exported(job, until, otel, on))


def _exported(job: _Job, until: Until | None, otel: str | None, on: str | None) -> Run:
    """Carry out a run, and send its attempts to an OpenTelemetry endpoint if there is one."""
    if on:
        from pennyweight.api.sharing.ray_workers import ray_workers  # noqa: PLC0415

        job = replace(job, helpers=ray_workers(on, job.suite, job.run, job.store))
    if otel is None:
        return job.completed(until)
    from pennyweight.exports.otlp import OtlpEndpoint  # noqa: PLC0415 - most runs need none

    watch = ExportingWatcher(job.watch, OtlpEndpoint.of(otel), job.store, job.suite)
    try:
        made = replace(job, watch=watch).completed(until)
    finally:
        told = watch.finish()
    return replace(made, notes=(*made.notes, *told))


run_async, resume_async = awaitable(run), awaitable(resume)


def plan(
    suite: str | Path | None,
    *,
    resume: bool = False,
    file: str | Path | None = None,
    store: str | Store | None = None,
    by: Sequence[str] = (),
    watch: Watcher | None = None,
    probe: Probe | None = None,
    ask: str | None = None,
    **options: Unpack[NarrowingOptions],
) -> LoadedSuite:
    """Load the suite that `run` or `resume` would carry out, and check it; call nothing."""
    watch = watch or Watcher()
    given: GivenSuite = suite or "suite.yaml"
    given, text = (given, None) if ask is None else question_suite(ask)
    if probe:
        given, options = _probed(probe, given, store, watch, options)
    asked = Narrowing.of(**options)
    if resume:
        from pennyweight.api.resumption import resumed  # noqa: PLC0415

        at, name = open_store(store), suite or "latest"
        _, loaded = resumed(name, at, by, watch, asked, file=file, keyless=True)
    else:
        loaded = open_suite(given, text, by, asked, keyless=True)
    unsound = () if resume or probe else audit_notes(loaded)
    for note in (*missing_keys(loaded, model_of), *warnings(loaded, model_of), *unsound):
        watch.note(note)
    return loaded


def _probed(
    kind: Probe,
    run: GivenSuite,
    store: str | Store | None,
    watch: Watcher,
    options: NarrowingOptions,
) -> tuple[GivenSuite, NarrowingOptions]:
    """Write the suite that probes a run; return its file, and the options that hold for it."""
    from pennyweight.api.stored_suites import open_stored  # noqa: PLC0415 - few runs are probes
    from pennyweight.stored_runs.probe import written_probe  # noqa: PLC0415

    if kind != "truncation":
        raise UsageError(unknown("The probe", kind, ["truncation"]))
    if not isinstance(run, str):
        raise UsageError("A probe needs the id of a stored run, in place of a suite.")
    at = open_store(store)
    found = at.find(run)
    loaded = open_stored(found, trust=watch.trust, as_stored=True)
    side = Narrowing.of(**{n: options[n] for n in _SIDES if n in options})  # type: ignore[literal-required]
    rest: Any = {name: value for name, value in options.items() if name not in _SIDES}
    file = written_probe(found, side.selected(loaded), at)
    watch.note(f"The suite of the probe is {file}.")
    return file, rest


@dataclass(frozen=True, slots=True)
class _Job:
    """A run that is carried out."""

    suite: LoadedSuite
    run: StoredRun
    store: Store
    watch: Watcher
    record: Path | None
    fresh: bool = True
    is_probe: bool = False  # its prompts show parts of earlier replies
    began: float = 0.0  # for limits of seconds
    batches: BatchWait | None = None  # None if the run is started or resumed, not collected
    announces: bool = True
    helpers: Helpers | None = None
    """Those who make the attempts, if it is not this process."""
    told: dict[str, None] = field(default_factory=dict)  # in order, each thing once

    def prepared(self) -> _Job:
        """Check what can be checked before the first call; the time counts from here on."""
        unsound = audit_notes(self.suite) if self.fresh and not self.is_probe else ()
        for note in (*warnings(self.suite, model_of), *unsound):
            self.watch.note(note)
        if self.record:
            if self.record.resolve() == Path(self.store.address).resolve():
                raise UsageError(f"--record {self.record}: this is the store. Name another file.")
            from pennyweight.models.replay import Recorder  # noqa: PLC0415

            Recorder(self.record).close()  # fails where it cannot be written
        if self.fresh and lane_subjects(self.suite):
            from pennyweight.engine.batches.lane import check_batches  # noqa: PLC0415

            check_batches(self.suite, self.record)
        try:
            _ = self.store.engine
        except StoreError as error:
            raise StoreError(error.problem, "Nothing was called; --store names another.") from error
        for note in fetched(self.suite):
            self.watch.note(note)
        if self.helpers is None and any(subject.agent for subject in self.suite.subjects):
            self._try_checks()
        return replace(self, began=time.monotonic())

    def _try_checks(self) -> None:
        """Run the checks of agents where no agent has worked, before anything is paid for."""
        from pennyweight.engine.initial_checks import InitialChecks  # noqa: PLC0415

        todo = None if self.fresh else resume_plan(self.run, self.suite, self.store).todo
        checks = InitialChecks.of(self.suite, attempts(self.suite) if todo is None else todo)
        if not checks.todo:
            return
        self.watch.begin(Phase(PhaseKind.CHECKS, self.run.id, checks=len(checks.todo)))
        budget = Budget(self.suite.limits)
        try:
            checks.examine(lambda tally: self.watch.progress(tally, budget, []))
        finally:
            self.watch.end()

    def completed(self, until: Until | None) -> Run:
        """Check the run and carry it out."""
        with rare_collection():
            job = self.prepared()
            began, made = time.time(), job.carry_out(until)
            job = replace(job, fresh=False, announces=False)
            while self.batches and self.batches.wait and made.is_waiting:
                self.batches.pause(self.suite, made.stored, self.store, self.watch.waiting, began)
                began = time.time()
                try:
                    made = job.carry_out(until)
                except CallError as error:  # a provider that cannot be reached is asked again
                    if not error.retryable:
                        raise
                    self.watch.note(str(error))
            return made

    def carry_out(self, until: Until | None) -> Run:
        """Make the attempts and ask the judges, until all is done or the policy is decided."""
        if until:
            return self._until(until)
        self._start(count(self.suite))
        outcome = self._attempts(self.suite)
        judgings = self._judgings(self.suite, outcome)
        many = outcome.tally.done >= 2
        note = shared(self.suite, self.store.records(self.run.id, ANSWERED_BY)) if many else None
        return self._result(outcome, judgings, (note,) if note else ())

    def _start(self, attempts: int) -> None:
        if self.fresh:
            self.store.add_run(self.run)
        if self.announces:
            self.watch.start(self.run, attempts)

    def _attempts(self, suite: LoadedSuite) -> AttemptsResult:
        self.watch.begin(Phase(PhaseKind.ATTEMPTS, self.run.id, suite))
        try:
            return execute(
                suite, self.run, self.store, watch=self.watch.progress, record=self.record,
                began=self.began, deadline=self.batches.deadline if self.batches else None,
                retries=self.batches is None,
                helpers=self.helpers,
            )  # fmt: skip
        finally:
            self.watch.end()

    def _judgings(self, suite: LoadedSuite, outcome: AttemptsResult) -> tuple[JudgingResult, ...]:
        """Ask the judges, unless the attempts were stopped."""
        if suite.judge is None or outcome.interrupted or outcome.tally.stop_reason:
            return ()
        results: list[JudgingResult] = []
        for note in unpriced_judges(suite.judge, suite.prices):
            self.watch.note(note)
        for phase, ask in judge_phases(
            suite, outcome.run, self.store, progress=self.watch.progress, record=self.record,
            began=self.began, deadline=self.batches.deadline if self.batches else None,
        ):  # fmt: skip
            self.watch.begin(phase)
            result = None
            try:
                result = ask()
            finally:
                self.watch.end(result)
            results.append(result)
            if result.interrupted or (result.tally.stop_reason and not result.tally.waits):
                break
        return tuple(results)

    def _until(self, until: Until) -> Run:
        """Make ever larger parts of the suite until the policy is decided."""
        from pennyweight.api.baseline import baseline_records  # noqa: PLC0415 - plain runs need none
        from pennyweight.api.gate import read_policy  # noqa: PLC0415
        from pennyweight.engine.early_stop import GrowingSuite  # noqa: PLC0415
        from pennyweight.gates.decision import needed_metrics  # noqa: PLC0415
        from pennyweight.stored_runs.plan import EarlyStop  # noqa: PLC0415

        stored = None if self.fresh else EarlyStop.of(self.run)
        version = until.version or (stored.version if stored else None)
        policy = read_policy(until.policy, version)
        name, metrics = until.baseline, needed_metrics(policy)
        before = baseline_records(name, metrics, policy.options, store=self.store) if name else None
        seed = stored.seed if stored else None
        growing = GrowingSuite.of(self.suite, policy, before, seed=seed, version=version)
        if not self.fresh:
            with held(self.store, self.run.id):
                renew(self.run, growing.suite, self.store)
        run = replace(self.run, settings={**self.run.settings, **growing.settings()})
        job = replace(self, run=run)
        job._start(len(self.suite.tasks) * self.suite.runs)
        verdict: Verdict | None = None
        for part in growing.parts():
            outcome = job._attempts(part)
            save_suite_scenarios(growing.suite, run, self.store)
            judgings = job._judgings(growing.suite, outcome)
            made = sum(self.store.statuses(run.id).values())
            verdict = growing.look(run, self.store) if made else verdict
            stops = outcome.interrupted or outcome.tally.stop_reason
            if stops or any(judging.exit_code or judging.tally.waits for judging in judgings):
                break
            if verdict is None or verdict.verdict != "inconclusive":
                break
            if policy.errors.exceeded(verdict.errors, verdict.records):
                break  # more attempts cannot make it a pass
        settings = {**self.store.find(run.id).settings, **growing.settings()}
        self.store.set_run(run.id, attempts=made, settings=settings)
        result = job._result(outcome, judgings, (), verdict, is_early_stopping=True)
        if result.ended.kind is EndKind.DECIDED:
            self.store.set_run(run.id, status="done")
        return replace(result, attempts=len(self.suite.tasks) * self.suite.runs, made=made)

    def _result(
        self,
        outcome: AttemptsResult,
        judgings: tuple[JudgingResult, ...],
        notes: tuple[str, ...],
        verdict: Verdict | None = None,
        *,
        is_early_stopping: bool = False,
    ) -> Run:
        tally, ended = outcome.tally, outcome.tally.end
        for one in (tally, *(judging.tally for judging in judgings)):
            self.told.update(dict.fromkeys(one.notes))
        if outcome.interrupted and not (tally.missing or self.suite.judge or is_early_stopping):
            ended = RunEnd(EndKind.DONE)  # nothing was left to do
        interrupted = ended.kind is EndKind.INTERRUPTED or any(j.interrupted for j in judgings)
        if verdict and verdict.verdict != "inconclusive" and not interrupted:
            ended = RunEnd(EndKind.DECIDED, ended.reason)
        return Run(
            stored=self.store.find(self.run.id),
            store=self.store,
            ended=ended,
            attempts=tally.total,
            made=tally.done - tally.failed,
            errors=dict(tally.errors),
            missing=tally.missing,
            retries=tally.retries,
            last_error=tally.last_error,
            error_examples=tuple(failures(self.run.id, self.store)) if tally.errors else (),
            spent=self.store.spent(self.run.id),
            broken_checks=outcome.broken,
            score_errors=outcome.score_errors,
            judgings=judgings,
            verdict=verdict,
            is_early_stopping=is_early_stopping,
            has_judges=self.suite.judge is not None,
            notes=(*notes, *self.told),
        )
