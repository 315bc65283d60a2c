"""Score the records of any source with scorers, record by record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from pennyweight.define import MEASURES
from pennyweight.errors import UsageError, unknown
from pennyweight.metrics.scores import MAX_LABELS, ScoreColumn
from pennyweight.record import BY_NAME, EXPORTED
from pennyweight.scorers.declaration import RECORD, Scorer, Value
from pennyweight.scoring.pipeline import ScoreRequest, Scoring
from pennyweight.sources.chunks import Chunk
from pennyweight.sources.conversion import LINE
from pennyweight.sources.loader import FILE
from pennyweight.sources.parsing import Names, Parsed
from pennyweight.sources.source import Source

EXTRA = "extra"
_AS_WRITTEN = {"context"}
"""The columns that scorers get as the task has them, and measures as text."""
REQUEST = "fingerprint"
MAX_ERROR_LENGTH = 300


@dataclass(frozen=True, slots=True)
class GivenScores:
    """What one scorer gave one record."""

    values: Mapping[str, Value] = field(default_factory=dict)
    error: str | None = None
    """The error that it raised; then it gave no score."""

    @property
    def text(self) -> str:
        """The scores as JSON, without those that are missing."""
        known = {name: value for name, value in self.values.items() if value is not None}
        return json.dumps(known, ensure_ascii=False)


def give(scorer: Scorer, row: Mapping[str, Any]) -> GivenScores:
    """Score one record. An error of the scorer is an error of this score, and never a zero."""
    try:
        return GivenScores(scorer.score(row))
    except Exception as error:
        return GivenScores(error=f"{type(error).__name__}: {error}"[:MAX_ERROR_LENGTH])


@dataclass(slots=True)
class ScoreTally:
    """Finds out what the scores of many records are, and counts errors."""

    scorers: Sequence[Scorer]
    seen: dict[str, tuple[Scorer, list[Value]]] = field(default_factory=dict)
    """A few values of each score."""
    errors: dict[str, tuple[int, str]] = field(default_factory=dict)
    """How often each scorer failed, and with which error first."""

    def add(self, scorer: Scorer, given: GivenScores) -> None:
        """Count what a scorer gave a record."""
        if given.error is not None:
            count, first = self.errors.get(scorer.name, (0, given.error))
            self.errors[scorer.name] = count + 1, first
        for name, value in given.values.items():
            owner, values = self.seen.setdefault(name, (scorer, []))
            if owner is not scorer:
                problem = f"{name!r} is a score of {owner.name} too; one of them needs a new name"
                self.errors.setdefault(scorer.name, (1, problem))
            elif _is_new(value, values) and len(values) <= MAX_LABELS + 2:
                values.append(value)

    def columns(self) -> list[ScoreColumn]:
        """Describe the scores; a scorer that gave none has a score of its own name."""
        found: list[ScoreColumn] = []
        for one in self.scorers:
            own = {name: values for name, (by, values) in self.seen.items() if by is one}
            found += [one.column(name, own.get(name, ())) for name in own or [one.name]]
        return found


def _is_new(value: Value, values: Sequence[Value]) -> bool:
    """Whether a value says more about a score: another label, or another kind of value."""
    same = [one for one in values if type(one) is type(value)]
    return value not in same if isinstance(value, str) else not same


def scored_rows(
    sources: Sequence[Source],
    scorers: Sequence[Scorer],
    take: Callable[[Mapping[str, Any]], None],
    request: ScoreRequest,
) -> None:
    """Pass every record without an error to a function, with all that the scorers read."""
    names = {name for one in scorers for name in one.inputs}
    also = [*sorted(names - {RECORD}), EXTRA, REQUEST]
    asked = replace(request, metrics="pass_rate", skip_bad=True, where={})
    scoring = Scoring.of(sources, asked, everything=RECORD in names, also=also)
    others = [n for n in names if n not in {*BY_NAME, *MEASURES, *EXPORTED, RECORD}]
    found: set[str] = set()

    def chunk(frame: pl.DataFrame) -> pl.DataFrame:
        for row in frame.filter(pl.col("status").ne_missing("error")).iter_rows(named=True):
            extra = _extra(row)
            found.update(n for n in others if row.get(n) is not None or n in extra)
            mine = {n: v for n, v in extra.items() if n in _AS_WRITTEN or row.get(n) is None}
            take({**row, **mine})
        return frame.select(LINE)

    loaded = scoring.each(sources, chunk)
    defaults = {name for one in scorers for name in one.defaults}
    missing = [n for n in others if n not in {*found, *defaults, *loaded.present}]
    for name in missing if any(frame.height for frame in loaded.frames) else ():
        known = [*loaded.present, *BY_NAME, *MEASURES]
        owner = next(one.name for one in scorers if name in one.inputs)
        what = unknown("Column", name, known, "No record has it.")
        raise UsageError(f"The scorer {owner}: {what}")


def _extra(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the further columns of the task, which a run stores as JSON."""
    text = row.get(EXTRA)
    try:
        found = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def of_record(row: Mapping[str, Any], scorer: Scorer) -> dict[str, Any]:
    """Return what a scorer reads of a record."""
    if RECORD in scorer.inputs:
        hidden = {LINE, FILE, EXTRA}
        return {name: value for name, value in row.items() if name not in hidden}
    return {name: row.get(name) for name in scorer.inputs}


