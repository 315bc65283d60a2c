"""Filters, orders, places and keys of records, as addresses contain them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from pennyweight.api.pages.records import AttemptKey, queries, value_kind
from pennyweight.errors import NotFoundError, UsageError

PAGE_SIZE = 50
"""Records on a page."""
MAX_REPEATED = 100
"""The length to which a value of an address is remembered as it is written."""
MAX_LISTED_VALUES = 20
"""Values of a column that one filter can list."""
MAX_SEARCHED = 500
"""Characters of a text that is searched for."""
FLAG_WORDS = {"yes": True, "no": False, "known": None}
RANGE_ENDS = {"min": "from", "max": "below"}
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_KEY_FORM = "A record is identified by [task, subject, tier, attempt]."


def url(path: str, **query: Any) -> str:
    """Return an address; empty values are left out of its query."""
    given = [_pair(k, str(v)) for k, v in query.items() if v not in {None, ""}]
    return f"{path}?{'&'.join(given)}" if given else path


def _pair(name: str, value: str) -> str:
    """Write a part of a query; a page has the same short ones in many addresses."""
    short = len(value) <= MAX_REPEATED
    return _short_pair(name, value) if short else urlencode({name: value}, errors="replace")


@lru_cache(4_096)
def _short_pair(name: str, value: str) -> str:
    return urlencode({name: value}, errors="replace")


def run_url(run: str, *rest: str, **query: Any) -> str:
    """Return the address of a run's page, or of a page below it."""
    return url("/".join(["/runs", quote(run, safe=""), *rest]), **query)


def file_name(run: str) -> str:
    """Return a run's id as a part of a file name."""
    name = "".join(c for c in run if c.isascii() and (c.isalnum() or c in "-_"))[:80]
    return f"pennyweight-{name or 'run'}"


def read_sort(query: Mapping[str, str]) -> queries.Sort | None:
    """Read the column that records are sorted by."""
    name, order = query.get("sort", ""), query.get("order", "") or "up"
    if not name:
        return None
    if name not in queries.SORTS:
        raise UsageError(f"sort: {name[:40]!r} is not one of {', '.join(queries.SORTS)}.")
    if order not in {"up", "down"}:
        raise UsageError(f"order: {order[:40]!r} is neither up nor down.")
    return queries.Sort(name, order == "down")


def read_place(text: str, sort: queries.Sort | None) -> queries.Place:
    """Read a place in a list: a key, in a sorted list with the value before it."""
    if sort is None:
        return _read_order(text)
    try:
        value, *key = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise UsageError("A place has the form [value, task, subject, tier, attempt].") from None
    kind = value_kind(sort.name)
    fits = value is None or (isinstance(value, kind) and (kind is bool) == isinstance(value, bool))
    if not fits or (isinstance(value, int) and abs(value) >= 2**63):
        raise UsageError(f"A place in a list sorted by {sort.name} starts with a {sort.name}.")
    if isinstance(value, str) and not is_storable(value):
        raise NotFoundError("There is no such record.")
    return value, *_read_order(json.dumps(key))


def write_place(row: Mapping[str, Any], sort: queries.Sort | None) -> str:
    """Write the place of a record in a list."""
    if sort is None:
        return write_key(row)
    return json.dumps([row[sort.name], *(row[n] for n in queries.ORDER)], separators=(",", ":"))


def whole_number(text: str) -> int:
    """Read a small whole number of an address; 0 for anything else.

    >>> whole_number("12"), whole_number("000000001999"), whole_number("x")
    (12, 0, 0)
    """
    return int(text) if text.isdecimal() and len(text) < 7 else 0


def first_number(
    query: Mapping[str, str], rows: int, total: int | None, *, newer: bool, older: bool
) -> int | None:
    """Return the number of a page's first record in the whole list, where it is known.

    >>> first_number({"after": "…", "start": "51"}, 50, None, newer=True, older=True)
    51
    """
    if not newer:
        return 1
    if not older and total is not None:
        return total - rows + 1
    start = query.get("start", "")
    return int(start) if start.isdecimal() and len(start) < 12 else None


