"""Checks on every request, and security headers on every answer."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pennyweight.web.access import Access, Right, TooMany

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
OPEN = ("/enter", "/static/")
"""Paths that require no token."""
SAFE = ("GET", "HEAD", "OPTIONS")
READ_ONLY_POSTS = ("/api/plan",)
"""Requests that are sent by POST but change nothing: a read-only token suffices."""
FOR_PROGRAMS = ("/api/", "/v1/")
"""Paths that only programs ask for: errors are JSON."""
EXPORTS = ("/v1/traces", "/v1/logs")
"""Exporters cannot send the value of a page. Other sites cannot send spans all the same: their
content types need a permission that this server does not give, and their origin is refused."""
COOKIE = "pennyweight_session"
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:@/,\[\]]+))(?::[0-9]{1,5})?")


class Guard:
    """Checks host, origin, token and rights; adds security headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access, hosts: frozenset[str]) -> None:
        self.app, self.access, self.hosts = app, access, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        answer = self.check(scope)
        await (answer or self.app)(scope, receive, self._adding(send))

    def check(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is refused."""
        headers = Headers(scope=scope)
        return self._elsewhere(scope, headers) or self._not_allowed(scope, headers)

    def _elsewhere(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse requests for another host or from another site."""
        host = headers.get("host", "")
        if not self.known(host):
            return _refused(
                scope, 421, "This server does not answer to this host name; see --allow-host."
            )
        origin = headers.get("origin")
        other = origin is not None and not _same(origin, host)
        if headers.get("sec-fetch-site") in {"cross-site", "same-site"}:  # links to pages are fine
            other |= scope["method"] not in SAFE or scope["path"].startswith("/api/")
        return _refused(scope, 403, "The request comes from another site.") if other else None

    def _not_allowed(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse requests without a token, or changes with a read-only one."""
        try:
            right, by_header = self._right(headers)
        except TooMany:
            return _refused(scope, 429, "Too many wrong tokens. Wait a minute.")
        scope.setdefault("state", {})["right"] = right
        safe = scope["method"] in SAFE
        if scope["path"].startswith(OPEN):
            return None
        if right is None:
            if safe and not scope["path"].startswith("/api/"):
                return RedirectResponse(f"/enter?next={quote(_target(scope), safe='')}", 303)
            return _refused(scope, 401, "A token is required: send Authorization: Bearer TOKEN.")
        if not safe and right != "write" and scope["path"] not in READ_ONLY_POSTS:
            return _refused(scope, 403, "This token allows viewing only.")
        if (
            not safe
            and not by_header
            and not (self.access.open and scope["path"] in EXPORTS)
            and not self.access.is_csrf(headers.get("x-pennyweight-csrf", ""))
        ):
            return _refused(
                scope,
                403,
                "The header X-Pennyweight-Csrf is missing or wrong; GET /api/session returns it.",
            )
        return None

    def known(self, host: str) -> bool:
        """Whether a Host header names this server; the port does not matter."""
        found = _HOST.fullmatch(host.lower())
        return found is not None and (found[1] or found[2]) in self.hosts

    def _right(self, headers: Headers) -> tuple[Right | None, bool]:
        """Return the right of a request, and whether a header gave it: other sites cannot."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and not self.access.open:
            return self.access.right_of(token.strip()), True
        if self.access.open:
            return "write", False
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return None, False
        return (self.access.session(cookie.value) if cookie else None), False

    def _adding(self, send: Send) -> Callable[[MutableMapping[str, Any]], Awaitable[None]]:
        async def adding(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        return adding


def _same(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False


def _target(scope: Scope) -> str:
    """Return the path to go back to after signing in."""
    query = scope["query_string"].decode("latin-1")
    return f"{quote(scope['path'])}?{query}" if query else quote(scope["path"])


def _refused(scope: Scope, status: int, text: str) -> Response:
    if scope["path"].startswith(FOR_PROGRAMS):
        return JSONResponse({"detail": text}, status)
    return PlainTextResponse(text + "\n", status)
