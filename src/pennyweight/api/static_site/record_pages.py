"""The pages of single records and tasks of a site, and the complete texts beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from pennyweight.api.pages.attempt_matrix import AttemptMatrix, attempt_matrix
from pennyweight.api.pages.record_view import RecordLinks, cut_parts, record_view
from pennyweight.api.pages.records import RecordDetail, RecordReader
from pennyweight.api.pages.task_attempts import MAX_CHARACTERS, TaskAttempts, task_attempts
from pennyweight.api.pages.task_page import task_view
from pennyweight.api.static_site.places import record_file, record_name, task_file
from pennyweight.record import AttemptKey
from pennyweight.render.static_site import page_text
from pennyweight.store.store import Store, StoredRun
from pennyweight.store.whole_records import stored_rows

ROOT = "../../../"
MAX_CELLS = 150
"""With more attempts at a task, the page of a record shows those of its own side."""
Made = tuple[str, str | bytes]
"""A file: its name below the folder of the run, and what it contains."""


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """A record with its neighbours in the order of the run."""

    detail: RecordDetail
    previous: AttemptKey | None
    next: AttemptKey | None


def record_pages(run: StoredRun, store: Store) -> Iterator[Made]:
    """Yield a page for each record and each task, in the order of the tasks."""
    reader = RecordReader.of(run, store)
    by_task = groupby(_details(reader), key=lambda place: place.detail.row["task_id"])
    for _, places in by_task:
        first = next(places)
        key = AttemptKey.of(first.detail.row)
        found = task_attempts(store, key)
        if found is None:  # it was removed in the meantime
            continue
        yield task_page(run, store, key, found)
        yield from record_files(run, first, found)
        for place in places:
            yield from record_files(run, place, found)


def task_page(run: StoredRun, store: Store, key: AttemptKey, found: TaskAttempts) -> Made:
    """Write the replies to a task, side by side."""

    def record_of(at: AttemptKey) -> str:
        return f"../r/{record_file(at)}"

    def whole_of(at: AttemptKey) -> str:
        return f"../r/{record_name(at)}-response.txt"

    view = task_view(store, key, found, record_of)
    values = {"run": run, "v": view, "record_of": record_of, "whole_of": whole_of}
    return f"t/{task_file(key.task_id)}", page_text("site_task.html", ROOT, values)


def record_files(run: StoredRun, place: PlacedRecord, found: TaskAttempts) -> Iterator[Made]:
    """Write the page of a record, and the complete texts of the parts that it cuts."""
    row = place.detail.row
    key = AttemptKey.of(row)
    name = record_name(key)
    whole = {part: f"{name}-{part}.txt" for part in cut_parts(row)}
    if len(str(row["response"] or "")) > MAX_CHARACTERS:  # cut on the page of its task
        whole.setdefault("response", f"{name}-response.txt")
    values = {
        "run": run,
        "v": record_view(place.detail, _matrix(found, key)),
        "leads": RecordLinks(task=f"../t/{task_file(key.task_id)}", texts=whole),
        "previous": record_file(place.previous) if place.previous else "",
        "next": record_file(place.next) if place.next else "",
    }
    yield f"r/{name}.html", page_text("site_record.html", ROOT, values)
    for part, file in whole.items():
        yield f"r/{file}", str(row[part]).encode("utf-8", "replace")


def _matrix(found: TaskAttempts, key: AttemptKey) -> AttemptMatrix:
    own = {side: rows for side, rows in found.sides.items() if side == (key.subject, key.tier)}
    many = len(found.sides) * len(found.numbers) > MAX_CELLS
    shown = replace(found, sides=own, more=True) if many and own else found
    return attempt_matrix(shown, key, record_file)


def _details(reader: RecordReader) -> Iterator[PlacedRecord]:
    """Yield the records of a run with their neighbours."""
    one: RecordDetail | None = None
    before: AttemptKey | None = None
    for rows in stored_rows(reader.store, reader.run.id):
        for detail in reader.details(rows):
            if one is not None:
                yield PlacedRecord(one, before, AttemptKey.of(detail.row))
                before = AttemptKey.of(one.row)
            one = detail
    if one is not None:
        yield PlacedRecord(one, before, None)
