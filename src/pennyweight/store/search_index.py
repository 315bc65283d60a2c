"""Full-text search in the records of a run: FTS5 in SQLite, tsvector with GIN in PostgreSQL.

The index of a run is built after it ended, never while records are written. It finds candidates by
the words of a text; the text itself is then looked for in those alone. So an index may contain too
much, but what it lacks is not found: it counts only for the state of the run that it was built of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, delete, insert, select, text, update

from pennyweight.store.connection import guarded
from pennyweight.store.filters import SEARCHED, Filter
from pennyweight.store.read_connection import fetch
from pennyweight.store.store import Store, now
from pennyweight.store.tables import CALL, INDEX_ORDER, RECORD, RUN, SEARCH, WORDS

MAX_CHARACTERS = 300_000
"""Of longer texts, the beginning is indexed."""
MAX_CANDIDATES = 2_000
"""Where an index finds more records, it is not used."""
BATCH = 5_000
"""Records per transaction, few enough that a run that is being written does not wait long."""
STALE_SECONDS = 3_600.0
"""After this time, an index that was begun and never finished is deleted."""
_WORD = re.compile(r"[^\W_]+")
_LAST_LETTER = 0x052F
"""Latin, Greek and Cyrillic: scripts that separate words by spaces."""
_APART = r"[\x01-\x2f\x3a-\x60\x7b-\x7f]+"
"""What separates words, for PostgreSQL; letters of other scripts are part of words."""
_KEY = ", ".join(INDEX_ORDER[1:])
_STATE = (
    f"SELECT u.status, u.ended, (SELECT max(c.id) FROM {CALL.name} c WHERE c.run = :run), "  # noqa: S608
    f"s.place, s.stamp FROM {RUN.name} u LEFT JOIN {SEARCH.name} s ON s.run = u.id "
    "AND s.stamp IS NOT NULL WHERE u.id = :run"
)


def indexed_words(wanted: str) -> list[str]:
    """Return the words by which an index finds a text; none if it cannot.

    A text that starts with `*` is looked for inside of words, which no index does.

    >>> indexed_words("The heat-pump's no"), indexed_words("*eedle"), indexed_words("北京")
    (['the', 'heat', 'pump', 's', 'no'], [], [])
    """
    known = all(ord(c) <= _LAST_LETTER and not 0x300 <= ord(c) < 0x370 for c in wanted)
    return _WORD.findall(wanted.lower()) if known and not wanted.startswith("*") else []


def candidates(store: Store, run: str, wanted: str) -> tuple[str, dict[str, Any]] | None:
    """Return SQL for the keys of records that may have a text, and its values.

    None if there is no index of the run as it is, or if the text has no words to look up. Also
    None for common words: a page of them is found sooner by reading records until it is full.
    """
    lite = store.engine.dialect.name == "sqlite"
    words = indexed_words(wanted)
    place = _place(store, run) if words and (lite or wanted.isascii()) else None
    if place is None:
        return None
    *whole, last = words
    if lite:
        asked = " AND ".join([*(f'"{word}"' for word in whole), f'"{last}"*'])
        inner = f"SELECT rowid FROM {_table(place)} WHERE {_table(place)} MATCH :words"  # noqa: S608
        chosen, found = f"n IN ({inner})", inner
    else:
        asked = " & ".join([*(f"'{word}'" for word in whole), f"'{last}':*"])
        chosen = "words @@ CAST(:words AS tsquery)"
        found = f"SELECT 1 FROM {WORDS.name} WHERE place = {place:d} AND {chosen}"  # noqa: S608
    query = f"SELECT {_KEY} FROM {WORDS.name} WHERE place = {place:d} AND {chosen}"  # noqa: S608
    most = f"SELECT count(*) FROM ({found} LIMIT {MAX_CANDIDATES + 1:d}) AS found"  # noqa: S608
    many = fetch(store, most, {"words": asked})[0][0]
    return (query, {"words": asked}) if many <= MAX_CANDIDATES else None


def with_index(store: Store, run: str, wanted: Filter) -> Filter:
    """Return a filter that looks its text up in the index of a run, where that is possible."""
    found = candidates(store, run, wanted.text) if wanted.text else None
    return replace(wanted, candidates=found) if found else wanted


def is_indexed(store: Store, run: str) -> bool:
    """Whether there is an index of a run as it is now."""
    return _place(store, run) is not None


def _place(store: Store, run: str) -> int | None:
    """Return the number of the index of a run as it is now."""
    found = fetch(store, _STATE, {"run": run})
    current = (row[3] for row in found if row[4] is not None and row[4] == _stamp(row[:3]))
    return next(current, None)


def _stamp(state: tuple[Any, ...]) -> str | None:
    """Return what changes with the records of a run; None while it is running."""
    return None if state[0] == "running" else json.dumps(list(state))


def _table(place: int) -> str:
    """Return the FTS5 table of an index; `place` is a number that the store gave it."""
    return f"pennyweight_words_{place:d}"


def build(store: Store, run: str, tell: Callable[[int], None] = lambda _: None) -> None:
    """Index the records of a run that has ended, unless that was done already."""
    found = fetch(store, _STATE, {"run": run})
    stamp = _stamp(found[0][:3]) if found else None
    if stamp is None or _place(store, run) is not None:
        return
    with guarded(store.address), store.engine.begin() as connection:
        _clean(connection)
        begun = insert(SEARCH).values(run=run, at=now()).returning(SEARCH.c.place)
        place = connection.execute(begun).scalar_one()
        records = _number(connection, run, place)
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(
                f"CREATE VIRTUAL TABLE {_table(place)} USING fts5(text, content='', detail=none, "
                "columnsize=0, tokenize='unicode61 remove_diacritics 0')"
            )
    for start in range(0, records, BATCH):
        with guarded(store.address), store.engine.begin() as connection:
            _fill(connection, place, start)
        tell(min(start + BATCH, records))
    with guarded(store.address), store.engine.begin() as connection:
        _forget(connection, run, but=place)
        done = update(SEARCH).where(SEARCH.c.place == place).values(stamp=stamp, at=now())
        connection.execute(done)


def _number(connection: Connection, run: str, place: int) -> int:
    """Give each record of a run a number in its index; return how many there are."""
    order = ", ".join(INDEX_ORDER[1:])
    query = (
        f"INSERT INTO {WORDS.name} (place, n, run, {order}) "  # noqa: S608
        f"SELECT {place:d}, row_number() OVER (ORDER BY {order}), run, {order} "
        f"FROM {RECORD.name} WHERE run = :run"
    )
    return connection.execute(text(query), {"run": run}).rowcount


def _fill(connection: Connection, place: int, start: int) -> None:
    """Index some of the records."""
    joined = " AND ".join(f"r.{n} = t.{n}" for n in INDEX_ORDER)
    read = " || ' ' || ".join(f"coalesce(substr(r.{n}, 1, {MAX_CHARACTERS}), '')" for n in SEARCHED)
    chosen = f"t.place = {place:d} AND t.n > {start:d} AND t.n <= {start + BATCH:d}"
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(
            f"INSERT INTO {_table(place)} (rowid, text) SELECT t.n, {read} FROM {WORDS.name} t "  # noqa: S608
            f"CROSS JOIN {RECORD.name} r WHERE {chosen} AND {joined}"
        )
        return
    # the server's own parser would take "a/b" or "x@y" for one word
    words = (  # only known names are in it
        "SELECT array_to_tsvector(coalesce(array_agg(DISTINCT left(w, 200)), '{}')) "  # noqa: S608
        f"FROM regexp_split_to_table(lower({read}), '{_APART}') w WHERE w <> ''"
    )
    connection.execute(
        text(
            f"UPDATE {WORDS.name} t SET words = ({words}) FROM {RECORD.name} r "  # noqa: S608
            f"WHERE {chosen} AND {joined}"
        )
    )


def _clean(connection: Connection) -> None:
    """Delete indexes that nobody finished."""
    c = SEARCH.c
    old = select(c.place).where(c.stamp.is_(None), c.at < now() - STALE_SECONDS)
    for (place,) in connection.execute(old).all():
        _drop(connection, place)


def drop(store: Store, run: str) -> None:
    """Delete the index of a run, before the run itself is deleted."""
    with guarded(store.address), store.engine.begin() as connection:
        _forget(connection, run)


def _forget(connection: Connection, run: str, but: int | None = None) -> None:
    """Delete the indexes of a run, except one of them."""
    places = connection.execute(select(SEARCH.c.place).where(SEARCH.c.run == run)).scalars().all()
    for place in places:
        if place != but:
            _drop(connection, place)


def _drop(connection: Connection, place: int) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {_table(place)}")
    connection.execute(delete(WORDS).where(WORDS.c.place == place))
    connection.execute(delete(SEARCH).where(SEARCH.c.place == place))
