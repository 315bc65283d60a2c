"""The lease of a run: which process executes it, and whether that process still exists."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Engine,
    cast,
    delete,
    func,
    or_,
    select,
    update,
)

from pennyweight.errors import StoreError, UsageError
from pennyweight.store.bulk_insert import Rows, has_row, insert_if
from pennyweight.store.cells import damaged, json_cell
from pennyweight.store.connection import guarded
from pennyweight.store.tables import METADATA, RUN, WORKER

if TYPE_CHECKING:
    from pennyweight.store.store import Store

STALE = 30.0
"""Seconds without a heartbeat after which a lease expires."""
FRESH = STALE / 3
"""Seconds after a heartbeat in which no other process can have taken the run."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that executes a run."""

    machine: str
    """Its host and, on Linux, the boot id and the PID namespace."""
    host: str
    pid: int
    started: str
    """When the process started, as its machine reports it, because process ids are reused."""
    since: float
    token: str
    """Distinguishes two owners in one process."""

    @classmethod
    def here(cls) -> Owner:
        """Describe this process as the owner of a run, from now on."""
        pid = os.getpid()
        host = socket.gethostname()
        return cls(_machine(), host, pid, _started(pid) or "", time.time(), secrets.token_hex(4))

    @classmethod
    def of(cls, text: str) -> Owner:
        """Read an owner from its JSON text; unknown fields are ignored."""
        types = {f.name: str for f in fields(cls)} | {"pid": int, "since": int | float}
        values = json_cell(text, types, "the owner of a run")
        if missing := types.keys() - values.keys():
            raise damaged(f"the owner of a run has no {min(missing)}")
        return cls(**{name: values[name] for name in types})

    @property
    def text(self) -> str:
        """The owner as JSON text."""
        return json.dumps(asdict(self))

    @property
    def is_gone(self) -> bool:
        """Whether the process has certainly ended. Known only for processes of this machine."""
        if self.machine != _machine():
            return False
        now = _started(self.pid)
        return now is not None and now != self.started

    @property
    def is_here(self) -> bool:
        """Whether it is certainly a living process of this machine."""
        return self.machine == _machine() and bool(self.started) and not self.is_gone


class Lease:
    """A run that this process has taken, and whether it still holds it.

    A process can be silent for a long time without noticing: it was stopped, or its machine slept.
    So it checks before it writes, unless its last heartbeat was just now.
    """

    def __init__(self, owner: str, lost: Callable[[], None] = lambda: None) -> None:
        self.owner, self.lost = owner, False
        self._tell = lost
        self._heard = clock()

    @property
    def is_fresh(self) -> bool:
        """Whether the last heartbeat is so recent that no other process can have the run."""
        return not self.lost and clock() - self._heard < FRESH

    def heard(self, when: float) -> None:
        """Note a heartbeat at a given time."""
        self._heard = max(self._heard, when)

    def lose(self) -> None:
        """Note that another process has the run now. The callback is called once."""
        if not self.lost:
            self.lost = True
            self._tell()


def take_run(
    store: Store, run_id: str, owner: str, lost: Callable[[], None] = lambda: None
) -> bool:
    """Take a run for one process; false while another process is executing it.

    A run is free if it has no owner, if its lease has expired, or if its owner was a process of
    this machine that no longer exists. `lost` is called, in any thread, if the run is taken away.
    """
    lease, before = Lease(owner, lost), None
    with suppress(StoreError):  # an owner that cannot be read is no process of this machine
        before = owner_of(store, run_id)
    c, now = RUN.c, shared_clock(store.engine)
    stale = or_(c.beat.is_(None), c.beat < now - STALE)
    free = or_(c.owner.is_(None), c.owner == owner, stale)
    if before is not None and before.is_gone:
        free = or_(free, c.owner == before.text)
    if taken := _change(store, run_id, free, owner=owner, beat=now):
        store.leases[run_id] = lease
    return taken


def break_lease(store: Store, run_id: str) -> None:
    """Free a run whose lease has not expired, or is dated ahead because a clock was wrong.

    A process of this machine that is alive must be ended instead.
    """
    owner = owner_of(store, run_id)
    if owner and owner.is_here:
        raise UsageError(
            f"Process {owner.pid} of this machine is executing run {run_id}. End it first."
        )
    if owner:
        _change(store, run_id, RUN.c.owner == owner.text, owner=None, beat=None)


def renew_lease(store: Store, run_id: str, owner: str) -> bool:
    """Renew the lease of a run; false if the owner has lost it."""
    when, now = clock(), shared_clock(store.engine)
    ours = _change(store, run_id, RUN.c.owner == owner, beat=now)
    if (lease := store.leases.get(run_id)) and lease.owner == owner:
        lease.heard(when) if ours else lease.lose()
    return ours


class Fence:
    """The right of a worker of a shared run to write, which lasts as long as the store knows it.

    The sign of life is part of each transaction that writes records.
    """

    def __init__(self, worker: str, lost: Callable[[], None] = lambda: None) -> None:
        self.worker, self.lost = worker, False
        self._tell = lost

    def lose(self) -> None:
        """Note that the store has given the worker up. The callback is called once."""
        if not self.lost:
            self.lost = True
            self._tell()


class FencedError(Exception):
    """The transaction must not be committed: the worker was given up."""


