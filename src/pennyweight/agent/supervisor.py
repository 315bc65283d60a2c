"""Run a command and end everything it leaves behind: the parent of all processes of an agent.

This file runs as a script, with the standard library alone:

    supervisor.py ORDERS COMMAND…

ORDERS are the fields of `Orders` as JSON. SIGTERM asks the command to end, SIGINT kills it. On
Linux everything that the command starts stays below this process, including new sessions and
daemons, and ends with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

PDEATHSIG, DUMPABLE, SUBREAPER = 1, 4, 36
WAITED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)
SANDBOXES = ("bwrap",)
CLEANUP_SECONDS = 10.0
"""How long to try to end the processes that are left."""
THREADS = 4
"""Threads for each process that is allowed; the kernel limits both together."""


class Orders(NamedTuple):
    """What the supervisor is told."""

    result: int
    """The descriptor to which it reports how the command ended."""
    parent: int
    """The process that must be alive."""
    grace: float
    """The seconds between SIGTERM and SIGKILL."""
    largest: int
    """The maximum size of a file in bytes."""
    memory: int
    """The bytes that each process may use."""
    processes: int
    """How many processes may be added to those of the user."""
    status: int = 0
    """The descriptor on which a sandbox reports the status of its command, or 0."""
    files: tuple[tuple[int, str], ...] = ()
    """Descriptors that the command gets, and the files that it can read from them."""
    disk: int = 0
    """The process whose namespaces the command enters, because its disk is there, or 0."""
    groups: tuple[str, str] | None = None
    """The cgroup of the command, which is removed at the end, and that of this process."""
    cpu: int | None = None
    """The seconds of CPU time that each process may use."""


def main(orders: Orders, words: list[str]) -> int:
    """Run the command and report how it ended."""
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED)
    opened = [(os.open(path, os.O_RDONLY), number) for number, path in orders.files]
    groups = [os.open(f"{path}/cgroup.procs", os.O_WRONLY) for path in orders.groups or ()]
    if orders.disk:
        _enter(orders.disk)
    _adopt()
    result, status = orders.result, orders.status
    if os.getppid() != orders.parent:
        return 1
    os.set_inheritable(result, False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (orders.largest, orders.largest))
    _limit(orders.memory, orders.processes)
    if orders.cpu:
        # a second more than the sum of all processes may be, so that the sum is noticed first
        resource.setrlimit(resource.RLIMIT_CPU, (orders.cpu + 1, orders.cpu + 2))
    reading, writing = os.pipe()
    pairs = [*opened, (writing, status)] if status else opened
    _move(groups[:1])
    try:
        child = os.posix_spawnp(
            words[0],
            words,
            os.environ,
            setpgroup=0,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
            file_actions=[(os.POSIX_SPAWN_DUP2, *pair) for pair in pairs],
        )
    except OSError as error:
        os.write(result, json.dumps({"spawn_error": f"{words[0]}: {error.strerror}"}).encode())
        return 127
    os.close(writing)
    _move(groups[1:])
    code = _wait(child, orders.grace)
    left = _end_all(child)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = {
        "cpu": used.ru_utime + used.ru_stime,
        "exit_code": code,
        "left": left,
        "started": _started(reading) if status else None,
        "exceeded": _exceeded(Path(orders.groups[0])) if orders.groups else None,
    }
    os.write(result, json.dumps(report).encode())
    return 0


def _move(groups: list[int]) -> None:
    """Move this process to a cgroup. What it starts is in the same one."""
    for group in groups:
        try:
            os.write(group, b"0")
        except OSError:  # its other limits remain
            return


def _exceeded(group: Path) -> str | None:
    """Return which limit of its cgroup the command exceeded, and remove the group."""
    found = None
    for name, event in (("processes", "pids.events max"), ("memory", "memory.events oom_kill")):
        file, key = event.split()
        try:
            held = dict(line.split() for line in (group / file).read_text().splitlines())
        except OSError:
            continue
        found = name if int(held.get(key, 0)) else found
    try:
        group.rmdir()
    except OSError:
        return found
    return found


def _limit(memory: int, processes: int) -> None:
    """Limit memory and processes. The kernel does not limit the number of processes of root."""
    if sys.platform != "linux":
        return
    threads = _threads(os.getuid()) + processes * THREADS
    for kind, wanted in ((resource.RLIMIT_NPROC, threads), (resource.RLIMIT_DATA, memory)):
        _, most = resource.getrlimit(kind)
        allowed = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(kind, (allowed, allowed))


def _threads(user: int) -> int:
    """Count the threads of a user."""
    found = 0
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and entry.stat().st_uid == user:
                found += int(process_stat(entry.name)[17])
        except OSError:
            continue
    return found


def _started(reading: int) -> bool:
    """Whether the sandbox started its command: bubblewrap reports an exit code only then."""
    os.set_blocking(reading, False)
    try:
        return b'"exit-code"' in os.read(reading, 1 << 16)
    except BlockingIOError:
        return False


def _enter(holder: int) -> None:
    """Enter the user and mount namespaces of a process.

    A new user namespace resets what `_adopt` sets, and hides this process from its own user.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    own, other = Path("/proc/self/ns"), Path(f"/proc/{holder}/ns")
    names = [n for n in ("user", "mnt") if (own / n).readlink() != (other / n).readlink()]
    for number in [os.open(other / name, os.O_RDONLY) for name in names]:
        if libc.setns(number, 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        os.close(number)
    libc.prctl(DUMPABLE, 1, 0, 0, 0)


def _adopt() -> None:
    """Become the parent of orphaned children, and end when the parent ends."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.prctl(SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _wait(child: int, grace: float) -> int:
    """Wait until the command has ended, by itself or by a signal."""
    deadline: float | None = None
    while True:
        pause = 3600.0 if deadline is None else max(0.0, deadline - time.monotonic())
        found = signal.sigtimedwait(WAITED, pause)
        if found is None and deadline is not None:
            _send(signal.SIGKILL, child)
            deadline = time.monotonic() + 1.0
        elif found and found.si_signo == signal.SIGTERM and deadline is None:
            _send(signal.SIGTERM, child)
            deadline = time.monotonic() + grace
        elif found and found.si_signo == signal.SIGINT:
            deadline = time.monotonic()
        code = _reap(child)
        if code is not None:
            return code


def _reap(child: int) -> int | None:
    """Collect the processes that have ended; return the command's exit code once it is known."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            code = 128 - code if code < 0 else code


def _end_all(child: int) -> int:
    """End everything that the command left running; return how many processes there were."""
    left = 0
    until = time.monotonic() + CLEANUP_SECONDS
    while time.monotonic() < until:
        found = below(os.getpid()) if sys.platform == "linux" else []
        left = max(left, sum(_name(pid) not in SANDBOXES for pid in found))
        if not found:
            break
        _send(signal.SIGKILL, child)
        _reap(child)
        time.sleep(0.01)
    if sys.platform != "linux":
        _send(signal.SIGKILL, child)
    return left


def _send(number: signal.Signals, child: int) -> None:
    """Signal all processes below. A sandbox gets no SIGTERM, which would end all of them."""
    if sys.platform != "linux":
        _kill(-child, number)
        return
    for pid in below(os.getpid()):
        if number == signal.SIGKILL or _name(pid) not in SANDBOXES:
            _kill(pid, number)


def _kill(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def process_stat(pid: int | str) -> list[bytes]:
    """Return the values that follow the name of a process in /proc, from its state on."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def below(root: int) -> list[int]:
    """List the running processes below one."""
    parents: dict[int, list[int]] = {}
    ended = set()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            state, parent = process_stat(entry.name)[:2]
        except OSError:
            continue
        parents.setdefault(int(parent), []).append(int(entry.name))
        if state in b"ZX":
            ended.add(int(entry.name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = parents.get(waiting.pop(), [])
        waiting += below
        found += [pid for pid in below if pid not in ended]
    return found


if __name__ == "__main__":
    sys.exit(main(Orders(**json.loads(sys.argv[1])), sys.argv[2:]))
