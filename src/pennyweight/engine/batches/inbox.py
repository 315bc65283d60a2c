"""Batches that are out: find those whose handle was lost, and take in what has come back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

import orjson

from pennyweight.engine.batches.outbox import released
from pennyweight.engine.budget import Amount
from pennyweight.engine.calls import (
    NOT_KNOWN,
    NOTHING_USED,
    CallResult,
    call_row,
    reserved_row,
    used_of,
)
from pennyweight.models.batch.client import GONE
from pennyweight.models.batch.dialect import RemoteBatch, ResultRow
from pennyweight.models.batch.service import BatchService
from pennyweight.models.failure import RETRYABLE, CallError
from pennyweight.models.model import Reply
from pennyweight.models.prices import Prices
from pennyweight.store.lanes.batches import (
    BatchRequest,
    SettledRequest,
    StoredBatch,
    answers_in,
    batches_of,
    drop_batch,
    end_batch,
    is_known,
    known_handles,
    note_handle,
    requests_out,
    rest_of,
    set_batch,
    settle_requests,
)
from pennyweight.store.store import Row, Store
from pennyweight.suite.values import Subject
from pennyweight.text.format import plural
from pennyweight.text.safe import clean, storable

GROUP, GROUP_BYTES = 200, 16 * 1024 * 1024
"""Results that are stored together: at most so many, and not many more bytes."""
SETTLING = 600.0
"""Seconds after a submission in which a provider may not list the batch yet."""
CLOCKS = 2 * 86400.0
"""Seconds by which the provider's clock may differ from ours, such as by a wrong time zone."""
SAMPLE = 20
"""Results that tell whose a batch is."""


@dataclass(frozen=True, slots=True)
class LaneMember:
    """A subject or judge whose requests go into batches."""

    subject: Subject
    service: BatchService
    model: str
    """The model's name in the ledger."""
    is_late: bool = False
    """Whether what is not answered yet is to be called live: batches that are out are stopped."""


