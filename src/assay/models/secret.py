"""Keys: they come from the environment, go into one header, and are found nowhere else."""

from __future__ import annotations

import os
import re

from assay.errors import UsageError

HIDDEN = "[key]"

SURE = 12
"""A key this long does not stand in a text by chance, so even a model's own words are cleaned of
it. A shorter one (`test`, `none`) may be an ordinary word, and is removed from errors only."""

_SECRET_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")


class Key:
    """A key and the variable it came from; it does not show its value."""

    __slots__ = ("_value", "variable")

    def __init__(self, variable: str, value: str) -> None:
        self.variable = variable
        self._value = value

    @classmethod
    def read(cls, variable: str) -> Key | None:
        """Read a key from the environment; None when it is not there."""
        value = os.environ.get(variable, "").strip()
        if not value:
            return None
        if not (value.isascii() and value.isprintable()):
            raise UsageError(
                f"The key in {variable} has characters that no key has. Copy it again."
            )
        return cls(variable, value)

    def reveal(self) -> str:
        """Give the value, for the header of a request."""
        return self._value

    def redact(self, text: str) -> str:
        """Remove the key from a text that somebody else wrote."""
        return text.replace(self._value, HIDDEN)

    def redact_body(self, body: bytes) -> bytes:
        """Remove the key from a body, unless it could be an ordinary word."""
        value = self._value.encode()
        if len(value) < SURE or value not in body:
            return body
        return body.replace(value, HIDDEN.encode())

    def __repr__(self) -> str:
        return f"Key({self.variable})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse to be pickled: a key does not travel."""
        raise TypeError("A key cannot be pickled; read it where it is needed.")


def redact_environment(text: str) -> str:
    """Remove every key of the environment: for libraries that read keys by themselves."""
    for name, value in os.environ.items():
        if len(value) >= SURE and _SECRET_NAMES.search(name.upper()):
            text = text.replace(value, HIDDEN)
    return text
