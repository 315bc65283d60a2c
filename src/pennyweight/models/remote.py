"""A model behind HTTP: a wire format, an address and a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pennyweight.models.failure import CallError, address_hint, shorten
from pennyweight.models.keys import Key
from pennyweight.models.model import Message, Model, Reply, Request, Settings
from pennyweight.models.providers import DEFAULT_TIMEOUT
from pennyweight.models.reply_memory import max_bytes
from pennyweight.models.stream import EventStream, StreamedBody
from pennyweight.models.transport import Answer, Transport, parse

if TYPE_CHECKING:
    from pennyweight.models.batch.service import BatchService


class Wire(Protocol):
    """A wire format: a module of pure functions."""

    IGNORES: frozenset[str]

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the authentication headers."""

    def most_output(self, body: Mapping[str, Any]) -> int | None:
        """Return the maximum number of output tokens of a request; None if it sets no limit."""

    def streamed(self, path: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the path and body of a request for a stream."""

    def streamed_body(self) -> StreamedBody:
        """Return what puts a stream together to the body of a reply."""

    def decode(self, body: Any, latency_ms: float | None = None) -> Reply:
        """Read a reply."""

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> CallError:
        """Read an error."""


class RemoteModel(Model):
    """A model behind HTTP."""

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str,
        wire: Wire,
        encode: Callable[[str, Request], tuple[str, dict[str, Any]]],
        key: Key | None = None,
        account: str = "",
        timeout: float = DEFAULT_TIMEOUT,
        dialect: str | None = None,
    ) -> None:
        self._dialect = dialect
        self.name, self.account = name, account or base_url
        self.ignores = wire.IGNORES
        self._model, self._wire, self._encode, self._key = model, wire, encode, key
        headers = self._headers = wire.headers(key.reveal() if key else None)
        self._base_url = base_url.rstrip("/")
        self._transport = Transport(base_url, headers, timeout)
        self._limited: tuple[Settings, int] | None = None

    def encode(self, request: Request) -> tuple[str, dict[str, Any]]:
        """Return the request as it is sent. Raise UsageError if a setting cannot be expressed."""
        path, body = self._encode(self._model, request)
        return self._wire.streamed(path, body) if request.settings.stream else (path, body)

    def most_output(self, settings: Settings) -> int | None:
        """Return the maximum number of output tokens of a call; None if nothing limits it."""
        _, body = self.encode(Request((Message("user", ""),), settings))
        return self._wire.most_output(body)

    def batches(self) -> BatchService | None:
        """Return the provider's batches of this model; None if there are none."""
        if self._dialect is None:
            return None
        from pennyweight.models.batch.client import BatchClient  # noqa: PLC0415
        from pennyweight.models.batch.service import BatchService, dialect_of  # noqa: PLC0415

        client = BatchClient(self._base_url, self._headers, self._wire.error, self._key)
        dialect, encode = dialect_of(self._dialect), partial(self._encode, self._model)
        return BatchService(self.account, self._model, dialect, client, encode, self._wire.decode)

    async def call(self, request: Request) -> Reply:
        """Answer once."""
        path, body = self.encode(request)
        stream = None
        if request.settings.stream:
            stream = EventStream(self._wire.streamed_body(), exact="tools" in body)
        try:
            limit = self._max_bytes(request.settings, body)
            answer = self._cleaned(await self._transport.post(path, body, limit, stream))
            if answer.status != 200:
                raise self._refused(answer)
            read = parse(answer, exact="tools" in body)
            reply = self._wire.decode(read, answer.latency_ms)
            return reply if stream is None else replace(reply, ttft_ms=answer.ttft_ms)
        except CallError as wrong:
            failed = self._explained(wrong, path)
        raise failed

    def _max_bytes(self, settings: Settings, body: Mapping[str, Any]) -> int:
        """Return the size limit of a reply, which attempts with the same settings share."""
        if self._limited is None or self._limited[0] is not settings:
            limit = max_bytes(self._wire.most_output(body), logprobs=settings.logprobs)
            self._limited = settings, limit
        return self._limited[1]

    def _cleaned(self, answer: Answer) -> Answer:
        return replace(answer, body=self._key.redact_body(answer.body)) if self._key else answer

    def _refused(self, answer: Answer) -> CallError:
        if answer.status < 400:
            where = shorten(self._redact(answer.headers.get("location", "nowhere")))
            text = f"The server answered HTTP {answer.status}, a redirect to {where}. Set base_url."
            return CallError("bad_request", text, status=answer.status)
        return self._wire.error(answer.status, answer.headers, answer.body)

    def _explained(self, wrong: CallError, path: str) -> CallError:
        """Remove the key from an error, and add advice to one that concerns key or address."""
        url = f"{self._base_url}{path}"
        hint = address_hint(wrong, url, versioned=path.startswith(("/chat/", "/responses")))
        advice = f" {hint}" if hint else ""
        if wrong.kind == "auth":
            key = self._key
            advice = f" Check the key in {key.variable}." if key else " Name a key with key_env."
        return wrong.redacted(lambda text: self._redact(text) + advice)

    def _redact(self, text: str) -> str:
        return text if self._key is None else self._key.redact(text)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()
