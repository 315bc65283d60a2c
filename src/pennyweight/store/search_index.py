"""Full-text search in the records of a run: FTS5 in SQLite, tsvector with GIN in PostgreSQL.

The index of a run is built after it ended, never while records are written. It finds candidates by
the words of a text; the text itself is then looked for in those alone. So an index may contain too
much, but what it lacks is not found: it counts only for the state of the run that it was built of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, delete, insert, select, text, update

from pennyweight.store.connection import guarded
from pennyweight.store.filters import SEARCHED, Filter, is_sqlite
from pennyweight.store.read_connection import fetch
from pennyweight.store.store import Store, now
from pennyweight.store.tables import CALL, INDEX_ORDER, RECORD, RUN, SEARCH, WORDS
from pennyweight.text.search_term import WORD_CHARACTERS, SearchTerm

MAX_CHARACTERS = 300_000
"""Of longer texts, the beginning is indexed."""
MAX_CANDIDATES = 2_000
"""Where an index finds more records, it is not combined with other filters."""
NEAR = 2_000
"""Where so many records fill a page, they are read without an index."""
BATCH = 5_000
"""Records per transaction, few enough that a run that is being written does not wait long."""
STALE_SECONDS = 3_600.0
"""After this time, an index that was begun and never finished is deleted."""
SHORT = 2
"""Beginnings of so few letters are in most records, and an index reads long to say in which."""
_APART = f"[^{WORD_CHARACTERS}]+"
"""What separates words, for PostgreSQL; letters of all scripts are part of words."""
_RULES = 3
"""Rises with `_APART`; in PostgreSQL, indexes with another number are not used."""
_KEY = ", ".join(INDEX_ORDER[1:])
_STATE = (
    f"SELECT u.status, u.ended, (SELECT max(c.id) FROM {CALL.name} c WHERE c.run = :run), "  # noqa: S608
    f"s.place, s.stamp FROM {RUN.name} u LEFT JOIN {SEARCH.name} s ON s.run = u.id "
    "AND s.stamp IS NOT NULL WHERE u.id = :run"
)


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The words of all terms in an index; `whole` takes those that may go on as whole words too.

    `exact` says that each term is one word and nothing else.
    """

    place: int
    words: str
    whole: str
    exact: bool

    @classmethod
    def of(cls, store: Store, run: str, wanted: str) -> _Lookup | None:
        """Look a text up; None if the run as it is has no index, or the text no words for it."""
        terms, lite = SearchTerm.read(wanted), is_sqlite(store)
        found = [(t, t.words() if lite or t.text.isascii() else []) for t in terms]
        begun = [w[-1] for t, w in found if w and t.kind != "phrase"]
        whole = [word for t, w in found for word in (w if t.kind == "phrase" else w[:-1])]
        if any(len(word) > SHORT for word in [*begun, *whole]):
            begun = [word for word in begun if len(word) > SHORT]
        place = _place(store, run) if begun or whole else None
        if place is None:
            return None
        quote, both, more = ('"', " AND ", "*") if lite else ("'", " & ", ":*")
        ended = [f"{quote}{word}{quote}" for word in whole]
        open_ = [f"{quote}{word}{quote}" for word in begun]
        kept = len(whole) + len(begun) == len(terms)
        exact = kept and all(w == [t.text.lower()] for t, w in found)
        words = both.join([*ended, *(word + more for word in open_)])
        return cls(place, words, both.join([*ended, *open_]), exact)

    def found(self, columns: str, *, lite: bool) -> str:
        """Return SQL for the numbers of the records that may have the text, as `n`."""
        if lite:
            table = _table(self.place)
            return f"SELECT {columns} FROM {table} WHERE {table} MATCH :words"  # noqa: S608
        where = f"place = {self.place:d} AND words @@ CAST(:words AS tsquery)"
        return f"SELECT {columns} FROM {WORDS.name} WHERE {where}"  # noqa: S608

    def reaches(self, store: Store, words: str, most: int, more: str = "") -> bool:
        """Whether the index finds at least so many records."""
        inner = f"{self.found('1', lite=is_sqlite(store))} {more} LIMIT {most:d}"
        query = f"SELECT count(*) FROM ({inner}) AS found"  # noqa: S608
        return bool(fetch(store, query, {"words": words})[0][0] >= most)


