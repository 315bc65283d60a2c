"""Run the scorers of a suite on the stored records of a run, and store what they give.

They run while the run is carried out, in the folder of its suite, or because a person names them.
Everything else only reads stored scores: a store may be shared, so no code is ever run because of
what is in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from pennyweight.models.keys import redact_environment
from pennyweight.record import KEY_IN_RUN, AttemptKey
from pennyweight.scorers.declaration import Scorer, Value
from pennyweight.scorers.records import (
    GivenScores,
    ScoreTally,
    give,
    of_record,
    scored_rows,
    with_scores,
)
from pennyweight.scoring.pipeline import ScoreRequest
from pennyweight.sources.source import Source
from pennyweight.store.scores import (
    REQUEST,
    StoredScore,
    given_scores,
    remove_scores,
    remove_scores_but,
    save_scores,
    score_marks,
    stored_scores,
)
from pennyweight.store.store import Store, StoredRun, now
from pennyweight.stored_runs.source import RunScores, RunSource

BATCH = 500


def run_scorers(
    scorers: Sequence[Scorer], run: StoredRun, store: Store
) -> dict[str, tuple[int, str]]:
    """Score the records that have no score by the same code of the same text.

    Return how often each scorer failed, and with which error first. Scorers that ask judges are
    left to these; what they gave to another question is removed.
    """
    known = score_marks(store, run.id)
    marks = {one.name: one.mark for one in scorers}
    fresh: list[StoredScore] = []
    own = [one for one in scorers if not one.question]

    def take(row: Mapping[str, Any]) -> None:
        for scorer in own:
            read, key = of_record(row, scorer), AttemptKey.of(row)
            mark = _mark(marks[scorer.name], read)
            if known.get((key, scorer.name)) == (mark, row[REQUEST]):
                continue
            given = give(scorer, read)
            error = None if given.error is None else redact_environment(given.error)
            fresh.append(StoredScore(key, scorer.name, mark, row[REQUEST], given.text, error))
        if len(fresh) >= BATCH:
            save_scores(store, fresh)
            fresh.clear()

    remove_scores(store, run.id, list(marks))
    for scorer in scorers:
        if scorer.question:
            remove_scores_but(store, run.id, scorer.name, scorer.mark)
    if own:
        scored_rows([RunSource(run, store)], own, take, ScoreRequest())
        save_scores(store, fresh)
    return describe_scores(scorers, run, store)


def describe_scores(
    scorers: Sequence[Scorer], run: StoredRun, store: Store
) -> dict[str, tuple[int, str]]:
    """Store in the run which scores it has; return how often each function failed."""
    tally = _tally(scorers, run, store)
    columns = {column.name: column.plain() for column in tally.columns()}
    settings = {**store.find(run.id).settings, "scores": columns, "scored": now()}
    store.set_run(run.id, settings=settings)
    return tally.errors


def _tally(scorers: Sequence[Scorer], run: StoredRun, store: Store) -> ScoreTally:
    """Look at all stored scores of a run."""
    by_name = {one.name: one for one in scorers}
    tally = ScoreTally(scorers)
    for name, given, error in given_scores(store, run.id):
        scorer = by_name[name]
        own = None if scorer.question else error  # what judges failed at is told by their phase
        tally.add(scorer, GivenScores(json.loads(given), own))
    return tally


def _mark(scorer: str, read: Mapping[str, Any]) -> str:
    """Hash a scorer and what it reads: a corrected target or a changed scorer is scored again."""
    said = json.dumps([scorer, read], sort_keys=True, default=str)
    return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=8).hexdigest()


def rescored_run(
    source: RunSource, scorers: Sequence[Scorer], request: ScoreRequest
) -> tuple[RunSource, ScoreTally]:
    """Return a run with scores that are computed now, and stored nowhere.

    Stored scores of other names stay. Scorers that ask judges keep what these gave to the same
    question.
    """
    tally = ScoreTally(scorers)
    own = [one for one in scorers if not one.question]
    stored = _stored(source, scorers)
    rows: list[tuple[Any, ...]] = []

    def take(row: Mapping[str, Any]) -> None:
        values = dict(stored.get((AttemptKey.of(row), row[REQUEST]), {}))
        for scorer in own:
            given = give(scorer, of_record(row, scorer))
            tally.add(scorer, given)
            values |= given.values
        rows.append((*(row[n] for n in KEY_IN_RUN), row[REQUEST], GivenScores(values).text))

    plain = replace(source, scored=RunScores(pl.DataFrame(), ()))
    scored_rows([plain], scorers, take, request)
    names = [*KEY_IN_RUN, REQUEST, "scores"]
    types = {**dict.fromkeys(names, pl.String), "attempt": pl.Int64}
    frame = pl.DataFrame(rows, schema=types, orient="row")
    columns = {one.name: one for one in (*source.score_columns(), *tally.columns())}
    return replace(source, scored=RunScores(frame, tuple(columns.values()))), tally


def _stored(
    source: RunSource, scorers: Sequence[Scorer]
) -> dict[tuple[AttemptKey, str], dict[str, Value]]:
    """Return the stored scores of each attempt and request that are not computed now."""
    found: dict[tuple[AttemptKey, str], dict[str, Value]] = {}
    now = {one.name for one in scorers if not one.question}
    marks = {one.name: one.mark for one in scorers if one.question}
    for one in stored_scores(source.store, source.run.id):
        if one.scorer not in now and marks.get(one.scorer, one.mark) == one.mark:
            found.setdefault((one.key, one.request), {}).update(json.loads(one.given))
    return found


def scored_now(
    sources: Sequence[Source], scorers: Sequence[Scorer], request: ScoreRequest
) -> tuple[list[Source], dict[str, tuple[int, str]]]:
    """Score the records of any sources now; also return how often each scorer failed."""
    found: list[Source] = []
    errors: dict[str, tuple[int, str]] = {}
    for source in sources:
        if isinstance(source, RunSource):
            run, tally = rescored_run(source, scorers, request)
            found.append(run)
        else:
            (one,), tally = with_scores([source], scorers, request)
            found.append(one)
        for name, (count, first) in tally.errors.items():
            before = errors.get(name, (0, first))
            errors[name] = before[0] + count, before[1]
    return found, errors
