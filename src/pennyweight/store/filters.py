"""Which records a list selects, as conditions of a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pennyweight.record import KEY
from pennyweight.store.store import Store
from pennyweight.store.tables import INDEX_ORDER, MEASURED, RECORD, REMARK
from pennyweight.text.safe import storable
from pennyweight.text.search_term import SearchTerm

ORDER = INDEX_ORDER[1:]
"""The columns by which the records of a run are ordered: pages follow the index."""
TEXT_FILTERS = ("status", "subject", "tier", "category", "capability", "task_id", "answer")
"""Columns of the measures that a filter can compare with a text."""
OWN_FILTERS = ("error_kind", "error")
"""The same, for columns that only the records have."""
FAILED = "failed"
"""Selects records by a check or an item of the rubric that they failed: `check:NAME`."""
ERROR_CHARACTERS = 600
"""How much of an error is compared."""
_BETWEEN = "\x1f"
SEARCHED = ("task_id", "input", "response", "reasoning", "error")
"""The columns in which a text is searched."""
PEOPLE = ("right", "wrong", "unsure", "any", "none", "differs")
"""What a filter can ask about people's verdicts; `differs`: from the automatic result."""
LIST_FILTERS = ("answer", "status")
"""Columns that a filter can compare with several texts, or with null."""
RANGES = tuple(
    c.name for c in MEASURED.c if c.name not in KEY and c.type.python_type in {int, float}
)
"""Measures that a filter can restrict to a range: `low <= value < high`."""
RESULT = "result"
"""Whether the attempt passed, by whatever decided it: its answer, judges, checks or a command."""
FLAGS = (RESULT, "correct", "passed", "truncated", "self_correcting")
ON = tuple(f"m.{n} = r.{n}" for n in INDEX_ORDER)
MEASURES_BESIDE = f"LEFT JOIN {MEASURED.name} m ON {' AND '.join(ON)}"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records to select."""

    same: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, bool | None] = field(default_factory=dict)
    """None selects the records in which the flag is not null."""
    ranges: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    text: str = ""
    """As `SearchTerm` reads it: each term in any of the texts that are searched."""
    among: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    person: str = ""
    """One of `PEOPLE`."""
    candidates: tuple[str, Mapping[str, Any]] | None = None
    """SQL for the keys of records that may have the text, and its values."""

    @property
    def measured(self) -> bool:
        """Whether the filter reads measures."""
        read = self.flags or self.ranges or self.among or self.same.keys() & {"answer", FAILED}
        return bool(read) or self.person == "differs"


def is_sqlite(store: Store) -> bool:
    """Whether a store is SQLite, which writes some conditions differently."""
    return store.engine.dialect.name == "sqlite"


def joined_tables(*, narrow: bool) -> str:
    """Join records and measures. CROSS JOIN keeps SQLite from scanning the wide table."""
    if narrow:
        return f"{MEASURED.name} m CROSS JOIN {RECORD.name} r"
    return f"{RECORD.name} r {MEASURES_BESIDE}"


def conditions(
    run: str, wanted: Filter, *, lite: bool, narrow: bool
) -> tuple[list[str], dict[str, Any]]:
    """Return the conditions of a filter and their values; `narrow` scans the table of measures."""
    outer = "m" if narrow else "r"
    where, parts = [f"{outer}.run = :run"], dict[str, Any](run=run)
    if narrow:
        where += ON
    if wanted.person:
        where += _people(wanted.person, outer)
    for index, (name, value) in enumerate(wanted.same.items()):
        parts[f"s{index}"] = failed_mark([value]) if name == FAILED else value
        where.append(_same(name, f":s{index}", outer, lite=lite))
    where += _flags(wanted.flags, lite=lite)
    where += [_among(name, texts, parts, lite=lite) for name, texts in wanted.among.items()]
    for index, (name, (low, high)) in enumerate(wanted.ranges.items()):
        if low is not None:
            where.append(f"m.{known_name(name, RANGES)} >= :l{index}")
            parts[f"l{index}"] = low
        if high is not None:
            where.append(f"m.{known_name(name, RANGES)} < :h{index}")
            parts[f"h{index}"] = high
    for index, term in enumerate(SearchTerm.read(wanted.text)):
        parts[f"text{index}"], pattern = term.like(), term.pattern(lite=lite)
        has = f"r.{{0}} {'LIKE' if lite else 'ILIKE'} :text{index} ESCAPE '!'"
        if pattern:
            parts[f"pattern{index}"], matches = pattern, "GLOB" if lite else "~"
            has = f"({has} AND lower(' ' || r.{{0}} || ' ') {matches} :pattern{index})"
        where.append(f"({' OR '.join(has.format(n) for n in SEARCHED)})")
    if wanted.candidates:
        keys, looked_up = wanted.candidates
        where.append(f"({', '.join(f'{outer}.{n}' for n in ORDER)}) IN ({keys})")
        parts |= looked_up
    return where, parts


def _same(name: str, value: str, outer: str, *, lite: bool) -> str:
    if name == FAILED:
        return f"{'instr' if lite else 'strpos'}(m.{FAILED}, {value}) > 0"
    if name == "error":
        return f"substr(r.error, 1, {ERROR_CHARACTERS:d}) = {value}"
    table = "r" if name in OWN_FILTERS else outer
    return f"{table}.{known_name(name, (*TEXT_FILTERS, *OWN_FILTERS))} = {value}"


def failed_mark(names: Iterable[str]) -> str:
    """Write what a record failed, so that each name can be found exactly."""
    plain = (name.replace(_BETWEEN, " ").replace("\0", "") for name in names)
    return f"{_BETWEEN}{_BETWEEN.join(plain)}{_BETWEEN}"


def _flags(flags: Mapping[str, bool | None], *, lite: bool) -> list[str]:
    where = []
    for name, flag in flags.items():
        true = value_sql(known_name(name, FLAGS))
        is_so = f"= {1 if flag else 0}" if lite else f"IS {str(flag).upper()}"
        where.append(f"{true} IS NOT NULL" if flag is None else f"{true} {is_so}")
    return where


def _among(name: str, texts: Sequence[str | None], parts: dict[str, Any], *, lite: bool) -> str:
    column = f"m.{known_name(name, LIST_FILTERS)}"
    held = texts if lite else map(storable, texts)  # SQLite has NUL as it is
    known = {f"{name}{i}": value for i, value in enumerate(held) if value is not None}
    parts |= known
    either = [f"{column} IS NULL"] if None in texts else []
    either += [f"{column} IN ({', '.join(f':{mark}' for mark in known)})"] if known else []
    return f"({' OR '.join(either) or '1 = 0'})"


SAID = f"SELECT p.verdict FROM {REMARK.name} p WHERE p.verdict IS NOT NULL AND " + " AND ".join(  # noqa: S608
    f"p.{n} = r.{n}" for n in INDEX_ORDER
)
"""The verdicts of people on a record."""


def _people(wanted: str, outer: str) -> list[str]:
    """Return the conditions on the newest verdict of people."""
    key = ", ".join(ORDER)
    newest = (  # a short list, found by an index
        f"SELECT max(id) FROM {REMARK.name} WHERE run = :run AND verdict IS NOT NULL "  # noqa: S608
        f"GROUP BY {key}"
    )
    said = f"SELECT {key} FROM {REMARK.name} WHERE id IN ({newest})"  # noqa: S608
    place = f"({', '.join(f'{outer}.{n}' for n in ORDER)})"
    if known_name(wanted, PEOPLE) == "none":
        return [f"{place} NOT IN ({said})"]
    if wanted == "differs":
        value = value_sql(RESULT)
        right, wrong = (f"{place} IN ({said} AND verdict = '{v}')" for v in ("right", "wrong"))
        return [f"{place} IN ({said})", f"(CASE WHEN {value} THEN {wrong} ELSE {right} END)",
                f"{value} IS NOT NULL"]  # fmt: skip
    return [f"{place} IN ({said}" + (")" if wanted == "any" else f" AND verdict = '{wanted}')")]


def value_sql(name: str) -> str:
    """Return the SQL of a measure, or of the measures it combines."""
    return f"m.{'passed' if name == RESULT else name}"


def known_name(name: str, names: Sequence[str]) -> str:
    """Keep everything but known names out of a query."""
    if name not in names:
        raise KeyError(name)
    return name
