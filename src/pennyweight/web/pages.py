"""The pages: each reads at most one screen of data and fills a template."""

from __future__ import annotations

import hashlib
import json
from functools import cache, lru_cache
from http.cookies import SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from pennyweight import __version__
from pennyweight.render.format import estimate, quantity, unit_of
from pennyweight.render.page import environment, stylesheet
from pennyweight.web import api_docs as described
from pennyweight.web import comparison as comparing
from pennyweight.web import run_list as listing
from pennyweight.web import views as looking
from pennyweight.web.access import TooMany
from pennyweight.web.addresses import run_url, url
from pennyweight.web.guard import COOKIE

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Environment
    from starlette.requests import Request

    from pennyweight.api.run_list import RunRow
    from pennyweight.web.site import Site

HERE = Path(__file__).parent
FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
WAYS = {
    "/": "Runs", "/compare": "Compare", "/gates": "Gates", "/new": "New run", "/docs": "API",
}  # fmt: skip
CACHED_TEMPLATES = ("runs.html",)
"""Large pages that rarely change, and whose few values are quick to compare."""
MAX_FORM_BYTES = 4_096

View = "Callable[[Request, Site], tuple[str, dict[str, Any]]]"


@cache
def templates() -> Environment:
    """Return the templates of all pages."""
    made = environment(HERE / "templates")
    made.globals.update(version=__version__, marks=_marks(), run_url=run_url, url=url)
    made.filters["json"] = json.dumps
    made.filters["estimated"] = _estimated
    made.globals["links"] = Markup(made.get_template("links.html").render())  # noqa: S704
    return made


def _estimated(run: RunRow) -> tuple[str, str]:
    """Write the value and the interval of a run's metric."""
    unit = unit_of(run.metric or "")
    if run.value is None or run.low is None or run.high is None:
        return quantity(run.value, unit), ""
    return estimate(run.value, run.low, run.high, unit)


def _here(path: str) -> str | None:
    """Return the entry of the navigation to which an address belongs."""
    part = "/" + path[1:20].partition("/")[0]
    return "/" if part == "/runs" else part if part in WAYS else None


@cache
def _ways(here: str | None) -> Markup:
    """Write the navigation; `here` is the current entry."""
    text = templates().get_template("ways.html").render(ways=WAYS.items(), here=here)
    return Markup(text)  # noqa: S704


@cache
def _static() -> dict[str, tuple[bytes, str]]:
    scripts = {n: (HERE / "static" / n).read_bytes() for n in ("app.js", "new.js")}
    return {
        "style.css": (stylesheet().encode(), "text/css; charset=utf-8"),
        **{n: (held, "text/javascript; charset=utf-8") for n, held in scripts.items()},
        "icon.svg": ((HERE / "static" / "icon.svg").read_bytes(), "image/svg+xml"),
    }


def _marks() -> dict[str, str]:
    """Return a hash of each file, so that browsers cache it until it changes."""
    return {n: hashlib.sha256(held).hexdigest()[:12] for n, (held, _) in _static().items()}


def pages() -> list[Route]:
    """List the routes of all pages."""
    views = {
        "/": listing.runs,
        "/runs/{run}": looking.run,
        "/runs/{run}/records": looking.records,
        "/runs/{run}/record": looking.record,
        "/compare": comparing.compare,
        "/compare/task": comparing.compare_task,
        "/gates": looking.gates,
        "/new": looking.new,
        "/docs": described.docs,
    }
    return [
        *(Route(path, _page(view), methods=["GET"]) for path, view in views.items()),
        Route("/runs/{run}/raw", looking.raw, methods=["GET"]),
        Route("/runs/{run}/report.html", looking.report, methods=["GET"]),
        Route("/static/{name}", _file, methods=["GET"]),
        Route("/enter", _enter, methods=["GET", "POST"]),
        Route("/leave", _leave, methods=["POST"]),
    ]


def _page(view: Any) -> Callable[[Request], Response]:
    def show(request: Request) -> Response:
        template, values = view(request, request.app.state.site)
        return _shown(request, template, values)

    return show


def _shown(request: Request, template: str, values: dict[str, Any], status: int = 200) -> Response:
    site: Site = request.app.state.site
    theme = request.cookies.get("theme")
    right = request.scope.get("state", {}).get("right")
    common = {
        "ways": _ways(_here(request.scope["path"])),
        "theme": theme if theme in {"light", "dark"} else None,
        "csrf": site.access.csrf if right else "",
        "right": right,
        "open": site.access.open,
    }
    if template in CACHED_TEMPLATES:
        return HTMLResponse(_written(template, *common.items(), *values.items()), status)
    return HTMLResponse(templates().get_template(template).render({**common, **values}), status)


@lru_cache(8)
def _written(template: str, *values: tuple[str, Any]) -> bytes:
    """Write a page, cached by its values."""
    return templates().get_template(template).render(dict(values)).encode()


def error_page(request: Request, status: int, text: str) -> Response:
    """Show an error to a person."""
    titles = {
        404: "Not found",
        405: "Method not allowed",
        500: "Internal error",
        503: "Store unavailable",
    }
    values = {"title": titles.get(status, "Request failed"), "text": text}
    return _shown(request, "error.html", values, status)


async def _file(request: Request) -> Response:
    held = _static().get(request.path_params["name"])
    if held is None:
        return error_page(request, 404, "No such file.")
    return Response(held[0], media_type=held[1], headers=FOREVER)


async def _enter(request: Request) -> Response:
    """Ask for a token and start a session."""
    target = request.query_params.get("next", "/")
    if not target.startswith("/") or target.startswith(("//", "/\\")):
        target = "/"
    if request.method == "GET":
        return _shown(request, "enter.html", {"problem": "", "target": target})
    site: Site = request.app.state.site
    token = (await _form(request)).get("token", "")
    try:
        found = await run_in_threadpool(site.access.enter, token)
        problem = "Unknown token."
    except TooMany:
        found, problem = None, "Too many wrong tokens. Wait a minute."
    if found is None:
        return _shown(request, "enter.html", {"problem": problem, "target": target}, 401)
    answer = RedirectResponse(target, 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, found[0], httponly=True, samesite="strict", secure=secure)
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