def candidates(store: Store, run: str, wanted: str) -> tuple[str, dict[str, Any]] | None:
    """Return SQL for the keys of records that may have a text, and its values.

    None if there is no index of the run as it is, or if the text has no words to look up. Also
    None for common words: a page of them is found sooner by reading records until it is full.
    """
    asked = _Lookup.of(store, run, wanted)
    if asked is None:
        return None
    # whole words are counted at once, and what begins with a word only by reading all of it
    if any(asked.reaches(store, words, MAX_CANDIDATES + 1) for words in (asked.whole, asked.words)):
        return None
    if is_sqlite(store):
        chosen = f"n IN ({asked.found('rowid', lite=True)})"
        query = f"SELECT {_KEY} FROM {WORDS.name} WHERE place = {asked.place:d} AND {chosen}"  # noqa: S608
    else:
        query = asked.found(_KEY, lite=False)
    return query, {"words": asked.words}


@dataclass(frozen=True, slots=True)
class IndexOrder:
    """Records read in the order of an index, which is the order of pages: only as many as needed.

    `where` joins the records `r` to the numbers `n` of the index and restricts them to a range.
    """

    tables: str
    where: tuple[str, ...]
    values: Mapping[str, Any]
    order: str


def in_order(
    store: Store,
    run: str,
    wanted: Filter,
    *,
    after: Sequence[Any] | None = None,
    before: Sequence[Any] | None = None,
    back: bool = False,
    page: int = 0,
) -> IndexOrder | None:
    """Return how to read the records with a text one by one; None if an index does not help.

    That is also so if other filters remain, and where a page of so many records is full soon.
    """
    asked = _Lookup.of(store, run, wanted.text) if wanted == Filter(text=wanted.text) else None
    if asked is None or not wanted.text:
        return None
    lite = is_sqlite(store)
    first = _passed(store, asked.place, after, "<=") if after else 0
    last = _passed(store, asked.place, before, "<") if before else None
    if lite and page and not back and asked.exact:
        near = f"AND rowid > {first:d} AND rowid <= {first + NEAR:d}"
        if asked.reaches(store, asked.whole, page, near):
            return None
    n, down = ("rowid", " DESC" if back else "") if lite else ("w.n", "")
    limits = [f"{n} > {first:d}", *([f"{n} <= {last:d}"] if last is not None else [])]
    where = [f"w.place = {asked.place:d}", *(f"w.{name} = r.{name}" for name in INDEX_ORDER)]
    if lite:
        inner = f"{asked.found('rowid AS n', lite=True)} AND {' AND '.join(limits)}"
        tables = f"({inner} ORDER BY rowid{down}) f CROSS JOIN {WORDS.name} w CROSS JOIN"
        where.append("w.n = f.n")
    else:
        tables = f"{WORDS.name} w CROSS JOIN"
        where += [*limits, "w.words @@ CAST(:words AS tsquery)"]
    order = f"{'f' if lite else 'w'}.n{' DESC' if back else ''}"
    return IndexOrder(f"{tables} {RECORD.name} r", tuple(where), {"words": asked.words}, order)


def _passed(store: Store, place: int, key: Sequence[Any], sign: str) -> int:
    """Return how many records of an index are before a key: they are numbered in its order."""
    named = {f"k{i}": part for i, part in enumerate(key)}
    query = (  # only known names are in it, every value is bound
        f"SELECT ({_KEY}) {sign} ({', '.join(f':{name}' for name in named)}) "  # noqa: S608
        f"FROM {WORDS.name} WHERE place = {place:d} AND n = :n"
    )
    last = f"SELECT max(n) FROM {WORDS.name} WHERE place = {place:d}"  # noqa: S608
    low, high = 0, fetch(store, last)[0][0] or 0
    while low < high:
        middle = (low + high + 1) // 2
        if fetch(store, query, {**named, "n": middle})[0][0]:
            low = middle
        else:
            high = middle - 1
    return low


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
    current = (row[3] for row in found if row[4] is not None and row[4] == _stamp(store, row[:3]))
    return next(current, None)


def _stamp(store: Store, state: tuple[Any, ...]) -> str | None:
    """Return what changes with the records of a run; None while it is running."""
    rules = () if is_sqlite(store) else (_RULES,)
    return None if state[0] == "running" else json.dumps([*state, *rules])


def _table(place: int) -> str:
    """Return the FTS5 table of an index; `place` is a number that the store gave it."""
    return f"pennyweight_words_{place:d}"


def build(store: Store, run: str, tell: Callable[[int], None] = lambda _: None) -> None:
    """Index the records of a run that has ended, unless that was done already."""
    found = fetch(store, _STATE, {"run": run})
    stamp = _stamp(store, found[0][:3]) if found else None
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
        if connection.dialect.name != "sqlite":  # so that it knows which words are common
            connection.exec_driver_sql(f"ANALYZE {WORDS.name}")


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
