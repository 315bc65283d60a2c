"""Batches at providers and their requests: intents, handles, replies, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from sqlalchemy import Connection, bindparam, delete, func, select, update

from pennyweight.errors import UsageError
from pennyweight.record import KEY, AttemptKey
from pennyweight.store.bulk_insert import insert
from pennyweight.store.connection import guarded
from pennyweight.store.lease import holds_run
from pennyweight.store.store import CALL_COLUMNS, Row, Store
from pennyweight.store.tables import BATCH, CALL, RECORD, REQUEST
from pennyweight.text.format import plural

BatchState = Literal["preparing", "ready", "submitting", "out", "ended", "dropped"]
RequestState = Literal["out", "answered", "failed", "refused", "told"]
UNDER_WAY: tuple[BatchState, ...] = ("preparing", "ready", "submitting", "out")
_REQUEST_COLUMNS = tuple(REQUEST.c.keys())


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch as the store has it."""

    id: str
    run: str
    kind: str
    """Who asks: `attempt` or `judge`."""
    subject: str
    state: BatchState
    handle: str | None = None
    requests: int = 0
    done: int = 0
    held_usd: float = 0.0
    held_tokens: int = 0
    at: float = 0.0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A request of a batch as the store has it, without its reply."""

    key: AttemptKey
    id: str
    batch: str
    state: RequestState
    attempts: int
    held_usd: float | None = None
    held_tokens: int | None = None
    error_kind: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SettledRequest:
    """A request with its new state, its reply as JSON, and its call for the ledger."""

    request: BatchRequest
    body: str | None = None
    call: Row | None = None


class RunLostError(Exception):
    """Another process has continued the run, so its batches are not changed any more."""


@dataclass(frozen=True, slots=True)
class OutBatches:
    """What is out at providers: batches, their requests, and how many of these are answered."""

    batches: int = 0
    requests: int = 0
    done: int = 0


@contextmanager
def _owned(store: Store, run: str) -> Iterator[Connection]:
    """Begin a transaction about a run that no other process has taken."""
    with guarded(store.address), store.engine.begin() as connection:
        if not holds_run(store, run, connection):
            raise RunLostError
        yield connection


_FIELDS = tuple(f.name for f in fields(BatchRequest) if f.name != "key")


def batches_of(
    store: Store, run: str, states: Collection[BatchState] = UNDER_WAY
) -> list[StoredBatch]:
    """Return the batches of a run in some states, the oldest first."""
    query = select(BATCH).where(BATCH.c.run == run, BATCH.c.state.in_(states))
    with guarded(store.address), store.engine.connect() as connection:
        rows = connection.execute(query.order_by(BATCH.c.at, BATCH.c.id)).mappings()
        return [StoredBatch(**row) for row in rows]


def out_batches(store: Store, runs: Collection[str] | None = None) -> dict[str, OutBatches]:
    """Return what is out, by run."""
    c = BATCH.c
    sums = (func.count(), func.sum(c.requests), func.sum(c.done))
    query = select(c.run, *sums).where(c.state.in_(("submitting", "out"))).group_by(c.run)
    if runs is not None:
        query = query.where(c.run.in_(runs))
    if not store.exists:
        return {}
    with guarded(store.address), store.engine.connect() as connection:
        return {
            run: OutBatches(n, int(r or 0), int(d or 0))
            for run, n, r, d in connection.execute(query)
        }


def open_subjects(store: Store, run: str, kind: str) -> set[str]:
    """Return who has batches that are not collected, or replies that no record tells of."""
    c = BATCH.c
    replied = select(1).where(REQUEST.c.batch == c.id, REQUEST.c.body.is_not(None)).exists()
    query = select(c.subject).where(c.run == run, c.kind == kind)
    with guarded(store.address), store.engine.connect() as connection:
        return set(connection.scalars(query.where(c.state.in_(UNDER_WAY) | replied).distinct()))


def check_collected(store: Store, run: str, *, abandon: bool) -> None:
    """Refuse to go on while batches of a run are out, unless they are to be abandoned."""
    out = None if abandon else out_batches(store, [run]).get(run)
    if out:
        raise UsageError(
            f"Run {run} waits for {plural(out.requests, 'request')} in batches, and the provider "
            f"charges for them. 'pennyweight collect {run}' fetches the replies; 'pennyweight rm "
            f"{run} --yes' deletes the run without them."
        )


def first_submission(store: Store, run: str) -> float | None:
    """Return when the first batch of a run was submitted; None if none was."""
    c = BATCH.c
    query = select(func.min(c.at)).where(c.run == run, c.state.in_(("submitting", "out", "ended")))
    with guarded(store.address), store.engine.connect() as connection:
        at: float | None = connection.scalar(query)
        return at


def add_batch(store: Store, batch: StoredBatch) -> None:
    """Add a batch that is being prepared."""
    with _owned(store, batch.run) as connection:
        connection.execute(BATCH.insert().values(asdict(batch)))


def set_batch(store: Store, batch: str, **values: Any) -> None:
    """Change columns of a batch."""
    with guarded(store.address), store.engine.begin() as connection:
        connection.execute(update(BATCH).where(BATCH.c.id == batch).values(**values))


def add_requests(store: Store, batch: StoredBatch, requests: Sequence[BatchRequest]) -> None:
    """Add requests to a batch that is being prepared.

    A request that was in an earlier batch moves to this one. Raise RunLostError if another process
    has dropped the batch.
    """
    with _owned(store, batch.run) as connection:
        _advance(connection, batch, "preparing", "preparing")
        _add(connection, requests)


def make_ready(
    store: Store, batch: StoredBatch, requests: Sequence[BatchRequest], held: Row
) -> None:
    """Complete a batch: its last requests, what it holds, and that in the ledger, all at once."""
    sums = {n: getattr(batch, n) for n in ("requests", "held_usd", "held_tokens")}
    with _owned(store, batch.run) as connection:
        _advance(connection, batch, "preparing", "ready", **sums)
        _add(connection, requests)
        insert(connection, CALL, CALL_COLUMNS, [held])


def begin_submission(store: Store, batch: StoredBatch, at: float) -> None:
    """Mark a batch as being submitted."""
    with _owned(store, batch.run) as connection:
        _advance(connection, batch, "ready", "submitting", at=at)


def _advance(
    connection: Connection, batch: StoredBatch, state: BatchState, to: BatchState, **values: Any
) -> None:
    """Change the state of a batch; raise RunLostError if another process has changed it."""
    query = update(BATCH).where(BATCH.c.id == batch.id, BATCH.c.state == state)
    if not connection.execute(query.values(state=to, **values)).rowcount:
        raise RunLostError


def _add(connection: Connection, requests: Sequence[BatchRequest]) -> None:
    rows = [_request_row(request) for request in requests]
    insert(connection, REQUEST, _REQUEST_COLUMNS, rows)


def note_handle(store: Store, batch: str, handle: str) -> None:
    """Note the provider's id of a batch that was submitted, also if the run was lost meanwhile."""
    submitting = update(BATCH).where(BATCH.c.id == batch, BATCH.c.state == "submitting")
    with guarded(store.address), store.engine.begin() as connection:
        connection.execute(submitting.values(state="out", handle=handle))


