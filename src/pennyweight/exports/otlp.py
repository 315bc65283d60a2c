"""Send requests to an OpenTelemetry endpoint over OTLP/HTTP, as protobuf."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from pennyweight import __version__
from pennyweight.errors import UsageError
from pennyweight.sources.otel import protobuf

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
"""The variable with headers such as keys: `name=value,…`, the values percent-encoded."""
TIMEOUT = 5.0
PATHS = {protobuf.TRACES: "/v1/traces", protobuf.LOGS: "/v1/logs"}
_MOST = 1 << 16
_RETRIED = {408, 429, 502, 503, 504}


class OtlpError(Exception):
    """A request was not taken; `again` says whether it may be taken later."""

    def __init__(self, why: str, *, again: bool) -> None:
        super().__init__(why)
        self.again = again


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The headers hold keys, which go to the named endpoint alone."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class OtlpEndpoint:
    """Where spans and log events are sent."""

    address: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, address: str) -> OtlpEndpoint:
        """Check an address, and take the headers from the environment."""
        try:
            parts = urlsplit(address)
            sound = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
        except ValueError:
            sound = False
        if not sound or parts.query or parts.fragment:
            raise UsageError("--otel: name an address such as http://127.0.0.1:4318.")
        if parts.username or parts.password:
            raise UsageError(f"--otel: put keys into {HEADERS}, not into the address.")
        plain = address.rstrip("/").removesuffix(PATHS[protobuf.TRACES])
        return cls(plain, _headers(os.environ.get(HEADERS, "")))

    def send(self, request: Mapping[str, Any], kind: str) -> int:
        """Send spans or log events; return how many the endpoint refused. OtlpError if it fails."""
        sent = urllib.request.Request(  # noqa: S310 - the scheme was checked
            self.address + PATHS[kind],
            protobuf.encode(request, kind),
            {
                "User-Agent": f"pennyweight/{__version__}",
                **self.headers,
                "Content-Type": "application/x-protobuf",
            },
        )
        try:
            with _opener().open(sent, timeout=TIMEOUT) as answer:
                return _refused(answer.read(_MOST))
        except urllib.error.HTTPError as error:
            with error:
                again = error.code in _RETRIED
                raise OtlpError(f"HTTP {error.code}", again=again) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise OtlpError(_why(reason), again=True) from None


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirects)


def _headers(text: str) -> dict[str, str]:
    """Read headers; what is wrong with them is told without their values."""
    read = {}
    for entry in filter(str.strip, text.split(",")):
        name, equals, value = entry.partition("=")
        name, value = unquote(name).strip(), unquote(value).strip()
        sound = name and name.isascii() and name.isprintable() and not set(name) & set(" :")
        if not equals or not sound or not value.isprintable() or not value.isascii():
            raise UsageError(f"{HEADERS}: it must have the form name=value,name=value.")
        read[name] = value
    return read


def _refused(answer: bytes) -> int:
    try:
        partial: dict[str, int] = protobuf.decode(answer, protobuf.ANSWER).get("partialSuccess", {})
    except ValueError:  # an endpoint that answers in its own way has taken it all the same
        return 0
    return max(0, partial.get("rejected", 0))


def _why(error: object) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT:g} s"
    found = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(found)[:200].rstrip(".")
