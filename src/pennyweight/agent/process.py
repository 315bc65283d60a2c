"""One process from start to end: its time, its output and its disk within limits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pennyweight.agent.supervisor import below
from pennyweight.models.failure import CallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))
GRACE = 5.0
"""Seconds between the request to end and the end."""
CHUNK = 1 << 16
NOBODY = -1
"""No process: there is none above those of a command that has ended."""
EVERY = 0.25
VARIABLE = "PENNYWEIGHT_ATTEMPT"
"""The variable by which the processes of an attempt are known: names of its run and itself."""


class Kept:
    """An output of any length, of which the start and the end are kept and the rest is counted."""

    def __init__(self, size: int) -> None:
        self.half = max(1, size // 2)
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take more of it."""
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
        """What was kept, with a note where something is missing."""
        tail = bytes(self._tail[-self.half :])
        missing = self.total - len(self._head) - len(tail)
        note = f"\n[… {missing:,} bytes are left out …]\n".encode() if missing else b""
        return (bytes(self._head) + note + tail).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    exit_code: int
    why: Literal["exit", "timeout", "disk"]
    stdout: Kept
    stderr: Kept
    seconds: float
    left: int
    """How many processes it left running; they were ended."""
    detail: str = ""
    started: bool | None = None
    """Whether the sandbox began the command; None where it does not say."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process may use."""

    seconds: float
    output: int
    """Bytes kept of each output."""
    largest: int
    """Bytes of a file."""
    grace: float = GRACE


async def run(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    limits: Limits,
    given: Path | None = None,
    watch: Callable[[int], str | None] | None = None,
    status: int = 0,
) -> Ended:
    """Run a command to its end, or to that of its time or its disk.

    `folder` is where it works, one of the folders of its attempt. `given` is the file that it
    reads as standard input. `watch` looks at the disk, in a thread, and says what is too much;
    it is told the process above those of the command. `status` is the descriptor on which a
    sandbox says whether it began the command.
    """
    cell = folder.parent
    mark = f"{cell.parent.name}/{cell.name}"
    reading, writing = os.pipe()
    try:
        process = await _start(
            (str(status), *words), writing, folder, {**environment, VARIABLE: mark}, limits, given
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    out, err = Kept(limits.output), Kept(limits.output)
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
            said = json.loads(pipe.read() or b"{}")
        if not said:  # the supervisor was killed, and what it watched may still run
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
    if "missing" in said:
        raise CallError("not_found", f"The command cannot be run: {said['missing']}.")
    code, left = said.get("exit_code", 137), said.get("left", 0)
    return Ended(code, why, out, err, seconds, left, detail, said.get("started"))


async def _start(
    words: Sequence[str],
    result: int,
    folder: Path,
    environment: Mapping[str, str],
    limits: Limits,
    given: Path | None,
) -> asyncio.subprocess.Process:
    told = [str(result), str(os.getpid()), str(limits.grace), str(limits.largest)]
    stdin = given.open("rb") if given else None
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", SUPERVISOR, *told, *words),
            cwd=folder,
            env=dict(environment),
            stdin=stdin if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(result,),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CallError("not_found", f"The command cannot be started: {error}.") from error
    finally:
        if stdin:
            stdin.close()


async def _collect(stream: asyncio.StreamReader, kept: Kept) -> None:
    while chunk := await stream.read(CHUNK):
        kept.add(chunk)


async def _until(
    process: asyncio.subprocess.Process, limits: Limits, watch: Callable[[int], str | None] | None
) -> tuple[Literal["exit", "timeout", "disk"], str]:
    """Wait for the end, and bring it about where a limit is reached."""
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
            return "timeout", f"it was ended after {limits.seconds:g} s"
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
    """End the processes of a run or an attempt, and what is below them; gives how many.

    They have its mark in their environment, or belong to the session of its watcher. What merely
    works in its folder is somebody else's. This process and those above it are spared, and those
    below it where it has the mark itself.
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
    """List the processes above one."""
    while pid > 1:
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return
        pid = int(stat.rpartition(b")")[2].split()[1])
        yield pid
