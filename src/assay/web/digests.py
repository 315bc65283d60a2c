"""Digests of runs, kept in the store: made when they are asked for, large ones by a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError
from assay.store import look

if TYPE_CHECKING:
    import polars as pl

    from assay.store.store import Run, Store

LARGE = 20_000
"""Attempts from which a digest is made by a process of its own, so that the server stays small."""
KEPT = 16
PAUSE = 3.0
"""Seconds, at least, between two digests of a run that is still being written."""


def compute(store: Store, run: Run) -> dict[str, Any]:
    """Make the digest of a run and keep it, with the measures of its records."""
    from assay.report.digest import digest  # noqa: PLC0415
    from assay.run.source import RunSource  # noqa: PLC0415
    from assay.store.tables import MEASURED  # noqa: PLC0415

    began, stamp = time.monotonic(), look.stamp(store, run)
    names = [c.name for c in MEASURED.c if c.name != "run"]

    def take(frame: pl.LazyFrame) -> None:
        import polars as pl  # noqa: PLC0415

        there = set(frame.collect_schema().names())
        chosen = frame.select(n for n in names if n in there)
        if "answer" in there:
            chosen = chosen.with_columns(pl.col("normalized_answer").alias("answer")) if (
                "normalized_answer" in chosen.collect_schema()) else chosen  # fmt: skip
        for batch in chosen.collect_batches(chunk_size=look.BATCH, maintain_order=True):
            look.keep_measured(store, run.id, batch.to_dicts())

    found = digest([RunSource(run, store)], take=take)
    found["categories"] = look.distinct(store, run.id, "category")
    found["statuses"], found["spent"] = store.statuses(run.id), store.spent(run.id)
    found["seconds"] = time.monotonic() - began
    value, low, high = _headline(found)
    look.keep_digest(
        store,
        run.id,
        stamp=stamp,
        metric=found["headline"],
        value=value,
        low=low,
        high=high,
        records=found["whole"]["records"],
        errors=found["whole"]["errors"],
        cost_usd=found["spent"]["usd"],
        data=json.dumps(found, allow_nan=False, default=str),
    )
    return found


def _headline(found: dict[str, Any]) -> tuple[Any, Any, Any]:
    cells = found["whole"]["estimates"].get(found["headline"]) if found["headline"] else None
    value, low, high = cells[:3] if cells else (None, None, None)
    return value, low, high


@dataclass(frozen=True, slots=True)
class Kept:
    """A digest as it is known: perhaps of an earlier state, perhaps none yet."""

    digest: dict[str, Any] | None
    current: bool
    problem: str = ""


class Digests:
    """Gives digests at once, as far as they are kept, and has the others made one by one."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._memory: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()
        self._waiting: dict[str, Run] = {}
        self._problems: dict[tuple[str, str], str] = {}
        self._last: dict[str, float] = {}
        self._lock = threading.Lock()
        self._busy = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def get(self, run: Run, *, wait: bool = True) -> Kept:
        """Give the digest of a run; a small one is made at once if `wait`."""
        stamp = look.stamp(self.store, run)
        kept = self._kept(run.id)
        if kept and kept[0] == stamp:
            return Kept(kept[1], current=True)
        if problem := self._problems.get((run.id, stamp)):
            return Kept(kept[1] if kept else None, current=True, problem=problem)
        if wait and run.status != "running" and run.attempts <= LARGE and not self._busy.locked():
            self._make(run)
            return self.get(run, wait=False)
        self.ask(run)
        return Kept(kept[1] if kept else None, current=False)

    def _kept(self, run: str) -> tuple[str, dict[str, Any]] | None:
        from assay.report.digest import VERSION  # noqa: PLC0415

        stamp = look.digest_stamp(self.store, run)
        if stamp is None:
            return None
        place = (run, stamp)
        with self._lock:
            if place in self._memory:
                self._memory.move_to_end(place)
                return stamp, self._memory[place]
        data = json.loads(look.digest(self.store, run) or "{}")
        if data.get("version") != VERSION:
            return None
        with self._lock:
            self._memory[place] = data
            while len(self._memory) > KEPT:
                self._memory.popitem(last=False)
        return stamp, data

    def ask(self, run: Run) -> None:
        """Have a digest made soon."""
        with self._lock:
            if self._closed or run.id in self._waiting:
                return
            if run.status == "running" and time.monotonic() - self._last.get(run.id, 0.0) < PAUSE:
                return
            first = not self._waiting
            self._waiting[run.id] = run
        if first:
            threading.Thread(target=self._work, name="digests", daemon=True).start()

    @property
    def waiting(self) -> list[str]:
        """The runs whose digest is being made."""
        with self._lock:
            return list(self._waiting)

    def _work(self) -> None:
        while True:
            with self._lock:
                run = next(iter(self._waiting.values()), None)
            if run is None or self._closed:
                return
            self._make(run)
            with self._lock:
                self._waiting.pop(run.id, None)

    def _make(self, run: Run) -> None:
        with self._busy:
            stamp = look.stamp(self.store, run)
            try:
                if run.attempts <= LARGE:
                    compute(self.store, run)
                else:
                    self._by_process(run)
            except AssayError as error:
                self._problems[run.id, stamp] = str(error)
            self._last[run.id] = time.monotonic()

    def _by_process(self, run: Run) -> None:
        command = [sys.executable, "-m", "assay.web.digests", run.id]
        environment = {**os.environ, "ASSAY_STORE": self.store.address}
        self._process = subprocess.Popen(  # noqa: S603
            command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        _, said = self._process.communicate()
        if self._process.returncode and not self._closed:
            lines = said.decode("utf-8", "replace").strip().splitlines()
            raise AssayError(lines[-1] if lines else "The digest could not be made.")

    def close(self) -> None:
        """End what is being made."""
        self._closed = True
        if self._process and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


def main() -> None:
    """Make the digest of the run that is named, in the store that the environment names."""
    from assay.store.store import Store  # noqa: PLC0415

    store = Store()
    compute(store, store.find(sys.argv[1]))


if __name__ == "__main__":
    main()