def end_batch(store: Store, batch: StoredBatch, problem: str | None) -> None:
    """Note that all requests of a batch are settled."""
    known = update(BATCH).where(BATCH.c.id == batch.id, BATCH.c.state.in_(UNDER_WAY))
    with _owned(store, batch.run) as connection:
        connection.execute(known.values(state="ended", done=batch.requests, problem=problem))


def drop_batch(store: Store, batch: StoredBatch, calls: Sequence[Row] = ()) -> None:
    """Forget a batch that was never submitted, once; its requests may go into another one."""
    known = update(BATCH).where(BATCH.c.id == batch.id, BATCH.c.state.in_(UNDER_WAY))
    with _owned(store, batch.run) as connection:
        if connection.execute(known.values(state="dropped")).rowcount:
            connection.execute(delete(REQUEST).where(REQUEST.c.batch == batch.id))
            insert(connection, CALL, CALL_COLUMNS, calls)


def request_states(store: Store, run: str) -> dict[str, tuple[RequestState, int]]:
    """Return the state of each request of a run, and how many batches it was in."""
    c = REQUEST.c
    query = select(c.id, c.state, c.attempts).where(c.run == run)
    with guarded(store.address), store.engine.connect() as connection:
        return {id_: (state, n) for id_, state, n in connection.execute(query)}


def keys_under_way(store: Store, run: str) -> set[AttemptKey]:
    """Return the attempts with a request in a batch that no record tells of."""
    c = REQUEST.c
    key = [c[name] for name in KEY]
    told = func.count().filter(c.state == "told")
    query = select(*key).where(c.run == run).group_by(*key).having(told == 0)
    with guarded(store.address), store.engine.connect() as connection:
        return {AttemptKey(*row) for row in connection.execute(query)}


def requests_out(store: Store, batch: str, ids: Collection[str]) -> dict[str, BatchRequest]:
    """Return those of some requests that a batch still owes an answer."""
    c = REQUEST.c
    query = select(REQUEST).where(c.batch == batch, c.state == "out", c.id.in_(ids))
    with guarded(store.address), store.engine.connect() as connection:
        return {row["id"]: _request(row) for row in connection.execute(query).mappings()}


