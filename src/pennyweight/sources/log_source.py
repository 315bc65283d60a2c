"""Logs of other tools as sources of records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from pennyweight.errors import InputError
from pennyweight.sources.chunks import Chunk
from pennyweight.sources.log_format import (
    PROBLEM,
    USUAL,
    Log,
    LogFormat,
    LogOptions,
    LogPart,
    Reader,
    Row,
)
from pennyweight.sources.parsing import Names, Parsed
from pennyweight.sources.source import Source
from pennyweight.text.exam import digest
from pennyweight.text.format import plural

BATCH = 2_000
"""Rows in a chunk, for formats that yield them one by one."""
BATCH_BYTES = 16 << 20
"""The most text in such a chunk, roughly."""
TOOL_PASSED = "tool_passed"
"""The column with the verdict of the tool, where answers are compared again."""
_DECIDED = ("passed", "correct", "tool", "judge_passed", "judge_scores")
"""What decides in place of the answer."""
_SCORED = frozenset({"passed", "score", "undecided"})
"""What a record has that was scored, if only by a score that decides nothing."""
_KEY = ("run", "subject", "tier", "task_id")
_NAMES = (*_KEY, "suite")
_LISTED = 5
_UNEXPECTED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What reading raises where a log has a list in place of a text, say. Tools never write that."""
_QUOTED = 200


@dataclass(slots=True)
class _Reading:
    """What the latest reading of a log found out."""

    log: Log | None = None


@dataclass(frozen=True, slots=True)
class LogSource(Source):
    """The records of one log."""

    format: LogFormat
    path: Path
    files: tuple[Path, ...]
    log_options: LogOptions = USUAL
    origin: str = ""
    may_be_empty: bool = False
    unread: tuple[str, ...] = ()
    """Files beside the log that belong to none."""
    _reading: _Reading = field(default_factory=_Reading, compare=False)

    @property
    def name(self) -> str:
        """The path of the log."""
        return str(self.path)

    def chunks(self, names: Names) -> Iterator[Chunk]:
        """Read the log in chunks; those that a format yields as parts are parsed when called."""
        wanted = None if names.all else frozenset(names)
        log = Log(self.format, self.path, self.files, self.log_options, wanted)
        self._reading.log = log
        if self.format.read is None:
            raise InputError([refusal(self.format, self.path)])
        number = 1
        attempts: Counter[tuple[Any, ...]] = Counter()
        batch: list[Row] = []
        size = 0
        for one in _read(log, self.format.read):
            if isinstance(one, LogPart):
                yield partial(_parsed_part, log, one, range(number, number + one.size))
                number += one.size
                continue
            if one.get("attempt") is None:
                key = tuple(map(_named(one).get, _KEY))
                attempts[key] += 1
                one["attempt"] = attempts[key]
            batch.append(one)
            size += sum(len(v) for v in one.values() if isinstance(v, str))
            if len(batch) >= BATCH or size > BATCH_BYTES:
                yield partial(_parsed, log, batch, range(number, number + len(batch)))
                number, batch, size = number + len(batch), [], 0
        if batch:
            yield partial(_parsed, log, batch, range(number, number + len(batch)))

    def check(self) -> None:
        """Refuse a chosen score if the latest reading found no score at all."""
        if self.format.scores and (log := self._reading.log) is not None:
            log.check_scorer()

    def notes(self) -> list[str]:
        """Say what the latest reading found out: what differs from the tool, what was left out."""
        log = self._reading.log
        if log is None:
            return []
        told = list(log.notes)
        if self.unread:
            names = ", ".join(self.unread[:_LISTED]) + (" …" if len(self.unread) > _LISTED else "")
            why = (
                "was not read, since it belongs"
                if len(self.unread) == 1
                else ("were not read, since they belong")
            )
            told.append(f"{names} {why} to no log.")
        whole = log.tally.of()
        if self.format.counts_errors and whole.errors and not self.log_options.scorer:
            both = whole.passed, whole.passed + whole.failed
            told.append(
                f"{self.format} counts errors as failures: {both[0]:,} of "
                f"{both[1] + whole.errors:,} passed ({_percent(both[0], both[1] + whole.errors)}). "
                f"Without the {plural(whole.errors, 'error')}, {both[0]:,} of {both[1]:,} passed "
                f"({_percent(*both)}); the scores here leave errors out."
            )
        for expectation in log.expectations:
            if found := expectation.difference(log.tally):
                theirs, ours = (_number(value) for value in found)
                told.append(
                    f"{self.format} reports {expectation.name} {theirs}; these records give {ours}."
                )
        return [f"{self.path.name}: {text}" for text in told]


def refusal(format_: LogFormat, path: Path) -> str:
    """Return the sentence about a log that is recognised, but not read."""
    instead = format_.refusal or "Pennyweight does not read it yet."
    return f"{path}: this is a log of {format_}. {instead}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "—"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


