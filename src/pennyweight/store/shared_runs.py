"""Shared runs: which worker makes which attempts, decided in the store.

The attempts of each subject are a queue of numbers. A worker takes portions of it and holds them
as long as it shows signs of life. Every change that concerns several workers locks the row of the
run in `SHARE` first, so that they wait for each other and never for each other's records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from pennyweight.errors import StoreError, UsageError
from pennyweight.record import KEY, AttemptKey
from pennyweight.store import lease
from pennyweight.store.connection import guarded
from pennyweight.store.lease import Owner, shared_clock, sign_of_life
from pennyweight.store.tables import PORTION, QUEUE, RECORD, SHARE, TURN, WORKER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennyweight.store.store import Store

IDLE = -1
"""The places of a worker that has nothing to call."""
Range = tuple[int, int]
"""The first attempt of a portion, and the one after its last."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Attempts of one subject that a worker has taken."""

    id: int
    subject: str
    first: int
    last: int
    is_new: bool
    """Whether no worker has taken them before, so that none of them has a record."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a worker gets when it asks for attempts."""

    portion: Portion | None
    left: bool
    """Whether there are attempts that it may get later, because other workers hold them."""
    workers: int
    waiting: bool = False
    """Whether there are some that nobody holds; known if it asked for none of them."""


@dataclass(frozen=True, slots=True)
class SharedRun:
    """A run that workers make together."""

    plan: str
    began: float
    """When its attempts were put up, in Unix seconds."""
    seconds: float
    """How long ago that is, by the clock of the store."""


class LostLeaseError(Exception):
    """The store does not know this worker any more: others make its attempts."""


def put_up(
    store: Store,
    run_id: str,
    plan: str,
    totals: Mapping[str, int],
    ranges: Mapping[str, Sequence[Range]] | None = None,
) -> bool:
    """Put the attempts of a run up for workers; false if workers are making this plan already.

    `totals` is the number of attempts by subject. `ranges` are those that have to be made, if
    they are not all of them. Workers of another plan lose their attempts.
    """
    with locked(store, run_id, create=True) as connection:
        live = living(connection, store, run_id)
        before = connection.scalar(select(SHARE.c.plan).where(SHARE.c.run == run_id))
        if live and before == plan:
            return False
        for table in (WORKER, PORTION, QUEUE):  # turns stay: the account knows no runs
            connection.execute(delete(table).where(table.c.run == run_id))
        values = {"plan": plan, "owner": Owner.here().text, "began": shared_clock(store.engine)}
        connection.execute(update(SHARE).where(SHARE.c.run == run_id).values(values))
        queues = [
            {"run": run_id, "subject": name, "next": 0 if ranges is None else total, "total": total}
            for name, total in totals.items()
        ]
        connection.execute(insert(QUEUE), queues)
        portions = [
            {"run": run_id, "subject": name, "first": first, "last": last, "worker": None}
            for name, found in (ranges or {}).items()
            for first, last in found
        ]
        if portions:
            connection.execute(insert(PORTION), portions)
        return True


def take_down(store: Store, run_id: str) -> None:
    """End the sharing of a run: what workers still hold of it counts no more."""
    with guarded(store.address), store.engine.begin() as connection:
        for table in (SHARE, WORKER, PORTION, QUEUE, TURN):
            connection.execute(delete(table).where(table.c.run == run_id))


def shared_run(store: Store, run_id: str) -> SharedRun | None:
    """Return what is shared of a run; None if its attempts are not up for workers."""
    elapsed = shared_clock(store.engine) - SHARE.c.began
    query = select(SHARE.c.plan, SHARE.c.began, elapsed).where(SHARE.c.run == run_id)
    with guarded(store.address), store.engine.connect() as connection:
        row = connection.execute(query).first()
    return SharedRun(row[0], row[1], max(0.0, row[2])) if row else None


def join(store: Store, run_id: str) -> str:
    """Register this process as a worker of a run; return its id."""
    owner = Owner.here()
    with locked(store, run_id) as connection:
        if store.engine.dialect.name == "sqlite":
            texts = [connection.scalar(select(SHARE.c.owner).where(SHARE.c.run == run_id))]
            texts += [text for _, text in living(connection, store, run_id)]
            for other in (Owner.of(text) for text in texts if text):
                if other.machine != owner.machine:
                    raise UsageError(
                        f"Run {run_id} is in an SQLite file, which only processes of one machine "
                        f"can share, and {other.host} works on it. Use --store postgresql://…, "
                        "which any number of machines can share."
                    )
        worker = f"{owner.host}-{owner.pid}-{owner.token}"
        values = {"id": worker, "run": run_id, "owner": owner.text, "places": 0}
        connection.execute(insert(WORKER).values(**values, beat=shared_clock(store.engine)))
    return worker


