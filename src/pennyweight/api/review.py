"""Verdicts by people: what a suite leaves to them (`human` checks), and labels of records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pennyweight.api.pages.records import PersonVerdict, remark_on_record
from pennyweight.api.sources import open_store, runs_of
from pennyweight.errors import NotFoundError, UsageError
from pennyweight.record import AttemptKey
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