@dataclass(frozen=True, slots=True)
class ScoredSource(Source):
    """Records with the scores that scorers gave them."""

    source: Source
    values: Mapping[int, str]
    """The scores of each record as JSON, by its line or row."""
    columns: tuple[ScoreColumn, ...]

    @property
    def name(self) -> str:
        """The name of the source."""
        return self.source.name

    @property
    def origin(self) -> str:
        """The path that the user named."""
        return self.source.origin

    @property
    def may_be_empty(self) -> bool:
        """Whether a source without records is fine."""
        return self.source.may_be_empty

    @property
    def decides(self) -> bool:
        """Whether the source knows what decides each of its records."""
        return self.source.decides

    def options(self) -> Mapping[str, Any]:
        """Return the options of the source."""
        return self.source.options()

    def check(self) -> None:
        """Have the source check what was asked for."""
        self.source.check()

    def notes(self) -> Sequence[str]:
        """Return what people should know about the records of the source."""
        return self.source.notes()

    def score_columns(self) -> Sequence[ScoreColumn]:
        """Return the scores of its records."""
        return self.columns

    def chunks(self, names: Names) -> Iterator[Chunk]:
        """Yield the chunks of the source, with the column of scores."""
        for chunk in self.source.chunks(names):
            yield _ScoredChunk(chunk, self.values)


@dataclass(frozen=True, slots=True)
class _ScoredChunk:
    chunk: Chunk
    values: Mapping[int, str]

    def __call__(self, names: Names) -> Parsed:
        parsed = self.chunk(names)
        if "scores" not in names and not names.all:
            return parsed
        texts = [self.values.get(number) for number in parsed.numbers]
        scores = pl.Series("scores", texts, dtype=pl.String)
        return replace(parsed, frame=parsed.frame.with_columns(scores))


def with_scores(
    sources: Sequence[Source], scorers: Sequence[Scorer], request: ScoreRequest
) -> tuple[list[Source], ScoreTally]:
    """Score the records of sources now. They are read twice, so standard input is refused."""
    for source in sources:
        if not source.rereadable:
            raise UsageError("Scorers read records twice; write standard input to a file first.")
    tally = ScoreTally(scorers)
    values: list[dict[int, str]] = [{} for _ in sources]

    def take(row: Mapping[str, Any]) -> None:
        given: dict[str, Value] = {}
        for scorer in scorers:
            one = give(scorer, of_record(row, scorer))
            tally.add(scorer, one)
            given |= one.values
        values[row[FILE]][row[LINE]] = GivenScores(given).text

    scored_rows(sources, scorers, take, request)
    columns = tuple(tally.columns())
    pairs = zip(sources, values, strict=True)
    return [ScoredSource(source, found, columns) for source, found in pairs], tally
