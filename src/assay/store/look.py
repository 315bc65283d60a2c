"""Look at records a page at a time: the database filters, orders and stops."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, insert, select, text

from assay.store.connect import guarded
from assay.store.insert import insert as insert_rows
from assay.store.store import RUN_COLUMNS, Run, now
from assay.store.tables import (
    CALL,
    DIGEST,
    JUDGMENT,
    MEASURED,
    RECORD,
    REMARK,
    RUN,
    SCENARIO,
    VERDICT,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from assay.store.store import Store

KEY = ("task_id", "subject", "tier", "attempt")
SAME = ("status", "subject", "tier", "category", "capability", "task_id", "answer")
"""Columns that a filter can ask to be equal to a text."""
RANGES = tuple(
    c.name for c in MEASURED.c if c.name not in {"run", *KEY} and c.type.python_type in {int, float}
)
"""Measures that a filter can ask to lie in a range; the low end counts, the high end does not."""
FLAGS = ("correct", "passed", "truncated", "self_correcting")
SHORT = 240
"""Characters of a text that a list needs."""
BATCH = 2_000
"""Rows that are written in one transaction, so that no run waits for long."""

Key = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records are wanted."""

    same: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    text: str = ""

    @property
    def measured(self) -> bool:
        """Whether the measures are needed to decide."""
        return bool(self.flags or self.ranges or "answer" in self.same)


@dataclass(frozen=True, slots=True)
class Page:
    """Some records, and whether there are more on either side."""

    rows: list[dict[str, Any]]
    before: bool
    after: bool


def page(
    store: Store,
    run: str,
    wanted: Filter,
    *,
    after: Key | None = None,
    before: Key | None = None,
    last: bool = False,
    limit: int = 50,
) -> Page:
    """Read the records after a key, before one, the first or the last, in the order of keys."""
    lite = _lite(store)
    where, values = _conditions(run, wanted, lite=lite)
    key = "(" + ", ".join(f"{_outer(wanted)}.{n}" for n in KEY) + ")"
    back = last or before is not None
    edge = before if back else after
    if edge is not None:
        where.append(f"{key} {'<' if back else '>'} (:k0, :k1, :k2, :k3)")
        values |= {f"k{i}": part for i, part in enumerate(edge)}
    order = ", ".join(f"{_outer(wanted)}.{n}{' DESC' if back else ''}" for n in KEY)
    query = (  # only known names are in it, every value is bound
        f"SELECT {_columns()} FROM {_tables(wanted)} WHERE {' AND '.join(where)} "  # noqa: S608
        f"ORDER BY {order} LIMIT {limit + 1:d}"
    )
    with guarded(store.address), store.engine.connect() as connection:
        rows = [_row(r) for r in connection.execute(text(query), values).mappings()]
    more = len(rows) > limit
    rows = rows[:limit]
    if back:
        rows.reverse()
        return Page(rows, more, before is not None)
    return Page(rows, after is not None, more)


def _row(found: Any) -> dict[str, Any]:
    """Make plain values; SQLite has numbers for true and false."""
    row = dict(found)
    for name in FLAGS:
        row[name] = None if row[name] is None else bool(row[name])
    return row


def count(store: Store, run: str, wanted: Filter, most: int = 10_000) -> int:
    """Count records, up to one more than `most`."""
    where, values = _conditions(run, wanted, lite=_lite(store))
    inner = f"SELECT 1 FROM {_tables(wanted)} WHERE {' AND '.join(where)} LIMIT {most + 1:d}"  # noqa: S608
    query = f"SELECT count(*) FROM ({inner}) AS found"  # noqa: S608
    with guarded(store.address), store.engine.connect() as connection:
        return int(connection.execute(text(query), values).scalar_one())


def _lite(store: Store) -> bool:
    return store.engine.dialect.name == "sqlite"


def _outer(wanted: Filter) -> str:
    """Name the table that is walked: the narrow one where measures decide."""
    return "m" if wanted.measured else "r"


