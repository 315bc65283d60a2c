"""Records of stored runs: pages of them, one record in full, and what people say about them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from pennyweight.catalogue import MEASURES
from pennyweight.define import add_measures, dtype, measure_passes
from pennyweight.errors import NotFoundError, UsageError
from pennyweight.record import BY_NAME
from pennyweight.record import STATUSES as STATUSES  # noqa: PLC0414 - skins use it
from pennyweight.record import AttemptKey as AttemptKey  # noqa: PLC0414
from pennyweight.store import queries as queries  # noqa: PLC0414 - skins use it
from pennyweight.store.cells import json_cell
from pennyweight.store.queries import Filter, Place, Sort
from pennyweight.store.remarks import Remark, add_remark
from pennyweight.store.remarks import remarks as remarks  # noqa: PLC0414
from pennyweight.store.store import RECORD_COLUMNS, Store, StoredRun
from pennyweight.store.tables import MEASURED
from pennyweight.stored_runs.imported import extra_of, is_imported, unpacked
from pennyweight.stored_runs.source import RunSource, mark_verified
from pennyweight.stored_runs.transcript import Turn, turns_of
from pennyweight.text.extraction import KINDS, AnswerRule

if TYPE_CHECKING:
    from pennyweight.stored_runs.observations import Observer
    from pennyweight.stored_runs.panel import Panel

ROLES = {"expected": "expected", "must_not": "must not", "checks": "check"}
MAX_JUDGED_ATTEMPTS = 20_000
"""In a larger run, the consensus of the judges is not computed for a single record."""
MAX_COUNT = 10_000
PersonVerdict = Literal["right", "wrong", "unsure"]
VERDICTS: tuple[PersonVerdict, ...] = ("right", "wrong", "unsure")
ANONYMOUS = "someone"
_CHANGING = threading.Lock()
"""Held while the tags of a run are read and changed."""


def value_kind(column: str) -> type | tuple[type, ...]:
    """Return the Python type of the values of a column that records can be sorted by."""
    if column == queries.RESULT:
        return bool
    kind: type = MEASURED.c[column].type.python_type
    return (int, float) if kind is float else kind


@dataclass(frozen=True, slots=True)
class RecordCount:
    """How many records a filter matches; `more` if there are more than `count`."""

    count: int
    more: bool


def count(store: Store, run: str, wanted: Filter) -> RecordCount:
    """Count the records that match a filter, up to `MAX_COUNT`."""
    number = queries.count(store, run, wanted, MAX_COUNT)
    return RecordCount(min(number, MAX_COUNT), number > MAX_COUNT)


@dataclass(frozen=True, slots=True)
class CheckView:
    """One behaviour or check of a record; `good` is None where it could not be decided."""

    role: str
    name: str
    good: bool | None
    why: str
    evidence: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class RubricMark:
    """What a judge gave for one item of the rubric; `points` is the maximum, where known."""

    name: str
    score: Any
    evidence: str
    points: float | None


@dataclass(frozen=True, slots=True)
class RecordJudgment:
    """The judgment of one judge: the row of the store, and its marks item by item."""

    row: Mapping[str, Any]
    marks: tuple[RubricMark, ...]


@dataclass(frozen=True, slots=True)
class RecordScore:
    """A score of a record; without a value, the error of its scorer."""

    name: str
    value: Any
    error: str = ""


@dataclass(frozen=True, slots=True)
class RecordDetail:
    """One record with everything that was computed from it or said about it."""

    row: Mapping[str, Any]
    measures: Mapping[str, Any]
    checks: tuple[CheckView, ...]
    judgments: tuple[RecordJudgment, ...]
    remarks: tuple[Remark, ...]
    rule: AnswerRule | None
    """The rule that extracts answers in this run."""
    scores: tuple[RecordScore, ...] = ()

    @property
    def steps(self) -> list[Turn]:
        """The steps of an agent, or the turns of a conversation, after the first messages."""
        return turns_of(self.row)

    @property
    def evidence_spans(self) -> list[tuple[int, int]]:
        """The parts of the reply that checks cite as evidence."""
        return [
            (piece["start"], piece["end"])
            for check in self.checks
            for piece in check.evidence
            if piece.get("of") == "response" and piece.get("start") is not None
        ]


def row(store: Store, key: AttemptKey) -> Mapping[str, Any]:
    """Read one record as it is stored."""
    found = queries.record(store, key)
    if found is None:
        raise NotFoundError("There is no such record in this run.")
    return found


def detail(store: Store, run: StoredRun, key: AttemptKey) -> RecordDetail:
    """Read one record and compute its measures and checks."""
    stored = row(store, key)
    return RecordReader(run, store, _observer(run, store, key), _panel(run, store)).details(
        [stored]
    )[0]


@dataclass(frozen=True, slots=True)
class RecordReader:
    """Computes the measures and checks of stored records, many at a time."""

    run: StoredRun
    store: Store
    observer: Observer | None
    panel: Panel | None

    @classmethod
    def of(cls, run: StoredRun, store: Store) -> RecordReader:
        """Read what all records of a run share: its scenarios, verdicts and judges."""
        from pennyweight.stored_runs.observations import Observer  # noqa: PLC0415

        return cls(run, store, Observer.of(run, store), _panel(run, store))

    def details(self, rows: Sequence[Mapping[str, Any]]) -> list[RecordDetail]:
        """Compute what a page shows of each record."""
        run, store = self.run, self.store
        points = rubric_points(run.settings)
        imported = is_imported(run.settings)
        named = (run.settings.get("answer") or {}).get("kind") in KINDS
        rule = AnswerRule.of(run.settings) if named else None
        found = []
        for one, measures in zip(rows, self._measures(rows), strict=True):
            key = AttemptKey.of(one)
            found.append(
                RecordDetail(
                    one,
                    measures,
                    _imported_checks(one) if imported else _checks(self.observer, one),
                    tuple(_judgment(j, points) for j in queries.judgments(store, key)),
                    tuple(remarks(store, key)),
                    rule,
                    tuple(_scores(store, run, key, one)),
                )
            )
        return found

    def _measures(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Compute every measure of records by the rules of their run."""
        run = self.run
        schema = {n: dtype(n) if n in BY_NAME else None for n in RECORD_COLUMNS}
        series = [
            pl.Series(n, [one[n] for one in rows], dtype=kind, strict=False)
            for n, kind in schema.items()
        ]
        frame = mark_verified(pl.DataFrame(series), run.settings)
        frame = frame if self.panel is None else self.panel.join(frame)
        frame = unpacked(frame) if is_imported(run.settings) else frame
        frame = self.observer.add(frame) if self.observer else frame
        missing = [pl.lit(None, dtype=dtype(n)).alias(n) for n in BY_NAME if n not in frame.columns]
        passes = measure_passes(MEASURES.values(), RunSource(run, self.store).options())
        measured = add_measures(frame.with_columns(missing).lazy(), passes).collect()
        names = list(dict.fromkeys([*MEASURES, "answer", "cot"]))
        return measured.select(names).rows(named=True)