def claim(
    store: Store,
    run_id: str,
    worker: str,
    subjects: Collection[str],
    size: int,
    *,
    held: Collection[int] = (),
    done: Collection[int] = (),
    back: Collection[int] = (),
    without: Collection[int] = (),
) -> Claim:
    """Take a portion of at most `size` attempts of some subjects.

    `held` are the portions that the worker knows it has: it gets those again whose confirmation
    was lost. `done` are complete, `back` are given back, and it gets none of `without`. What
    vanished workers left comes first. With a size of 0 it takes none, and learns whether there are
    some. A worker that was given up itself raises LostLeaseError.
    """
    c = PORTION.c
    with locked(store, run_id) as connection:
        if not renew(store, worker, connection):
            raise LostLeaseError
        settle(connection, worker, done, back)
        live = living(connection, store, run_id, worker)
        mine = [c.run == run_id, c.subject.in_(subjects)]
        skipped = [c.id.not_in(without)] if without else []
        unknown = and_(c.worker == worker, c.id.not_in(held))
        is_free = or_(c.worker.is_(None), unknown)
        free = select(c.id, c.subject, c.first, c.last).where(*mine, is_free, *skipped)
        row = connection.execute(free.order_by(c.first, c.id).limit(1)).first()
        queued = None if row else _first_in_queue(connection, run_id, subjects)
        if not size and (row or queued):
            return Claim(None, True, len(live), waiting=True)
        if row:
            connection.execute(update(PORTION).where(c.id == row[0]).values(worker=worker))
            return Claim(Portion(*row, is_new=False), True, len(live))
        if queued:
            portion = _from_queue(connection, run_id, worker, queued, size, len(live))
            return Claim(portion, True, len(live))
        others = select(func.count()).where(*mine, c.worker != worker, c.worker.is_not(None))
        return Claim(None, bool(connection.scalar(others)), len(live))


def _first_in_queue(
    connection: Connection, run_id: str, subjects: Collection[str]
) -> tuple[str, int, int] | None:
    """Return the subject that is furthest behind, its next attempt and its number of them."""
    q = QUEUE.c
    waiting = select(q.subject, q.next, q.total).where(
        q.run == run_id, q.subject.in_(subjects), q.next < q.total
    )
    row = connection.execute(waiting.order_by(q.next, q.subject).limit(1)).first()
    return None if row is None else (row[0], row[1], row[2])


