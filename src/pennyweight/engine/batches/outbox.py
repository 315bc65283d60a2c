"""Requests that wait for the next batch, in files on disk, and the submission of these batches."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from pennyweight.engine.budget import Amount
from pennyweight.engine.calls import reserved_row
from pennyweight.errors import StoreError
from pennyweight.models.batch.service import BatchService
from pennyweight.models.failure import CallError
from pennyweight.record import AttemptKey
from pennyweight.store.lanes.batches import (
    BatchRequest,
    StoredBatch,
    add_batch,
    add_requests,
    begin_submission,
    drop_batch,
    make_ready,
    note_handle,
)
from pennyweight.store.store import Store

GROUP = 500
"""Requests that are written to the store together."""


@dataclass(slots=True)
class OpenBatch:
    """A batch that is being prepared: its requests are in a file."""

    batch: StoredBatch
    service: BatchService
    path: str
    file: BinaryIO = field(default_factory=tempfile.TemporaryFile)
    length: int = 0
    unwritten: list[BatchRequest] = field(default_factory=list)

    def has_room(self, line: bytes) -> bool:
        """Whether one more request fits into the batch."""
        size, dialect = self.service.size, self.service.dialect
        ends = len(dialect.HEAD) + len(dialect.BETWEEN) + len(dialect.TAIL)
        fits = self.length + len(line) + ends <= size.bytes
        return fits and self.batch.requests < size.requests

    def write(self, line: bytes) -> None:
        """Add one request to the file."""
        dialect = self.service.dialect
        with self._space():
            self.length += self.file.write(dialect.BETWEEN if self.length else dialect.HEAD)
            self.length += self.file.write(line)

    def finish(self) -> None:
        """Complete the file."""
        with self._space():
            self.length += self.file.write(self.service.dialect.TAIL)
            self.file.flush()

    @contextmanager
    def _space(self) -> Iterator[None]:
        """Say where there is no space, and what to do."""
        try:
            yield
        except OSError as error:
            with suppress(OSError):
                self.file.close()
            raise StoreError(
                f"The requests of a batch cannot be written to {tempfile.gettempdir()}: "
                f"{error.strerror}.",
                "This batch was not submitted. Free some space there, or set TMPDIR, then continue "
                f"with 'pennyweight run --resume {self.batch.run}'.",
            ) from error


@dataclass(slots=True)
class Outbox:
    """Collects the requests of a run by who asks, and submits them as batches."""

    store: Store
    run: str
    kind: str
    _open: dict[str, OpenBatch] = field(default_factory=dict)
    _full: list[OpenBatch] = field(default_factory=list)
    refused: str = ""
    """Why a provider did not take a batch."""

    def put(
        self,
        service: BatchService,
        subject: str,
        path: str,
        line: bytes,
        request: BatchRequest,
    ) -> None:
        """Add a request to the next batch of a subject or judge."""
        found = self._open.get(subject)
        if found and not found.has_room(line):
            self._full.append(self._open.pop(subject))
            found = None
        if found is None:
            name = f"{self.run}-{secrets.token_hex(6)}"
            batch = StoredBatch(name, self.run, self.kind, subject, "preparing", at=time.time())
            found = OpenBatch(batch, service, path)
            add_batch(self.store, batch)
            self._open[subject] = found
        found.write(line)
        batch = found.batch
        found.batch = replace(
            batch,
            requests=batch.requests + 1,
            held_usd=batch.held_usd + (request.held_usd or 0.0),
            held_tokens=batch.held_tokens + (request.held_tokens or 0),
        )
        found.unwritten.append(replace(request, batch=batch.id))
        if len(found.unwritten) >= GROUP:
            self._write(found)

    def submit(self) -> None:
        """Submit what waits. After a refusal the requests are free for another batch.

        Raise RunLostError as soon as another process has continued the run.
        """
        waiting = [*self._full, *self._open.values()]
        self._full, self._open = [], {}
        try:
            for one in waiting:
                with one.file:
                    if not self.refused:
                        self._submit(one)
        finally:
            for one in waiting:
                one.file.close()
        if self.refused:
            for one in waiting:
                if one.batch.state == "preparing":
                    drop_batch(self.store, one.batch)

    def discard(self) -> None:
        """Forget what waits: nothing of it was sent."""
        waiting = [*self._full, *self._open.values()]
        self.close()
        for one in waiting:
            drop_batch(self.store, one.batch)

    def close(self) -> None:
        """Close the files of what waits."""
        for one in (*self._full, *self._open.values()):
            one.file.close()
        self._full, self._open = [], {}

    def _write(self, one: OpenBatch) -> None:
        add_requests(self.store, one.batch, one.unwritten)
        one.unwritten.clear()

    def _submit(self, one: OpenBatch) -> None:
        store, batch = self.store, one.batch
        one.finish()
        held = reserved_row(self.run, batch.held_usd, batch.held_tokens)
        make_ready(store, batch, one.unwritten, held)
        one.unwritten.clear()
        one.batch = replace(batch, state="ready")

        def submitting() -> None:
            begin_submission(store, batch, time.time())
            one.batch = replace(one.batch, state="submitting")

        try:
            remote = one.service.submit(one.file, one.length, batch.id, one.path, submitting)
        except CallError as error:
            self.refused = f"{one.service.account}: {error}"
            sure = error.status is not None and error.status < 500
            if one.batch.state == "ready" or sure or not error.sent:
                drop_batch(store, batch, [released(batch)])
                one.batch = replace(one.batch, state="dropped")
            return
        note_handle(store, batch.id, remote.handle)
        one.batch = replace(one.batch, state="out")


def released(batch: StoredBatch) -> tuple[object, ...]:
    """Return the row of the ledger that takes back what a whole batch holds."""
    return reserved_row(batch.run, -batch.held_usd, -batch.held_tokens)


def wanted_request(key: AttemptKey, id: str, times: int, most: Amount) -> BatchRequest:  # noqa: A002
    """Return a request as the store has it, with what it may cost."""
    return BatchRequest(key, id, "", "out", times + 1, most.usd, most.tokens)
