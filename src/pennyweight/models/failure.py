"""Why a call failed, and whether a retry can help."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar, get_args
from urllib.parse import urlsplit

from pennyweight.errors import PennyweightError
from pennyweight.models.model import Usage

_Passing = Literal["rate_limit", "server", "timeout", "connection", "malformed"]
_Refused = Literal["auth", "quota", "bad_request", "not_found", "too_large", "content_filter"]
Kind = _Passing | _Refused | Literal["function", "replay", "workspace", "verify", "cancelled"]

RETRYABLE: frozenset[str] = frozenset(get_args(_Passing))
REPORTED = "reported_"
UNSURE: frozenset[str] = frozenset({"timeout", "connection", "malformed", "too_large"})

_STATUS: dict[int, Kind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    405: "not_found",
    408: "timeout",
    409: "server",
    413: "too_large",
    425: "server",
    429: "rate_limit",
    501: "not_found",
}

_WORDS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("quota", ("insufficient_quota", "insufficient_balance", "billing_")),
    ("content_filter", ("content_filter", "content_policy", "responsibleaipolicy")),
    ("too_large", ("context_length", "exceed_context_size")),
    ("too_large", ("prompt is too long", "too many tokens")),
    ("auth", ("invalid_api_key", "api_key_invalid", "authentication_error")),
)

_MESSAGES: dict[str, str] = {
    "rate_limit": "The provider is limiting the rate",
    "server": "The server failed",
    "timeout": "The server gave up waiting",
    "auth": "The key was not accepted",
    "quota": "The account has no quota or money left",
    "bad_request": "The provider refused the request",
    "not_found": "There is no such model or address",
    "too_large": "The request is too large for the model",
    "content_filter": "The provider's content filter stopped the request",
}

MAX_SHOWN_CHARACTERS = 500
MAX_PAGE_CHARACTERS, MAX_PAGE_WORDS = 20_000, 120
_PAGE = re.compile(r"\s*<(?:!doctype html|html|head|body|title|center|h1)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]{0,400})</title>", re.IGNORECASE)
_HIDDEN = re.compile(
    r"<(style|script)\b[^>]*>.{0,20000}?(?:</\1>|$)|<!--.{0,20000}?(?:-->|$)",
    re.IGNORECASE | re.DOTALL,
)
_TAGS = re.compile(r"<[^>]{0,2000}>")
_VERSION = re.compile(r"/(v[0-9]|openai)", re.IGNORECASE)

LONGEST_WAIT = 300.0
"""Seconds. If a provider asks for a longer wait, the call fails; the run can be resumed."""


class CallError(PennyweightError):
    """A call returned no reply. `retryable` tells whether the same call can succeed later.

    `usage` is what was billed nevertheless, if the provider reported it. `final` forbids a retry
    that the kind would allow. `reported` means that only an agent's own output says so.
    """

    exit_code = 4

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        sent: bool = True,
        usage: Usage | None = None,
        final: bool = False,
        reported: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind, self.sent, self.final, self.reported = kind, sent, final, reported
        self.status, self.retry_after, self.usage = status, retry_after, usage

    def redacted(self, redact: Callable[[str], str]) -> CallError:
        """Return the error with its message changed by `redact`."""
        self.args = (redact(str(self)),)
        return self

    @property
    def recorded_kind(self) -> str:
        """The kind as records have it, with a prefix for a failure that an agent reported."""
        return f"{REPORTED}{self.kind}" if self.reported else self.kind

    @property
    def perhaps_paid(self) -> bool:
        """Whether the provider may have charged for a reply that did not arrive."""
        return self.sent and self.status is None and self.kind in UNSURE

    @property
    def retryable(self) -> bool:
        """Whether the same call can succeed later, and soon enough to wait for it."""
        soon = (self.retry_after or 0.0) <= LONGEST_WAIT
        return self.kind in RETRYABLE and soon and not self.final


def address_hint(error: CallError, url: str, *, versioned: bool) -> str:
    """Return what to check about an address after an error that a wrong one would cause.

    `versioned` says that servers of this kind usually have /v1 in their address.

    >>> refused = CallError("connection", "Cannot connect.", sent=False)
    >>> address_hint(refused, "http://127.0.0.1:8000/v1/chat/completions", versioned=True)
    'Is http://127.0.0.1:8000 right, and is the server running?'
    """
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc}"
    if error.kind == "connection" and not error.sent:
        return f"Is {place} right, and is the server running?"
    if error.kind not in {"not_found", "malformed"}:
        return ""
    if versioned and not _VERSION.search(parts.path):
        return f"{url} was called. Does base_url lack /v1?"
    return f"{url} was called. Check base_url and the name of the model."


def malformed(what: str) -> CallError:
    """Return the error for a body that does not have the documented format."""
    return CallError("malformed", f"The response cannot be understood: {what}")


def too_large(limit: int) -> CallError:
    """Return the error for a body of more than `limit` bytes."""
    size = f"{limit / 1024 / 1024:.3g} MB"
    text = f"The response is larger than {size}, the limit for this request; it was dropped."
    return CallError("too_large", text)


def from_status(
    status: int, headers: Mapping[str, str], detail: str, code: str = "", wait: float | None = None
) -> CallError:
    """Return the error for an HTTP status; `code` is the provider's own error code."""
    kind = _kind(status, f"{code} {detail}".lower() if status < 500 else "")
    said = shorten(detail)
    reason = f": {said}{'' if said.endswith(('.', '!', '?', '…')) else '.'}" if said else "."
    wait = retry_after(headers) if wait is None else wait
    if kind in RETRYABLE and wait is not None and wait > LONGEST_WAIT:
        reason = f"{reason.rstrip('.')}. It asks to wait {wait:,.0f} s, which is too long."
    message = f"{_MESSAGES[kind]} (HTTP {status}){reason}"
    return CallError(kind, message, status=status, retry_after=wait)


