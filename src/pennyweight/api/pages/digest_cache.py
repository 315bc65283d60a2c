"""Digests of stored runs: computed when they are needed, large ones by a process, and cached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pennyweight.api.pages.boards import MAX_TASKS
from pennyweight.api.pages.digest import digest
from pennyweight.api.pages.failing_parts import FailingParts
from pennyweight.api.pages.headlines import pack, side_headlines
from pennyweight.api.pages.run_sides import further_columns
from pennyweight.api.pages.task_grid import save_grids
from pennyweight.api.score import named_scorers
from pennyweight.catalogue import declare_scores, own_mark
from pennyweight.errors import PennyweightError, StoreError
from pennyweight.schema.typed_values import fits
from pennyweight.scoring.digest import VERSION, FailingPart, GridDigest, RecordsDigest
from pennyweight.store import cache, queries, search_index
from pennyweight.store.cache import RunState
from pennyweight.store.store import Spending, Store, StoredRun
from pennyweight.store.tables import MEASURED
from pennyweight.stored_runs.imported import spent_on
from pennyweight.stored_runs.reviews import open_questions
from pennyweight.stored_runs.source import RunSource

MAX_INLINE_ATTEMPTS = 20_000
"""The digest of a larger run is computed by a separate process, to keep the server small."""
MAX_CACHED = 16
DONE = "done "
"""How the lines begin in which a process reports its progress."""
SHARES = {
    "read": (0.0, 0.2), "measure": (0.2, 0.5), "score": (0.5, 0.65), "compare": (0.65, 0.75),
    "keep": (0.75, 0.85), "index": (0.85, 1.0),
}  # fmt: skip
"""The share of the work at which each step begins and ends, roughly."""
MIN_PAUSE = 3.0
"""Seconds between two digests of a run in progress."""
MAX_AHEAD = 20
"""The newest runs whose numbers are computed before anybody asks."""
MAX_WAIT = 10.0
"""Seconds that the page of a small run waits for its numbers, if they are being computed."""
WATCH_SECONDS = 5.0
"""Seconds between two looks for runs that ended."""
PAUSE_FACTOR = 10
"""The pause is at least this multiple of the time a digest took, to leave the CPU to the run."""


class StoredDigest(RecordsDigest):
    """The digest of a run as it is stored; one of another form is computed again."""

    own: str
    """A hash of the user's metrics in it; empty without any."""
    categories: list[str]
    grids: list[GridDigest]
    failing: list[FailingPart]
    error_kinds: dict[str, int]
    """Of errors."""
    filter_kinds: list[str]
    """Also of attempts that a limit ended."""
    questions: int
    """Questions of the suite that nobody has answered."""
    statuses: dict[str, int]
    spent: Spending
    seconds: float


def compute(
    store: Store, run: StoredRun, tell: Callable[[str, int], None] = lambda *_: None
) -> dict[str, Any]:
    """Compute the digest of a run and store it with the measures of its records."""
    began, stamp = time.monotonic(), cache.stamp(store, run)
    names = [c.name for c in MEASURED.c if c.name != "run"]

    grids: list[GridDigest] = []
    parts = FailingParts(run, store)

    def take(frame: pl.LazyFrame, made: RecordsDigest) -> None:
        columns = set(frame.collect_schema().names())
        chosen = frame.select(n for n in (*names, "checks") if n in columns)
        done = 0
        for batch in chosen.collect_batches(chunk_size=cache.POSTGRES_BATCH, maintain_order=True):
            batch = parts.add(batch)  # noqa: PLW2901
            cache.save_measured(store, run.id, batch.columns, batch.rows())
            done += batch.height
            tell("keep", done)
        grids.extend(save_grids(store, run.id, frame, made))

    few = run.settings.get("tasks", 0) <= MAX_TASKS
    further = further_columns(store, [run]) if few else []
    # Labels may be added at any time; the page corrects metrics by them when it is shown.
    source = RunSource(run, store, task_columns=tuple(further), labels=False)
    found: dict[str, Any] = {**digest([source], further=further, take=take, progress=tell)}
    found["grids"], found["failing"] = grids, parts.counted()
    kinds = queries.error_kinds(store, run.id)
    found["error_kinds"] = kinds.get("error", {})
    found["filter_kinds"] = sorted({kind for some in kinds.values() for kind in some})
    found["questions"] = open_questions(run, store)
    cache.analyze(store)
    found["own"] = own_mark()
    found["categories"] = queries.distinct(store, run.id, "category")
    found["statuses"], found["spent"] = store.statuses(run.id), spent_on(run, store)
    found["seconds"] = time.monotonic() - began
    sides = side_headlines(found)
    cache.save_digest(
        store,
        run.id,
        stamp=stamp,
        metric=found["headline"],
        value=sides[0].value,
        low=sides[0].low,
        high=sides[0].high,
        sides=pack(sides),
        records=found["whole"]["records"],
        errors=found["whole"]["errors"],
        cost_usd=found["spent"]["usd"],
        data=json.dumps(found, allow_nan=False, default=str),
    )
    search_index.build(store, run.id, lambda records: tell("index", records))
    return found


