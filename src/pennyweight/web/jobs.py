"""Runs that this server started, each in a separate process."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pennyweight.errors import UntrustedError, UsageError
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.store.lease import Owner

WORKER = "pennyweight.web.worker"
MAX_RUNNING = 2
MAX_START_SECONDS = 60.0
"""A process that has not created its run by then is killed."""


@dataclass(slots=True)
class Job:
    """The process of a run, and what it reported when it ended."""

    process: subprocess.Popen[str]
    errors: IO[str]
    message: str = ""

    @property
    def running(self) -> bool:
        """Whether the process has not ended yet."""
        return self.process.poll() is None

    def end(self) -> str:
        """Return what the process wrote to standard error, once it has ended."""
        if not self.running and not self.errors.closed:
            self.errors.seek(0)
            self.message = clean(self.errors.read()[-4_000:]).strip()
            self.errors.close()
        return self.message


def left_behind(owner: Owner | None) -> int | None:
    """Return the process of a run that an earlier server started; None for one of a terminal."""
    if owner is None or not owner.is_here:
        return None
    try:
        command = Path(f"/proc/{owner.pid}/cmdline").read_bytes()
    except OSError:
        return None
    return owner.pid if WORKER.encode() in command.split(b"\0") else None


class Jobs:
    """Starts and stops runs, and remembers how they ended."""

    def __init__(self, store: str) -> None:
        self.store = store
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def start(self, path: Path, text: str, options: Mapping[str, Any]) -> str:
        """Start a new run of a suite, narrowed or changed by keywords of `run`; return its id."""
        return self._start({"path": str(path), "text": text, "options": dict(options)})

    def resume(self, run: str, trust: str = "") -> str:
        """Continue a run; `trust` is the mark of what its suite in the store may do."""
        if self.running(run):
            raise UsageError(f"Run {run} is already running.")
        return self._start({"run": run, "trust": trust})

    def _start(self, order: dict[str, Any]) -> str:
        with self._lock:
            if sum(job.running for job in self._jobs.values()) >= MAX_RUNNING:
                raise UsageError(
                    f"{MAX_RUNNING} runs are already running. Stop one, or wait until one ends."
                )
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
            watch = threading.Timer(MAX_START_SECONDS, process.kill)
            watch.start()
            run = process.stdout.readline().strip()
            watch.cancel()
            job = Job(process, errors)
            if not run or run.startswith("{"):
                process.wait()
            if run.startswith("{"):
                raise UntrustedError(**json.loads(run))
            if not run:
                raise UsageError(job.end().removeprefix("Error: ") or "The run did not start.")
            self._jobs[run] = job
            return run

    def running(self, run: str) -> bool:
        """Whether a process of this server is carrying out a run."""
        job = self._jobs.get(run)
        return job is not None and job.running

    def said(self, run: str) -> str:
        """Return what a run reported when it ended."""
        job = self._jobs.get(run)
        return "" if job is None or job.running else job.end()

    def stop(self, run: str) -> None:
        """Stop a run; calls in progress are finished and stored."""
        job = self._jobs.get(run)
        if job is None or not job.running:
            raise UsageError(f"Run {run} is not running on this server.")
        job.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """Stop all runs, and wait until their calls are finished and stored."""
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
