"""Pages of records: the database filters, sorts and stops at the end of the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Select, and_, case, func, select

from pennyweight.record import KEY, PERSON, AttemptKey
from pennyweight.store.cells import check_column, checked
from pennyweight.store.filters import FAILED as FAILED  # noqa: PLC0414
from pennyweight.store.filters import FLAGS as FLAGS  # noqa: PLC0414 - those who query use them
from pennyweight.store.filters import LIST_FILTERS as LIST_FILTERS  # noqa: PLC0414
from pennyweight.store.filters import (
    MEASURES_BESIDE,
    ON,
    SAID,
    conditions,
    is_sqlite,
    joined_tables,
    value_sql,
)
from pennyweight.store.filters import ORDER as ORDER  # noqa: PLC0414
from pennyweight.store.filters import OWN_FILTERS as OWN_FILTERS  # noqa: PLC0414
from pennyweight.store.filters import PEOPLE as PEOPLE  # noqa: PLC0414
from pennyweight.store.filters import RANGES as RANGES  # noqa: PLC0414
from pennyweight.store.filters import RESULT as RESULT  # noqa: PLC0414
from pennyweight.store.filters import TEXT_FILTERS as TEXT_FILTERS  # noqa: PLC0414
from pennyweight.store.filters import Filter as Filter  # noqa: PLC0414
from pennyweight.store.filters import known_name as known_name  # noqa: PLC0414
from pennyweight.store.read_connection import fetch, reading
from pennyweight.store.search_index import in_order, with_index
from pennyweight.store.store import Store
from pennyweight.store.tables import (
    INDEX_ORDER,
    JUDGMENT,
    MEASURED,
    RECORD,
    SCENARIO,
    VERDICT,
)
from pennyweight.store.verdicts import BehaviourVerdict, scenario_text

LISTED_CHARACTERS = 240
"""The length to which texts are cut in a list."""
END_PART = 6
"""Of a longer reply, the end is shown beside others: this part of what is shown."""

SORTS = (*RANGES, *FLAGS, *(n for n in TEXT_FILTERS if n != "task_id"), "attempt")
"""Columns that records can be sorted by."""

Place = tuple[Any, ...]
"""The values of `ORDER`, preceded by the value that records are sorted by, if there is one."""


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
    lead = None
    if sort is None and wanted.text:
        lead = in_order(store, run, wanted, after=after, before=before, back=back, page=limit + 1)
    wanted = wanted if lead else with_index(store, run, wanted)
    narrow = sort is not None or wanted.measured
    where, values = conditions(run, wanted, lite=is_sqlite(store), narrow=narrow)
    read = _columns(columns)
    if lead:
        tables, chosen = f"{lead.tables} {MEASURES_BESIDE}", " AND ".join([*where, *lead.where])
        values |= lead.values
        query = (  # only known names are in it, every value is bound
            f"SELECT {', '.join(read)} FROM {tables} WHERE {chosen} "  # noqa: S608
            f"ORDER BY {lead.order} LIMIT {limit + 1:d}"
        )
    elif sort is None:
        key = [f"{'m' if narrow else 'r'}.{n}" for n in ORDER]
        if edge is not None:
            where.append(f"({', '.join(key)}) {'<' if back else '>'} ({_marks(values, edge)})")
        order = ", ".join(f"{n}{' DESC' if back else ''}" for n in key)
        tables, chosen = joined_tables(narrow=narrow), " AND ".join(where)
        query = (  # only known names are in it, every value is bound
            f"SELECT {', '.join(read)} FROM {tables} WHERE {chosen} "  # noqa: S608
            f"ORDER BY {order} LIMIT {limit + 1:d}"
        )
    else:
        if edge is not None:
            where.append(_beyond(sort, edge, values, back=back))
        name = known_name(sort.name, SORTS)
        read = {**read, f"{value_sql(name)} AS {name}": name}
        own = bool(wanted.text) or not set(OWN_FILTERS).isdisjoint(wanted.same)
        query = _sorted(sort, where, read, back=back, text=own, limit=limit + 1)
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
    value = value_sql(name)
    ends = [f"({value} IS NULL){turn}", f"{value}{down}", *(f"m.{n}{turn}" for n in ORDER)]
    order = ", ".join(ends)
    tables = joined_tables(narrow=True) if text else f"{MEASURED.name} m"
    on = [c for c in where if text or c not in ON]
    chosen = ", ".join(f"m.{n} AS {n}" for n in INDEX_ORDER)
    inner = (
        f"SELECT {chosen} FROM {tables} WHERE {' AND '.join(on)} "  # noqa: S608
        f"ORDER BY {order} LIMIT {limit:d}"
    )
    same = " AND ".join([*(f"m.{n} = k.{n}" for n in INDEX_ORDER), *ON])
    return (  # the value that it is sorted by takes the place of the record's own
        f"SELECT {', '.join(columns)} FROM ({inner}) k CROSS JOIN {joined_tables(narrow=True)} "  # noqa: S608
        f"WHERE {same} ORDER BY {order}"
    )


def _beyond(sort: Sort, edge: Place, values: dict[str, Any], *, back: bool) -> str:
    """Return the condition that a record comes after a place, or before it."""
    value, *key = edge
    column = value_sql(known_name(sort.name, SORTS))
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
    for name in held.keys() - {*FLAGS, PERSON}:
        check_column(MEASURED if name in MEASURED.c else RECORD, name, held[name])
    return held


def count(store: Store, run: str, wanted: Filter, most: int = 10_000) -> int:
    """Count records, up to one more than `most`."""
    lead = in_order(store, run, wanted) if wanted.text else None
    wanted = wanted if lead else with_index(store, run, wanted)
    narrow = wanted.measured
    where, values = conditions(run, wanted, lite=is_sqlite(store), narrow=narrow)
    tables = lead.tables if lead else joined_tables(narrow=narrow)
    where, values = (
        [*where, *(lead.where if lead else ())],
        {**values, **(lead.values if lead else {})},
    )
    inner = f"SELECT 1 FROM {tables} WHERE {' AND '.join(where)} LIMIT {most + 1:d}"  # noqa: S608
    query = f"SELECT count(*) FROM ({inner}) AS found"  # noqa: S608
    return int(fetch(store, query, values)[0][0])


@cache
def _columns(wanted: frozenset[str] | None = None) -> Mapping[str, str]:
    """Return the SQL of the columns to read: key, outcome, and all others or those wanted."""
    plain = ("status", "category", "capability", "finish", "prompt_tokens", "completion_tokens",
             "latency_ms", "cost_usd", "error_kind")  # fmt: skip
    texts = ("input", "target", "response", "error")
    own = [c for c in MEASURED.c.keys() if c not in {*KEY, *plain}]  # noqa: SIM118
    found = {f"r.{n}": n for n in (*ORDER, *plain)}
    found |= {f"substr(r.{n}, 1, {LISTED_CHARACTERS}) AS {n}": n for n in texts}
    found |= {f"m.{n}": n for n in own}
    found[f"({SAID} ORDER BY p.id DESC LIMIT 1) AS {PERSON}"] = PERSON
    needed = {*ORDER, "status", "error", "correct", "passed", "impl_rate"}
    return {text: n for text, n in found.items() if wanted is None or n in needed or n in wanted}


def record(store: Store, key: AttemptKey) -> dict[str, Any] | None:
    """Read one record in full."""
    found = _rows(store, select(RECORD).where(*_at(RECORD, key)))
    return checked(RECORD, found[0]) if found else None


def value(store: Store, key: AttemptKey, name: str) -> Any:
    """Read one measure of a record."""
    column = MEASURED.c["passed" if known_name(name, SORTS) == RESULT else name]
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

    Texts are cut to `longest` characters. `length` is the full length of the response, `end` the
    end of one that is cut.
    """
    c = RECORD.c
    on = [MEASURED.c[n] == c[n] for n in KEY]
    texts = [func.substr(c[n], 1, longest).label(n) for n in ("response", "error")]
    length, tail = func.length(c.response), longest // END_PART
    if longest:
        end = func.substr(c.response, length - tail + 1)
        texts.append(case((length > longest, end), else_="").label("end"))
    wanted = [c[known_name(n, TEXT_FILTERS)] == value for n, value in (chosen or {}).items()]
    query = (
        select(*(c[n] for n in (*ORDER, "status", "latency_ms", "cost_usd")), *texts)
        .add_columns(*(MEASURED.c[n] for n in ("answer", "correct", "passed", "impl_rate")))
        .add_columns(MEASURED.c.total_tokens)
        .add_columns(length.label("length"))
        .select_from(RECORD.outerjoin(MEASURED, and_(*on)))
        .where(c.run == run, c.task_id == task, *wanted)
        .order_by(c.subject, c.tier, c.attempt)
        .limit(limit)
    )
    return _rows(store, query)


