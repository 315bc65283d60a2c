"""What the providers' batches have in common: sizes, states, rows of results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from pennyweight.models.batch.client import BatchClient


@dataclass(frozen=True, slots=True)
class BatchSize:
    """How much one batch may hold."""

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Upload:
    """The requests of one batch, as a file that is sent in pieces."""

    file: BinaryIO
    bytes: int
    name: str
    """The name of the batch, by which it is found again."""
    model: str
    path: str
    """The path that each of its requests would be sent to one by one."""


@dataclass(frozen=True, slots=True)
class RemoteBatch:
    """A batch as the provider describes it."""

    handle: str
    has_ended: bool
    name: str | None = None
    """The name that we gave it; None where the provider keeps none."""
    requests: int | None = None
    done: int | None = None
    """How many of its requests are answered, or failed."""
    succeeded: int | None = None
    """How many of them the provider charges for."""
    results: tuple[str, ...] = ()
    """The paths of its results, once it has ended."""
    problem: str = ""
    """Why the provider refused or dropped the whole batch."""
    passes: bool = False
    """Whether the problem passes by itself, such as a full queue."""
    created: float | None = None
    files: tuple[str, ...] = ()
    """The paths of what the provider keeps of it, which are deleted when it is collected."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One line of the results: the reply to a request, or an error with its HTTP status."""

    id: str
    status: int
    body: Any
    """The reply, or what the provider says about the error."""
    ended: str = ""
    """`expired` or `cancelled`, for a request that was never answered."""
    size: int = 0
    """The bytes of the line."""


class BatchDialect(Protocol):
    """One provider's batches: a module of functions."""

    SIZE: BatchSize
    HEAD: bytes
    BETWEEN: bytes
    TAIL: bytes
    """What stands before, between and after the requests of a file."""

    def line(self, id: str, path: str, body: dict[str, Any]) -> bytes:  # noqa: A002
        """Return one request as it stands in the file."""

    def submit(
        self, client: BatchClient, upload: Upload, submitting: Callable[[], None]
    ) -> RemoteBatch:
        """Send a batch; call `submitting` right before the call that creates it."""

    def read(self, client: BatchClient, handle: str) -> RemoteBatch:
        """Read the state of a batch."""

    def listed(self, client: BatchClient) -> Iterator[RemoteBatch]:
        """Yield the batches of the account, the newest first."""

    def cancel(self, client: BatchClient, handle: str) -> None:
        """Ask the provider to stop a batch."""

    def row(self, value: Any) -> ResultRow:
        """Read a line of the results. Any exception means that it cannot be understood."""
