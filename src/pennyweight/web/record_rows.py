"""The addresses of the records of a table, written without `urlencode`, which is slower."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote_plus

from markupsafe import escape

_PLAIN = re.compile(r"[\w.\-]*", re.ASCII)


def record_hrefs(held: Mapping[str, Sequence[Any]], base: str) -> Iterator[str]:
    """Yield the escaped addresses of records; `base` is one without its key."""
    start = f"{escape(base)}key="
    keys = map(_key, *(held[n] for n in ("task_id", "subject", "tier", "attempt")))
    return (f"{start}{key}" for key in keys)


def _key(task: str, subject: str, tier: str, attempt: int) -> str:
    """Write a key for an address; most tasks need no escapes."""
    named = task if _PLAIN.fullmatch(task) else quote_plus(json.dumps(task)[1:-1])
    return f"%5B%22{named}%22{_side(subject, tier)}{attempt}%5D"


@lru_cache(1_024)
def _side(subject: str, tier: str) -> str:
    return quote_plus(f",{json.dumps(subject)},{json.dumps(tier)},")