def response(store: Store, key: AttemptKey) -> str | None:
    """Read the whole response of a record."""
    found = _scalar(store, select(RECORD.c.response).where(*_at(RECORD, key)))
    return None if found is None else str(found)


def extras(store: Store, run: str, limit: int = 20) -> list[str]:
    """Read the further columns of tasks in the first records of a run, as JSON."""
    c = RECORD.c
    query = select(c.extra).where(c.run == run).limit(limit)
    return [str(row["extra"]) for row in _rows(store, query) if row["extra"]]


def has(store: Store, run: str, name: str) -> bool:
    """Tell whether any record of a run has a value in a column."""
    column = RECORD.c[known_name(name, TEXT_FILTERS)]
    query = select(1).select_from(RECORD).where(RECORD.c.run == run, column.is_not(None)).limit(1)
    return _scalar(store, query) is not None


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


def error_kinds(store: Store, run: str) -> dict[str, dict[str, int]]:
    """Count the records of a run by kind of error, for each status; without a kind, none counts."""
    c = RECORD.c
    query = select(c.status, c.error_kind, func.count().label("n"))
    query = query.where(c.run == run, c.error_kind.is_not(None)).group_by(c.status, c.error_kind)
    found: dict[str, dict[str, int]] = {}
    for row in _rows(store, query):
        found.setdefault(row["status"], {})[str(row["error_kind"])] = int(row["n"])
    return found


def total(store: Store, run: str) -> int:
    """Count the records of a run, using the index only."""
    query = select(func.count()).select_from(RECORD).where(RECORD.c.run == run)
    return int(_scalar(store, query) or 0)


def distinct(store: Store, run: str, name: str, most: int = 100) -> list[str]:
    """List the values of a column of the measures."""
    column = MEASURED.c[known_name(name, TEXT_FILTERS)]
    query = select(column).where(MEASURED.c.run == run, column.is_not(None)).distinct().limit(most)
    return sorted(str(row[name]) for row in _rows(store, query))
