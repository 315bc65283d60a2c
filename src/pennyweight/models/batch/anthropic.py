"""Anthropic's message batches: one call with all requests, one file of results.

The provider keeps no name of a batch, so a batch whose handle was lost is known by its results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from urllib.parse import quote

from pennyweight.models.batch.client import BatchClient, pieces
from pennyweight.models.batch.dialect import BatchSize, RemoteBatch, ResultRow, Upload
from pennyweight.models.failure import malformed
from pennyweight.models.json_values import count, object_of

SIZE = BatchSize(100_000, 256_000_000)
HEAD, BETWEEN, TAIL = b'{"requests":[', b",", b"]}"
PAGE = 100
_PATH = "/v1/messages/batches"
_NOT_ANSWERED = {"expired": "expired", "canceled": "cancelled"}
_STATUS = {
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status that a kind of error has when a request is sent alone; else 400."""


def line(id: str, path: str, body: dict[str, Any]) -> bytes:  # noqa: A002, ARG001
    """Return one request as it stands in the list."""
    return json.dumps({"custom_id": id, "params": body}).encode()


def submit(client: BatchClient, upload: Upload, submitting: Callable[[], None]) -> RemoteBatch:
    """Send all requests at once."""
    headers = {"Content-Type": "application/json", "Content-Length": str(upload.bytes)}
    submitting()
    made, _ = client.send("POST", _PATH, pieces(upload.file), headers)
    return _batch(made)


def read(client: BatchClient, handle: str) -> RemoteBatch:
    """Read the state of a batch."""
    return _batch(client.json("GET", f"{_PATH}/{quote(handle, safe='')}"))


def listed(client: BatchClient) -> Iterator[RemoteBatch]:
    """Yield the batches of the account, the newest first."""
    after = ""
    while True:
        page = client.json("GET", f"{_PATH}?limit={PAGE}{after}")
        batches = [_batch(one) for one in page.get("data") or () if isinstance(one, dict)]
        yield from batches
        if not page.get("has_more") or not batches:
            return
        after = f"&after_id={batches[-1].handle}"


def cancel(client: BatchClient, handle: str) -> None:
    """Ask the provider to stop a batch."""
    client.json("POST", f"{_PATH}/{quote(handle, safe='')}/cancel", {})


def row(value: Any) -> ResultRow:
    """Read a line of the results."""
    id_, result = value["custom_id"], value["result"]
    if not isinstance(id_, str):
        raise TypeError(id_)
    kind = result["type"]
    if kind == "succeeded":
        return ResultRow(id_, 200, result["message"])
    error = result.get("error") or {}
    code = object_of(error.get("error")).get("type")
    status = _STATUS.get(code, 400) if isinstance(code, str) else 500
    return ResultRow(id_, status, error, _NOT_ANSWERED.get(kind, ""))


def _batch(value: dict[str, Any]) -> RemoteBatch:
    handle, counts = value.get("id"), object_of(value.get("request_counts"))
    if not isinstance(handle, str) or not handle.replace("_", "").isalnum():
        raise malformed("it has no valid id.")
    numbers = {name: count(number) or 0 for name, number in counts.items()}
    ended = value.get("processing_status") == "ended"
    gone = ended and value.get("archived_at") is not None
    return RemoteBatch(
        handle,
        ended,
        None,
        sum(numbers.values()) if numbers else None,
        sum(numbers.values()) - numbers.get("processing", 0) if numbers else None,
        numbers.get("succeeded"),
        (f"{_PATH}/{quote(handle, safe='')}/results",) if ended and not gone else (),
        "The provider has archived the batch, so its results are gone." if gone else "",
        created=_moment(value.get("created_at")),
        files=(f"{_PATH}/{quote(handle, safe='')}",),
    )


def _moment(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return None
