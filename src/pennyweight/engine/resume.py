"""Resume a run: hold it, compare its records with the suite, and find the attempts to make."""

from __future__ import annotations

import json
import os
import platform
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pennyweight import __version__
from pennyweight.errors import StoreError, UsageError
from pennyweight.record import AttemptKey
from pennyweight.store.lease import STALE, Owner, owner_of, release_run, renew_lease, take_run
from pennyweight.store.set_aside import exchange, set_aside
from pennyweight.store.store import RunSettings, Store, StoredRun, VerifiedAttempts
from pennyweight.suite.exam import TaskDigests, grading_settings
from pennyweight.suite.plan import Attempt, attempts, count, fingerprint
from pennyweight.suite.values import LoadedSuite, Task
from pennyweight.text.safe import clean, storable

HEARTBEAT = 5.0
"""Seconds between two renewals of the lease."""
SCORING_SETTINGS = {"answer": "how answers are found", "match": "how answers are matched"}


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """How the records of a run compare with what its suite asks for now.

    Records that were `changed` belong to another request, and records that are `gone` to no attempt
    of the suite: both are set aside.
    """

    reused: int
    failed: int
    changed: int
    new: int
    gone: int
    texts: tuple[str, ...]
    """The parts of the suite that differ, in words."""
    todo: Sequence[Attempt] | None = None
    """The attempts that have no good record; None means all of the suite's."""
    away: Sequence[AttemptKey] = ()
    """The records to set aside."""
    back: Sequence[tuple[AttemptKey, str]] = ()
    """The records set aside earlier that count again, with their fingerprints."""

    @property
    def asks(self) -> bool:
        """Whether a person should agree first, because the suite has changed."""
        return bool(self.changed or self.gone or self.texts)


def resume_plan(run: StoredRun, suite: LoadedSuite, store: Store) -> ResumePlan:
    """Compare the records of a run with what its suite asks for now."""
    made, aside = store.attempts(run.id), set_aside(store, run.id)
    texts = tuple(_texts(run, suite))
    if not made and not aside:
        return ResumePlan(0, 0, 0, count(suite), 0, texts)
    counts: Counter[str] = Counter()
    away, back, todo = [], [], []
    for attempt in attempts(suite):
        key, mark = key_of(run.id, attempt), fingerprint(suite, attempt)
        stored = made.pop(key, None)
        status = stored[1] if stored and stored[0] == mark else None
        if stored and not status:
            away.append(key)
        if not status and (status := aside.get((key, mark))):
            back.append((key, mark))
        if status in {None, "error"}:
            todo.append(attempt)
        missing = "changed" if stored else "new"
        counts["failed" if status == "error" else "reused" if status else missing] += 1
    reused, failed, changed, new = (counts[n] for n in ("reused", "failed", "changed", "new"))
    away += made
    return ResumePlan(reused, failed, changed, new, len(made), texts, todo, away, back)


def _texts(run: StoredRun, suite: LoadedSuite) -> Iterator[str]:
    settings = settings_of(suite)
    if run.text != suite.text:
        shown = min(suite.path, os.path.relpath(suite.path), key=len)
        yield f"the suite's text ({clean(shown)})"
    if run.data_hash != suite.data_hash:
        yield "its tasks or examples (existing records are scored against the new targets)"
    for name, what in SCORING_SETTINGS.items():
        if run.settings.get(name) != settings.get(name):
            yield f"{what} (old responses are only scored again)"


def settings_of(suite: LoadedSuite) -> RunSettings:
    """Return what a run stores of its suite, in addition to its text."""
    return {
        "pennyweight": __version__,
        "python": platform.python_version(),
        "seed": suite.seed,
        "runs": suite.runs,
        "tasks": len(suite.tasks),
        "subjects": [s.name for s in suite.subjects],
        "tiers": [t.name for t in suite.tiers],
        "limits": asdict(suite.limits),
        "answer": {"kind": suite.answer.kind, "value": suite.answer.value},
        "match": suite.match.plain(),
        "confidence": suite.confidence,
        **({"verified": verified} if (verified := _verified(suite)) else {}),
        **({"narrowing": suite.narrowing.plain()} if suite.narrowing else {}),
        **({"partial": list(suite.partial)} if suite.partial else {}),
        **({"judge": suite.judge.plain()} if suite.judge and suite.judge.scores else {}),
        "grading": grading_settings(suite),
    }


def _verified(suite: LoadedSuite) -> VerifiedAttempts | None:
    """Return the attempts that a command verifies, unless the suite also matches their answers."""
    agents = [subject.name for subject in suite.subjects if subject.agent]
    if not agents or suite.states_rules:
        return None
    if any(tier.work and tier.work.verify for tier in suite.tiers):
        return {"subjects": agents, "other_tasks": []}
    others = [task.id for task in suite.tasks if not (task.work and task.work.verify)]
    return {"subjects": agents, "other_tasks": others} if len(others) < len(suite.tasks) else None