def _tables(wanted: Filter) -> str:
    """Join records and measures; CROSS JOIN keeps SQLite from walking the wide table."""
    on = " AND ".join(f"m.{n} = r.{n}" for n in ("run", *KEY))
    if wanted.measured:
        return f"{MEASURED.name} m CROSS JOIN {RECORD.name} r"
    return f"{RECORD.name} r LEFT JOIN {MEASURED.name} m ON {on}"


def _columns() -> str:
    plain = ("status", "category", "capability", "finish", "prompt_tokens", "completion_tokens",
             "latency_ms", "cost_usd")  # fmt: skip
    texts = ("input", "target", "response", "error")
    own = [c for c in MEASURED.c.keys() if c not in {"run", *KEY, *plain}]  # noqa: SIM118
    return ", ".join(
        [
            *(f"r.{n}" for n in (*KEY, *plain)),
            *(f"substr(r.{n}, 1, {SHORT}) AS {n}" for n in texts),
            *(f"m.{n}" for n in own),
        ]
    )


def _conditions(run: str, wanted: Filter, *, lite: bool) -> tuple[list[str], dict[str, Any]]:
    outer = _outer(wanted)
    where, values = [f"{outer}.run = :run"], {"run": run}
    if wanted.measured:
        where += [f"m.{n} = r.{n}" for n in ("run", *KEY)]
    parts: dict[str, Any] = values
    for index, (name, value) in enumerate(wanted.same.items()):
        where.append(f"{outer}.{_known(name, SAME)} = :s{index}")
        parts[f"s{index}"] = value
    for name, flag in wanted.flags.items():
        true = f"m.{_known(name, FLAGS)}"
        where.append(f"{true} = {1 if flag else 0}" if lite else f"{true} IS {str(flag).upper()}")
    for index, (name, (low, high)) in enumerate(wanted.ranges.items()):
        if low is not None:
            where.append(f"m.{_known(name, RANGES)} >= :l{index}")
            parts[f"l{index}"] = low
        if high is not None:
            where.append(f"m.{_known(name, RANGES)} < :h{index}")
            parts[f"h{index}"] = high
    if wanted.text:
        like = "LIKE" if lite else "ILIKE"
        fields = ("input", "response", "reasoning", "task_id", "error")
        where.append("(" + " OR ".join(f"r.{n} {like} :text ESCAPE '!'" for n in fields) + ")")
        plain = re.sub("([!%_])", r"!\1", wanted.text)
        parts["text"] = f"%{plain}%"
    return where, parts


def _known(name: str, names: Sequence[str]) -> str:
    """Keep anything but known names out of a query."""
    if name not in names:
        raise KeyError(name)
    return name


def record(store: Store, run: str, key: Key) -> dict[str, Any] | None:
    """Read one record in full."""
    query = select(RECORD).where(RECORD.c.run == run, *_at(RECORD, key))
    with guarded(store.address), store.engine.connect() as connection:
        found = connection.execute(query).mappings().first()
        return dict(found) if found else None


def _at(table: Any, key: Key) -> list[Any]:
    return [table.c[name] == value for name, value in zip(KEY, key, strict=True)]


def siblings(store: Store, run: str, task: str, limit: int = 200) -> list[dict[str, Any]]:
    """Read every attempt at one task, with what was measured."""
    c = RECORD.c
    on = [MEASURED.c[n] == c[n] for n in ("run", *KEY)]
    texts = [func.substr(c[n], 1, 4_000).label(n) for n in ("response", "error")]
    query = (
        select(*(c[n] for n in (*KEY, "status", "latency_ms", "cost_usd")), *texts)
        .add_columns(*(MEASURED.c[n] for n in ("answer", "correct", "passed", "total_tokens")))
        .select_from(RECORD.outerjoin(MEASURED, on[0] & on[1] & on[2] & on[3] & on[4]))
        .where(c.run == run, c.task_id == task)
        .order_by(c.subject, c.tier, c.attempt)
        .limit(limit)
    )
    with guarded(store.address), store.engine.connect() as connection:
        return [dict(r) for r in connection.execute(query).mappings()]


