"""Go on with a run: who may, what stands of it, what is corrected, what is still to be made."""

from __future__ import annotations

import json
import os
import platform
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight import __version__
from pennyweight.errors import StoreError, UsageError
from pennyweight.record import AttemptKey
from pennyweight.store.lease import STALE, Owner, owner_of, release_run, renew_lease, take_run
from pennyweight.store.set_aside import exchange, set_aside
from pennyweight.suite.plan import Attempt, attempts, count, fingerprint
from pennyweight.suite.values import Suite, Task
from pennyweight.text.safe import clean, storable

if TYPE_CHECKING:
    from pennyweight.store.store import Run, RunSettings, Store

EVERY = 5.0
"""Seconds from one sign of life to the next."""
SCORING_SETTINGS = {"answer": "how answers are found", "match": "how answers are matched"}


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """What a resumed run finds: what still stands, what failed, what changed, what is new.

    What changed was made by another call, and what is gone is no part of the suite any more: both
    are set aside.
    """

    reused: int
    failed: int
    changed: int
    new: int
    gone: int
    texts: tuple[str, ...]

    @property
    def asks(self) -> bool:
        """Whether a person should agree first: the suite is no longer what it was."""
        return bool(self.changed or self.gone or self.texts)


def resume_plan(run: Run, suite: Suite, store: Store) -> ResumePlan:
    """Compare what a run has with what its suite asks for now."""
    made, aside = store.attempts(run.id), set_aside(store, run.id)
    reused = failed = changed = new = 0
    for attempt in attempts(suite):
        key, mark = key_of(run.id, attempt), fingerprint(suite, attempt)
        there = made.pop(key, None)
        status = there[1] if there and there[0] == mark else aside.get((key, mark))
        if status == "error":
            failed += 1
        elif status:
            reused += 1
        elif there:
            changed += 1
        else:
            new += 1
    return ResumePlan(reused, failed, changed, new, len(made), tuple(_texts(run, suite)))


def _texts(run: Run, suite: Suite) -> Iterator[str]:
    settings = settings_of(suite)
    if run.text != suite.text:
        yield f"the suite's text ({shown(suite.path)})"
    if run.data_hash != suite.data_hash:
        yield "its tasks or examples (existing records are scored against the new targets)"
    for name, what in SCORING_SETTINGS.items():
        if run.settings.get(name) != settings.get(name):
            yield f"{what} (old responses are only scored again)"


def settings_of(suite: Suite) -> RunSettings:
    """Give what a run keeps of its suite, beside its text."""
    match = {n: str(v) if v is not None else None for n, v in asdict(suite.match).items()}
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
        "match": match,
        "confidence": suite.confidence,
        **({"judge": suite.judge.plain()} if suite.judge and suite.judge.scores else {}),
    }


def shown(path: str) -> str:
    """Show a path from here, where that is shorter."""
    return clean(min(path, os.path.relpath(path), key=len))


def key_of(run_id: str, attempt: Attempt) -> AttemptKey:
    """Return the key of the record that an attempt of a run leaves behind."""
    subject, tier = attempt.subject.name, attempt.tier.name
    return AttemptKey(run_id, subject, tier, attempt.task.id, attempt.number)


def begin(run: Run, suite: Suite, store: Store) -> tuple[Iterable[Attempt], int]:
    """Go on with a run that is held: bring it up to date, give what is to be made and how many."""
    todo = renew(run.id, suite, store)
    store.set_run(
        run.id,
        status="running",
        path=place_of(suite),
        text=suite.text,
        data_hash=suite.data_hash,
        attempts=count(suite),
        settings={**_still_kept(run, suite), **settings_of(suite)},
    )
    return (attempts(suite), count(suite)) if todo is None else (todo, len(todo))


def _still_kept(run: Run, suite: Suite) -> RunSettings:
    """Give the settings of a run, without judges that its suite had and has no more.

    Those of `pennyweight judge` were never in the suite, and stay.
    """
    kept = run.settings.copy()
    if suite.judge is None and "judge" in kept:
        from yaml import YAMLError, safe_load  # noqa: PLC0415

        with suppress(YAMLError):
            if "judge" in (safe_load(run.text) or {}):
                del kept["judge"]
    return kept


def renew(run_id: str, suite: Suite, store: Store) -> list[Attempt] | None:
    """Let the records of a run be those that its suite asks for; gives what is still to be made.

    The others are set aside, and what was set aside and is asked for again comes back. A part of a
    suite says nothing about the rest: it is left alone. None where there is no record yet.
    """
    made, aside = store.attempts(run_id), set_aside(store, run_id)
    if not made and not aside:
        return None
    away, back, todo = [], [], []
    for attempt in attempts(suite):
        key, mark = key_of(run_id, attempt), fingerprint(suite, attempt)
        there = made.pop(key, None)
        status = there[1] if there and there[0] == mark else None
        if there and not status:
            away.append(key)
        if not status and (key, mark) in aside:
            back.append((key, mark))
            status = aside[key, mark]
        if not status or status == "error":
            todo.append(attempt)
    if not suite.is_part:
        exchange(store, [*away, *made], back)
        correct(run_id, suite, store)
    return todo


def place_of(suite: Suite) -> str:
    """Give the path of a suite, whole: a run may be gone on with from another folder."""
    return str(Path(suite.path).resolve())


def task_columns(task: Task) -> dict[str, Any]:
    """Give what a record says about its task, and no model was told."""
    extra = json.dumps(dict(task.extra), default=str) if task.extra else None
    return {
        "target": storable(task.target),
        "category": storable(task.category),
        "capability": storable(task.capability),
        "pass_score": task.pass_score,
        "extra": extra,
    }


TOLD = ("target", "category", "capability", "pass_score", "extra")


def correct(run_id: str, suite: Suite, store: Store) -> None:
    """Bring what records say about their tasks up to date.

    A target is no part of a call, so a record stands when its target is corrected, and must be
    scored by the new one.
    """
    tasks = {task.id: task for task in suite.tasks}
    stale = {
        task_id
        for task_id, said in store.task_values(run_id, TOLD)
        if task_id in tasks and said != tuple(task_columns(tasks[task_id]).values())
    }
    if stale:
        store.update_tasks(run_id, [(one, task_columns(tasks[one])) for one in sorted(stale)])


@contextmanager
def held(store: Store, run_id: str, lost: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Keep a run to this process; a second one that wants it is refused.

    `lost` is called, in any thread, if the run was taken over: this process was silent for so long
    (a machine that slept) that another went on with it. It must stop; the store keeps no more of
    what it does than the calls it paid.
    """
    owner = Owner.here().text
    if not take_run(store, run_id, owner, lost):
        raise UsageError(_busy(run_id, owner_of(store, run_id)))
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(EVERY):
            try:
                if not renew_lease(store, run_id, owner):
                    return
            except StoreError:  # the writer meets it too, and says so
                continue

    thread = threading.Thread(target=beat, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(StoreError):  # then it is free when this process is gone
            release_run(store, run_id, owner)


def _busy(run_id: str, owner: Owner | None) -> str:
    if owner is None:
        return f"Run {run_id} is just being ended by another process; try again."
    since = datetime.fromtimestamp(owner.since).astimezone().isoformat(" ", "seconds")
    return (
        f"Run {run_id} is being made by another process, {owner.pid} on {clean(owner.host)}, since "
        f"{since}. Wait until it ends, or end it, then resume the run; if that machine died, the "
        f"run is free {STALE:.0f} s later."
    )
