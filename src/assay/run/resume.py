"""Go on with a run: who may, what stands of it, what is corrected, what is still to be made."""

from __future__ import annotations

import json
import os
import platform
import threading
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import __version__
from assay.errors import UsageError
from assay.store.connect import StoreError
from assay.store.lease import STALE, Owner
from assay.suite.plan import attempts, count, fingerprint
from assay.text.safe import clean, storable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from assay.store.store import Run, Store
    from assay.suite.plan import Attempt
    from assay.suite.values import Suite, Task

Key = tuple[str, str, str, int]
EVERY = 5.0
"""Seconds from one sign of life to the next."""
SCORED_ANEW = {"answer": "how answers are found", "match": "how answers are matched"}


@dataclass(frozen=True, slots=True)
class Difference:
    """What a resumed run finds: what still stands, what failed, what changed, what is new."""

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


def difference(run: Run, suite: Suite, store: Store) -> Difference:
    """Compare what a run has with what its suite asks for now."""
    made = store.made(run.id)
    reused = failed = changed = new = 0
    for attempt in attempts(suite):
        found = made.get(key_of(attempt))
        if found is None:
            new += 1
        elif found[0] != fingerprint(suite, attempt):
            changed += 1
        elif found[1] == "error":
            failed += 1
        else:
            reused += 1
    gone = len(made) - reused - failed - changed
    return Difference(reused, failed, changed, new, gone, tuple(_texts(run, suite)))


def _texts(run: Run, suite: Suite) -> Iterator[str]:
    settings = settings_of(suite)
    if run.text != suite.text:
        yield f"the suite's text ({shown(suite.path)})"
    if run.data_hash != suite.data_hash:
        yield "its tasks or examples (what stands is scored by the new targets)"
    for name, what in SCORED_ANEW.items():
        if run.settings.get(name) != settings[name]:
            yield f"{what} (old responses are only scored anew)"


def settings_of(suite: Suite) -> dict[str, Any]:
    """Give what a run keeps of its suite, beside its text."""
    match = {n: str(v) if v is not None else None for n, v in asdict(suite.match).items()}
    return {
        "assay": __version__,
        "python": platform.python_version(),
        "seed": suite.seed,
        "runs": suite.runs,
        "tasks": len(suite.tasks),
        "subjects": [s.name for s in suite.subjects],
        "tiers": [t.name for t in suite.tiers],
        "limits": asdict(suite.limits),
        "answer": asdict(suite.answer),
        "match": match,
        "confidence": suite.confidence,
        **({"judge": suite.judge.plain()} if suite.judge and suite.judge.scores else {}),
    }


def shown(path: str) -> str:
    """Show a path from here, where that is shorter."""
    return clean(min(path, os.path.relpath(path), key=len))


def key_of(attempt: Attempt) -> Key:
    """Give what tells the records of a run apart."""
    return attempt.subject.name, attempt.tier.name, attempt.task.id, attempt.number


def still_to_make(suite: Suite, made: Mapping[Key, tuple[str, str]]) -> Iterator[Attempt]:
    """List the attempts that have no record, or one that failed or no longer stands."""
    for attempt in attempts(suite):
        found = made.get(key_of(attempt))
        if not found or found[1] == "error" or found[0] != fingerprint(suite, attempt):
            yield attempt


def begin(run: Run, suite: Suite, store: Store) -> tuple[Iterable[Attempt], int]:
    """Go on with a run that is held: bring it up to date, give what is to be made and how many."""
    made = store.made(run.id)
    todo: list[Attempt] | None = None
    if made:
        todo = list(still_to_make(suite, made))
        correct(run.id, suite, store, made, todo)
    store.set_run(
        run.id,
        status="running",
        path=place_of(suite),
        text=suite.text,
        data_hash=suite.data_hash,
        attempts=count(suite),
        settings={**run.settings, **settings_of(suite)},
    )
    return (attempts(suite), count(suite)) if todo is None else (todo, len(todo))


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


def correct(
    run_id: str,
    suite: Suite,
    store: Store,
    made: Mapping[Key, tuple[str, str]],
    todo: list[Attempt],
) -> int:
    """Bring what records say about their tasks up to date; gives how many tasks had changed.

    A target is no part of a call, so a record stands when its target is corrected, and must be
    scored by the new one. What is made anew keeps the old one until then.
    """
    tasks = {task.id: task for task in suite.tasks}
    stale = {
        task_id
        for task_id, said in store.told(run_id, TOLD)
        if task_id in tasks and said != tuple(task_columns(tasks[task_id]).values())
    }
    if not stale:
        return 0
    anew: dict[str, list[tuple[str, str, int]]] = {}
    for attempt in todo:
        subject, tier, task_id, number = key_of(attempt)
        if task_id in stale and (subject, tier, task_id, number) in made:
            anew.setdefault(task_id, []).append((subject, tier, number))
    store.correct(
        run_id, [(one, task_columns(tasks[one]), anew.get(one, ())) for one in sorted(stale)]
    )
    return len(stale)


@contextmanager
def held(store: Store, run_id: str, lost: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Keep a run to this process; a second one that wants it is refused.

    `lost` is called, in another thread, if the run was taken over: this process was silent for so
    long (a machine that slept) that another went on with it, and must stop.
    """
    owner = Owner.here().text
    if not store.take(run_id, owner):
        raise UsageError(_busy(run_id, store.holder(run_id)))
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(EVERY):
            try:
                if not store.beat(run_id, owner):
                    lost()
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
            store.release(run_id, owner)


def _busy(run_id: str, owner: Owner | None) -> str:
    if owner is None:
        return f"Run {run_id} is just being ended by another process; try again."
    since = datetime.fromtimestamp(owner.since).astimezone().isoformat(" ", "seconds")
    return (
        f"Run {run_id} is being made by another process, {owner.pid} on {clean(owner.host)}, since "
        f"{since}. Wait until it ends, or end it, then resume the run; if that machine died, the "
        f"run is free {STALE:.0f} s later."
    )
