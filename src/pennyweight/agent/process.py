"""Run one process within limits of time, output and disk."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pennyweight.agent.supervisor import Orders, below, process_stat
from pennyweight.models.failure import CallError

SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))
GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL."""
CHUNK = 1 << 16
NOBODY = -1
"""Stands for no process: a command that has ended has no supervisor."""
EVERY = 0.25
VARIABLE = "PENNYWEIGHT_ATTEMPT"
"""The environment variable that marks the processes of an attempt with its run and name."""


class BoundedOutput:
    """An output of any length: its start and end are kept, the rest is only counted."""

    def __init__(self, size: int) -> None:
        self.half = max(1, size // 2)
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """Add a chunk."""
        self.total += len(chunk)
        room = self.half - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * self.half + CHUNK:
            del self._tail[: -self.half]

    @property
    def text(self) -> str:
        """The kept text, with a note where something is missing."""
        tail = bytes(self._tail[-self.half :])
        missing = self.total - len(self._head) - len(tail)
        note = f"\n[… {missing:,} bytes are left out …]\n".encode() if missing else b""
        return (bytes(self._head) + note + tail).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a process ended, and its output."""

    exit_code: int
    why: Literal["exit", "timeout", "disk"]
    stdout: BoundedOutput
    stderr: BoundedOutput
    seconds: float
    left: int
    """How many processes it left running; they were killed."""
    detail: str = ""
    started: bool | None = None
    """Whether the sandbox started the command; None if the sandbox does not report it."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """The limits of a process."""

    seconds: float
    output: int
    """Bytes kept of each output."""
    largest: int
    """The maximum size of a file in bytes."""
    memory: int
    """Bytes of memory that each process may use."""
    processes: int
    cpu: int | None = None
    """Seconds of CPU time that all processes together may use."""


def memory_exceeded(most: int) -> str:
    """Say that a command used more memory than `most` bytes."""
    return f"it used more than {most // 1_000_000:,} MB of memory"


def processes_exceeded(most: int) -> str:
    """Say that a command ran too many processes."""
    return f"it ran more than {most:,} processes"


def cpu_exceeded(most: int) -> str:
    """Say that a command used too much CPU time."""
    return f"it used more than {most:,} s of CPU time"


def _reported(report: Mapping[str, Any], limits: ProcessLimits) -> str | None:
    """Return which limit a command exceeded according to its supervisor."""
    if limits.cpu and report.get("cpu", 0.0) >= limits.cpu:
        return cpu_exceeded(limits.cpu)
    if report.get("exceeded") == "memory":
        return memory_exceeded(limits.memory)
    if report.get("exceeded") == "processes":
        return processes_exceeded(limits.processes)
    return None


async def run(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    limits: ProcessLimits,
    stdin: Path | None = None,
    watch: Callable[[int], str | None] | None = None,
    status: int = 0,
    files: Mapping[int, str] | None = None,
    disk: int = 0,
    groups: tuple[str, str] | None = None,
) -> ProcessResult:
    """Run a command until it ends, or until it exceeds its time or its disk limit.

    `folder` is its working directory, one of the folders of its attempt. `stdin` is the file that
    it reads as standard input. `watch` checks the disk, in a thread, and returns which limit is
    exceeded; it gets the parent of the command's processes. `status` is the descriptor on which a
    sandbox reports whether it started the command. `files` are files that the command can read
    from descriptors. `disk` is the process whose namespaces it enters, `groups` are
    the cgroup of the command and that of this process.
    """
    mark = "/".join(folder.parent.parts[-2:])
    reading, writing = os.pipe()
    orders = Orders(
        writing,
        os.getpid(),
        GRACE,
        limits.largest,
        limits.memory,
        limits.processes,
        status,
        tuple((files or {}).items()),
        disk,
        groups,
        limits.cpu,
    )
    try:
        process = await _start(words, orders, folder, {**environment, VARIABLE: mark}, stdin)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    out, err = BoundedOutput(limits.output), BoundedOutput(limits.output)
    began = time.monotonic()
    assert process.stdout
    assert process.stderr
    readers = [
        asyncio.create_task(_collect(process.stdout, out)),
        asyncio.create_task(_collect(process.stderr, err)),
    ]
    try:
        why, detail = await _until(process, limits, watch)
        seconds = time.monotonic() - began
        with os.fdopen(reading, "rb") as pipe:
            report = json.loads(pipe.read() or b"{}")
        if not report:  # the supervisor was killed, and the processes below it may still run
            await asyncio.to_thread(end_marked, mark, process.pid)
        await asyncio.wait(readers, timeout=GRACE)
    except BaseException:
        await _end(process, signal.SIGINT)
        with contextlib.suppress(OSError):
            os.close(reading)
        raise
    finally:
        for reader in readers:
            reader.cancel()
    if error := report.get("spawn_error"):
        raise CallError("not_found", f"The command cannot be run: {error}.")
    if why == "exit" and (problem := _reported(report, limits)):
        why, detail = "disk", problem
    code, left = report.get("exit_code", 137), report.get("left", 0)
    return ProcessResult(code, why, out, err, seconds, left, detail, report.get("started"))


async def _start(
    words: Sequence[str],
    orders: Orders,
    folder: Path,
    environment: Mapping[str, str],
    stdin: Path | None,
) -> asyncio.subprocess.Process:
    told = json.dumps(orders._asdict())
    try:
        with Path(stdin or os.devnull).open("rb") as file:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", SUPERVISOR, told, *words),
                cwd=folder,
                env=dict(environment),
                stdin=file,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(orders.result,),
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        raise CallError("not_found", f"The command cannot be started: {error}.") from error


async def _collect(stream: asyncio.StreamReader, output: BoundedOutput) -> None:
    while chunk := await stream.read(CHUNK):
        output.add(chunk)


async def _until(
    process: asyncio.subprocess.Process,
    limits: ProcessLimits,
    watch: Callable[[int], str | None] | None,
) -> tuple[Literal["exit", "timeout", "disk"], str]:
    """Wait for the end, and end the process if a limit is exceeded."""
    ending = asyncio.ensure_future(process.wait())
    deadline = time.monotonic() + limits.seconds
    pause = EVERY
    while True:
        left = deadline - time.monotonic()
        done, _ = await asyncio.wait({ending}, timeout=max(0.0, min(left, pause)))
        if done:
            wrong = await asyncio.to_thread(watch, NOBODY) if watch else None
            return ("disk", wrong) if wrong else ("exit", "")
        if time.monotonic() >= deadline:
            await _end(process, signal.SIGTERM)
            return "timeout", f"it was stopped after {limits.seconds:g} s"
        if watch:
            looked = time.monotonic()
            wrong = await asyncio.to_thread(watch, process.pid)
            pause = max(EVERY, 5 * (time.monotonic() - looked))
            if wrong:
                await _end(process, signal.SIGINT)
                return "disk", wrong


async def _end(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Tell the supervisor to end everything, and wait until it has."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.shield(process.wait())


def end_marked(mark: str, session: int = NOBODY) -> int:
    """Kill the processes of a run or an attempt and their children; return how many there were.

    They have its mark in their environment, or belong to the session of its supervisor. A process
    that merely works in its folder is not touched. This process and its parents are spared, and its
    children if it has the mark itself.
    """
    if sys.platform != "linux":
        return 0
    own = os.getpid()
    spared = {own, *_above(own)}
    if _marked(Path("/proc/self"), mark):
        spared |= {*below(own)}
    found: set[int] = set()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) in spared:
            continue
        with contextlib.suppress(OSError):
            if _marked(Path(entry.path), mark) or os.getsid(int(entry.name)) == session:
                found |= {int(entry.name), *below(int(entry.name))}
    for one in found - spared:
        with contextlib.suppress(OSError):
            os.kill(one, signal.SIGKILL)
    return len(found - spared)


def _marked(process: Path, mark: str) -> bool:
    token = os.fsencode(f"{VARIABLE}={mark}")
    held = (process / "environ").read_bytes().split(b"\0")
    return any(one == token or one.startswith(token + b"/") for one in held)


def _above(pid: int) -> Iterator[int]:
    """Yield the parents of a process."""
    while pid > 1:
        try:
            pid = int(process_stat(pid)[1])
        except OSError:
            return
        yield pid