def key_of(run_id: str, attempt: Attempt) -> AttemptKey:
    """Return the key of the record that an attempt of a run leaves behind."""
    subject, tier = attempt.subject.name, attempt.tier.name
    return AttemptKey(run_id, subject, tier, attempt.task.id, attempt.number)


def begin(run: StoredRun, suite: LoadedSuite, store: Store) -> tuple[Iterable[Attempt], int]:
    """Update a run that this process holds; return the attempts to make, and how many."""
    todo = renew(run, suite, store)
    store.set_run(
        run.id,
        status="running",
        path=place_of(suite),
        text=suite.text,
        data_hash=suite.data_hash,
        attempts=count(suite),
        settings={**_lasting_settings(run, suite), **settings_of(suite), **_whole(run, suite)},
    )
    return (attempts(suite), count(suite)) if todo is None else (todo, len(todo))


def _whole(run: StoredRun, suite: LoadedSuite) -> RunSettings:
    """Return the size of the whole suite, if this is a part of it that may grow."""
    if not suite.is_part:
        return {}
    return {"tasks": run.settings["tasks"], "runs": run.settings["runs"]}


def _lasting_settings(run: StoredRun, suite: LoadedSuite) -> RunSettings:
    """Return the settings of a run, without the judges that were removed from its suite.

    Judges of `pennyweight judge` were never in the suite, and stay.
    """
    settings = run.settings.copy()
    if suite.judge is None and "judge" in settings:
        from yaml import YAMLError, safe_load  # noqa: PLC0415

        with suppress(YAMLError):
            if "judge" in (safe_load(run.text) or {}):
                del settings["judge"]
    return settings


def renew(run: StoredRun, suite: LoadedSuite, store: Store) -> Sequence[Attempt] | None:
    """Make the records of a run those that its suite asks for; return the attempts still to make.

    Other records are set aside, and those that the suite asks for again come back. A part of a
    suite changes nothing. None means all attempts, because there is no record yet.
    """
    plan = resume_plan(run, suite, store)
    if plan.todo is not None and not suite.is_part:
        exchange(store, plan.away, plan.back)
        correct(run.id, suite, store)
    return plan.todo


def place_of(suite: LoadedSuite) -> str:
    """Return the absolute path of a suite: a run may be resumed from another folder."""
    return str(Path(suite.path).resolve())


def task_columns(task: Task, digest: str | None = None) -> dict[str, Any]:
    """Return the columns of a record that repeat its task and were not sent to the model."""
    context = {} if task.context is None else {"context": task.context}
    further = {**task.extra, **context}
    return {
        "target": storable(task.target),
        "category": storable(task.category),
        "capability": storable(task.capability),
        "pass_score": task.pass_score,
        "extra": json.dumps(further, default=str) if further else None,
        "task_digest": digest,
    }


TASK_COLUMNS = tuple(task_columns(Task("", "")))


def correct(run_id: str, suite: LoadedSuite, store: Store) -> None:
    """Update the columns of records that repeat their tasks.

    A target is not part of a request, so a record remains valid when its target is corrected, and
    is scored by the new one.
    """
    digests = TaskDigests(suite)
    tasks = {task.id: task_columns(task, digests.of(task)) for task in suite.tasks}
    stale = {
        task_id
        for task_id, stored in store.task_values(run_id, TASK_COLUMNS)
        if task_id in tasks and stored != tuple(tasks[task_id].values())
    }
    if stale:
        store.update_tasks(run_id, [(task_id, tasks[task_id]) for task_id in sorted(stale)])


@contextmanager
def held(store: Store, run_id: str, lost: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a run for this process; refuse if another process holds it.

    `lost` is called, in any thread, if another process has taken the run over because this one was
    silent too long (the machine slept). This process must stop: the store accepts only the calls
    that it paid for.
    """
    owner = Owner.here().text
    if not take_run(store, run_id, owner, lost):
        raise UsageError(_busy(run_id, owner_of(store, run_id)))
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(HEARTBEAT):
            try:
                if not renew_lease(store, run_id, owner):
                    return
            except StoreError:  # the writer fails too, and reports it
                continue

    thread = threading.Thread(target=beat, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(StoreError):  # the run is free once this process has ended
            release_run(store, run_id, owner)


_FORCE = (
    f"If that machine has failed, the run is free {STALE:.0f} s after its last sign of life, and "
    "--resume --force takes it over now."
)


def _busy(run_id: str, owner: Owner | None) -> str:
    if owner is None:
        return f"Another process is just ending run {run_id}; try again."
    since = datetime.fromtimestamp(owner.since).astimezone().isoformat(" ", "seconds")
    return (
        f"Another process, {owner.pid} on {clean(owner.host)}, has been executing run {run_id} "
        f"since {since}. Wait until it ends, or end it, then resume the run. "
        f"{'' if owner.is_here else _FORCE}"
    ).strip()
