"""Work on a run that others have started, or put a run up for workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from pennyweight.api.event_loop import outside_a_loop
from pennyweight.api.garbage import rare_collection
from pennyweight.api.resumption import resumed
from pennyweight.api.sources import open_store
from pennyweight.api.stored_suites import open_stored
from pennyweight.api.watching import ShowProgress, Watcher, watcher
from pennyweight.engine.execution import WorkResult as WorkResult  # noqa: PLC0414 - skins use it
from pennyweight.engine.execution import model_of, new_run, offer, open_suite
from pennyweight.engine.execution import work as make_attempts
from pennyweight.engine.preflight import fetched, warnings
from pennyweight.engine.sharing.plan import check_live
from pennyweight.judges.phases import Phase, PhaseKind
from pennyweight.store.store import Store, StoredRun
from pennyweight.suite.definition import GivenSuite
from pennyweight.suite.narrowing import Narrowing, NarrowingOptions


def work(
    run: str = "latest",
    *,
    suite: GivenSuite | None = None,
    store: str | Store | None = None,
    subjects: Sequence[str] = (),
    places: int | None = None,
    watch: Watcher | None = None,
    progress: ShowProgress = None,
    models: Sequence[str] = (),
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in run
) -> WorkResult:
    """Make attempts of a run that others have started, until there are none left.

    `run` is a run's id, a unique prefix, or `latest`. `suite` is the suite's file on this machine.
    Without it, the suite is taken from the store, by the rules of uploads unless `watch.trust`
    returns true. `subjects` are those to make attempts of; by default all. `places` limits the
    concurrent calls of this worker. `models` and `set` repeat what the run changed in its suite,
    which confirms it.
    """
    watch, at = watcher(watch, progress), open_store(store)
    found = at.find(run)
    asked = Narrowing.of(models=models or None, set=set)
    loaded = open_stored(found, trust=watch.trust, file=suite, command="work", asked=asked)
    for note in fetched(loaded):
        watch.note(note)
    watch.start(found, found.attempts)

    def made() -> WorkResult:
        watch.begin(Phase(PhaseKind.ATTEMPTS, found.id, loaded))
        try:
            with rare_collection():
                return make_attempts(
                    loaded, found, at, watch=watch.progress, subjects=subjects, places=places
                )
        finally:
            watch.end()

    return outside_a_loop(made)


def put_up(
    suite: GivenSuite | None,
    *,
    resume: bool = False,
    file: str | Path | None = None,
    store: str | Store | None = None,
    by: Sequence[str] = (),
    watch: Watcher | None = None,
    **options: Unpack[NarrowingOptions],
) -> tuple[StoredRun, int]:
    """Create a run, or find the one to resume, and put its attempts up for workers; call nothing.

    Return the run and how many attempts wait for workers.
    """
    watch, at, asked = watch or Watcher(), open_store(store), Narrowing.of(**options)
    if resume:
        name = suite if isinstance(suite, str | Path) else "latest"
        found, loaded = resumed(name, at, by, watch, asked, file=file)
    else:
        loaded = open_suite(suite or "suite.yaml", by=by, narrowing=asked)
        found = new_run(loaded)
    check_live(loaded, found, at)
    for note in warnings(loaded, model_of):
        watch.note(note)
    if not resume:
        at.add_run(found)
    return found, offer(loaded, found, at)
