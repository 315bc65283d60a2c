"""Verdicts by people: what a suite leaves to them (`human` checks), and labels of records."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pennyweight.api.pages.records import PersonVerdict, remark_on_record
from pennyweight.api.sources import open_store, runs_of
from pennyweight.errors import InputError, NotFoundError, UsageError
from pennyweight.record import KEY_IN_RUN, AttemptKey
from pennyweight.scoring.labelled import RANDOM, LabelledRun
from pennyweight.sources.source import Source
from pennyweight.store.remarks import record_verdicts
from pennyweight.store.store import Store, StoredRun
from pennyweight.stored_runs.review_queue import DRAWS as DRAWS  # noqa: PLC0414 - skins use it
from pennyweight.stored_runs.review_queue import Draw, drawn_records, run_labels, unveiled
from pennyweight.stored_runs.review_queue import veiled as veiled  # noqa: PLC0414
from pennyweight.stored_runs.reviews import ReviewQuestion, review_questions

MAX_QUEUE = 100_000


def questions(
    run: str = "latest", *, reviewer: str, again: bool = False, store: str | Store | None = None
) -> list[ReviewQuestion]:
    """List what a person has not answered yet about a run; with `again`, also what they have."""
    if not reviewer.strip():
        raise UsageError("--as needs a name.")
    at = open_store(store)
    return list(review_questions(at.find(run), at, reviewer.strip(), again=again))


def leaves_questions(run: str, store: Store) -> bool:
    """Whether the suite of a run leaves a question to people."""
    found = review_questions(store.find(run), store, "", again=True)
    return next(iter(found), None) is not None


def answer(
    run: str,
    record: AttemptKey | str,
    mark: str,
    *,
    reviewer: str,
    holds: bool,
    note: str = "",
    store: Store,
) -> None:
    """Store a person's answer to a question about a record; `mark` identifies the question.

    The record is given by its key, or veiled.
    """
    if not reviewer.strip():
        raise UsageError("An answer needs the name of the person who gives it.")
    at = store.find(run)
    key = _unveiled(at, store, record) if isinstance(record, str) else record
    tasks = frozenset({key.task_id})
    for one in review_questions(at, store, reviewer.strip(), again=True, tasks=tasks):
        if AttemptKey.of(one.record) == key and one.behaviour.mark == mark:
            one.answer(store, holds=holds, note=note)
            return
    raise NotFoundError("The suite does not ask this question about this record.")


def newest(run: str, store: Store) -> str:
    """Return what changes whenever a person labels a record of a run; empty without labels."""
    said = record_verdicts(store, run)
    return f"{len(said)} {max(one.at for one in said)}" if said else ""


def review_queue(
    run: str = "latest",
    *,
    draw: Draw = "random",
    size: int = 50,
    seed: int = 0,
    store: str | Store | None = None,
) -> list[AttemptKey]:
    """Draw records of a run for people to label, at random or by disagreement.

    The same seed draws the same records, and a larger size continues the same order.
    """
    if draw not in DRAWS:
        raise UsageError(f"A queue is drawn by {' or '.join(DRAWS)}, not by {str(draw)[:40]!r}.")
    if not 1 <= size <= MAX_QUEUE:
        raise UsageError(f"A queue has 1 to {MAX_QUEUE:,} records, not {size:,}.")
    at = open_store(store)
    return drawn_records(at.find(run), at, draw=draw, seed=seed, size=size)


def answered(
    run: str, reviewer: str, store: Store, *, queue: Draw | None = None
) -> dict[AttemptKey, str]:
    """Return the verdict of a person on each record that they labelled.

    With a `queue`, only of the records that count as done in it. In one that is drawn at random,
    labels from elsewhere do not: without those records, the others would not stand for all.
    """
    said = [one for one in record_verdicts(store, run) if one.who == reviewer]
    return {one.key: one.verdict for one in said if queue != RANDOM or RANDOM in one.draws}


def label(
    run: str,
    record: str,
    verdict: PersonVerdict,
    *,
    queue: Sequence[AttemptKey],
    draw: Draw,
    reviewer: str,
    note: str | None = None,
    store: Store,
) -> None:
    """Store a person's verdict on a record that is given veiled.

    It counts as drawn only if the record is in the `queue`: the one that the person was shown, also
    if the run has changed since.
    """
    if not reviewer.strip():
        raise UsageError("A verdict needs the name of the person who gives it.")
    drawn = next((one for one in queue if veiled(one) == record), None)
    key = drawn or _unveiled(store.find(run), store, record)
    chosen = draw if drawn else None
    remark_on_record(store, key, who=reviewer, verdict=verdict, note=note, draw=chosen)


_WORDS: Mapping[str, PersonVerdict] = {
    **dict.fromkeys(("right", "r", "correct", "pass", "true", "yes", "1"), "right"),
    **dict.fromkeys(("wrong", "w", "incorrect", "fail", "false", "no", "0"), "wrong"),
    **dict.fromkeys(("unsure", "u"), "unsure"),
}
"""The verdicts of a file of labels, in lower case."""
_OF_LABELS = (*KEY_IN_RUN, "run", "verdict", "reviewer", "notes")


@dataclass(frozen=True, slots=True)
class ImportedLabels:
    """What an import of labels did."""

    run: str
    saved: int
    known: int
    """Labels that were there already."""


def import_labels(
    run: str,
    path: str | Path,
    *,
    reviewer: str,
    queue: Draw | None = None,
    store: str | Store | None = None,
) -> ImportedLabels:
    """Store the labels of a CSV or JSONL file: task_id, verdict, and optionally more.

    A task with several records also needs `subject`, `tier` or `attempt`. `reviewer` labelled the
    rows that do not name one; `queue` says how the records were chosen, if not by people. All rows
    are checked before the first is stored; labels that are stored already are left alone.
    """
    if queue is not None and queue not in DRAWS:
        raise UsageError(f"A queue is drawn by {' or '.join(DRAWS)}, not by {str(queue)[:40]!r}.")
    at = open_store(store)
    found = at.find(run)
    keys: dict[str, list[AttemptKey]] = {}
    for frame in at.records(found.id, frozenset(KEY_IN_RUN)):
        for key in frame.select(KEY_IN_RUN).iter_rows():
            one = AttemptKey(found.id, *key)
            keys.setdefault(one.task_id, []).append(one)
    labels = _checked_labels(Path(path), keys, found.id, reviewer.strip())
    stored = {(one.key, one.who): one for one in record_verdicts(at, found.id)}
    saved = 0
    for (key, who), (verdict, note) in labels.items():
        old = stored.get((key, who))
        same = old is not None and (old.verdict, old.note) == (verdict, note)
        if same and old is not None and (queue is None or queue in old.draws):
            continue
        remark_on_record(at, key, who=who, verdict=verdict, note=note, draw=queue)
        saved += 1
    return ImportedLabels(found.id, saved, len(labels) - saved)


def _checked_labels(
    path: Path, keys: Mapping[str, Sequence[AttemptKey]], run: str, reviewer: str
) -> dict[tuple[AttemptKey, str], tuple[PersonVerdict, str | None]]:
    """Read the verdict and note of each record and person; all mistakes are told at once."""
    labels: dict[tuple[AttemptKey, str], tuple[PersonVerdict, str | None]] = {}
    problems: list[str] = []
    for line, row in _label_rows(path):
        given = {n: str(row[n]).strip() for n in _OF_LABELS if row.get(n) not in (None, "")}
        who = given.get("reviewer", reviewer)
        key, problem = _labelled_key(given, keys, run)
        said = given.get("verdict", "")
        verdict = _WORDS.get(said.lower())
        if key is None:
            problems.append(f"{path}, line {line}: {problem}")
        elif verdict is None:
            what = f"the verdict is {said[:40]!r}; it must be right, wrong or unsure."
            problems.append(f"{path}, line {line}: {what}")
        elif not who:
            problems.append(f"{path}, line {line}: no reviewer; add the column, or --as NAME.")
        elif (key, who) in labels:
            problems.append(f"{path}, line {line}: {who} has labelled this record above.")
        else:
            labels[key, who] = verdict, given.get("notes")
    if problems:
        raise InputError(problems[:10], len(problems), "No label was stored.")
    if not labels:
        raise InputError([f"{path}: there are no labels."])
    return labels


def _label_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows of a file of labels with their lines."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError([f"{path}: it is not UTF-8."]) from error
    if path.suffix.lower() in {".jsonl", ".ndjson"}:
        yield from _json_rows(path, text)
        return
    reader = csv.DictReader(io.StringIO(text))
    lacking = [n for n in ("task_id", "verdict") if n not in (reader.fieldnames or ())]
    if lacking:
        there = ", ".join(reader.fieldnames or ()) or "none"
        raise InputError([f"{path}, line 1: no column {' or '.join(lacking)}. Columns: {there}."])
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise InputError([f"{path}, line {reader.line_num}: {error}."]) from error


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError([f"{path}, line {number}: it is no JSON object."])
        yield number, row


def _labelled_key(
    given: Mapping[str, str], keys: Mapping[str, Sequence[AttemptKey]], run: str
) -> tuple[AttemptKey | None, str]:
    """Find the record that a row is about, or say why there is none."""
    task = given.get("task_id", "")
    if not task:
        return None, "there is no task_id."
    if given.get("run", run) != run:
        return None, f"it is about run {given['run'][:40]!r}, not {run}."
    chosen = {n: given[n] for n in KEY_IN_RUN if n in given}
    found = [
        key
        for key in keys.get(task, ())
        if all(str(getattr(key, name)) == value for name, value in chosen.items())
    ]
    if len(found) == 1:
        return found[0], ""
    if task not in keys:
        return None, f"run {run} has no record of task {task[:60]!r}."
    if not found:
        named = ", ".join(f"{n} {v[:40]!r}" for n, v in chosen.items())
        return None, f"run {run} has no record with {named}."
    apart = [n for n in KEY_IN_RUN if len({getattr(key, n) for key in found}) > 1]
    return None, f"task {task[:60]!r} has {len(found)} records; add {' and '.join(apart)}."


def _unveiled(run: StoredRun, store: Store, record: str) -> AttemptKey:
    key = unveiled(run, store, record)
    if key is None:
        raise NotFoundError(f"Run {run.id} has no such record any more. Load the page again.")
    return key


def agreement(
    run: str = "latest", *, confidence: float = 0.95, store: str | Store | None = None
) -> LabelledRun:
    """Compare people's verdicts on the records of a run with the automatic ones.

    The result has the share of equal verdicts and Cohen's kappa with intervals. Where records were
    drawn at random, it also has each side's metric as people would have decided it: the automatic
    one over all records, corrected by the labelled ones (prediction-powered inference).
    """
    if not 0 < confidence < 1:
        raise UsageError(f"The confidence is {confidence:g}; it must be between 0 and 1.")
    at = open_store(store)
    return run_labels(at.find(run), at, confidence=confidence)


def labelled_runs(sources: Iterable[Source], confidence: float = 0.95) -> list[LabelledRun]:
    """Compare people's verdicts with the automatic ones in each run that has any."""
    return [
        agreement(one.run.id, confidence=confidence, store=one.store)
        for one in runs_of(sources)
        if newest(one.run.id, one.store)
    ]
