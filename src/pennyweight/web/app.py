"""The application: pages, API, and the guard around both."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from pennyweight import __version__
from pennyweight.api.pages.board_pairs import BoardPairs
from pennyweight.api.pages.digest_cache import DigestCache
from pennyweight.api.pages.live_traces import TraceInbox
from pennyweight.api.pages.run_list import Store
from pennyweight.api.pages.side_by_side import RunComparisons
from pennyweight.api.suites import SuiteLibrary
from pennyweight.errors import (
    InputError,
    NotFoundError,
    PennyweightError,
    StoreError,
    UntrustedError,
)
from pennyweight.web.access import Access
from pennyweight.web.guard import FOR_PROGRAMS, Guard
from pennyweight.web.jobs import Jobs
from pennyweight.web.otlp import otlp
from pennyweight.web.page_cache import AcceptedGzip
from pennyweight.web.pages import error_page, pages
from pennyweight.web.rest import api
from pennyweight.web.review import api as reviewing
from pennyweight.web.site import Site

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
GC_THRESHOLDS = (700, 10, 10)
"""Collect often: a server runs for long, and the garbage of pages must not accumulate."""


def make_app(
    store: Store,
    *,
    host: str = "127.0.0.1",
    folders: Iterable[Path] = (),
    allow: Iterable[str] = (),
    access: Access | None = None,
    scorers: Sequence[str] = (),
) -> ASGIApp:
    """Make the application for a store; by default the tokens are read from the environment.

    `scorers` are files that declare metrics of the user's.
    """
    access = access or Access.of(host, os.environ)
    uploads = Path(".pennyweight") if "://" in store.address else Path(store.address).parent
    digests = DigestCache(store, scorers)
    site = Site(
        store,
        digests,
        RunComparisons(store, digests),
        Jobs(store.address),
        SuiteLibrary(folders, uploads / "uploads"),
        access,
        TraceInbox(store),
        BoardPairs(store),
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        gc.collect()
        gc.freeze()  # loaded modules stay; scanning them again would delay a page
        gc.set_threshold(*GC_THRESHOLDS)
        threading.Thread(target=site.digests.watch, name="ended runs", daemon=True).start()
        yield
        site.jobs.close()
        site.digests.close()

    app = FastAPI(
        title="Pennyweight",
        version=__version__,
        summary="View, start and compare runs.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        lifespan=lifespan,
    )
    app.state.site = site
    app.router.routes.extend(pages())
    app.include_router(api)
    app.include_router(reviewing)
    app.include_router(otlp)
    for kind in (PennyweightError, 404, 405):
        app.add_exception_handler(kind, _error_answer)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(Exception, _broken)
    names = {*LOCAL_NAMES, host, *allow}
    # other sites get no page: their requests carry no session, so nothing secret can be guessed
    # from the length of a compressed answer
    small = AcceptedGzip(app, minimum_size=2_000, compresslevel=3)
    return Guard(small, access, frozenset(n.strip("[]").lower() for n in names))


def _left(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """Answer a client that went away before it had sent everything, such as a closed page."""
    return JSONResponse({"detail": "The request was not complete."}, 400)


def _broken(request: Request, error: Exception) -> Response:
    """Answer when the server fails; the traceback is in its terminal."""
    text = f"Internal error ({type(error).__name__}). The server's terminal shows the traceback."
    if request.url.path.startswith(FOR_PROGRAMS):
        return JSONResponse({"detail": text}, 500)
    return error_page(request, 500, text)


def _error_answer(request: Request, error: Any) -> Response:
    """Answer with an error: JSON for a program, a page for a person."""
    status = getattr(error, "status_code", 400)
    if isinstance(error, PennyweightError):
        status = 404 if isinstance(error, NotFoundError) else 400
        status = 503 if isinstance(error, StoreError) else status
        status = 409 if isinstance(error, UntrustedError) else status
        text = str(error)
    else:
        text = str(error.detail)
    if request.url.path.startswith(FOR_PROGRAMS):
        lines = list(error.problems) if isinstance(error, InputError) else text
        headers = getattr(error, "headers", None)
        more = {"trust": error.mark} if isinstance(error, UntrustedError) else {}
        return JSONResponse({"detail": lines, **more}, status, headers=headers)
    if text == "Not Found":  # as the router says it
        text = "There is no page at this address."
    return error_page(request, status, text)