def read_filter(query: Mapping[str, str]) -> queries.Filter:
    """Read a filter; a value that makes no sense is an error."""
    texts = (*queries.TEXT_FILTERS, *queries.OWN_FILTERS, queries.FAILED)
    same = {n: query[n] for n in texts if query.get(n)}
    person = query.get("person", "")
    if person and person not in queries.PEOPLE:
        raise UsageError(f"person: {person[:40]!r} is not one of {', '.join(queries.PEOPLE)}.")
    flags: dict[str, bool | None] = {}
    for name in queries.FLAGS:
        if value := query.get(name):
            if value not in FLAG_WORDS:
                raise UsageError(f"{name}: {value[:40]!r} is not yes, no or known.")
            flags[name] = FLAG_WORDS[value]
    ranges: dict[str, tuple[float | None, float | None]] = {}
    for name in queries.RANGES:
        low, high = (_number(query, name, end) for end in RANGE_ENDS)
        if low is not None and high is not None and low >= high:
            raise UsageError(f"{name}: the range from {low:g} to below {high:g} is empty.")
        if (low, high) != (None, None):
            ranges[name] = (low, high)
    text = query.get("q", "")
    if len(text) > MAX_SEARCHED:
        raise UsageError(f"q: a text of at most {MAX_SEARCHED} characters can be searched for.")
    among = {n: _listed(query, f"{n}_in") for n in queries.LIST_FILTERS if query.get(f"{n}_in")}
    return queries.Filter(same, flags, ranges, text, among, person)


def listed_texts(written: str) -> list[str | None]:
    """Read a list of texts and nulls; an empty list where it is anything else."""
    try:
        read = json.loads(written)
    except (ValueError, RecursionError):
        return []
    texts = isinstance(read, list) and all(v is None or isinstance(v, str) for v in read)
    return list(read) if texts else []


def _listed(query: Mapping[str, str], name: str) -> tuple[str | None, ...]:
    texts = listed_texts(query[name])
    if not 1 <= len(texts) <= MAX_LISTED_VALUES:
        raise UsageError(
            f'{name} is a list of at most {MAX_LISTED_VALUES} texts, such as ["7", "7.0", null].'
        )
    return tuple(v for v in texts if v is None or not _lone(v))


def _number(query: Mapping[str, str], name: str, end: str) -> float | None:
    """Read a number as people type it: `1,000`, `−2`, `$0.01`."""
    text = query.get(f"{name}_{end}", "").strip()
    if not text:
        return None
    plain = text.replace("−", "-").removeprefix("$")
    plain = plain.replace(",", "") if _THOUSANDS.fullmatch(plain) else plain
    try:
        value = float(plain)
    except ValueError:
        value = math.inf
    if not abs(value) < 1e300:
        what = f"{text[:40]!r} is not a number, such as 1000, 1,000 or 0.5."
        raise UsageError(f"{name}, {RANGE_ENDS[end]}: {what}")
    return value


def write_filter(wanted: Mapping[str, Any]) -> dict[str, str]:
    """Write a filter; a range is a pair, exact to the last digit."""
    query: dict[str, str] = {}
    for name, value in wanted.items():
        if isinstance(value, tuple):
            ends = zip(RANGE_ENDS, value, strict=True)
            query |= {f"{name}_{end}": repr(v) for end, v in ends if v is not None}
        elif isinstance(value, list):
            query[name] = json.dumps(value, ensure_ascii=False)
        else:
            query[name] = str(value)
    return query


def read_key(run: str, text: str) -> AttemptKey:
    """Read the key of a record of a run."""
    task, subject, tier, attempt = _read_order(text)
    return AttemptKey(run, subject, tier, task, attempt)


def _read_order(text: str) -> tuple[str, str, str, int]:
    try:
        task, subject, tier, attempt = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise UsageError(_KEY_FORM) from None
    texts = (task, subject, tier)
    whole = isinstance(attempt, int) and not isinstance(attempt, bool) and abs(attempt) < 2**31
    if not whole or not all(isinstance(t, str) for t in texts):
        raise UsageError(_KEY_FORM)
    if not all(map(is_storable, texts)):
        raise NotFoundError("There is no such record.")
    return task, subject, tier, attempt


def write_key(row: Mapping[str, Any]) -> str:
    """Write the key of a record."""
    return json.dumps([row[n] for n in queries.ORDER], ensure_ascii=True, separators=(",", ":"))


def is_storable(text: str) -> bool:
    """Whether a store can contain a text: no null character, no unpaired surrogate."""
    return "\0" not in text and not _lone(text)


def _lone(text: str) -> bool:
    return any(0xD800 <= ord(character) <= 0xDFFF for character in text)
