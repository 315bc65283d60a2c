"""Convert raw cells to records: map foreign names, convert types, check every value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import polars as pl

import pennyweight.measures  # noqa: F401
from pennyweight.define import MEASURES, dtype
from pennyweight.errors import UsageError, unknown
from pennyweight.record import BY_NAME, COLUMNS, MAX_NUMBER, STATUSES, Column
from pennyweight.sources.parsing import Names, Parsed, Problem
from pennyweight.text.safe import clean, storable

LINE = "\0line"

_RAW = {
    "integer": pl.Float64,
    "number": pl.Float64,
    "strings": pl.List(pl.String),
    "numbers": pl.List(pl.Float64),
}
_TRUE, _FALSE = ["true", "1", "1.0", "yes"], ["false", "0", "0.0", "no"]
_FINE = ["success", "succeeded", "completed", "done"]
_NO_ERROR = ["", "false", "0", "none", "null", "[]", "{}", "no"]
COUNTS = frozenset(
    name
    for column in ("observed", "observed_behaviors", "violations", "violated")
    for name in (column, *BY_NAME[column].aliases)
)
"""A table with one of these columns counts behaviours; in others, `expected` is the target."""
_JOINER = "/"
_EXACT = 2**53
"""Floating-point numbers represent every whole number up to this one exactly."""


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """Which columns of a foreign table each column of the record is read from."""

    sources: Mapping[str, tuple[str, ...]]
    joined: frozenset[str]
    """Columns whose sources are joined into one key instead of taking the first with a value."""
    mapped: frozenset[str] = frozenset()
    """The columns that `--map` names."""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ColumnMapping:
        """Read `--map` entries; other columns are found by their names and aliases."""
        for column in given:
            if column not in BY_NAME:
                hint = "'pennyweight score --help' lists them."
                raise UsageError(f"--map: {unknown('Column', column, BY_NAME, hint)}")
        taken = {name for theirs in given.values() for name in theirs.split(",")}
        own = {
            c.name: tuple(n for n in (c.name, *c.aliases) if n == c.name or n not in taken)
            for c in COLUMNS
        }
        own["violated"] = (*own["violated"], *({"must_not"} - taken))
        theirs = {c: tuple(n for n in names.split(",") if n) for c, names in given.items()}
        joined = frozenset(c for c, names in theirs.items() if len(names) > 1)
        return cls({**own, **theirs}, joined, frozenset(theirs))

    def check(self, columns: Sequence[str], seen: set[str]) -> None:
        """Raise UsageError if a mapped column is missing from the sources or no column is known."""
        for column in columns:
            for name in self.sources[column] if column in self.mapped else ():
                if name not in seen:
                    message = unknown("Column", name, seen, "It is in none of the records.")
                    raise UsageError(f"--map {column}={name}: {message}")
        if not seen & {name for names in self.sources.values() for name in names}:
            raise UsageError(
                f"None of the columns is known ({_shown(', '.join(sorted(seen)))}); "
                "map them with --map COLUMN=THEIRS. 'pennyweight score --help' lists known names."
            )


@dataclass(frozen=True, slots=True)
class Converted:
    """Records in the types of the record, and the problems of those that were left out."""

    frame: pl.DataFrame
    problems: list[Problem]
    bad: int


class CellRule(NamedTuple):
    """A rule about one column: a record is invalid where `broken` is true."""

    column: str
    sources: tuple[str, ...]
    broken: pl.Expr
    rule: str


_Rules = tuple[list[pl.Expr], list[CellRule]]
"""The expressions that convert the cells of a raw table, and the rules they must meet."""


@dataclass(frozen=True, slots=True)
class RecordConverter:
    """Converts raw tables to records.

    `columns` are those of the record to return, `others` foreign ones; `everything` keeps all.
    """

    mapping: ColumnMapping
    columns: Sequence[str]
    others: Sequence[str] = ()
    everything: bool = False
    _known: dict[Any, _Rules] = field(default_factory=dict)

    @property
    def names(self) -> Names:
        """The columns to read."""
        types: dict[str, Any] = dict.fromkeys(self.others, pl.String)
        for column in self.columns:
            for name in self.mapping.sources[column]:
                raw = _RAW.get(BY_NAME[column].type, pl.String)
                types[name] = raw if types.get(name, raw) == raw else pl.String
        return Names(types, self.everything)

    @property
    def meanings(self) -> set[bool]:
        """Whether `expected` was a count in the records so far, or the target, or both."""
        return {key[0] for key in self._known if "expected" in dict(key[1:])}

    def check(self, seen: set[str], meanings: set[bool]) -> None:
        """Raise UsageError if the sources lack a mapped column, or have no column that is known."""
        if seen:
            self.mapping.check(self.columns, seen)
        if len(meanings) > 1 and not self.mapping.mapped & {"target", "expected"}:
            raise UsageError(
                "'expected' is the target in some records, and in others, which have observed "
                "behaviours, a count. Name what it is: --map target=expected or "
                "--map expected=expected."
            )

    def __call__(self, parsed: Parsed) -> Converted:
        """Convert and check records; leave out invalid ones and list their problems."""
        raw = parsed.frame
        counted = not COUNTS.isdisjoint({*parsed.present, *raw.columns})
        key = (counted, *raw.schema.items())
        cells, checks = self._known.get(key) or self._known.setdefault(
            key, self._rules(raw.schema, counted=counted)
        )
        flags = [c.broken.fill_null(value=False).alias(f"?{i}") for i, c in enumerate(checks)]
        places = parsed.numbers.alias(LINE).to_frame()
        table = places.hstack([s for s in raw if s.name != LINE]).lazy()
        frame, marks = pl.collect_all([table.select(LINE, *cells), table.select(flags)])
        problems = list(parsed.problems)
        bad = marks.select(pl.any_horizontal(pl.all())).to_series() if flags else pl.Series([False])
        count = len(problems) + int(bad.sum())
        if bad.any():
            problems += _describe(raw, frame, marks, checks)
            frame = frame.filter(~bad).rechunk()  # Polars fails on lists next to an empty chunk
        frame, found = _consistent(frame)
        return Converted(_settled(frame), sorted([*problems, *found]), count + len(found))

    def _rules(self, schema: pl.Schema, *, counted: bool) -> _Rules:
        cells: list[pl.Expr] = []
        checks: list[CellRule] = []
        used: set[str] = set()
        for name in self.columns:
            present = [n for n in self._sources(name, counted=counted) if n in schema]
            used.update(present)
            if not present:
                cells.append(pl.lit(None, dtype=dtype(name)).alias(name))
                continue
            if name in {"violations", "violated"} and name not in self.mapping.mapped:
                parts = [(_violations(name, n, schema[n]), schema[n]) for n in present]
                read = [_typed(BY_NAME[name], *part) for part in parts]
                typed = pl.coalesce(one for one, _ in read)
                rules = [rule for _, several in read for rule in several]
            else:
                cell, kind = _cell(present, schema, joined=name in self.mapping.joined)
                typed, rules = _typed(BY_NAME[name], cell, kind)
            cells.append(typed.alias(name))
            checks += [CellRule(name, tuple(present), broken, rule) for broken, rule in rules]
        taken = {*used, *self.columns, LINE}
        rest = [n for n in schema if n in self.others or (self.everything and n not in taken)]
        cells += [pl.col(n).cast(pl.String) if n in self.others else pl.col(n) for n in rest]
        absent = [n for n in self.others if n not in schema]
        cells += [pl.lit(None, dtype=pl.String).alias(n) for n in absent]
        return cells, checks

    def _sources(self, name: str, *, counted: bool) -> Sequence[str]:
        """Return the columns behind one: `expected` is a count, or the target if none observed."""
        names = self.mapping.sources[name]
        if name == "violated" and not counted and name not in self.mapping.mapped:
            return [n for n in names if n != "must_not"]  # there it says what must not be observed
        other = "target" if counted else "expected"
        ambiguous = name == other and name not in self.mapping.mapped
        return [n for n in names if n != "expected"] if ambiguous else names


def _consistent(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[Problem]]:
    """Leave out records in which two columns contradict each other."""
    problems: list[Problem] = []
    counts = [MEASURES[n].expression({}) for n in ("observed", "expected")]
    times = [pl.col("start_time"), pl.col("end_time")]
    for small, large in (counts, times):
        needed = {*small.meta.root_names(), *large.meta.root_names()}
        if needed <= set(frame.columns):
            wrong = (small > large).fill_null(value=False)
            names = small.meta.output_name(), large.meta.output_name()
            found = frame.filter(wrong).select(LINE, "task_id", small, large)
            for place, task, a, b in found.iter_rows():
                text = f"{names[0]} is {_shown(a)}, but {names[1]} is {_shown(b)}."
                problems.append((place, _named({"task_id": task}, text)))
            frame = frame.filter(~wrong)
    return (frame.rechunk() if problems else frame), problems


def _settled(frame: pl.DataFrame) -> pl.DataFrame:
    """Fill in a missing status: `error` if there is an error message, else `ok`."""
    if "status" not in frame.columns:
        return frame
    error = pl.lit(value=False)
    if "error" in frame.columns:
        message = pl.col("error").str.strip_chars().str.to_lowercase()
        error = ~message.is_in(_NO_ERROR).fill_null(value=True)
    guess = pl.when(error).then(pl.lit("error")).otherwise(pl.lit("ok"))
    return frame.with_columns(pl.coalesce("status", guess).alias("status"))


def _cell(
    present: Sequence[str], schema: pl.Schema, *, joined: bool
) -> tuple[pl.Expr, pl.DataType]:
    """Return a cell and its type: several columns joined, or the first one with a value."""
    types, texts = {schema[n] for n in present}, [pl.col(n).cast(pl.String) for n in present]
    if joined:
        return pl.concat_str(texts, separator=_JOINER), pl.String()
    if len(types) == 1:
        return pl.coalesce(present), types.pop()
    return pl.coalesce(texts), pl.String()


def _violations(name: str, source: str, kind: pl.DataType) -> pl.Expr:
    """Return a cell of `violations` or `violated`: a list under the first belongs to the second."""
    cell = pl.col(source)
    if source != "violations":
        return cell
    if kind == pl.String:
        listed = cell.str.strip_chars_start().str.starts_with("[")
        return pl.when(listed if name == "violated" else ~listed).then(cell)
    is_list = isinstance(kind, pl.List)
    return cell if is_list == (name == "violated") else pl.lit(None, dtype=kind)


Checks = list[tuple[pl.Expr, str]]


def _typed(column: Column, cell: pl.Expr, kind: pl.DataType) -> tuple[pl.Expr, Checks]:
    """Convert a cell to its type, and return the rules it must meet."""
    match column.type:
        case "string":
            return _text(column, _one_of(cell) if isinstance(kind, pl.List) else cell)
        case "integer" | "number":
            return _number(column, cell, kind)
        case "boolean":
            return _boolean(cell, kind)
        case "strings":
            return _strings(cell, kind)
        case "numbers":
            return _numbers(column, cell, kind)
        case "time":
            return _time(cell, kind)


def _one_of(cell: pl.Expr) -> pl.Expr:
    """Return the value of a list of one value; other lists as text."""
    written = pl.lit("[") + cell.cast(pl.List(pl.String)).list.join(", ") + pl.lit("]")
    one = cell.list.first().cast(pl.String)
    return pl.when(cell.list.len() == 1).then(one).otherwise(written)


def _text(column: Column, cell: pl.Expr) -> tuple[pl.Expr, Checks]:
    text = cell.cast(pl.String)
    if not column.choices:
        return text, []
    low = text.str.strip_chars().str.to_lowercase()
    known = pl.when(low.is_in(_FINE)).then(pl.lit("ok")).otherwise(low)
    known = pl.when(known != "").then(known)
    return known, [(~known.is_in(STATUSES), f"it must be one of {', '.join(column.choices)}")]


def _number(column: Column, cell: pl.Expr, kind: pl.DataType) -> tuple[pl.Expr, Checks]:
    if kind.is_numeric():
        number, checks = cell.cast(pl.Float64), []
    else:
        text = cell.cast(pl.String).str.strip_chars()
        number = text.cast(pl.Float64, strict=False)
        checks = [((text != "") & number.is_null(), "it must be a number")]
    checks.append((~number.is_finite(), "it must be a finite number"))
    checks.append((number.abs() > MAX_NUMBER, f"it must not be above {MAX_NUMBER:g}"))
    low, high = column.minimum, column.maximum
    if high is not None:
        checks.append((~number.is_between(low, high), f"it must be between {low:g} and {high:g}"))
    elif low is not None:
        checks.append((number < low, f"it must not be below {low:g}"))
    if column.type == "integer":
        checks.append((number > _EXACT, f"it must not be above {_EXACT}"))
        checks.append((number != number.floor(), "it must be a whole number"))
        number = number.cast(pl.Int64, strict=False)
    return number, checks


def _boolean(cell: pl.Expr, kind: pl.DataType) -> tuple[pl.Expr, Checks]:
    if kind == pl.Boolean:
        return cell, []
    low = cell.cast(pl.String).str.strip_chars().str.to_lowercase()
    truth = pl.when(low.is_in([*_TRUE, *_FALSE])).then(low.is_in(_TRUE))
    return truth, [((low != "") & truth.is_null(), "it must be true or false")]


def _strings(cell: pl.Expr, kind: pl.DataType) -> tuple[pl.Expr, Checks]:
    if isinstance(kind, pl.List):
        return cell.cast(pl.List(pl.String)), []
    text = cell.cast(pl.String)
    parsed = text.map_elements(_json_strings, return_dtype=pl.List(pl.String))
    return parsed, [((text != "") & parsed.is_null(), 'it must be a list such as ["greets"]')]


def _json_strings(text: str) -> list[str] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, list):
        return None
    return [v if isinstance(v, str) else json.dumps(v) for v in value]


def _numbers(column: Column, cell: pl.Expr, kind: pl.DataType) -> tuple[pl.Expr, Checks]:
    checks: Checks = []
    if isinstance(kind, pl.List) and (kind.inner is None or kind.inner.is_numeric()):
        numbers = cell.cast(pl.List(pl.Float64))
    else:
        text = cell.cast(pl.String)
        numbers = text.map_elements(_json_numbers, return_dtype=pl.List(pl.Float64))
        checks = [((text != "") & numbers.is_null(), "it must be a list such as [0.5, 0.75]")]
    low, high = column.minimum, column.maximum
    checks.append((~numbers.list.sum().is_finite(), "its numbers must be finite"))
    outside = (numbers.list.min() < low) | (numbers.list.max() > high)
    checks.append((outside, f"its numbers must be between {low:g} and {high:g}"))
    return numbers.list.drop_nulls(), checks


def _json_numbers(text: str) -> list[float] | None:
    try:
        value = json.loads(text)
        return [float(v) for v in value if v is not None] if isinstance(value, list) else None
    except (ValueError, TypeError, OverflowError):
        return None


def _time(cell: pl.Expr, kind: pl.DataType) -> tuple[pl.Expr, Checks]:
    if kind.is_numeric():
        number = cell.cast(pl.Float64)
        return number, [(~number.is_finite(), "it must be a finite number")]
    if isinstance(kind, pl.Datetime):
        return cell.dt.epoch("us") / 1_000_000, []
    text = cell.cast(pl.String).str.strip_chars()
    number = text.cast(pl.Float64, strict=False)
    written = pl.when(number.is_null() & (text != "")).then(text)
    moment = pl.coalesce(number, written.map_elements(_seconds, return_dtype=pl.Float64))
    return moment, [
        ((text != "") & moment.is_null(), "it must be Unix seconds or an ISO 8601 time"),
        (~moment.is_finite(), "it must be a finite number"),
    ]


def _seconds(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _describe(
    raw: pl.DataFrame, frame: pl.DataFrame, marks: pl.DataFrame, checks: Sequence[CellRule]
) -> list[Problem]:
    problems: dict[tuple[int, str], Problem] = {}
    for index, check in enumerate(checks):
        for row in marks[f"?{index}"].arg_true().to_list():
            source = next(n for n in check.sources if raw[n][row] is not None)
            where = f" (column {source!r})" if source != check.column else ""
            text = f"{check.column}{where} is {_shown(raw[source][row])}; {check.rule}."
            problem = (frame[LINE][row], _named(frame.row(row, named=True), text))
            problems.setdefault((row, check.column), problem)
    return list(problems.values())


def _named(row: Mapping[str, Any], text: str) -> str:
    task = row.get("task_id")
    return f"task {_shown(task)}: {text}" if task is not None else text


def _shown(value: Any) -> str:
    if isinstance(value, pl.Series):
        value = value.to_list()
    if isinstance(value, float) and abs(value) < _EXACT:
        value = int(value) if value == int(value) else value
    if isinstance(value, str):
        text = json.dumps(storable(clean(value)), ensure_ascii=False)
    else:
        text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"
