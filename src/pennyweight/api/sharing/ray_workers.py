"""Workers as Ray actors: placed by what a subject needs, ended when the run is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.api.sharing.ray_cluster import check_installed, connect
from pennyweight.api.sharing.work import work
from pennyweight.engine.interrupts import LISTENING, Stopping
from pennyweight.engine.sharing.plan import check_live
from pennyweight.engine.tally import Tally
from pennyweight.errors import StoreError, UsageError
from pennyweight.store.shared_runs import left, live_workers
from pennyweight.store.store import Store, StoredRun
from pennyweight.suite.narrowing import Narrowing
from pennyweight.suite.values import LoadedSuite
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.engine.ending import StopReason

POLL = 1.0
"""Seconds between two looks at the workers."""
LIVES = 3
"""How many workers of each kind may be lost before no more are started."""
PATIENCE = 120.0
"""Seconds that workers have to finish their calls in flight when the run stops."""


@dataclass(frozen=True, slots=True)
class RayJob:
    """What an actor works on."""

    run: str
    suite: str
    store: str
    subjects: tuple[str, ...]
    places: int | None
    models: tuple[str, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What the person who started the run changed in the suite."""


class WorkerActor:
    """A worker in a process of a Ray node."""

    def __init__(self) -> None:
        self._listening: list[Stopping] = []

    def work(self, job: RayJob) -> tuple[int, StopReason | None]:
        """Make attempts until there are none left; return how many, and why it stopped early."""
        LISTENING.set(self._listening)
        result = work(
            job.run, suite=str(Path(job.suite).absolute()), store=job.store, progress=False,
            subjects=job.subjects, places=job.places, models=job.models, set=job.changes,
        )  # fmt: skip
        return result.made, result.tally.stop_reason

    def stop(self) -> None:
        """Finish the calls in flight and take no more attempts."""
        for stopping in self._listening:
            stopping.interrupt()


