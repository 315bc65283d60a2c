"""Pages of records: the database filters, sorts and stops at the end of the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import Select, and_, func, select

from pennyweight.record import KEY, AttemptKey
from pennyweight.store.cells import check_column, checked
from pennyweight.store.read_connection import fetch, reading
from pennyweight.store.store import Store
from pennyweight.store.tables import INDEX_ORDER, JUDGMENT, MEASURED, RECORD, SCENARIO, VERDICT
from pennyweight.store.verdicts import BehaviourVerdict, scenario_text

ORDER = INDEX_ORDER[1:]
"""The columns by which the records of a run are ordered: pages follow the index."""
TEXT_FILTERS = ("status", "subject", "tier", "category", "capability", "task_id", "answer")
"""Columns that a filter can compare with a text."""
LIST_FILTERS = ("answer",)
"""Columns that a filter can compare with several texts, or with null."""
RANGES = tuple(
    c.name for c in MEASURED.c if c.name not in KEY and c.type.python_type in {int, float}
)
"""Measures that a filter can restrict to a range: `low <= value < high`."""
RESULT = "result"
"""Whether the answer is correct or, without a target, whether the attempt passed."""
FLAGS = (RESULT, "correct", "passed", "truncated", "self_correcting")
LISTED_CHARACTERS = 240
"""The length to which texts are cut in a list."""

SORTS = (*RANGES, *FLAGS, *(n for n in TEXT_FILTERS if n != "task_id"), "attempt")
"""Columns that records can be sorted by."""
_ON = tuple(f"m.{n} = r.{n}" for n in INDEX_ORDER)

Place = tuple[Any, ...]
"""The values of `ORDER`, preceded by the value that records are sorted by, if there is one."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records to select."""

    same: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, bool | None] = field(default_factory=dict)
    """None selects the records in which the flag is not null."""
    ranges: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    text: str = ""
    among: Mapping[str, Sequence[str | None]] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        """Whether the filter reads measures."""
        return bool(self.flags or self.ranges or self.among or "answer" in self.same)


@dataclass(frozen=True, slots=True)
class Sort:
    """The measure that records are sorted by. Ties are sorted by key; nulls come last."""

    name: str
    down: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page of records by column, and whether there are more before and after it."""

    columns: Mapping[str, Sequence[Any]]
    before: bool
    after: bool

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The records, each as a dict."""
        names = tuple(self.columns)
        held = zip(*self.columns.values(), strict=True)
        return [dict(zip(names, row, strict=True)) for row in held]


def page(
    store: Store,
    run: str,
    wanted: Filter,
    *,
    after: Place | None = None,
    before: Place | None = None,
    last: bool = False,
    limit: int = 50,
    sort: Sort | None = None,
    columns: frozenset[str] | None = None,
) -> Page:
    """Read the records after a place, before one, the first or the last.

    A place is the values of `ORDER`, preceded by the sort value if records are sorted. In the order
    of the index, a page is found by the index. Sorted by a measure, it is found by reading that
    measure of the whole run, which is narrow, and then only the records of the page.
    """
    back = last or before is not None
    edge = before if back else after
    narrow = sort is not None or wanted.measured
    where, values = _conditions(run, wanted, lite=_lite(store), narrow=narrow)
    read = _columns(columns)
    if sort is None:
        key = [f"{'m' if narrow else 'r'}.{n}" for n in ORDER]
        if edge is not None:
            where.append(f"({', '.join(key)}) {'<' if back else '>'} ({_marks(values, edge)})")
        order = ", ".join(f"{n}{' DESC' if back else ''}" for n in key)
        query = (  # only known names are in it, every value is bound
            f"SELECT {', '.join(read)} FROM {_tables(narrow=narrow)} WHERE {' AND '.join(where)} "  # noqa: S608
            f"ORDER BY {order} LIMIT {limit + 1:d}"
        )
    else:
        if edge is not None:
            where.append(_beyond(sort, edge, values, back=back))
        name = known_name(sort.name, SORTS)
        read = {**read, f"{_value(name)} AS {name}": name}
        query = _sorted(sort, where, read, back=back, text=bool(wanted.text), limit=limit + 1)
    found = fetch(store, query, values)
    more = len(found) > limit
    found = found[limit - 1 :: -1] if back else found[:limit]
    held = _held(tuple(read.values()), found)
    return Page(held, more, before is not None) if back else Page(held, after is not None, more)


