"""The pages: each reads at most one screen of data and fills a template."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from pennyweight.api.pages.run_list import RunState
from pennyweight.web import (
    api_docs,
    comparison,
    grid_page,
    record_views,
    review,
    run_list,
    run_page,
    task_view,
    views,
)
from pennyweight.web.access import TooMany
from pennyweight.web.assets import parts, rendered, static
from pennyweight.web.guard import COOKIE
from pennyweight.web.page_cache import answer
from pennyweight.web.site import Shown, Site

FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
WAYS = {
    "/": "Runs", "/compare": "Compare", "/gates": "Gates", "/new": "New run", "/docs": "API",
}  # fmt: skip
CACHED_TEMPLATES = ("runs.html",)
"""Large pages that rarely change, and whose few values are quick to compare."""
MAX_FORM_BYTES = 4_096


def _here(path: str) -> str | None:
    """Return the entry of the navigation to which an address belongs."""
    part = "/" + path[1:20].partition("/")[0]
    return "/" if part == "/runs" else part if part in WAYS else None


@cache
def _ways(here: str | None) -> Markup:
    """Write the navigation; `here` is the current entry."""
    return rendered("ways.html", {"ways": WAYS.items(), "here": here})


def pages() -> list[Route]:
    """List the routes of all pages."""
    shown: dict[str, Callable[[Request, Site], Shown]] = {
        "/": run_list.runs,
        "/runs/{run}/records": record_views.records,
        "/runs/{run}/record": record_views.record,
        "/runs/{run}/step": record_views.step,
        "/runs/{run}/task": task_view.task,
        "/runs/{run}/review": review.review,
        "/compare": comparison.compare,
        "/compare/task": comparison.compare_task,
        "/gates": views.gates,
        "/new": views.new,
        "/docs": api_docs.docs,
    }
    of_runs: dict[str, Callable[[Request, Site, RunState], Shown]] = {
        "/runs/{run}": run_page.run,
        "/runs/{run}/grid": grid_page.grid,
        "/runs/{run}/metrics": run_page.metrics,
    }
    return [
        *(Route(path, _page(view), methods=["GET"]) for path, view in shown.items()),
        *(Route(path, _run_page(view), methods=["GET"]) for path, view in of_runs.items()),
        Route("/runs/{run}/raw", record_views.raw, methods=["GET"]),
        Route("/runs/{run}/records.{kind}", record_views.table, methods=["GET"]),
        Route("/runs/{run}/report.html", views.report, methods=["GET"]),
        Route("/runs/{run}/charts/{name}", run_page.chart_file, methods=["GET"]),
        Route("/static/{name}", _file, methods=["GET"]),
        Route("/enter", _enter, methods=["GET", "POST"]),
        Route("/leave", _leave, methods=["POST"]),
    ]


def _page(view: Callable[[Request, Site], Shown]) -> Callable[[Request], Response]:
    def show(request: Request) -> Response:
        template, values = view(request, request.app.state.site)
        return _shown(request, template, values)

    return show


def _run_page(view: Callable[[Request, Site, RunState], Shown]) -> Callable[[Request], Response]:
    """Serve a page of a run that shows its state alone: digest, grid, notes, label, verdicts.

    Such a page is written once for each address and reader, as long as the state is the same.
    """

    def show(request: Request) -> Response:
        site: Site = request.app.state.site
        state, common = site.state(request.path_params["run"]), _common(request)
        place = (request.scope["path"], request.scope["query_string"], *common.items())
        page = site.pages.find(place, state.row) if state.settled else None
        if page is None:
            template, values = view(request, site, state)
            page = site.pages.pack(parts(template, {**common, **values}))
            if state.settled and site.digests.holds(state):
                site.pages.keep(place, state.row, page)
        return answer(request, page)

    return show


def _common(request: Request) -> dict[str, Any]:
    """Return the values that every page has: they depend on the address and the reader."""
    site: Site = request.app.state.site
    theme = request.cookies.get("theme")
    right = request.scope.get("state", {}).get("right")
    return {
        "ways": _ways(_here(request.scope["path"])),
        "theme": theme if theme in {"light", "dark"} else None,
        "csrf": site.access.csrf if right else "",
        "right": right,
        "open": site.access.open,
    }


def _shown(request: Request, template: str, values: dict[str, Any], status: int = 200) -> Response:
    common = _common(request)
    if template in CACHED_TEMPLATES:
        return HTMLResponse(_written(template, *common.items(), *values.items()), status)
    return HTMLResponse(rendered(template, {**common, **values}), status)


@lru_cache(8)
def _written(template: str, *values: tuple[str, Any]) -> bytes:
    """Write a page, cached by its values."""
    return rendered(template, dict(values)).encode()


def error_page(request: Request, status: int, text: str) -> Response:
    """Show an error to a person."""
    known = {404: "Not found", 405: "Method not allowed", 500: "Internal error"}
    title = known.get(status, "Store unavailable" if status == 503 else "Request failed")
    return _shown(request, "error.html", {"title": title, "text": text}, status)


async def _file(request: Request) -> Response:
    held = static().get(request.path_params["name"])
    if held is None:
        return error_page(request, 404, "No such file.")
    return Response(held[0], media_type=held[1], headers=FOREVER)


async def _enter(request: Request) -> Response:
    """Ask for a token and start a session."""
    target = request.query_params.get("next", "/")
    if not target.startswith("/") or target.startswith(("//", "/\\")):
        target = "/"
    site: Site = request.app.state.site
    if request.method == "GET" and "code" in request.query_params:
        return _enter_by_link(request, site)
    if request.method == "GET":
        return _shown(request, "enter.html", {"problem": "", "target": target})
    token = (await _form(request)).get("token", "")
    try:
        found = await run_in_threadpool(site.access.enter, token)
        problem = "Unknown token."
    except TooMany:
        found, problem = None, "Too many wrong tokens. Wait a minute."
    if found is None:
        return _shown(request, "enter.html", {"problem": problem, "target": target}, 401)
    return _signed_in(request, RedirectResponse(target, 303), found[0])


def _enter_by_link(request: Request, site: Site) -> Response:
    """Start a session for the link that the server printed; it works once."""
    try:
        session = site.access.enter_once(request.query_params["code"])
        problem = "This link was used already. Sign in with the token that the server printed."
    except TooMany:
        session, problem = None, "Too many wrong tokens. Wait a minute."
    if session is None:
        return _shown(request, "enter.html", {"problem": problem, "target": "/"}, 401)
    # a redirect would carry no strict cookie, because the link comes from elsewhere
    page = '<!doctype html><title>Pennyweight</title><meta http-equiv="refresh" content="0; url=/">'
    return _signed_in(request, HTMLResponse(page), session)


def _signed_in(request: Request, answer: Response, session: str) -> Response:
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, session, httponly=True, samesite="strict", secure=secure)
    return answer


async def _form(request: Request) -> dict[str, str]:
    """Read a form; a larger one is ignored."""
    held = bytearray()
    async for part in request.stream():
        held += part
        if len(held) > MAX_FORM_BYTES:
            return {}
    return dict(parse_qsl(held.decode("utf-8", "replace")))


async def _leave(request: Request) -> Response:
    site: Site = request.app.state.site
    cookie = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
    if cookie:
        site.access.leave(cookie.value)
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(COOKIE)
    return answer
