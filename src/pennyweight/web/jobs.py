"""Runs that this server started: processes of their own, stopped in good order."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pennyweight.errors import UsageError
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.store.lease import Owner

WORKER = "pennyweight.web.worker"
AT_ONCE = 2
"""Runs that may be under way at the same time."""
READY = 60.0
"""Seconds in which a run must have begun."""


@dataclass(slots=True)
class Job:
    """A run under way, or one that ended while the server was there."""

    process: subprocess.Popen[str]
    errors: IO[str]
    said: str = ""

    @property
    def running(self) -> bool:
        """Whether it is still under way."""
        return self.process.poll() is None

    def end(self) -> str:
        """Give what it said about its end."""
        if not self.running and not self.errors.closed:
            self.errors.seek(0)
            self.said = clean(self.errors.read()[-4_000:]).strip()
            self.errors.close()
        return self.said


def left_behind(owner: Owner | None) -> int | None:
    """Give the process of a run that a server began which is gone; none of a terminal's."""
    if owner is None or not owner.is_here:
        return None
    try:
        said = Path(f"/proc/{owner.pid}/cmdline").read_bytes()
    except OSError:
        return None
    return owner.pid if WORKER.encode() in said.split(b"\0") else None


class Jobs:
    """Starts, stops and remembers runs."""

    def __init__(self, store: str) -> None:
        self.store = store
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def start(self, path: Path, text: str) -> str:
        """Begin a new run of a suite and give its id."""
        return self._begin({"path": str(path), "text": text})

    def resume(self, run: str) -> str:
        """Go on with a run."""
        if self.running(run):
            raise UsageError(f"Run {run} is under way.")
        return self._begin({"run": run})

    def _begin(self, order: dict[str, Any]) -> str:
        with self._lock:
            if sum(job.running for job in self._jobs.values()) >= AT_ONCE:
                raise UsageError(f"{AT_ONCE} runs are under way; stop one, or wait for its end.")
            errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
            process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
            assert process.stdin
            assert process.stdout
            with contextlib.suppress(BrokenPipeError):
                json.dump({**order, "store": self.store}, process.stdin)
                process.stdin.close()
            watch = threading.Timer(READY, process.kill)
            watch.start()
            run = process.stdout.readline().strip()
            watch.cancel()
            job = Job(process, errors)
            if not run:
                process.wait()
                raise UsageError(job.end().removeprefix("Error: ") or "The run did not begin.")
            self._jobs[run] = job
            return run

    def running(self, run: str) -> bool:
        """Whether a run of this server is under way."""
        job = self._jobs.get(run)
        return job is not None and job.running

    def said(self, run: str) -> str:
        """Give what a run said when it ended."""
        job = self._jobs.get(run)
        return "" if job is None or job.running else job.end()

    def stop(self, run: str) -> None:
        """End a run in good order; what was answered is kept."""
        job = self._jobs.get(run)
        if job is None or not job.running:
            raise UsageError(f"Run {run} is not under way here.")
        job.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End all runs in good order, and wait for them."""
        for job in self._jobs.values():
            if job.running:
                job.process.send_signal(signal.SIGINT)
        for job in self._jobs.values():
            try:
                job.process.wait(20)
            except subprocess.TimeoutExpired:
                job.process.kill()
                job.process.wait()
            job.end()