def _sorted(
    sort: Sort, where: Sequence[str], columns: Iterable[str], *, back: bool, text: bool, limit: int
) -> str:
    """Return SQL that sorts the keys alone and then reads the records that remain."""
    down = " DESC" if sort.down != back else ""
    name, turn = known_name(sort.name, SORTS), " DESC" if back else ""
    value = _value(name)
    ends = [f"({value} IS NULL){turn}", f"{value}{down}", *(f"m.{n}{turn}" for n in ORDER)]
    order = ", ".join(ends)
    tables = _tables(narrow=True) if text else f"{MEASURED.name} m"
    on = [c for c in where if text or c not in _ON]
    chosen = ", ".join(f"m.{n} AS {n}" for n in INDEX_ORDER)
    inner = (
        f"SELECT {chosen} FROM {tables} WHERE {' AND '.join(on)} "  # noqa: S608
        f"ORDER BY {order} LIMIT {limit:d}"
    )
    same = " AND ".join([*(f"m.{n} = k.{n}" for n in INDEX_ORDER), *_ON])
    return (  # the value that it is sorted by takes the place of the record's own
        f"SELECT {', '.join(columns)} FROM ({inner}) k CROSS JOIN {_tables(narrow=True)} "  # noqa: S608
        f"WHERE {same} ORDER BY {order}"
    )


def _beyond(sort: Sort, edge: Place, values: dict[str, Any], *, back: bool) -> str:
    """Return the condition that a record comes after a place, or before it."""
    value, *key = edge
    column = _value(known_name(sort.name, SORTS))
    tie = f"({', '.join(f'm.{n}' for n in ORDER)}) {'<' if back else '>'} ({_marks(values, key)})"
    if value is None:
        return f"({column} IS NOT NULL OR {tie})" if back else f"({column} IS NULL AND {tie})"
    values["edge"] = value
    sign = "<" if sort.down != back else ">"
    missing = "" if back else f" OR {column} IS NULL"
    return f"({column} {sign} :edge OR ({column} = :edge AND {tie}){missing})"


def _marks(values: dict[str, Any], key: Sequence[Any]) -> str:
    values |= {f"k{i}": part for i, part in enumerate(key)}
    return ", ".join(f":k{i}" for i in range(len(ORDER)))