def judgments(store: Store, run: str, key: Key) -> list[dict[str, Any]]:
    """Read what judges said about a record."""
    query = select(JUDGMENT).where(JUDGMENT.c.run == run, *_at(JUDGMENT, key))
    with guarded(store.address), store.engine.connect() as connection:
        ordered = query.order_by(JUDGMENT.c.judge, JUDGMENT.c.at)
        return [dict(r) for r in connection.execute(ordered).mappings()]


def scenario(store: Store, run: str, task: str) -> str | None:
    """Read what the attempts at a task are checked for."""
    query = select(SCENARIO.c.scenario).where(SCENARIO.c.run == run, SCENARIO.c.task_id == task)
    with guarded(store.address), store.engine.connect() as connection:
        found: str | None = connection.scalar(query)
        return found


def given(store: Store, run: str, key: Key) -> list[dict[str, Any]]:
    """Read the verdicts that others gave about a record."""
    columns = [c for c in VERDICT.c if c.name != "run"]
    query = select(*columns).where(VERDICT.c.run == run, *_at(VERDICT, key))
    with guarded(store.address), store.engine.connect() as connection:
        return [dict(r) for r in connection.execute(query).mappings()]


def stamp(store: Store, run: Run) -> str:
    """Mark the state of a run: it changes with every call that was written and with its rules."""
    query = select(func.max(CALL.c.id)).where(CALL.c.run == run.id)
    said = select(func.max(VERDICT.c.at), func.count()).where(VERDICT.c.run == run.id)
    with guarded(store.address), store.engine.connect() as connection:
        newest = connection.scalar(query)
        spoken = list(connection.execute(said).one())
    rules = [run.settings.get(n) for n in ("answer", "match", "confidence", "judge")]
    return json.dumps([run.status, run.ended, newest, spoken, rules], sort_keys=True)


def made(store: Store, run: str) -> int:
    """Count the records of a run, from the index alone."""
    query = select(func.count()).select_from(RECORD).where(RECORD.c.run == run)
    with guarded(store.address), store.engine.connect() as connection:
        return int(connection.scalar(query) or 0)


