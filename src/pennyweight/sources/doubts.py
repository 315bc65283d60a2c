"""What looks wrong in the first records of a file, although it can be read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from pennyweight.record import BY_NAME
from pennyweight.sources.peek import HEAD, Peek
from pennyweight.text.extraction import MARKER, AnswerRule
from pennyweight.text.extraction import answer as found_answer

LONGEST_SECONDS = 100
"""Latencies that are all below this are hardly milliseconds: a call takes longer."""
_LISTED = 20


def doubts(path: Path, mapped: Container[str] = (), answer: str | None = None) -> Iterator[str]:
    """Yield what people should know about the columns of a file, except those that are mapped.

    `answer` is the rule that was chosen to find answers in responses.
    """
    peek = Peek.of(path)
    rows = peek.rows or tuple(_csv_rows(peek))
    if "latency" not in mapped:
        yield from _seconds(rows)
    yield from _several_answers(rows)
    if answer is None and not any(name in mapped for name in _names("response")):
        yield from _no_answers(rows)


def _csv_rows(peek: Peek) -> Iterator[Mapping[str, Any]]:
    """Yield the first rows of a CSV file, without the one that may be cut off."""
    if len(peek.columns) < 2 or "\0" in peek.text:
        return
    lines = peek.text.splitlines(keepends=True)
    whole = lines if len(peek.head) < HEAD else lines[:-1]
    try:
        yield from islice(csv.DictReader(io.StringIO("".join(whole), newline="")), _LISTED)
    except csv.Error:
        return


def _seconds(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    values = [_number(row["latency"]) for row in rows if row.get("latency") not in {None, ""}]
    known = [value for value in values if value is not None]
    if known and len(known) == len(values) and 0 < max(known) < LONGEST_SECONDS:
        yield (
            f"the values of 'latency' look like seconds (the first is {known[0]:g}), but are read "
            "as milliseconds. If they are seconds, multiply them by 1,000 in the file, or read "
            "them as the duration of attempts, without metrics of latency: --map "
            "duration_seconds=latency. If they are milliseconds: --map latency_ms=latency."
        )


def _several_answers(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        answer, target = (_first(row, name) for name in ("answer", "target"))
        if len(_list(answer)) > 1 and target not in {None, ""} and not _list(target):
            yield (
                f"the answer {str(answer)[:60]} is a list of several values, but its target "
                f"{str(target)[:40]!r} is one value, so it counts as wrong. Write the one answer, "
                "or a list as the target too."
            )
            return


def _no_answers(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    scored = [
        str(_first(row, "response"))
        for row in rows
        if _first(row, "target") is not None
        and _first(row, "response") is not None
        and all(_first(row, name) is None for name in ("answer", "correct", "passed"))
    ]
    found = pl.select(
        found_answer(pl.lit(pl.Series(scored, dtype=pl.String)), AnswerRule())
    ).to_series()
    if scored and not found.count():
        yield (
            f"no response among the first {len(scored)} has a line '{MARKER} …', and without an "
            "answer it counts as wrong. To find answers: --answer last_line, or another rule. If a "
            "response is the answer: --map answer=response."
        )


def _names(column: str) -> tuple[str, ...]:
    return (column, *BY_NAME[column].aliases)


def _first(row: Mapping[str, Any], column: str) -> Any:
    found = next((row[name] for name in _names(column) if row.get(name) is not None), None)
    return json.dumps(found) if isinstance(found, list | dict) else found


def _list(value: Any) -> list[Any]:
    try:
        read = json.loads(value) if isinstance(value, str) and value.startswith("[") else []
    except ValueError:
        return []
    return read if isinstance(read, list) else []


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
