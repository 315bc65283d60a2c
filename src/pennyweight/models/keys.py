"""API keys: they come from the environment, go into one header, and appear nowhere else."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable
from functools import cache, lru_cache
from typing import Any
from urllib.parse import quote

from pennyweight.errors import UsageError

HIDDEN = "[key]"

SURE = 12
"""A key of this length does not occur in a text by chance, so it is removed from replies too. A
shorter one (`test`, `none`) may be an ordinary word, and is removed from errors only."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
_HIDING = re.compile(rb"\\(?:u00[2-7]|/)")
_ESCAPE = re.compile(rb"\\(?:u00[2-7][0-9a-fA-F]|[/\\])")


class Key:
    """A key and the variable it came from. Its value is never shown."""

    __slots__ = ("_bytes", "_forms", "_value", "variable")

    def __init__(self, variable: str, value: str) -> None:
        self.variable = variable
        self._value = value
        self._forms = forms(value)
        in_json = json.dumps(value)[1:-1]
        self._bytes = tuple(form.encode() for form in dict.fromkeys((*self._forms, in_json)))

    @classmethod
    def read(cls, variable: str) -> Key | None:
        """Read a key from the environment; None if the variable is not set."""
        if not _VARIABLE.fullmatch(variable):
            raise UsageError(
                "key_env is not the name of an environment variable. Put the key itself into one, "
                "and write its name here."
            )
        value = os.environ.get(variable, "").strip()
        if not value:
            return None
        if not (value.isascii() and value.isprintable()):
            raise UsageError(
                f"The key in {variable} contains characters that keys never have. Copy it again."
            )
        return cls(variable, value)

    def reveal(self) -> str:
        """Return the value, for the header of a request."""
        return self._value

    def redact(self, text: str) -> str:
        """Remove the key from a foreign text."""
        return _without(text, self._forms)

    def redact_body(self, body: bytes) -> bytes:
        """Remove the key from a body, unless it could be an ordinary word."""
        if len(self._value) < SURE:
            return body
        if b"\0" in body:
            body = self._in_utf8(body)
        body = self._without(body)
        if b"\\" in body and _HIDING.search(body):
            plain = _ESCAPE.sub(lambda escape: _unescaped(escape[0]), body)
            cleaned = self._without(plain)
            return body if cleaned == plain else cleaned
        return body

    def _without(self, body: bytes) -> bytes:
        for form in self._bytes:
            body = body.replace(form, HIDDEN.encode())
        return body

    def _in_utf8(self, body: bytes) -> bytes:
        """Re-encode UTF-16 and UTF-32, which JSON may use, so that NULs cannot hide the key."""
        text = body.decode(json.detect_encoding(body), "replace")
        bare = text.replace("\0", "")
        return (text if self.redact(bare) == bare else bare).encode()

    def __repr__(self) -> str:
        return f"Key({self.variable})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse to be pickled."""
        raise TypeError("A key cannot be pickled; read it where it is needed.")


@lru_cache(maxsize=256)
def forms(value: str) -> tuple[str, ...]:
    """Return the forms in which a key may come back: as it is, URL-encoded, base64, hexadecimal.

    Base64 of a longer text, such as `user:key`, contains the key in one of three ways.

    >>> forms("test")
    ('test',)
    """
    if len(value) < SURE:
        return (value,)
    raw = value.encode("utf-8", "surrogateescape")
    encoded = [value, quote(raw, safe=""), raw.hex(), raw.hex().upper()]
    for before in range(3):
        whole = slice(-(-before * 4 // 3), (before + len(raw)) * 4 // 3)
        both = (b64encode, urlsafe_b64encode)
        encoded += [encode(bytes(before) + raw).decode()[whole] for encode in both]
    return tuple(dict.fromkeys(encoded))


def redact_environment(text: str, named: Collection[str] = ()) -> str:
    """Remove every key of the environment, for libraries that read keys by themselves.

    The values of the variables in `named` are removed too.
    """
    return _without(text, _secrets(named))


def redact_reply(value: Any, named: Collection[str] = ()) -> Any:
    """Remove every key of the environment from JSON that a library or a function returned."""
    secrets = _secrets(named)
    return _walk(value, lambda text: _without(text, secrets)) if secrets else value


def _secrets(named: Collection[str]) -> list[str]:
    """List the keys of the environment in every form in which they may come back, longest first."""
    secrets = {
        form
        for name, value in os.environ.items()
        if name in named or _SECRET_NAMES.search(name.upper())
        for piece in _pieces(value)
        for form in forms(piece)
    }
    return sorted(secrets, key=lambda form: (-len(form), form))


def _pieces(value: str) -> set[str]:
    """Return a value as it is, as JSON has it, and line by line, as a diff breaks it up."""
    pieces = {value, json.dumps(value)[1:-1], *(line.strip() for line in value.splitlines())}
    return {piece for piece in pieces if len(piece) >= SURE}


def _without(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


@cache
def _unescaped(escape: bytes) -> bytes:
    """Replace a JSON escape by its character, if JSON does not require the escape."""
    character = escape[1:] if len(escape) == 2 else bytes.fromhex(escape[4:].decode())
    return b"\\" + character if character in b'"\\' else character


def _walk(value: Any, redact: Callable[[str], str]) -> Any:
    """Copy JSON with every text redacted, at any depth."""
    whole = [value]
    left: list[Any] = [whole]
    while left:
        holder = left.pop()
        for place, inner in holder.items() if isinstance(holder, dict) else enumerate(holder):
            holder[place] = copy = _redacted(inner, redact)
            if isinstance(copy, dict | list):
                left.append(copy)
    return whole[0]


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    """Redact a text, or copy an object with its keys redacted; its values are processed later."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(k) if isinstance(k, str) else k: v for k, v in value.items()}
    return list(value) if isinstance(value, list | tuple) else value