@dataclass(slots=True)
class Inbox:
    """The batches of one kind of call of a run."""

    store: Store
    run: str
    kind: str
    members: Mapping[str, LaneMember]
    prices: Prices
    unread: int = 0
    """Lines of the results of the present batch that could not be understood."""
    notes: list[str] = field(default_factory=list)
    """What a person has to know about batches that were collected."""

    def collect(self) -> bool:
        """Take in what has come back; return whether anything has changed.

        A batch that cannot be read keeps no other one: its error is raised when all were asked.
        """
        changed, error = False, None
        for batch in batches_of(self.store, self.run):
            member = self.members.get(batch.subject)
            if batch.kind != self.kind or member is None:
                continue
            if batch.state in {"preparing", "ready"}:  # it was never submitted
                held = [released(batch)] if batch.state == "ready" else []
                drop_batch(self.store, batch, held)
                changed = True
                continue
            try:
                changed |= self._fetch(batch, member)
            except CallError as wrong:
                error = error or wrong
        if error:
            raise error
        return changed

    def _fetch(self, batch: StoredBatch, member: LaneMember) -> bool:
        """Take in one batch that was submitted; return whether it has ended."""
        try:
            remote = self._remote(batch, member.service)
            return remote is not None and self._take(batch, member, remote)
        except CallError as wrong:
            if batch.handle is None or wrong.status != GONE:
                raise
        member.service.check()  # the address and the key are right, so the batch is gone
        problem = f"The provider no longer has the batch {batch.handle}, or its results."
        self._end(batch, member, CallError("timeout", problem), problem, batch.requests)
        return True

    def _remote(self, batch: StoredBatch, service: BatchService) -> RemoteBatch | None:
        """Return the batch as the provider has it; None if that cannot be said yet."""
        if batch.handle is not None:
            return service.read(batch.handle)
        unsure, known = False, known_handles(self.store)
        for remote in service.listed():
            if remote.created is not None and remote.created < batch.at - CLOCKS:
                break
            mine = remote.name == batch.id
            if not remote.name and remote.handle not in known:
                same = remote.requests in {None, batch.requests}
                unsure |= same and not remote.has_ended
                mine = same and remote.has_ended and self._is_ours(batch, service, remote)
            if mine:
                note_handle(self.store, batch.id, remote.handle)
                return remote
        if not unsure and time.time() - batch.at > SETTLING:
            drop_batch(self.store, batch, [released(batch)])
        return None

    def _is_ours(self, batch: StoredBatch, service: BatchService, remote: RemoteBatch) -> bool:
        """Whether the results of a nameless batch are those of our requests."""
        first = islice(service.results(remote), SAMPLE)
        return is_known(self.store, [row.id for row in first if row], batch.id)

    def _take(self, batch: StoredBatch, member: LaneMember, remote: RemoteBatch) -> bool:
        """Store the results of a batch that has ended; return whether it has."""
        if not remote.has_ended:
            if remote.done and remote.done != batch.done:
                set_batch(self.store, batch.id, done=min(remote.done, batch.requests))
            if member.is_late:
                with suppress(CallError):  # it ends by itself then
                    member.service.cancel(remote.handle)
            return False
        self.unread = 0
        for rows in self._groups(member.service.results(remote)):
            self._settle(batch, member, rows)
        answered = answers_in(self.store, batch.id)
        unread = max(self.unread, (remote.succeeded or 0) - answered)
        wrong = CallError("timeout", "The batch ended without an answer to this request.")
        if remote.problem:
            text = f"The provider refused the batch: {remote.problem}"
            wrong = CallError("rate_limit" if remote.passes else "bad_request", text)
        lost = self._end(batch, member, wrong, remote.problem, unread)
        if lost:
            self._tell(
                f"{plural(lost, 'answer')} of batch {remote.handle} at {member.service.account} "
                "cannot be read and may have been paid for, so what they may have cost stays in "
                "the ledger. The files of the batch stay there."
            )
            return True
        try:
            member.service.delete(remote)
        except CallError as error:
            self._tell(
                f"Files of batches that were collected are still at {member.service.account}: "
                f"{error} Delete them there if they must not stay."
            )
        return True

    def _tell(self, text: str) -> None:
        if (note := clean(text)) not in self.notes:
            self.notes.append(note)

    def _end(
        self,
        batch: StoredBatch,
        member: LaneMember,
        wrong: CallError,
        problem: str,
        unread: int,
    ) -> int:
        """End a batch: what it has not answered may go into the next one.

        `unread` of them may have been paid for. It is not known which, so those that may have cost
        most are held in the ledger. Return their number.
        """
        lost = 0
        while rest := rest_of(self.store, batch.id, GROUP):
            paid = rest[: max(0, unread - lost)]
            lost += len(paid)
            result = CallResult(NOT_KNOWN, 0.0, None, wrong)
            calls = {one.id: self._call(one, member, result) for one in paid}
            self._write(
                batch,
                [SettledRequest(_failed(one, wrong), call=calls.get(one.id)) for one in rest],
            )
        end_batch(self.store, batch, problem or None)
        return lost

    def _groups(self, rows: Iterator[ResultRow | None]) -> Iterator[dict[str, ResultRow]]:
        """Yield rows in groups of limited size; of several with one id, the first."""
        group: dict[str, ResultRow] = {}
        size = 0
        for row in rows:
            if row is None or not (row.id.isascii() and row.id.isprintable()):
                self.unread += 1
                continue
            group.setdefault(row.id, row)
            size += row.size
            if len(group) >= GROUP or size >= GROUP_BYTES:
                yield group
                group, size = {}, 0
        if group:
            yield group

    def _settle(self, batch: StoredBatch, member: LaneMember, rows: dict[str, ResultRow]) -> None:
        settled: list[SettledRequest] = []
        for id_, request in requests_out(self.store, batch.id, rows.keys()).items():
            row = rows[id_]
            body, reply, error, used = None, None, None, NOTHING_USED
            try:
                reply = member.service.reply(row)
                body, used = _json(row.body), self._used(member, reply)
            except CallError as wrong:
                error = wrong
                if wrong.usage:
                    used = self._used(member, Reply("", usage=wrong.usage))
                elif wrong.perhaps_paid:
                    used = NOT_KNOWN
            result = CallResult(used, 0.0, reply, error)
            call = None if row.ended else self._call(request, member, result)
            now = _failed(request, error) if error else replace(request, state="answered")
            settled.append(SettledRequest(now, body, call))
        self._write(batch, settled)

    def _call(self, request: BatchRequest, member: LaneMember, result: CallResult) -> Row:
        most = Amount(request.held_usd, request.held_tokens)
        return call_row(self.kind, request.key, member.model, result, most)

    def _used(self, member: LaneMember, reply: Reply) -> Amount:
        return used_of(self.prices, member.subject, reply)

    def _write(self, batch: StoredBatch, settled: list[SettledRequest]) -> None:
        """Store results with their calls, and take back what was held for them."""

        def release(usd: float, tokens: int) -> Row:
            return reserved_row(batch.run, -usd, -tokens)

        settle_requests(self.store, batch, settled, release)


def _failed(request: BatchRequest, error: CallError) -> BatchRequest:
    passes = error.kind in RETRYABLE and not error.final
    text = storable(str(error))
    return replace(
        request, state="failed" if passes else "refused", error_kind=error.kind, error=text
    )


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # such as an unpaired surrogate
        return json.dumps(value)