def sign_of_life(store: Store, worker: str) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that renews the lease of a worker, if the store still knows it."""
    if store.engine.dialect.name == "sqlite":
        return f"UPDATE {WORKER.name} SET beat = ? WHERE id = ?", (time.time(), worker)  # noqa: S608
    now = "extract(epoch FROM clock_timestamp())"
    return f"UPDATE {WORKER.name} SET beat = {now} WHERE id = %s", (worker,)  # noqa: S608


def may_write(store: Store, run_id: str, connection: Connection) -> bool:
    """Whether this process may write the records of a run. Asks only after a long silence."""
    lease = store.leases.get(run_id)
    return lease is None or lease.is_fresh or holds_run(store, run_id, connection)


def holds_run(store: Store, run_id: str, connection: Connection) -> bool:
    """Whether no other process has taken a run, nor can until the transaction ends. Always asks."""
    lease = store.leases.get(run_id)
    if lease is None:
        return True
    query = update(RUN).where(RUN.c.id == run_id, RUN.c.owner == lease.owner)
    beat = query.values(beat=shared_clock(store.engine))
    if lease.lost or not connection.execute(beat).rowcount:
        lease.lose()
    return not lease.lost


def insert_fenced(
    store: Store, connection: Connection, part: Rows, paid: Rows, *, again: bool
) -> None:
    """Insert rows of a run and their calls; the calls alone if another process has the run.

    Raise FencedError if that shows only now: the transaction has to be repeated without the rows.
    `again` says that the transaction was tried before and may have been committed.
    """
    rows, calls, parts = part[2], paid[2], []
    fence = store.fences.get(rows[0][0]) if rows else None
    is_lost = fence is not None and fence.lost
    if rows and not is_lost and may_write(store, rows[0][0], connection):
        parts.append(part)
    elif calls and store.fences and not is_kept(connection, calls[0][0]):
        return  # somebody deleted the run under its workers
    alive = sign_of_life(store, fence.worker) if fence and not is_lost else None
    if again:  # the same rows wait for a transaction that is still being committed
        _insert(connection, fence, alive, parts)
        if calls and has_row(connection, *paid[:2], calls[0]):
            return  # only the confirmation got lost
        parts, alive = [], None
    _insert(connection, fence, alive, [*parts, paid])


def _insert(
    connection: Connection,
    fence: Fence | None,
    alive: tuple[str, tuple[Any, ...]] | None,
    parts: Sequence[Rows],
) -> None:
    if not insert_if(connection, alive, parts):
        assert fence
        fence.lose()
        raise FencedError


def has_run(store: Store, run_id: str) -> bool:
    """Whether there is such a run: somebody may delete one under its workers."""
    with guarded(store.address), store.engine.connect() as connection:
        return connection.scalar(select(RUN.c.id).where(RUN.c.id == run_id)) is not None


def is_kept(connection: Connection, run_id: str) -> bool:
    """Whether there is such a run, and will be until the transaction ends."""
    query = select(RUN.c.id).where(RUN.c.id == run_id).with_for_update(read=True)
    return connection.scalar(query) is not None


def remove_run(store: Store, run_id: str) -> None:
    """Delete a run with everything that belongs to it, after what its workers are writing now."""
    with guarded(store.address), store.engine.begin() as connection:
        connection.execute(select(RUN.c.id).where(RUN.c.id == run_id).with_for_update())
        connection.execute(delete(WORKER).where(WORKER.c.run == run_id))
        for table in METADATA.tables.values():
            if "run" in table.c:
                connection.execute(delete(table).where(table.c.run == run_id))
        connection.execute(delete(RUN).where(RUN.c.id == run_id))


def release_run(store: Store, run_id: str, owner: str) -> None:
    """Release a run, if the owner still has it."""
    if (lease := store.leases.get(run_id)) and lease.owner == owner:
        del store.leases[run_id]
    _change(store, run_id, RUN.c.owner == owner, owner=None, beat=None)


def owner_of(store: Store, run_id: str) -> Owner | None:
    """Return the owner of a run, which may no longer be alive."""
    return _owner(store, RUN.c.id == run_id)


def is_running(store: Store, run_id: str) -> bool:
    """Whether a process is executing a run now: its lease is valid and it exists."""
    valid = RUN.c.beat >= shared_clock(store.engine) - STALE
    owner = _owner(store, RUN.c.id == run_id, valid)
    return owner is not None and not owner.is_gone


def _owner(store: Store, *where: ColumnElement[bool]) -> Owner | None:
    with guarded(store.address), store.engine.connect() as connection:
        found = connection.scalar(select(RUN.c.owner).where(*where))
        return Owner.of(found) if found else None


def _change(store: Store, run_id: str, allowed: ColumnElement[bool], **values: Any) -> bool:
    """Change a lease at once, without waiting for a server that is away."""
    query = update(RUN).where(RUN.c.id == run_id, allowed).values(**values)
    with guarded(store.address), store.engine.begin() as connection:
        return connection.execute(query).rowcount == 1


def shared_clock(engine: Engine) -> Any:
    """Return the time by the clock that all users of the store share."""
    if engine.dialect.name == "sqlite":
        return time.time()
    return cast(func.extract("epoch", func.clock_timestamp()), Double)


def clock() -> float:
    """Return seconds that also count while the machine sleeps, where available."""
    boot: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.time() if boot is None else time.clock_gettime(boot)


@cache
def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        names = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot = names = ""
    return f"{socket.gethostname()} {boot} {names}"


def _started(pid: int) -> str | None:
    """Return when a process started; empty if it does not exist, None if unknown."""
    if not Path("/proc/self/stat").exists():
        return _lives(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    state, *rest = stat[stat.rindex(")") + 2 :].split()
    return "" if state in {"Z", "X"} else rest[18]


def _lives(pid: int) -> str | None:
    """Return "alive" for a living process, where its start time is not available."""
    if sys.platform == "win32":
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"
