"""Digests of exams: a short hash of each part of what was asked and of how it is decided.

A digest is text such as `1 input=3f1c0a9b77e2 target=a0c4…`. It begins with the version if it names
every part, as the digest of a task in a suite does. Without a version it names only the parts that
a table has columns for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

import polars as pl

from pennyweight.text.normalize import canonical_number, is_number

VERSION = "1"
"""Begins the digests that name all parts; a change of what they contain raises it."""
SHARED = "column:"
"""Begins the names of parts that are compared only where both digests have them."""
WORDS = {
    "input": "the input",
    "turns": "the turns",
    "context": "the context",
    "choices": "the choices",
    "files": "the files",
    "tools": "the tools",
    "target": "the target",
    "behaviors": "the behaviours",
    "expected": "the expected behaviours",
    "checks": "the checks",
    "verify": "the verification",
    "pass_score": "the score that passes",
    "case": "the test case",
    "answer": "the answer rule",
    "match": "the match rule",
    "confidence": "where confidence is read",
    "scorers": "the scorers",
    "rubric": "the rubric",
    "judges": "the judges",
    "judge_names": "the judges",
}
"""The parts of digests, as sentences name them."""

_PARTS = list(WORDS)
_NOT_PLAIN = frozenset("+-.0123456789[{ \t\r\n")
"""What a text begins with that may be a number, a list or a mapping."""
_WHOLE = re.compile("[1-9][0-9]{0,17}")
_TRUTHS = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}
_NUMBER_BEGINS, _LONGEST_NUMBER = frozenset("+-.0123456789"), 400
_API_REPLY = re.compile(r'"(?:message|delta|finish_reason)"')
"""What `choices` has if it holds a provider's replies, not what a task offers."""


def part_hash(value: Any) -> str:
    """Hash one part.

    >>> part_hash(" 1,000 ") == part_hash(["1000.0"]), part_hash("a") == part_hash("A")
    (True, False)
    """
    plain = type(value) is str and (value[:1] not in _NOT_PLAIN or _WHOLE.fullmatch(value))
    text = _written(value) if plain else _canonical(value)  # most texts, quickly
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _written(text: str) -> str:
    """Write a text as any file does, whatever its lines end with and whoever wrote its truths."""
    text = text.strip().replace("\r\n", "\n")
    return _TRUTHS.get(text, text)


def _canonical(value: Any) -> str:
    """Write a value so that neither the order of its keys nor how a number is written matters."""
    if isinstance(value, str):
        text = _written(value)
        if text[:1] in {"[", "{"}:
            try:
                return _canonical(json.loads(text))
            except (ValueError, RecursionError):
                return text
        is_short = len(text) <= _LONGEST_NUMBER and text[:1] in _NUMBER_BEGINS
        return canonical_number(text.lower()) if is_short and is_number(text) else text
    if isinstance(value, list | tuple) and len(value) == 1:
        return _canonical(value[0])
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return _canonical(repr(value))
    return json.dumps(_plain(value), sort_keys=True, default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return _canonical(value)


def offered(choices: Any) -> Any:
    """Return the choices that a task offers: a list of texts; None if it is something else."""
    if isinstance(choices, str):
        if choices.lstrip()[:1] not in {"[", "{"} or _API_REPLY.search(choices):
            return None if _API_REPLY.search(choices) else choices
        try:
            choices = json.loads(choices)
        except (ValueError, RecursionError):
            return choices
    if isinstance(choices, Mapping):
        choices = choices.get("text", list(choices.values()))
    return [choices] if isinstance(choices, list) and len(choices) == 1 else choices


def digest(parts: Mapping[str, Any], version: str = VERSION) -> str | None:
    """Return the digest of these parts, without those that are missing; None if all are.

    >>> digest({"input": "2 + 2?", "target": None}, version="")
    'input=a067e2f620a7'
    """
    known = {name: value for name, value in parts.items() if value is not None}
    hashed = [f"{name}={part_hash(known[name])}" for name in sorted(known, key=_order)]
    return " ".join(filter(None, (version, *hashed))) if hashed else None


def column_digest(columns: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return the digest of the parts that columns hold, for every row."""
    parts = [_column_part(name, columns[name]) for name in sorted(columns, key=_order)]
    joined = pl.concat_str(parts, separator=" ", ignore_nulls=True)
    return pl.when(pl.any_horizontal(part.is_not_null() for part in parts)).then(joined)


def _column_part(name: str, values: pl.Expr) -> pl.Expr:
    read: Callable[[Any], Any] = offered if name == "choices" else lambda value: value

    def hashes(series: pl.Series) -> pl.Series:
        if series.null_count() == len(series):
            return pl.Series(series.name, [None], dtype=pl.String).new_from_index(0, len(series))
        if series.dtype.is_nested():
            lists = (None if one is None else sorted(map(str, one)) for one in series)
            series = pl.Series([None if one is None else json.dumps(one) for one in lists])
        known: dict[str | None, str | None] = {None: None}
        found = []
        for text in series.cast(pl.String).to_list():
            if text not in known:
                part = read(text)
                known[text] = None if part is None else f"{name}={part_hash(part)}"
            found.append(known[text])
        return pl.Series(series.name, found, dtype=pl.String)

    return values.map_batches(hashes, return_dtype=pl.String, is_elementwise=True)


@lru_cache(maxsize=1 << 16)
def parts_of(text: str) -> tuple[bool, Mapping[str, str]]:
    """Return whether a digest names all parts, and the hash of each part.

    A digest of another version says nothing.
    """
    words = text.split(" ")
    whole = "=" not in words[0]
    if whole and words[0] != VERSION:
        return False, MappingProxyType({})
    named = (word.partition("=") for word in (words[1:] if whole else words))
    return whole, MappingProxyType({name: hashed for name, _, hashed in named})


def _order(part: str) -> tuple[int, str]:
    return (_PARTS.index(part) if part in WORDS else len(_PARTS)), part


def changed_parts(a: str | None, b: str | None, ignored: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the parts in which two digests differ; what one of them does not know is no change.

    >>> changed_parts("input=1 target=2", "input=1 target=3"), changed_parts("input=1", "target=2")
    (('target',), ())
    >>> changed_parts("1 input=1", "1 input=1 checks=2")
    ('checks',)
    """
    if a is None or b is None or a == b:
        return ()
    (whole_a, parts_a), (whole_b, parts_b) = parts_of(a), parts_of(b)
    if not (parts_a and parts_b):
        return ()
    names = parts_a.keys() & parts_b.keys()
    if whole_a and whole_b:
        names |= {n for n in parts_a.keys() ^ parts_b.keys() if not n.startswith(SHARED)}
    changed = {name for name in names if parts_a.get(name) != parts_b.get(name)}
    return parts_in_order(changed.difference(ignored))


def parts_in_order(parts: Iterable[str]) -> tuple[str, ...]:
    """Return parts once each, in the order in which sentences name them."""
    return tuple(sorted(set(parts), key=_order))
