"""OpenAI's batches, which other servers have too: a file of requests, then a batch of that file."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any
from urllib.parse import quote

from pennyweight.models.batch.client import BatchClient, pieces
from pennyweight.models.batch.dialect import BatchSize, RemoteBatch, ResultRow, Upload
from pennyweight.models.failure import malformed, shorten
from pennyweight.models.json_values import count, object_of, word

SIZE = BatchSize(50_000, 200_000_000)
HEAD, BETWEEN, TAIL = b"", b"\n", b"\n"
NAME = "pennyweight"
"""The key of the metadata that holds our name of a batch."""
PAGE = 100

_ENDED = {"completed", "failed", "expired", "cancelled"}
_PASSING = {"token_limit_exceeded", "rate_limit_exceeded"}
_NOT_ANSWERED = {"batch_expired": "expired", "batch_cancelled": "cancelled"}


def line(id: str, path: str, body: dict[str, Any]) -> bytes:  # noqa: A002
    """Return one request as it stands in the file."""
    value = {"custom_id": id, "method": "POST", "url": f"/v1{path}", "body": body}
    return json.dumps(value).encode()


def submit(client: BatchClient, upload: Upload, submitting: Callable[[], None]) -> RemoteBatch:
    """Upload the file, and create a batch of it."""
    edge = secrets.token_hex(16)
    head = (
        f'--{edge}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{edge}\r\nContent-Disposition: form-data; name="file"; '
        f'filename="{upload.name}.jsonl"\r\nContent-Type: application/jsonl\r\n\r\n'
    ).encode()
    tail = f"\r\n--{edge}--\r\n".encode()
    headers = {
        "Content-Type": f"multipart/form-data; boundary={edge}",
        "Content-Length": str(len(head) + upload.bytes + len(tail)),
    }
    sent = chain((head,), pieces(upload.file), (tail,))
    file, _ = client.send("POST", "/files", sent, headers)
    submitting()
    id_ = _text(file, "id")
    asked = {
        "input_file_id": id_,
        "endpoint": f"/v1{upload.path}",
        "completion_window": "24h",
        "metadata": {NAME: upload.name},
    }
    with client.cleaning(f"/files/{id_}"):
        return _batch(client.json("POST", "/batches", asked))


def read(client: BatchClient, handle: str) -> RemoteBatch:
    """Read the state of a batch."""
    return _batch(client.json("GET", f"/batches/{quote(handle, safe='')}"))


def listed(client: BatchClient) -> Iterator[RemoteBatch]:
    """Yield the batches of the account, the newest first."""
    after = ""
    while True:
        page = client.json("GET", f"/batches?limit={PAGE}{after}")
        batches = [_batch(one) for one in page.get("data") or () if isinstance(one, dict)]
        yield from batches
        if not page.get("has_more") or not batches:
            return
        after = f"&after={batches[-1].handle}"


def cancel(client: BatchClient, handle: str) -> None:
    """Ask the provider to stop a batch."""
    client.json("POST", f"/batches/{quote(handle, safe='')}/cancel", {})


def row(value: Any) -> ResultRow:
    """Read a line of the results or of the errors."""
    id_, response, error = value["custom_id"], value.get("response"), value.get("error")
    if not isinstance(id_, str):
        raise TypeError(id_)
    if response:
        return ResultRow(id_, int(response["status_code"]), response.get("body"))
    code = str(object_of(error).get("code"))
    return ResultRow(id_, 500, {"error": error}, _NOT_ANSWERED.get(code, ""))


def _batch(value: dict[str, Any]) -> RemoteBatch:
    status, counts = value.get("status"), object_of(value.get("request_counts"))
    made = [f for n in ("output", "error") if isinstance(f := value.get(f"{n}_file_id"), str) and f]
    sent = word(value.get("input_file_id"))
    wrong = object_of(value.get("errors")).get("data") if status == "failed" else None
    errors = [e for e in wrong if isinstance(e, dict)] if isinstance(wrong, list) else []
    texts = list(dict.fromkeys(str(e.get("message")) for e in errors))
    created = value.get("created_at")
    return RemoteBatch(
        _text(value, "id"),
        status in _ENDED,
        word(object_of(value.get("metadata")).get(NAME)) or "",
        count(counts.get("total")),
        count((count(counts.get("completed")) or 0) + (count(counts.get("failed")) or 0)),
        count(counts.get("completed")),
        tuple(f"/files/{quote(one, safe='')}/content" for one in made),
        shorten(" ".join(texts) or "The batch failed.") if status == "failed" else "",
        any(e.get("code") in _PASSING for e in errors),
        float(created) if isinstance(created, int | float) else None,
        tuple(f"/files/{quote(one, safe='')}" for one in (sent, *made) if one),
    )


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str) or not found.replace("-", "").replace("_", "").isalnum():
        raise malformed(f"it has no valid {name}.")
    return found