def _kind(status: int, words: str) -> Kind:
    for kind, signs in _WORDS:
        if status == 429 and kind != "quota":
            continue  # "too many tokens" a minute passes by itself
        if any(sign in words for sign in signs):
            return kind
    return _STATUS.get(status, "server" if status >= 500 else "bad_request")


def shorten(text: str) -> str:
    r"""Shorten a foreign text so that it fits on a line of a log; of a web page, keep the words.

    >>> shorten("two\n lines")
    'two lines'
    >>> shorten("<!doctype html><title>Oops</title><style>p{}</style><h1>Bad gateway</h1> nginx")
    'Oops: Bad gateway nginx (a web page)'
    """
    if _PAGE.match(text):
        return page_words(text)
    flat = " ".join(text[: MAX_SHOWN_CHARACTERS * 4].split())
    return flat if len(flat) <= MAX_SHOWN_CHARACTERS else f"{flat[:MAX_SHOWN_CHARACTERS]}…"


def page_words(page: str) -> str:
    """Return the title and the first words of an HTML page: a proxy's answer, not a model's."""
    from html import unescape  # noqa: PLC0415 - few runs meet a page

    page = page[:MAX_PAGE_CHARACTERS]
    title = _TITLE.search(page)
    body = _TAGS.sub(" ", _HIDDEN.sub(" ", page[title.end() :] if title else page))
    heading = " ".join(unescape(_TAGS.sub(" ", title[1])).split()) if title else ""
    words = " ".join(unescape(body).split())
    if words.startswith(heading):  # many pages repeat their title
        words = words.removeprefix(heading).strip()
    said = ": ".join(filter(None, (heading, words)))
    cut = f"{said[:MAX_PAGE_WORDS]}…" if len(said) > MAX_PAGE_WORDS else said
    return f"{cut} (a web page)".strip()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the seconds to wait from `retry-after-ms` or `Retry-After` (seconds or a date).

    >>> retry_after({"retry-after": "2.5"})
    2.5
    >>> retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})
    0.0
    """
    named = {name.lower(): value for name, value in headers.items()}
    milliseconds = _seconds(named.get("retry-after-ms", ""))
    return _seconds(named.get("retry-after", "")) if milliseconds is None else milliseconds / 1000


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return _until(text)
    return max(0.0, value) if math.isfinite(value) else None


def _until(date: str) -> float | None:
    try:
        when = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def read_error(body: bytes) -> tuple[dict[str, Any], str]:
    """Return the error object in a body, and the text to show if there is none."""
    text = body.decode(json.detect_encoding(body), "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}, text
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return {}, text
    error = value.get("error", value)
    if isinstance(error, dict):
        return error, str(error.get("message") or error.get("detail") or text)
    return {}, str(error)


P = ParamSpec("P")
R = TypeVar("R")


def total(spent: Callable[[Any], Usage]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Convert every exception that a malformed body causes in a decoder into a CallError.

    `spent` reads the usage in the body, which is billed in any case. A malformed body that was paid
    for is not requested again.
    """

    def decorate(decode: Callable[P, R]) -> Callable[P, R]:
        @wraps(decode)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return decode(*args, **kwargs)
            except CallError as wrong:
                failed = wrong
            except _MISSHAPEN as wrong:
                reason = shorten(f"{type(wrong).__name__}: {wrong}")
                failed = malformed(f"it does not have the documented shape ({reason}).")
            failed.usage = _paid(spent, args[0])
            if failed.kind == "malformed":
                failed.final = failed.usage is not None
            raise failed

        return guarded

    return decorate


_MISSHAPEN = (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError)


def _paid(spent: Callable[[Any], Usage], body: Any) -> Usage | None:
    """Read the usage of a body that is not a reply; None if it does not report any."""
    try:
        usage = spent(body)
    except _MISSHAPEN:
        return None
    return usage if usage.prompt_tokens or usage.completion_tokens else None
