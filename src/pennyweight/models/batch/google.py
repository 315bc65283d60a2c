"""Gemini's batches: a file through the resumable upload, then a batch of that file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

from pennyweight.models.batch.client import BatchClient, pieces
from pennyweight.models.batch.dialect import BatchSize, RemoteBatch, ResultRow, Upload
from pennyweight.models.failure import malformed, shorten
from pennyweight.models.json_values import object_of, word

SIZE = BatchSize(100_000, 2_000_000_000)
HEAD, BETWEEN, TAIL = b"", b"\n", b"\n"
PAGE = 100

_ENDED = {"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"}
_NAME = re.compile(r"(batches|files)/[A-Za-z0-9_-]+")
_HTTP = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}
"""HTTP statuses of Google's error codes; those from 400 on are HTTP statuses already."""
_NOT_ANSWERED = {1: "cancelled", 4: "expired"}


def line(id: str, path: str, body: dict[str, Any]) -> bytes:  # noqa: A002, ARG001
    """Return one request as it stands in the file."""
    return json.dumps({"key": id, "request": body}).encode()


def submit(client: BatchClient, upload: Upload, submitting: Callable[[], None]) -> RemoteBatch:
    """Upload the file, and create a batch of it."""
    base = urlsplit(client.base_url)
    start = {
        "Content-Type": "application/json",
        "X-Goog-Upload-Protocol": "resumable",
        "X-Goog-Upload-Command": "start",
        "X-Goog-Upload-Header-Content-Length": str(upload.bytes),
        "X-Goog-Upload-Header-Content-Type": "application/jsonl",
    }
    about = json.dumps({"file": {"display_name": upload.name}}).encode()
    root = f"{base.scheme}://{base.netloc}"
    _, given = client.send("POST", f"{root}/upload{base.path}/files", about, start)
    place = given.get("x-goog-upload-url")
    if not place:
        raise malformed("it has no address for the upload.")
    finish = {
        "Content-Length": str(upload.bytes),
        "X-Goog-Upload-Command": "upload, finalize",
        "X-Goog-Upload-Offset": "0",
    }
    sent, _ = client.send("POST", place, pieces(upload.file), finish)
    file = _name(object_of(sent.get("file")).get("name"))
    submitting()
    batch = {"displayName": upload.name, "inputConfig": {"fileName": file}}
    path = f"/models/{quote(upload.model)}:batchGenerateContent"
    with client.cleaning(f"/{file}"):
        return _batch(client, client.json("POST", path, {"batch": batch}))


def read(client: BatchClient, handle: str) -> RemoteBatch:
    """Read the state of a batch."""
    return _batch(client, client.json("GET", f"/{_name(handle)}"))


def listed(client: BatchClient) -> Iterator[RemoteBatch]:
    """Yield the batches of the account, the newest first."""
    token = ""
    while True:
        page = client.json("GET", f"/batches?pageSize={PAGE}{token}")
        for one in page.get("operations") or ():
            if isinstance(one, dict):
                yield _batch(client, one)
        following = page.get("nextPageToken")
        if not following or not isinstance(following, str):
            return
        token = f"&pageToken={quote(following, safe='')}"


def cancel(client: BatchClient, handle: str) -> None:
    """Ask the provider to stop a batch."""
    client.json("POST", f"/{_name(handle)}:cancel", {})


def row(value: Any) -> ResultRow:
    """Read a line of the results."""
    id_ = value["key"]
    if not isinstance(id_, str):
        raise TypeError(id_)
    if value.get("response"):
        return ResultRow(id_, 200, value["response"])
    error = value.get("error") or {"message": "The row has neither a response nor an error."}
    code = error.get("code")
    code = code if isinstance(code, int) else 13
    ended = _NOT_ANSWERED.get(code, "")
    return ResultRow(id_, code if code >= 400 else _HTTP.get(code, 500), {"error": error}, ended)


def _batch(client: BatchClient, value: dict[str, Any]) -> RemoteBatch:
    about, given = object_of(value.get("metadata")), object_of(value.get("response"))
    state = str(about.get("state") or "").rpartition("_STATE_")[2]
    output = object_of(about.get("output")) or object_of(given.get("output")) or given
    file, sent = output.get("responsesFile"), object_of(about.get("inputConfig")).get("fileName")
    base = urlsplit(client.base_url)
    download = f"{base.scheme}://{base.netloc}/download{base.path}"
    stats = object_of(about.get("batchStats"))
    total, pending = _number(stats.get("requestCount")), _number(stats.get("pendingRequestCount"))
    wrong = word(object_of(value.get("error")).get("message"))
    return RemoteBatch(
        _name(value.get("name")),
        state in _ENDED,
        word(about.get("displayName")) or "",
        total,
        None if total is None else total - (pending or 0),
        _number(stats.get("successfulRequestCount")),
        (f"{download}/{_name(file)}:download?alt=media",) if isinstance(file, str) else (),
        shorten(wrong or "The batch failed.") if state == "FAILED" else "",
        created=_moment(about.get("createTime")),
        files=tuple(f"/{one}" for one in (sent, file) if isinstance(one, str) and _is_name(one)),
    )


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _is_name(value):
        raise malformed("it has no valid name.")
    return value


def _is_name(value: str) -> bool:
    return _NAME.fullmatch(value) is not None


def _number(value: Any) -> int | None:
    """Read an int64, which this format writes as text."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() else None


def _moment(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return None