@dataclass(frozen=True, slots=True)
class CachedDigest:
    """A digest, or None while there is none; not `current` if the run changed since."""

    digest: dict[str, Any] | None
    current: bool
    problem: str = ""


class DigestCache:
    """Returns digests at once where they are stored, and computes the others one by one.

    The metrics that the files `scorers` declare are computed too.
    """

    def __init__(self, store: Store, scorers: Sequence[str] = ()) -> None:
        self.store = store
        self._scorers = [str(Path(one).resolve()) for one in scorers]
        named_scorers(self._scorers)
        self._memory: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()
        self._unusable: dict[str, tuple[int, str]] = {}
        """Stored digests that were read in vain: a hash of each, and the metrics loaded here."""
        self._waiting: dict[str, StoredRun] = {}
        self._problems: dict[tuple[str, str], str] = {}
        self._next: dict[str, float] = {}
        self._lock = threading.Lock()
        self._busy = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._ended = threading.Event()
        self._done: dict[str, float] = {}

    def get(
        self, run: StoredRun, *, wait: bool = True, state: RunState | None = None
    ) -> CachedDigest:
        """Return the digest of a run; a small one is computed at once if `wait`."""
        state = state or cache.state(self.store, run.id)
        if state is None:  # it was removed in the meantime
            return CachedDigest(None, current=True)
        declare_scores(RunSource(run, self.store).score_columns())
        found = self._stored(run.id, state.digest_stamp)
        if found is not None and state.digest_stamp == state.stamp:
            return CachedDigest(found, current=True)
        with self._lock:
            problem = self._problems.get((run.id, state.stamp))
        if problem:
            return CachedDigest(found, current=True, problem=problem)
        small = run.status != "running" and run.attempts <= MAX_INLINE_ATTEMPTS
        if wait and small and not self._busy.locked():
            self._make(run)
            return self.get(run, wait=False)
        if wait and small and self._is_next(run.id) and self._busy.acquire(timeout=MAX_WAIT):
            self._busy.release()  # it was being computed just now
            return self.get(run, wait=False)
        self.ask(run)
        return CachedDigest(found, current=False)

    def holds(self, state: RunState) -> bool:
        """Whether the digest of this very state was read, and can be shown."""
        with self._lock:
            return (state.run.id, state.stamp) in self._memory

    def now(self, run: StoredRun) -> CachedDigest:
        """Return the digest of a run as it is now, however long computing it takes."""
        state = cache.state(self.store, run.id)
        found = self._stored(run.id, state.digest_stamp) if state else None
        if found is None or state is None or state.digest_stamp != state.stamp:
            self._make(run)
            state = cache.state(self.store, run.id)
            found = self._stored(run.id, state.digest_stamp) if state else None
        with self._lock:
            problem = self._problems.get((run.id, state.stamp), "") if state else ""
        return CachedDigest(found, current=True, problem=problem)

    def _is_next(self, run: str) -> bool:
        """Whether a run is the one that is being computed in the background."""
        with self._lock:
            return next(iter(self._waiting), None) == run

    def ask_ended(self) -> None:
        """Compute the newest runs that ended and were not computed since, in the background."""
        rows, _ = cache.readable(cache.listed(self.store))
        places = [cache.LISTED.index(name) for name in ("id", "status", "stamp")]
        old = cache.outdated(rows)
        for row in rows[:MAX_AHEAD]:
            name, status, stamp = (row[at] for at in places)
            if status != "running" and (not stamp or name in old) and not self._failed(name):
                self.ask(self.store.find(name))

    def _failed(self, run: str) -> bool:
        """Whether a run could not be computed and has not changed since."""
        with self._lock:
            stamps = [stamp for name, stamp in self._problems if name == run]
        return bool(stamps) and cache.stamp(self.store, self.store.find(run)) in stamps

    def watch(self) -> None:
        """Compute runs when they end, so that nobody waits who opens them later."""
        while not self._closed:
            with suppress(PennyweightError):  # a busy store is asked again
                self.ask_ended()
            self._ended.wait(WATCH_SECONDS)

    def _stored(self, run: str, stamp: str | None) -> dict[str, Any] | None:

        if stamp is None:
            return None
        place = (run, stamp)
        with self._lock:
            if place in self._memory:
                self._memory.move_to_end(place)
                return self._memory[place]
        text, own = cache.digest(self.store, run) or "{}", own_mark()
        if self._unusable.get(run) == (hash(text), own):
            return None
        data: dict[str, Any] = {}
        with suppress(ValueError, RecursionError):
            data = json.loads(text)
        usable = fits(data, StoredDigest) and data["version"] == VERSION
        if not usable or (own and data["own"] != own):  # it lacks metrics that are loaded here
            self._unusable[run] = (hash(text), own)
            return None
        with self._lock:
            self._unusable.pop(run, None)
            self._memory[place] = data
            while len(self._memory) > MAX_CACHED:
                self._memory.popitem(last=False)
        return data

    def ask(self, run: StoredRun) -> None:
        """Compute a digest in the background."""
        with self._lock:
            if self._closed or run.id in self._waiting:
                return
            if run.status == "running" and time.monotonic() < self._next.get(run.id, 0.0):
                return
            first = not self._waiting
            self._waiting[run.id] = run
        if first:
            threading.Thread(target=self._work, name="digests", daemon=True).start()

    @property
    def waiting(self) -> list[str]:
        """The runs whose digest is being computed."""
        with self._lock:
            return list(self._waiting)

    def _work(self) -> None:
        while True:
            with self._lock:
                run = next(iter(self._waiting.values()), None)
            if run is None or self._closed:
                return
            try:
                self._make(run)
            finally:
                with self._lock:
                    self._waiting.pop(run.id, None)

    def _make(self, run: StoredRun) -> None:
        """Compute a digest; an error is remembered as the problem of this run."""
        with self._busy:
            began, stamp = time.monotonic(), ""
            try:
                stamp = cache.stamp(self.store, run)
                if run.attempts <= MAX_INLINE_ATTEMPTS:
                    compute(self.store, run)
                else:
                    self._by_process(run)
            except Exception as error:  # the other runs still get theirs
                self._remember(run.id, stamp, error)
            now = time.monotonic()
            self._next[run.id] = now + max(MIN_PAUSE, PAUSE_FACTOR * (now - began))
            self._done.pop(run.id, None)

    def _remember(self, run: str, stamp: str, error: Exception) -> None:
        """Remember what went wrong with a state of a run; a busy store is asked again."""
        if isinstance(error, StoreError) and error.transient:
            return
        problem = str(error)
        if not isinstance(error, PennyweightError):
            where = f"{type(error).__name__}: {error}"
            problem = f"Cannot compute the metrics ({where[:500]}). Try 'pennyweight score {run}'."
        with self._lock:
            for place in [p for p in self._problems if p[0] == run]:
                del self._problems[place]
            self._problems[run, stamp] = problem

    def _by_process(self, run: StoredRun) -> None:
        command = [sys.executable, "-m", "pennyweight.api.pages.digest_cache", run.id]
        command += self._scorers
        environment = {**os.environ, "PENNYWEIGHT_STORE": self.store.address}
        self._process = subprocess.Popen(  # noqa: S603
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        last = ""
        assert self._process.stdout
        with self._process.stdout as lines:
            for written in lines:
                line = written.decode("utf-8", "replace").strip()
                if line.startswith(DONE):
                    self._done[run.id] = float(line.removeprefix(DONE))
                else:
                    last = line or last
        if self._process.wait() and not self._closed:
            raise PennyweightError(last or "The metrics could not be computed.")

    def done(self, run: str) -> float | None:
        """Return the share of a digest that is computed, where it is known."""
        return self._done.get(run)

    def close(self) -> None:
        """Stop what is being computed."""
        self._closed = True
        self._ended.set()
        if self._process and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


def main() -> None:
    """Compute the digest of the named run, in the store that the environment names.

    Further arguments are files that declare metrics.
    """
    store = Store()
    named_scorers(sys.argv[2:])
    run = store.find(sys.argv[1])
    if run.status == "running" and hasattr(os, "nice"):  # leave the CPU to the run
        os.nice(10)

    def tell(what: str, records: int) -> None:
        begin, end = SHARES[what]
        print(f"{DONE}{begin + (end - begin) * min(1, records / run.attempts):.3f}", flush=True)

    compute(store, run, tell)


if __name__ == "__main__":
    main()