@contextmanager
def _expected(log: Log) -> Iterator[None]:
    """Refuse a log in one sentence if a value has a type that its format never has there."""
    try:
        yield
    except _UNEXPECTED as error:
        why = f"{type(error).__name__}: {str(error)[:_QUOTED]}"
        raise InputError([f"{log.path}: not a log as {log.format} writes it ({why})."]) from error


def _read(log: Log, read: Reader) -> Iterator[Row | LogPart]:
    with _expected(log):
        yield from read(log)


def _named(row: Row) -> Row:
    """Have what names a record as text where it is a list or a mapping."""
    for name in _NAMES:
        if isinstance(value := row.get(name), list | dict):
            row[name] = json_text(value)
    return row


def _parsed_part(log: Log, part: LogPart, numbers: Sequence[int], names: Names) -> Parsed:
    with _expected(log):
        rows = part.read()
    return _parsed(log, rows, numbers, names)


def _parsed(log: Log, rows: Sequence[Row], numbers: Sequence[int], names: Names) -> Parsed:
    problems = [(n, row[PROBLEM]) for n, row in zip(numbers, rows, strict=True) if PROBLEM in row]
    if problems:
        numbers = [n for n, row in zip(numbers, rows, strict=True) if PROBLEM not in row]
        rows = [row for row in rows if PROBLEM not in row]
    with _expected(log):
        if log.options.scorer and any(not _SCORED.isdisjoint(row) for row in rows):
            log.offer([log.options.scorer])
        log.count([_named(row) for row in rows])
        for row in rows:
            _settle(log, row)
        shapes = dict.fromkeys(map(tuple, rows))  # nearly all rows have the same keys
        seen = dict.fromkeys(chain.from_iterable(shapes))
        columns = [name for name in seen if names.all or name in names]
        by_name: dict[str, Sequence[Any]] = {}
        if len(shapes) == 1:
            by_name = dict(zip(seen, zip(*map(dict.values, rows), strict=True), strict=True))
        cells = (_column(n, by_name.get(n) or [row.get(n) for row in rows]) for n in columns)
        frame = pl.DataFrame([cell for cell in cells if cell.null_count() < len(rows)])
        places = pl.Series(numbers, dtype=pl.UInt32)
        if not frame.width:
            frame = pl.DataFrame({"tool": [log.format.name] * len(rows)})
    return Parsed(str(log.path), "record", frame, places, frozenset(seen), problems)


def _settle(log: Log, row: Row) -> None:
    """Have the tool's verdict decide, unless answers are compared with targets again."""
    row["tool"] = log.format.name
    if log.wants("task_digest") and "task_digest" not in row:  # its context may be retrieved
        asked = {name: row.get(name) for name in ("input", "choices", "target")}
        row["task_digest"] = digest(asked, version="")
    if log.options.prefix and (suite := row.get("suite")):
        task = str(row.get("task_id"))
        row["task_id"] = task if task.startswith(f"{suite}/") else f"{suite}/{task}"
    passed, target = row.get("passed"), row.get("target")
    if row.get("status") == "error":
        row |= dict.fromkeys(("passed", "correct", "impl_rate"))
    elif target is not None and log.options.rematch:
        row[TOOL_PASSED] = passed
        row |= dict.fromkeys(_DECIDED)
    elif target is not None:
        row.setdefault("correct", passed)


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    """Return a column of the one type that its values have, else as text."""
    kinds = {*map(type, values)} - {type(None)}
    with suppress(UnicodeEncodeError, OverflowError):
        if kinds == {str}:
            return pl.Series(name, values, dtype=pl.String)
        if kinds == {bool}:
            return pl.Series(name, values, dtype=pl.Boolean)
        if kinds and kinds <= {int, float}:
            finite = [None if v is None or not math.isfinite(v) else float(v) for v in values]
            return pl.Series(name, finite, dtype=pl.Float64)
    if kinds == {list} and all(isinstance(one, str) for v in values for one in v or ()):
        return pl.Series(name, values, dtype=pl.List(pl.String))
    return pl.Series(name, [_text(value) for value in values], dtype=pl.String)


def _text(value: Any) -> str | None:
    """Return a cell as text that a table can hold; nested values as JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, int | float):
        text = str(value)
    else:
        text = json_text(value)
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def json_text(value: Any) -> str:
    """Write a nested value as JSON: not-a-number and infinities as null."""
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:  # lone surrogates, integers beyond 64 bits, keys that are not text
        import json  # noqa: PLC0415

        return json.dumps(value, default=str, ensure_ascii=False)


def differing_verdicts(frame: pl.DataFrame) -> tuple[str, ...]:
    """Say how the verdicts of another tool differ from those that answers give."""
    both = frame.select(pl.col(TOOL_PASSED) == "true", pl.col("passed")).drop_nulls()
    if both.is_empty():
        return ()
    theirs, ours = (int(both[name].sum()) for name in both.columns)
    differ = int((both[TOOL_PASSED] != both["passed"]).sum())
    return (
        f"by the tool's own verdict {theirs:,} of {both.height:,} passed, by the answers "
        f"{ours:,}; they differ in {plural(differ, 'record')}.",
    )