def _scores(
    store: Store, run: StoredRun, key: AttemptKey, stored: Mapping[str, Any]
) -> Iterator[RecordScore]:
    """Yield what the scorers gave a record."""
    if not run.settings.get("scores"):
        return
    from pennyweight.store.scores import record_scores  # noqa: PLC0415

    for one in record_scores(store, key, stored["fingerprint"]):
        if one.error:
            yield RecordScore(one.scorer, None, one.error)
        for name, value in json_cell(one.given, dict, "scores of a record").items():
            yield RecordScore(name, value)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The records before and after another one in a filtered, sorted list."""

    previous: Mapping[str, Any] | None
    next: Mapping[str, Any] | None


def neighbours(store: Store, key: AttemptKey, wanted: Filter, sort: Sort | None) -> Neighbours:
    """Find the records next to one in a list; it does not have to be in the list itself."""
    at: Place = tuple(key._asdict()[name] for name in queries.ORDER)
    if sort is not None:
        at = (queries.value(store, key, sort.name), *at)
    following = queries.page(store, key.run, wanted, after=at, limit=1, sort=sort).rows
    preceding = queries.page(store, key.run, wanted, before=at, limit=1, sort=sort).rows
    return Neighbours(next(iter(preceding), None), next(iter(following), None))


def _observer(run: StoredRun, store: Store, key: AttemptKey) -> Observer | None:
    """Make an observer for this one record, without reading the rest of the run."""
    from pennyweight.checks.scenario import Scenario  # noqa: PLC0415
    from pennyweight.stored_runs.observations import Observer  # noqa: PLC0415

    text = queries.scenario(store, run.id, key.task_id)
    if text is None:
        return None
    rule = AnswerRule.of(run.settings)
    return Observer({key.task_id: Scenario.of(text)}, {key: queries.verdicts(store, key)}, rule)


def _panel(run: StoredRun, store: Store) -> Panel | None:
    from pennyweight.stored_runs.panel import Panel  # noqa: PLC0415

    asked = "judge" in run.settings and run.attempts <= MAX_JUDGED_ATTEMPTS
    return Panel.of(run, store) if asked else None


def _checks(observer: Observer | None, stored: Mapping[str, Any]) -> tuple[CheckView, ...]:
    seen = observer.look(stored) if observer else None
    return tuple(
        CheckView(
            role=ROLES.get(role, role),
            name=behaviour.name,
            good=None if verdict.holds is None else verdict.holds is not (role == "must_not"),
            why=verdict.why,
            evidence=tuple(piece.plain() for piece in verdict.evidence),
        )
        for role, behaviour, verdict in (seen.verdicts if seen else ())
    )


def _imported_checks(stored: Mapping[str, Any]) -> tuple[CheckView, ...]:
    """Return the checks that a log has, as the tool decided them."""
    listed = extra_of(stored["extra"]).get("checks")
    with suppress(TypeError, ValueError):
        listed = json.loads(listed) if isinstance(listed, str) else listed
    several = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return tuple(
        CheckView("check", str(one.get("name")), one.get("holds"), str(one.get("why") or ""), ())
        for one in several
    )


def rubric_points(settings: Mapping[str, Any]) -> dict[str, float]:
    """Return the maximum of each item of a run's rubric."""
    rubric = (settings.get("judge") or {}).get("rubric") or {}
    items = [item for category in rubric.get("categories", ()) for item in category["items"]]
    return {str(item["id"]): item["points"] for item in items}


