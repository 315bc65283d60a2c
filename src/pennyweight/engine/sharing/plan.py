"""The plan of a shared run: the same for all of its workers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable

from pennyweight.engine.batches.pending import in_lane
from pennyweight.engine.resume import key_of
from pennyweight.errors import UsageError, unknown
from pennyweight.store.lanes.batches import open_subjects
from pennyweight.store.shared_runs import put_up, ranges_of, shared_run
from pennyweight.store.store import Store, StoredRun
from pennyweight.suite.plan import Attempt, SubjectPlan, count
from pennyweight.suite.values import LoadedSuite
from pennyweight.text.safe import clean

PORTION = 32
"""Attempts in one portion of a run that is resumed."""


def can_share(store: Store) -> bool:
    """Whether workers may join a run in a store at any time: a server, no file."""
    return store.engine.dialect.name != "sqlite"


def plans_of(suite: LoadedSuite, subjects: Collection[str] = ()) -> dict[str, SubjectPlan]:
    """Return the plans of some subjects by name; of all of them if none is named."""
    known = [subject.name for subject in suite.subjects]
    for name in subjects:
        if name not in known:
            listed = f"The subjects of the run: {', '.join(map(clean, known))}."
            raise UsageError(unknown("Subject", name, known, listed))
    return {
        subject.name: SubjectPlan(suite, subject)
        for subject in suite.subjects
        if not subjects or subject.name in subjects
    }


def check_live(suite: LoadedSuite, run: StoredRun, store: Store) -> None:
    """Refuse to share a run with subjects that are called in batches: workers call live."""
    if store.exists and open_subjects(store, run.id, "attempt"):
        raise UsageError(
            f"Attempts of run {run.id} were sent in batches, and workers call live. Leave --on "
            f"out: 'pennyweight run --resume {run.id}' collects the replies first."
        )
    for subject in suite.subjects:
        if in_lane(subject, suite.limits):
            raise UsageError(
                f"{clean(subject.name)} is called in batches, and workers call live. Leave --on "
                "out; 'limits: {lane: live}' in a subject calls it live."
            )


def put_up_plan(
    suite: LoadedSuite, run: StoredRun, store: Store, todo: Iterable[Attempt], number: int
) -> None:
    """Put the attempts to make up for workers, `number` of them."""
    plans = plans_of(suite)
    totals = {name: len(plan) for name, plan in plans.items()}
    if number == count(suite):
        put_up(store, run.id, plan_mark(suite), totals)
        return
    wanted = {key_of(run.id, attempt) for attempt in todo}
    ranges = {
        name: ranges_of((i for i in range(len(plan)) if key_of(run.id, plan[i]) in wanted), PORTION)
        for name, plan in plans.items()
    }
    put_up(store, run.id, plan_mark(suite), totals, ranges)


def plan_mark(suite: LoadedSuite) -> str:
    """Hash what determines the attempts and their order."""
    narrowing = suite.narrowing.plain() if suite.narrowing else None
    parts = [suite.text, suite.data_hash, narrowing, count(suite)]
    return hashlib.sha256(json.dumps(parts, default=str).encode(errors="replace")).hexdigest()


def check_plan(suite: LoadedSuite, run: StoredRun, store: Store) -> None:
    """Refuse to work on a run whose suite is another one here."""
    shared = shared_run(store, run.id)
    if shared is None or shared.plan == plan_mark(suite):
        return
    what = "its text" if suite.text != run.text else "its tasks or options"
    raise UsageError(
        f"{clean(suite.path)} is not the suite that run {run.id} is made of: {what} differs. A "
        "worker needs the same files as the process that started the run; 'pennyweight run "
        f"--resume {run.id}' continues the run with a changed suite."
    )
