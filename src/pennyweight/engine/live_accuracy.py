"""Count correct answers among committed records, for the progress line."""

from __future__ import annotations

import polars as pl

from pennyweight.store.store import RECORD_COLUMNS, Row
from pennyweight.suite.values import LoadedSuite
from pennyweight.text.extraction import answer
from pennyweight.text.matching import matches

_RESPONSE, _TARGET, _PASSED = map(RECORD_COLUMNS.index, ("response", "target", "passed"))


def count_correct(rows: list[Row], suite: LoadedSuite) -> tuple[int, int]:
    """Return how many records are correct, of how many that can be checked quickly."""
    decided = [row[_PASSED] for row in rows if row[_PASSED] is not None]
    if decided:
        return sum(decided), len(decided)
    pairs = [
        (row[_RESPONSE], row[_TARGET])
        for row in rows
        if row[_RESPONSE] is not None and row[_TARGET] is not None
    ]
    if not pairs or "math" in {suite.match.kind, suite.match.each}:  # symbolic matching is slow
        return 0, 0
    frame = pl.DataFrame(pairs, schema={"r": pl.String, "t": pl.String}, orient="row")
    answers = frame.lazy().with_columns(a=answer(pl.col("r"), suite.answer))
    right = answers.select(matches(pl.col("a"), pl.col("t"), suite.match).sum())
    return int(right.collect().item()), len(pairs)
