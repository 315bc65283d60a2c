"""Where a subject's model is served, and the name of its key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_ADDRESS = re.compile(r"(dns\+http|https?)://[^\s/]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}(?<!\s)")


def is_address(url: str | None) -> bool:
    """Whether this looks like an address; a missing one is the provider's own."""
    return url is None or bool(_ADDRESS.match(url))


def address_problems(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the addresses and the key's name of a subject, each with its key."""
    key, urls = table.get("key_env"), table.get("base_url") or ()
    if key is not None and not _VARIABLE.fullmatch(key):
        yield (
            "key_env",
            "key_env names an environment variable, such as OUR_KEY. "
            "The key itself does not belong in a suite.",
        )
    for url in urls:
        if url.startswith("dns+https:"):
            yield (
                "base_url",
                "dns+ calls servers by their IP addresses, for which certificates are not made. "
                "Use dns+http://, or a list of https:// addresses.",
            )
        elif not is_address(url):
            yield "base_url", f"base_url must begin with http:// or https://, not {url[:40]!r}."
    if len(urls) > 1 and any(url.startswith("dns+") for url in urls):
        yield "base_url", "base_url is either a list of addresses or one that begins with dns+."