def _held(names: Sequence[str], found: Sequence[Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Name the columns of the rows; SQLite stores booleans as numbers."""
    cells = zip(*found, strict=True) if found else [()] * len(names)
    held: dict[str, Sequence[Any]] = dict(zip(names, cells, strict=True))
    for name in held.keys() & FLAGS:
        held[name] = [None if value is None else bool(value) for value in held[name]]
    for name in held.keys() - {*FLAGS}:
        check_column(MEASURED if name in MEASURED.c else RECORD, name, held[name])
    return held


def count(store: Store, run: str, wanted: Filter, most: int = 10_000) -> int:
    """Count records, up to one more than `most`."""
    narrow = wanted.measured
    where, values = _conditions(run, wanted, lite=_lite(store), narrow=narrow)
    tables = _tables(narrow=narrow)
    inner = f"SELECT 1 FROM {tables} WHERE {' AND '.join(where)} LIMIT {most + 1:d}"  # noqa: S608
    query = f"SELECT count(*) FROM ({inner}) AS found"  # noqa: S608
    return int(fetch(store, query, values)[0][0])


def _lite(store: Store) -> bool:
    return store.engine.dialect.name == "sqlite"


def _tables(*, narrow: bool) -> str:
    """Join records and measures. CROSS JOIN keeps SQLite from scanning the wide table."""
    if narrow:
        return f"{MEASURED.name} m CROSS JOIN {RECORD.name} r"
    return f"{RECORD.name} r LEFT JOIN {MEASURED.name} m ON {' AND '.join(_ON)}"


@cache
def _columns(wanted: frozenset[str] | None = None) -> Mapping[str, str]:
    """Return the SQL of the columns to read: key, outcome, and all others or those wanted."""
    plain = ("status", "category", "capability", "finish", "prompt_tokens", "completion_tokens",
             "latency_ms", "cost_usd")  # fmt: skip
    texts = ("input", "target", "response", "error")
    own = [c for c in MEASURED.c.keys() if c not in {*KEY, *plain}]  # noqa: SIM118
    found = {f"r.{n}": n for n in (*ORDER, *plain)}
    found |= {f"substr(r.{n}, 1, {LISTED_CHARACTERS}) AS {n}": n for n in texts}
    found |= {f"m.{n}": n for n in own}
    needed = {*ORDER, "status", "error", "correct", "passed"}
    return {text: n for text, n in found.items() if wanted is None or n in needed or n in wanted}


def _conditions(
    run: str, wanted: Filter, *, lite: bool, narrow: bool
) -> tuple[list[str], dict[str, Any]]:
    """Return the conditions of a filter and their values; `narrow` scans the table of measures."""
    outer = "m" if narrow else "r"
    where, values = [f"{outer}.run = :run"], {"run": run}
    if narrow:
        where += _ON
    parts: dict[str, Any] = values
    for index, (name, value) in enumerate(wanted.same.items()):
        where.append(f"{outer}.{known_name(name, TEXT_FILTERS)} = :s{index}")
        parts[f"s{index}"] = value
    for name, flag in wanted.flags.items():
        true = _value(known_name(name, FLAGS))
        if flag is None:
            where.append(f"{true} IS NOT NULL")
        else:
            value = f"= {1 if flag else 0}" if lite else f"IS {str(flag).upper()}"
            where.append(f"{true} {value}")
    for name, texts in wanted.among.items():
        column = f"m.{known_name(name, LIST_FILTERS)}"
        marks = [f":{name}{i}" for i, value in enumerate(texts) if value is not None]
        either = [f"{column} IS NULL"] if None in texts else []
        either += [f"{column} IN ({', '.join(marks)})"] if marks else []
        where.append(f"({' OR '.join(either) or '1 = 0'})")
        parts |= {f"{name}{i}": value for i, value in enumerate(texts) if value is not None}
    for index, (name, (low, high)) in enumerate(wanted.ranges.items()):
        if low is not None:
            where.append(f"m.{known_name(name, RANGES)} >= :l{index}")
            parts[f"l{index}"] = low
        if high is not None:
            where.append(f"m.{known_name(name, RANGES)} < :h{index}")
            parts[f"h{index}"] = high
    if wanted.text:
        like = "LIKE" if lite else "ILIKE"
        fields = ("input", "response", "reasoning", "task_id", "error")
        where.append("(" + " OR ".join(f"r.{n} {like} :text ESCAPE '!'" for n in fields) + ")")
        plain = re.sub("([!%_])", r"!\1", wanted.text)
        parts["text"] = f"%{plain}%"
    return where, parts


def _value(name: str) -> str:
    """Return the SQL of a measure, or of the measures it combines."""
    return "coalesce(m.correct, m.passed)" if name == RESULT else f"m.{name}"


def known_name(name: str, names: Sequence[str]) -> str:
    """Keep everything but known names out of a query."""
    if name not in names:
        raise KeyError(name)
    return name


def record(store: Store, key: AttemptKey) -> dict[str, Any] | None:
    """Read one record in full."""
    found = _rows(store, select(RECORD).where(*_at(RECORD, key)))
    return checked(RECORD, found[0]) if found else None


def value(store: Store, key: AttemptKey, name: str) -> Any:
    """Read one measure of a record."""
    both = func.coalesce(MEASURED.c.correct, MEASURED.c.passed)
    column = both if known_name(name, SORTS) == RESULT else MEASURED.c[name]
    return _scalar(store, select(column).where(*_at(MEASURED, key)))


def _at(table: Any, key: AttemptKey) -> list[Any]:
    return [table.c[name] == value for name, value in zip(KEY, key, strict=True)]


def _rows(store: Store, query: Select[Any]) -> list[dict[str, Any]]:
    with reading(store) as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


def _scalar(store: Store, query: Select[Any]) -> Any:
    with reading(store) as connection:
        return connection.scalar(query)


def siblings(
    store: Store,
    run: str,
    task: str,
    chosen: Mapping[str, str] | None = None,
    *,
    limit: int = 200,
    longest: int = 4_000,
) -> list[dict[str, Any]]:
    """Read the attempts at a task with their measures, restricted to the `chosen` column values.

    Texts are cut to `longest` characters; `length` is the full length of the response.
    """
    c = RECORD.c
    on = [MEASURED.c[n] == c[n] for n in KEY]
    texts = [func.substr(c[n], 1, longest).label(n) for n in ("response", "error")]
    same = [c[known_name(n, TEXT_FILTERS)] == value for n, value in (chosen or {}).items()]
    query = (
        select(*(c[n] for n in (*ORDER, "status", "latency_ms", "cost_usd")), *texts)
        .add_columns(*(MEASURED.c[n] for n in ("answer", "correct", "passed", "total_tokens")))
        .add_columns(func.length(c.response).label("length"))
        .select_from(RECORD.outerjoin(MEASURED, and_(*on)))
        .where(c.run == run, c.task_id == task, *same)
        .order_by(c.subject, c.tier, c.attempt)
        .limit(limit)
    )
    return _rows(store, query)


def extras(store: Store, run: str, limit: int = 20) -> list[str]:
    """Read the further columns of tasks in the first records of a run, as JSON."""
    c = RECORD.c
    query = select(c.extra).where(c.run == run).limit(limit)
    return [str(row["extra"]) for row in _rows(store, query) if row["extra"]]


def judgments(store: Store, key: AttemptKey) -> list[dict[str, Any]]:
    """Read the judgments of a record."""
    query = select(JUDGMENT).where(*_at(JUDGMENT, key))
    rows = _rows(store, query.order_by(JUDGMENT.c.judge, JUDGMENT.c.at))
    return [checked(JUDGMENT, row) for row in rows]


def scenario(store: Store, run: str, task: str) -> str | None:
    """Read the scenario of a task, as JSON."""
    query = select(SCENARIO.c.scenario).where(SCENARIO.c.run == run, SCENARIO.c.task_id == task)
    found = _scalar(store, query)
    return None if found is None else scenario_text(found)


def verdicts(store: Store, key: AttemptKey) -> list[BehaviourVerdict]:
    """Read the verdicts about a record's behaviours."""
    query = select(VERDICT).where(*_at(VERDICT, key))
    return [BehaviourVerdict.of(row) for row in _rows(store, query)]


def total(store: Store, run: str) -> int:
    """Count the records of a run, using the index only."""
    query = select(func.count()).select_from(RECORD).where(RECORD.c.run == run)
    return int(_scalar(store, query) or 0)


def distinct(store: Store, run: str, name: str, most: int = 100) -> list[str]:
    """List the values of a column of the measures."""
    column = MEASURED.c[known_name(name, TEXT_FILTERS)]
    query = select(column).where(MEASURED.c.run == run, column.is_not(None)).distinct().limit(most)
    return sorted(str(row[name]) for row in _rows(store, query))
