"""The batches of one model: the provider's dialect with an address, a key and a wire format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import orjson

from pennyweight.models.batch import anthropic, google, openai
from pennyweight.models.batch.client import BatchClient
from pennyweight.models.batch.dialect import (
    BatchDialect,
    BatchSize,
    RemoteBatch,
    ResultRow,
    Upload,
)
from pennyweight.models.failure import CallError
from pennyweight.models.model import Reply, Request

_NOT_UNDERSTOOD = (AttributeError, LookupError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class BatchService:
    """Submits requests of a model as batches, and reads what comes back."""

    account: str
    model: str
    dialect: BatchDialect
    client: BatchClient
    encode: Callable[[Request], tuple[str, dict[str, Any]]]
    decode: Callable[[Any], Reply]

    @property
    def size(self) -> BatchSize:
        """How much one batch may hold."""
        return self.dialect.SIZE

    def check(self) -> None:
        """Raise CallError if the address has no batches, or does not accept the key."""
        next(self.dialect.listed(self.client), None)

    def request_id(self, owner: str, request: Request) -> tuple[str, str, bytes]:
        """Return the id of a request in batches, its path, and its line of a file.

        The id says whose request it is and what it asks, in the characters that all providers
        take: a changed prompt is another request.
        """
        if request.settings.stream:
            request = replace(request, settings=replace(request.settings, stream=False))
        path, body = self.encode(request)
        whose = [owner, request.label, request.attempt, request.question]
        known = json.dumps([*whose, path, body]).encode()
        id_ = f"pw_{hashlib.blake2b(known, digest_size=20).hexdigest()}"
        return id_, path, self.dialect.line(id_, path, body)

    def submit(
        self, file: BinaryIO, size: int, name: str, path: str, submitting: Callable[[], None]
    ) -> RemoteBatch:
        """Send a batch; `submitting` is called right before the call that creates it."""
        upload = Upload(file, size, name, self.model, path)
        return self.dialect.submit(self.client, upload, submitting)

    def read(self, handle: str) -> RemoteBatch:
        """Read the state of a batch."""
        return self.dialect.read(self.client, handle)

    def listed(self) -> Iterator[RemoteBatch]:
        """Yield the batches of the account, the newest first."""
        return self.dialect.listed(self.client)

    def cancel(self, handle: str) -> None:
        """Ask the provider to stop a batch."""
        self.dialect.cancel(self.client, handle)

    def delete(self, batch: RemoteBatch) -> None:
        """Delete what the provider keeps of a batch; raise CallError if it does not let us."""
        for path in batch.files:
            self.client.delete(path)

    def results(self, batch: RemoteBatch) -> Iterator[ResultRow | None]:
        """Yield the rows of a batch that has ended; None for a line that cannot be understood."""
        for path in batch.results:
            for line in self.client.lines(path):
                row = None
                with suppress(*_NOT_UNDERSTOOD, RecursionError):
                    row = replace(self.dialect.row(_loaded(line)), size=len(line))
                yield row

    def reply(self, row: ResultRow) -> Reply:
        """Return the reply of a row; raise CallError if it has none."""
        if row.ended:
            text = f"The batch {row.ended} before the request was answered."
            raise CallError("timeout", text, status=408)
        if row.status == 200:
            return replace(self.decode(row.body), lane="batch")
        raise self.client.error(row.status, {}, json.dumps(row.body).encode())


def dialect_of(wire: str) -> BatchDialect:
    """Return the dialect of batches that goes with a wire format."""
    others: dict[str, BatchDialect] = {"anthropic": anthropic, "google": google}
    return others.get(wire, openai)


def _loaded(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line)