def rest_of(store: Store, batch: str, limit: int) -> list[BatchRequest]:
    """Return some of the requests that a batch still owes an answer, the dearest first."""
    c = REQUEST.c
    out = select(REQUEST).where(c.batch == batch, c.state == "out")
    most = func.coalesce(c.held_usd, 0.0), func.coalesce(c.held_tokens, 0)
    query = out.order_by(*(amount.desc() for amount in most), c.id).limit(limit)
    with guarded(store.address), store.engine.connect() as connection:
        return [_request(row) for row in connection.execute(query).mappings()]


def answers_in(store: Store, batch: str) -> int:
    """Count the requests of a batch that have an answer, also one that cannot be used."""
    c = REQUEST.c
    has_one = (c.state == "answered") | (c.error_kind == "malformed")
    query = select(func.count()).where(c.batch == batch, has_one)
    with guarded(store.address), store.engine.connect() as connection:
        return connection.scalar(query) or 0


def settle_requests(
    store: Store,
    batch: StoredBatch,
    settled: Sequence[SettledRequest],
    release: Callable[[float, int], Row],
) -> None:
    """Store the results of requests with their calls, in one transaction.

    `release` returns the row of the ledger that takes back what was held for them. A request that
    is not out any more stays as it is: its reply and its call were stored before.
    """
    c = REQUEST.c
    changed = ("state", "error_kind", "error", "body")
    query = update(REQUEST).where(c.run == batch.run, c.id == bindparam("of_id"))
    query = query.values({name: bindparam(f"new_{name}") for name in changed})
    ids = [one.request.id for one in settled]
    owed = select(c.id).where(c.batch == batch.id, c.state == "out", c.id.in_(ids))
    with _owned(store, batch.run) as connection:
        out = set(connection.scalars(owed.with_for_update()))
        found = [one for one in settled if one.request.id in out]
        if not found:
            return
        values = [
            {
                "of_id": one.request.id,
                **{f"new_{n}": getattr(one.request, n) for n in changed[:-1]},
                "new_body": one.body,
            }
            for one in found
        ]
        connection.execute(query, values)
        usd = sum(one.request.held_usd or 0.0 for one in found)
        tokens = sum(one.request.held_tokens or 0 for one in found)
        calls = [one.call for one in found if one.call]
        insert(connection, CALL, CALL_COLUMNS, [*calls, release(usd, tokens)])


def reply_of(store: Store, run: str, id: str) -> tuple[str | None, str | None, str | None]:  # noqa: A002
    """Return the reply to a request as JSON, and the kind and text of its error."""
    c = REQUEST.c
    query = select(c.body, c.error_kind, c.error).where(c.run == run, c.id == id)
    with guarded(store.address), store.engine.connect() as connection:
        body, kind, error = connection.execute(query).one()
        return body, kind, error


def mark_told(store: Store, run: str, ids: Iterable[str]) -> None:
    """Note that the errors of requests are in records, so that they may be made again."""
    c = REQUEST.c
    over = (c.state == "failed") | (c.state == "refused")
    query = update(REQUEST).where(c.run == run, c.id == bindparam("of_id"), over)
    values = [{"of_id": id_} for id_ in ids]
    if values:
        with _owned(store, run) as connection:
            connection.execute(query.values(state="told", attempts=0), values)


def forget_replies(store: Store, run: str, kind: str, subjects: Collection[str]) -> None:
    """Remove the replies of attempts that have a record, or of judges who have all judged."""
    c = REQUEST.c
    same = [c[name] == RECORD.c[name] for name in KEY]
    made = [select(1).where(*same, RECORD.c.status != "error").exists()]
    own = BATCH.c.run == run, BATCH.c.kind == kind, BATCH.c.subject.in_(subjects)
    of_them = c.run == run, c.body.is_not(None), c.batch.in_(select(BATCH.c.id).where(*own))
    query = update(REQUEST).where(*of_them, *(made if kind == "attempt" else ()))
    with _owned(store, run) as connection:
        connection.execute(query.values(body=None))


def is_known(store: Store, ids: Collection[str], batch: str) -> bool:
    """Whether one of these requests belongs to a batch."""
    query = select(1).where(REQUEST.c.batch == batch, REQUEST.c.id.in_(ids)).limit(1)
    with guarded(store.address), store.engine.connect() as connection:
        return connection.execute(query).first() is not None


def known_handles(store: Store) -> set[str]:
    """Return the providers' handles of all batches in the store."""
    with guarded(store.address), store.engine.connect() as connection:
        return set(connection.scalars(select(BATCH.c.handle).where(BATCH.c.handle.is_not(None))))


def _request(row: Mapping[Any, Any]) -> BatchRequest:
    key = AttemptKey(*(row[name] for name in KEY))
    return BatchRequest(key, **{name: row[name] for name in _FIELDS})


def _request_row(request: BatchRequest) -> Row:
    values = {**request.key._asdict(), **{n: getattr(request, n) for n in _FIELDS}, "body": None}
    return tuple(values[name] for name in _REQUEST_COLUMNS)
