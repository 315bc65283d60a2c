"""OTLP over HTTP: programs that trace with OpenTelemetry send their spans here."""

from __future__ import annotations

import zlib

from fastapi import APIRouter, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from pennyweight.api.pages.live_traces import JSON, LOGS, PROTOBUF, TRACES
from pennyweight.web.site import Site

MAX_BYTES = 64 << 20
RUN = "x-pennyweight-run"
"""The header that names the run; otherwise the service's name does."""
otlp = APIRouter()


@otlp.post("/v1/traces", include_in_schema=False)
async def traces(request: Request) -> Response:
    """Take spans; a trace is an attempt of the named run once its root has ended."""
    return await _received(request, TRACES)


@otlp.post("/v1/logs", include_in_schema=False)
async def logs(request: Request) -> Response:
    """Take log events: messages of calls, and results of evaluations."""
    return await _received(request, LOGS)


async def _received(request: Request, what: str) -> Response:
    site: Site = request.app.state.site
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {JSON, PROTOBUF}:
        raise HTTPException(415, f"Send OTLP as {PROTOBUF} or {JSON}.")
    body = _plain(await _body(request), request.headers.get("content-encoding", ""))
    run = request.headers.get(RUN) or request.query_params.get("run", "")
    await run_in_threadpool(site.traces.receive, body, kind, run, what)
    return Response(b"{}" if kind == JSON else b"", media_type=kind)


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BYTES:
            raise HTTPException(413, f"A request may have at most {MAX_BYTES:,} bytes.")
        parts.append(part)
    return b"".join(parts)


def _plain(body: bytes, encoding: str) -> bytes:
    """Decompress a request, as far as it is allowed to be."""
    match encoding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "deflate":
            try:
                stream = zlib.decompressobj(zlib.MAX_WBITS | 32)
                plain = stream.decompress(body, MAX_BYTES)
            except zlib.error as error:
                raise HTTPException(400, f"The request cannot be decompressed: {error}.") from error
            if stream.unconsumed_tail:
                raise HTTPException(413, f"A request may have at most {MAX_BYTES:,} bytes.")
            return plain
    raise HTTPException(415, "Send OTLP plain or compressed with gzip.")