def keep_measured(store: Store, run: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Keep measures, some thousand rows at a time; a row that is there is replaced."""
    names = tuple(MEASURED.c.keys())
    for start in range(0, len(rows), BATCH):
        part = [tuple({**r, "run": run}.get(n) for n in names) for r in rows[start : start + BATCH]]
        with guarded(store.address), store.engine.begin() as connection:
            insert_rows(connection, MEASURED, names, part)


def keep_digest(store: Store, run: str, **values: Any) -> None:
    """Keep the digest of a run."""
    names = tuple(DIGEST.c.keys())
    row = tuple({**values, "run": run}[n] for n in names)
    with guarded(store.address), store.engine.begin() as connection:
        insert_rows(connection, DIGEST, names, [row])


def digests(store: Store) -> dict[str, dict[str, Any]]:
    """Read what is kept of each run, without the digests themselves."""
    columns = [c for c in DIGEST.c if c.name != "data"]
    with guarded(store.address), store.engine.connect() as connection:
        return {r["run"]: dict(r) for r in connection.execute(select(*columns)).mappings()}


def digest(store: Store, run: str) -> str | None:
    """Read the digest of a run."""
    query = select(DIGEST.c.data).where(DIGEST.c.run == run)
    with guarded(store.address), store.engine.connect() as connection:
        found: str | None = connection.scalar(query)
        return found


def digest_stamp(store: Store, run: str) -> str | None:
    """Read of which state of a run there is a digest."""
    query = select(DIGEST.c.stamp).where(DIGEST.c.run == run)
    with guarded(store.address), store.engine.connect() as connection:
        found: str | None = connection.scalar(query)
        return found


def run(store: Store, name: str) -> Run | None:
    """Find a run by its whole id."""
    if not store.exists:
        return None
    query = select(*RUN_COLUMNS).where(RUN.c.id == name)
    with guarded(store.address), store.engine.connect() as connection:
        row = connection.execute(query).mappings().first()
        return Run(**{**row, "settings": json.loads(row["settings"])}) if row else None


def remark(
    store: Store,
    run: str,
    key: Key | None,
    *,
    who: str,
    verdict: str | None = None,
    note: str | None = None,
    tags: Sequence[str] | None = None,
) -> None:
    """Keep what a person says about a record or a run."""
    place = dict(zip(KEY, key, strict=True)) if key else {}
    values = {
        "run": run,
        "who": who,
        "verdict": verdict,
        "note": note,
        "tags": None if tags is None else json.dumps(list(tags)),
        "at": now(),
        **place,
    }
    with guarded(store.address), store.engine.begin() as connection:
        connection.execute(insert(REMARK).values(values))


def remarks(store: Store, run: str | None = None, key: Key | None = None) -> list[dict[str, Any]]:
    """Read what people said about a record, a run, or all runs; the newest first."""
    query = select(REMARK)
    if run is not None:
        query = query.where(REMARK.c.run == run)
    query = query.where(*_at(REMARK, key)) if key else query.where(REMARK.c.task_id.is_(None))
    with guarded(store.address), store.engine.connect() as connection:
        rows = connection.execute(query.order_by(REMARK.c.id.desc())).mappings()
        return [{**r, "tags": json.loads(r["tags"]) if r["tags"] else None} for r in rows]


def distinct(store: Store, run: str, name: str, most: int = 100) -> list[str]:
    """List the values of a column, from what is measured."""
    column = MEASURED.c[_known(name, SAME)]
    query = select(column).where(MEASURED.c.run == run, column.is_not(None)).distinct().limit(most)
    with guarded(store.address), store.engine.connect() as connection:
        return sorted(str(v) for (v,) in connection.execute(query))


@dataclass(frozen=True, slots=True)
class Change:
    """A task that two sides solved to a different degree."""

    task_id: str
    first: float
    second: float


def changes(
    store: Store,
    first: tuple[str, Mapping[str, str]],
    second: tuple[str, Mapping[str, str]],
    most: int = 500,
) -> list[Change]:
    """List the tasks whose share of right answers differs between two sides, the worst first.

    A side is a run with the columns that choose some of its records.
    """
    values: dict[str, Any] = {"most": most}
    parts = []
    for letter, (run, chosen) in zip("ab", (first, second), strict=True):
        where = [f"run = :{letter}"]
        values[letter] = run
        for index, (name, value) in enumerate(chosen.items()):
            where.append(f"{_known(name, SAME)} = :{letter}{index}")
            values[f"{letter}{index}"] = value
        right = "CASE WHEN coalesce(correct, passed) THEN 1.0 ELSE 0.0 END"
        known = "coalesce(correct, passed) IS NOT NULL"
        parts.append(
            f"(SELECT task_id, avg({right}) AS share FROM {MEASURED.name} "  # noqa: S608
            f"WHERE {' AND '.join(where)} AND {known} GROUP BY task_id) {letter}"
        )
    query = (
        f"SELECT a.task_id, a.share, b.share FROM {parts[0]} JOIN {parts[1]} "  # noqa: S608
        "ON a.task_id = b.task_id WHERE a.share <> b.share "
        "ORDER BY b.share - a.share, a.task_id LIMIT :most"
    )
    with guarded(store.address), store.engine.connect() as connection:
        return [Change(*row) for row in _rows(connection, query, values)]


def _rows(connection: Connection, query: str, values: Mapping[str, Any]) -> list[Any]:
    return [tuple(row) for row in connection.execute(text(query), dict(values))]