def _from_queue(
    connection: Connection,
    run_id: str,
    worker: str,
    queued: tuple[str, int, int],
    size: int,
    workers: int,
) -> Portion:
    """Take the next attempts of a subject, less towards the end."""
    subject, first, total = queued
    last = min(total, first + max(1, min(size, -(-(total - first) // (2 * workers)))))
    if workers == 1:
        last = min(total, first + size)
    queue = update(QUEUE).where(QUEUE.c.run == run_id, QUEUE.c.subject == subject)
    connection.execute(queue.values(next=last))
    values = {"run": run_id, "subject": subject, "first": first, "last": last, "worker": worker}
    id_ = connection.execute(insert(PORTION).values(values).returning(PORTION.c.id)).scalar_one()
    return Portion(id_, subject, first, last, is_new=True)


def renew(store: Store, worker: str, connection: Connection) -> bool:
    """Show a sign of life; false if the worker was given up."""
    return connection.exec_driver_sql(*sign_of_life(store, worker)).rowcount == 1


def settle(
    connection: Connection, worker: str, done: Collection[int], back: Collection[int]
) -> None:
    """Remove the portions that are complete, and give others back."""
    own = PORTION.c.worker == worker
    if done:
        connection.execute(delete(PORTION).where(own, PORTION.c.id.in_(done)))
    if back:
        gone = update(PORTION).where(own, PORTION.c.id.in_(back))
        connection.execute(gone.values(worker=None))


def leave(store: Store, run_id: str, worker: str, done: Collection[int]) -> None:
    """Give back what a worker has not finished, and forget the worker."""
    with locked(store, run_id) as connection:
        settle(connection, worker, done, ())
        connection.execute(delete(WORKER).where(WORKER.c.id == worker))
        _free(connection, run_id)


def places(
    store: Store,
    run_id: str,
    worker: str,
    total: int,
    in_use: int,
    most: int | None = None,
    *,
    idle: bool = False,
) -> int:
    """Return a worker's share of the concurrency; the shares never exceed it together.

    It takes no more than `most`, and none if it is `idle`: the others share those places then. A
    worker that has more calls `in_use` than its share keeps their places until they end, so another
    one may get its share a little later.
    """
    w = WORKER.c
    with locked(store, run_id) as connection:
        if not renew(store, worker, connection):
            raise LostLeaseError
        live = [id_ for id_, _ in living(connection, store, run_id, worker)]
        taken = select(w.id, w.places).where(w.run == run_id, w.id != worker)
        others: dict[str, int] = {row[0]: row[1] for row in connection.execute(taken)}
        busy = [id_ for id_ in live if others.get(id_) != IDLE]
        rank, number = busy.index(worker), len(busy)
        fair = total // number + (rank < total % number)
        free = total - sum(max(0, count) for count in others.values())
        share = 0 if idle else max(0, min(fair, free, total if most is None else most))
        mine = IDLE if idle and not in_use else max(share, in_use)
        connection.execute(update(WORKER).where(w.id == worker).values(places=mine))
        return share


def live_workers(store: Store, run_id: str) -> int:
    """Count the workers of a run that show signs of life."""
    query = select(func.count()).where(
        WORKER.c.run == run_id, WORKER.c.beat >= shared_clock(store.engine) - lease.STALE
    )
    with guarded(store.address), store.engine.connect() as connection:
        return connection.scalar(query) or 0


def left(store: Store, run_id: str) -> int:
    """Count the attempts of a shared run that may still be made, also by workers that hold them."""
    q, p = QUEUE.c, PORTION.c
    queued = select(func.coalesce(func.sum(q.total - q.next), 0)).where(q.run == run_id)
    taken = select(func.coalesce(func.sum(p.last - p.first), 0)).where(p.run == run_id)
    with guarded(store.address), store.engine.connect() as connection:
        return int(connection.scalar(queued) or 0) + int(connection.scalar(taken) or 0)


def made(
    store: Store, run_id: str, subject: str, tasks: Collection[str], since: float
) -> set[tuple[str, str, int]]:
    """Return tier, task and number of the attempts at some tasks that need no further try.

    Failed attempts count too if they were made `since` then.
    """
    c = RECORD.c
    good = or_(c.status != "error", c.ended >= since)
    query = select(c.tier, c.task_id, c.attempt).where(
        c.run == run_id, c.subject == subject, c.task_id.in_(tasks), good
    )
    with guarded(store.address), store.engine.connect() as connection:
        return {(row[0], row[1], row[2]) for row in connection.execute(query)}


def errors_by_kind(store: Store, run_id: str) -> dict[str, int]:
    """Count the failed attempts of a run by the kind of their error."""
    c = RECORD.c
    query = select(c.error_kind, func.count()).where(c.run == run_id, c.status == "error")
    with guarded(store.address), store.engine.connect() as connection:
        return {row[0]: row[1] for row in connection.execute(query.group_by(c.error_kind))}


def failed_attempts(store: Store, run_id: str) -> dict[AttemptKey, str]:
    """Return the failed attempts of a run with the kinds of their errors."""
    c = RECORD.c
    query = select(*(c[name] for name in KEY), c.error_kind)
    with guarded(store.address), store.engine.connect() as connection:
        rows = connection.execute(query.where(c.run == run_id, c.status == "error"))
        return {AttemptKey(*row[:-1]): row[-1] or "" for row in rows}


@contextmanager
def locked(store: Store, run_id: str, *, create: bool = False) -> Iterator[Connection]:
    """Begin a transaction in which no other worker changes what the run shares."""
    with guarded(store.address), store.engine.begin() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        lock = select(SHARE.c.run).where(SHARE.c.run == run_id).with_for_update()
        if connection.execute(lock).first() is None:
            if not create:
                raise LostLeaseError
            row: dict[str, Any] = {"run": run_id, "plan": "", "owner": "", "began": 0.0}
            connection.execute(insert(SHARE).values(row))
        yield connection


def living(
    connection: Connection, store: Store, run_id: str, own: str = ""
) -> list[tuple[str, str]]:
    """Give up the workers that vanished; return the others, with their owners, in a fixed order.

    A process never gives up its `own` worker, however long ago its sign of life in the same
    transaction is: it was stopped in between, and nobody else could take its attempts.
    """
    w = WORKER.c
    stale = w.beat < shared_clock(store.engine) - lease.STALE
    query = select(w.id, w.owner, stale).where(w.run == run_id).order_by(w.id)
    rows = connection.execute(query).all()
    silent = [id_ for id_, _, is_stale in rows if is_stale and id_ != own]
    ended = [id_ for id_, text, is_stale in rows if not is_stale and _is_gone(text)]
    gone: set[str] = set()
    for ids, condition in ((silent, [stale]), (ended, [])):
        if ids:  # one that wrote meanwhile is not silent any more
            query_ = delete(WORKER).where(w.id.in_(ids), *condition).returning(w.id)
            gone.update(connection.scalars(query_))
    if gone:
        _free(connection, run_id)
    return [(id_, text) for id_, text, _ in rows if id_ not in gone]


def _free(connection: Connection, run_id: str) -> None:
    """Give back the portions of workers that no longer exist."""
    known = select(WORKER.c.id).where(WORKER.c.run == run_id)
    lost = update(PORTION).where(PORTION.c.run == run_id, PORTION.c.worker.not_in(known))
    connection.execute(lost.values(worker=None))


def _is_gone(text: str) -> bool:
    try:
        return Owner.of(text).is_gone
    except StoreError:  # what cannot be read is no process of this machine
        return False


def ranges_of(numbers: Iterable[int], size: int) -> list[Range]:
    """Group increasing numbers into ranges that contain at most `size` of them.

    >>> ranges_of([0, 1, 5, 9, 10], 3)
    [(0, 6), (9, 11)]
    """
    found: list[Range] = []
    group: list[int] = []
    for number in numbers:
        group.append(number)
        if len(group) == size:
            found.append((group[0], group[-1] + 1))
            group = []
    return [*found, (group[0], group[-1] + 1)] if group else found
