"""The scores that scorers gave the records of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl
from sqlalchemy import delete, select

from pennyweight.record import KEY, KEY_IN_RUN, AttemptKey
from pennyweight.store.bulk_insert import insert
from pennyweight.store.cells import frame
from pennyweight.store.connection import guarded
from pennyweight.store.store import Store
from pennyweight.store.tables import SCORE

REQUEST = "fingerprint"
"""The column of a record that says which of its states was scored."""


@dataclass(frozen=True, slots=True)
class StoredScore:
    """What one scorer gave one attempt."""

    key: AttemptKey
    scorer: str
    mark: str
    """A hash of the scorer and of what it read."""
    request: str
    """The fingerprint of the record. The scores apply to no other."""
    given: str
    """The scores by name, as JSON."""
    error: str | None = None
    """The error that the scorer raised; then it gave no score."""


_REST = ("scorer", "mark", "request", "given", "error")


def save_scores(store: Store, scores: Iterable[StoredScore]) -> None:
    """Store scores, in place of those that the same scorer gave the same attempts before."""
    rows = [(*one.key, *(getattr(one, name) for name in _REST)) for one in scores]
    with guarded(store.address), store.engine.begin() as connection:
        insert(connection, SCORE, (*KEY, *_REST), rows)


def remove_scores(store: Store, run: str, keep: Sequence[str]) -> None:
    """Delete what scorers that are no longer in the suite gave."""
    gone = delete(SCORE).where(SCORE.c.run == run, SCORE.c.scorer.not_in(keep))
    with guarded(store.address), store.engine.begin() as connection:
        connection.execute(gone)


def remove_scores_but(store: Store, run: str, scorer: str, mark: str) -> None:
    """Delete what a scorer gave under another mark."""
    gone = delete(SCORE).where(SCORE.c.run == run, SCORE.c.scorer == scorer, SCORE.c.mark != mark)
    with guarded(store.address), store.engine.begin() as connection:
        connection.execute(gone)


def score_marks(store: Store, run: str) -> dict[tuple[AttemptKey, str], tuple[str, str]]:
    """Return the mark and the request of each stored score, by attempt and scorer.

    Errors are left out: a scorer that failed is called again.
    """
    c = SCORE.c
    query = select(*(c[name] for name in KEY), c.scorer, c.mark, c.request)
    query = query.where(c.run == run, c.error.is_(None))
    with guarded(store.address), store.engine.connect() as connection:
        rows = connection.execute(query)
        return {(AttemptKey(*row[:5]), row[5]): (row[6], row[7]) for row in rows}


def given_scores(store: Store, run: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield each scorer with what it gave, as JSON, and the error that it raised."""
    c = SCORE.c
    query = select(c.scorer, c.given, c.error).where(c.run == run)
    with guarded(store.address), store.engine.connect() as connection:
        for row in connection.execute(query.order_by(c.task_id, c.attempt)):
            yield row[0], row[1], row[2]


def record_scores(store: Store, key: AttemptKey, request: str) -> list[StoredScore]:
    """Return what each scorer gave one record."""
    at = [SCORE.c[name] == value for name, value in zip(KEY, key, strict=True)]
    query = select(*(SCORE.c[name] for name in _REST)).where(*at, SCORE.c.request == request)
    with guarded(store.address), store.engine.connect() as connection:
        rows = connection.execute(query.order_by(SCORE.c.scorer))
        return [StoredScore(key, *row) for row in rows]


def stored_scores(store: Store, run: str) -> Iterator[StoredScore]:
    """Yield what scorers gave the attempts of a run."""
    query = select(*(SCORE.c[name] for name in (*KEY, *_REST))).where(SCORE.c.run == run)
    with guarded(store.address), store.engine.connect() as connection:
        for row in connection.execute(query):
            yield StoredScore(AttemptKey(*row[:5]), *row[5:])


def scores_of(store: Store, run: str) -> pl.DataFrame:
    """Return the scores of a run, one row for each record that has any, as JSON."""
    columns = [SCORE.c[name] for name in (*KEY_IN_RUN, "request", "given")]
    query = select(*columns).where(SCORE.c.run == run).order_by(SCORE.c.scorer)
    with guarded(store.address), store.engine.connect() as connection:
        rows = frame(SCORE, columns, connection.execute(query).all())
    inner = pl.col("given").str.strip_chars(" ").str.slice(1).str.head(-1)
    joined = pl.concat_str(pl.lit("{"), pl.col("given").list.join(","), pl.lit("}"))
    return (
        rows.with_columns(inner)
        .filter(pl.col("given").str.strip_chars() != "")
        .group_by(*KEY_IN_RUN, "request", maintain_order=True)
        .agg("given")
        .select(*KEY_IN_RUN, pl.col("request").alias(REQUEST), joined.alias("scores"))
    )
