"""The queue of records for people to label, and what their labels say about a run."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import polars as pl
from sqlalchemy import select

from pennyweight.record import KEY_IN_RUN, AttemptKey
from pennyweight.scoring.labelled import AUTOMATIC, Label, LabelledRun, labelled_run
from pennyweight.scoring.pipeline import ScoreRequest, Scoring
from pennyweight.store import cache
from pennyweight.store.connection import guarded
from pennyweight.store.read_connection import fetch
from pennyweight.store.remarks import record_verdicts
from pennyweight.store.store import READ_BATCH, Store, StoredRun
from pennyweight.store.tables import JUDGMENT, MEASURED, RECORD
from pennyweight.stored_runs.source import RunSource

Draw = Literal["random", "disagreement"]
DRAWS: tuple[Draw, ...] = ("random", "disagreement")
_READ = (*KEY_IN_RUN, "status", *AUTOMATIC)


def verdict_frame(run: StoredRun, store: Store) -> pl.DataFrame:
    """Return each record's key, status and automatic verdicts; stored measures if they are new."""
    state = cache.state(store, run.id)
    if state is None or state.digest_stamp != state.stamp:
        request = ScoreRequest(list(AUTOMATIC.values()))
        sources = [RunSource(run, store)]
        frame = Scoring.of(sources, request, also=_READ).measure(sources).frame.select(_READ)
    else:
        query = f"SELECT {', '.join(_READ)} FROM {MEASURED.name} WHERE run = :run"  # noqa: S608
        frame = pl.DataFrame(
            fetch(store, query, {"run": run.id}),
            schema=dict.fromkeys(_READ, pl.String)
            | dict.fromkeys(AUTOMATIC, pl.Int8 if store.engine.dialect.name == "sqlite" else None)
            | {"attempt": pl.Int64},
            orient="row",
        )
    texts = [pl.col(n).cast(pl.String) for n in ("subject", "tier", "task_id", "status")]
    return frame.with_columns(*texts, *(pl.col(n).cast(pl.Boolean) for n in AUTOMATIC))


def drawn_records(
    run: StoredRun, store: Store, *, draw: Draw = "random", seed: int = 0, size: int = 50
) -> list[AttemptKey]:
    """Draw records for people to label; a larger size continues the same order.

    `random` draws from all records that have an automatic verdict (or a response, where no record
    has a verdict), each with the same probability. `disagreement` begins with the records where
    rule and judge, the judges, or the attempts at the task disagree most.
    """
    frame = verdict_frame(run, store)
    both = pl.coalesce(*AUTOMATIC)
    decided = frame.filter(both.is_not_null())
    frame = decided if decided.height else frame.filter(pl.col("status") == "ok")
    keys = frame.select(KEY_IN_RUN).rows()
    order = pl.Series("order", [_ticket(seed, key) for key in keys], dtype=pl.UInt64)
    frame = frame.with_columns(order)
    first: list[Any] = []
    if draw == "disagreement":
        share = both.cast(pl.Float64).mean().over("task_id")
        several = _divided(run, store)
        divided = pl.Series("divided", [key in several for key in keys], dtype=pl.Boolean)
        apart = (pl.col("correct") != pl.col("passed")).fill_null(value=False)
        frame = frame.with_columns(divided).with_columns(
            apart=apart.cast(pl.Float64)
            + pl.col("divided").cast(pl.Float64)
            + (4 * share * (1 - share)).fill_null(0.0)
        )
        first = ["apart"]
    down = [True] * len(first) + [False]
    chosen = frame.sort(*first, "order", descending=down).head(size).select(KEY_IN_RUN)
    return [AttemptKey(run.id, *key) for key in chosen.rows()]


def veiled(key: AttemptKey) -> str:
    """Return what stands for a record where its key would tell who answered."""
    return f"{_ticket(0, key):016x}"


def unveiled(run: StoredRun, store: Store, record: str) -> AttemptKey | None:
    """Return the key of the record of a run that `veiled` names so; only keys are read."""
    query = select(*(RECORD.c[n] for n in KEY_IN_RUN)).where(RECORD.c.run == run.id)
    with guarded(store.address), store.engine.connect() as connection:
        rows = connection.execution_options(yield_per=READ_BATCH).execute(query)
        keys = (AttemptKey(run.id, *row) for row in rows)
        return next((key for key in keys if veiled(key) == record), None)


def _ticket(seed: int, key: tuple[Any, ...]) -> int:
    """Return the place of a record in a random order, which needs no other record."""
    text = "\0".join(map(str, (seed, *key)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _divided(run: StoredRun, store: Store) -> frozenset[tuple[Any, ...]]:
    """Return the records whose judges do not agree on whether they passed."""
    names = ", ".join(KEY_IN_RUN)
    query = (
        f"SELECT {names} FROM {JUDGMENT.name} WHERE run = :run AND passed IS NOT NULL "  # noqa: S608
        f"GROUP BY {names} HAVING count(DISTINCT passed) > 1"
    )
    return frozenset(fetch(store, query, {"run": run.id}))


def run_labels(run: StoredRun, store: Store, *, confidence: float = 0.95) -> LabelledRun:
    """Compare what people said about the records of a run with its automatic verdicts."""
    said = record_verdicts(store, run.id)
    labels = [Label(tuple(one.key[1:]), one.who, one.verdict, one.draws) for one in said]
    if not labels:
        return LabelledRun(run.id, (), 0, 0, 0, (), confidence)
    return labelled_run(run.id, verdict_frame(run, store), labels, confidence)