@dataclass(slots=True)
class RayWorkers:
    """Starts workers on a Ray cluster and waits for them."""

    address: str | None
    """Where the cluster is, as host:port; None starts one on this machine."""
    suite: LoadedSuite
    run: StoredRun
    store: Store
    _lives: dict[tuple[str, ...], int] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse what cannot work, before anything is started."""
        check_live(self.suite, self.run, self.store)
        if self.address and "://" not in self.store.address:
            raise UsageError(
                "The store is an SQLite file, which the nodes of a cluster cannot share. Use "
                "--store postgresql://…, or --on ray for a cluster on this machine alone."
            )
        if not Path(self.suite.path).is_file():
            raise UsageError(
                f"--on ray sends the suite's file to the nodes, and {clean(self.suite.path)} is no "
                "file. Write the suite to one; with --resume, --suite FILE names it."
            )
        check_installed("Without it, 'pennyweight work' makes attempts on any machine.")

    def __call__(self, tally: Tally, count: Callable[[], None]) -> bool:
        """Wait until the workers have made the attempts; return whether that was interrupted."""
        ray = connect(self.address, Path(self.suite.path).absolute().parent)
        actors: dict[Any, tuple[Any, tuple[str, ...]]] = {}
        try:
            for subjects in self.groups():
                self._lives[subjects] = LIVES
                for _ in range(self._number(ray, subjects)):
                    self._start(ray, subjects, actors)
            while actors:
                self._look(ray, tally, actors)
                with suppress(StoreError):  # the workers wait for it, and the next look may succeed
                    count()
                if not self._left():
                    self._wait(ray, actors)
                    break  # the others wait for a place, and there is nothing left to do
        except BaseException as error:
            interrupted = isinstance(error, (KeyboardInterrupt, SystemExit))
            if interrupted:
                tally.interrupted = tally.stopping = True
            self._stop(ray, actors)
            if not interrupted:
                raise
            return True
        finally:
            for actor, _ in actors.values():
                with suppress(Exception):
                    ray.kill(actor, no_restart=True)
            ray.shutdown()
        return False

    def _left(self) -> int:
        """Count the attempts that may still be made; wait for a database that restarts."""
        return self.store.patiently(lambda _: left(self.store, self.run.id))

    def _stop(self, ray: Any, actors: Mapping[Any, tuple[Any, Any]]) -> None:
        """Let workers finish their calls in flight, because these are paid for."""
        for actor, _ in actors.values():
            with suppress(Exception):
                actor.stop.remote()
        with suppress(Exception):  # the cluster may be gone
            self._wait(ray, actors)

    def _wait(self, ray: Any, actors: Mapping[Any, Any]) -> None:
        """Wait until workers have left the run; some have never begun, and are not waited for."""
        end = time.monotonic() + PATIENCE
        while actors and time.monotonic() < end:
            _, busy = ray.wait([*actors], num_returns=len(actors), timeout=POLL)
            with suppress(StoreError):  # then it is not known
                if not busy or not live_workers(self.store, self.run.id):
                    return

    def _look(self, ray: Any, tally: Tally, actors: dict[Any, tuple[Any, Any]]) -> None:
        """Note which workers have ended; replace those that were lost."""
        ended, _ = ray.wait([*actors], timeout=POLL)
        for one in ended:
            _, subjects = actors.pop(one)
            try:
                _, reason = ray.get(one)
                tally.set_reason(reason)
            except ray.exceptions.RayActorError as error:
                tally.last_error = str(error)
                self._lives[subjects] -= 1
                if self._lives[subjects] and self._left():
                    self._start(ray, subjects, actors)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None

    def groups(self) -> dict[tuple[str, ...], Mapping[str, float]]:
        """Return the subjects that need the same resources, and what these are."""
        groups: dict[tuple[tuple[str, float], ...], list[str]] = {}
        for subject in self.suite.subjects:
            groups.setdefault(tuple(sorted(subject.resources.items())), []).append(subject.name)
        return {tuple(names): dict(needed) for needed, names in groups.items()}

    def _number(self, ray: Any, subjects: tuple[str, ...]) -> int:
        """Return how many workers of a kind fit; one a node where nothing is asked for."""
        needed, total = self.groups()[subjects], ray.cluster_resources()
        if not needed:
            return max(1, sum(bool(node["Alive"]) for node in ray.nodes()))
        fits: int = min(int(total.get(name, 0.0) / amount) for name, amount in needed.items())
        if not fits:
            lack = ", ".join(f"{name}: {amount:g}" for name, amount in needed.items())
            raise UsageError(f"The cluster has no room for a worker of {subjects[0]} ({lack}).")
        return fits

    def job(self, subjects: tuple[str, ...]) -> RayJob:
        """Return what a worker of some subjects works on."""
        place, at = Path(self.suite.path), self.store.address
        suite = str(place.absolute()) if self.address is None else place.name
        store = at if "://" in at else str(Path(at).absolute())
        has_agent = any(s.agent for s in self.suite.subjects if s.name in subjects)
        places = 1 if has_agent and self.groups()[subjects] else None
        own = self.suite.narrowing or Narrowing()
        return RayJob(self.run.id, suite, store, subjects, places, own.models, own.changes)

    def _start(self, ray: Any, subjects: tuple[str, ...], actors: dict[Any, Any]) -> None:
        needed = dict(self.groups()[subjects])
        options = {
            "num_cpus": needed.pop("CPU", 1.0),
            "num_gpus": needed.pop("GPU", 0.0),
            "memory": needed.pop("memory", None),
            "resources": needed,
        }
        remote = ray.remote(WorkerActor).options(
            **options, max_restarts=0, max_task_retries=0, max_concurrency=2,
            scheduling_strategy="SPREAD",
        )  # fmt: skip
        actor = remote.remote()
        actors[actor.work.remote(self.job(subjects))] = actor, subjects


def ray_workers(on: str, suite: LoadedSuite, run: StoredRun, store: Store) -> RayWorkers:
    """Return the workers that `--on` names, checked."""
    scheme, _, address = on.partition("://")
    if scheme != "ray" or (address and ":" not in address):
        raise UsageError(f"--on {on}: attempts are made on 'ray', 'ray://HOST:PORT' or 'workers'.")
    workers = RayWorkers(address or None, suite, run, store)
    workers.check()
    return workers