def _judgment(stored: Mapping[str, Any], points: Mapping[str, float]) -> RecordJudgment:
    try:
        read = json.loads(stored.get("items") or "{}")
    except ValueError:
        read = {}
    items = read.items() if isinstance(read, dict) else ()
    marks = tuple(
        RubricMark(name, item.get("score"), str(item.get("evidence") or ""), points.get(name))
        for name, item in items
        if isinstance(item, dict)
    )
    return RecordJudgment(stored, marks)


def remark_on_record(
    store: Store,
    key: AttemptKey,
    *,
    who: str = "",
    verdict: PersonVerdict | None = None,
    note: str | None = None,
    draw: str | None = None,
) -> None:
    """Store a person's verdict or note about a record; `draw` is how a queue chose it."""
    row(store, key)
    if not verdict and not (note or "").strip():
        raise UsageError("Add a verdict, a note, or both.")
    author = _storable(who) or ANONYMOUS
    add_remark(store, key, who=author, verdict=verdict, note=_stored_note(note), draw=draw)


def remark_on_run(
    store: Store,
    run: str,
    *,
    who: str = "",
    note: str | None = None,
    tags: Sequence[str] | None = None,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
) -> None:
    """Store a note about a run, or change its tags.

    `tags` replaces all tags; `add` and `remove` change the current ones.
    """
    with _CHANGING:
        changed = None
        if tags is not None or add or remove:
            changed = _changed(tags_of(store, run) if tags is None else tags, add, remove)
        if changed is None and not (note or "").strip():
            raise UsageError("Add a tag, a note, or both.")
        author = _storable(who) or ANONYMOUS
        add_remark(store, run, who=author, note=_stored_note(note), tags=changed)


def tags_of(store: Store, run: str) -> tuple[str, ...]:
    """Return the tags that a run has now."""
    return next((r.tags for r in remarks(store, run) if r.tags is not None), ())


def _changed(tags: Sequence[str], add: Sequence[str], remove: Sequence[str]) -> list[str]:
    remaining = [tag for tag in map(_storable, tags) if tag not in remove]
    return [tag for tag in dict.fromkeys([*remaining, *map(_storable, add)]) if tag]


def _stored_note(note: str | None) -> str | None:
    return None if note is None else _storable(note)


def _storable(text: str) -> str:
    """Remove what no database stores: null characters and unpaired surrogates."""
    return text.replace("\0", "").encode(errors="replace").decode()
