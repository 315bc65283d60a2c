"""Write a static site of a store, of chosen runs, or of the records of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pennyweight.api.log_import import import_logs
from pennyweight.api.pages.digest_cache import DigestCache
from pennyweight.api.pages.headlines import are_points, side_headlines, written
from pennyweight.api.sources import Given, open_store, resolve, runs_of
from pennyweight.api.static_site.folder import SiteFolder
from pennyweight.api.static_site.lists import RecordLists, list_pages
from pennyweight.api.static_site.places import list_name, page_file, record_file, run_folder
from pennyweight.api.static_site.record_pages import Made, record_pages
from pennyweight.api.static_site.run_pages import SiteRun, run_pages
from pennyweight.api.static_site.size import SiteSize, run_size
from pennyweight.errors import UsageError
from pennyweight.record import AttemptKey
from pennyweight.render.page import stylesheet
from pennyweight.render.static_site import page_text
from pennyweight.render.view import narrowed_to, spark_of
from pennyweight.store.labels import NO_LABEL, RunLabel, labels
from pennyweight.store.store import Store, StoredRun
from pennyweight.text.format import plural

TITLE = "Runs"
PAGE = 200
"""Runs on a page of the list."""
MAX_SIDES = 3
"""Sides of a run that the list shows."""
Progress = Callable[[int, int], None]
"""Gets how many files are written, and about how many there will be."""


@dataclass(frozen=True, slots=True)
class WrittenSite:
    """A site as it was written; `written` is False if its size was not agreed to."""

    folder: Path
    size: SiteSize
    runs: tuple[StoredRun, ...]
    written: bool = True

    @property
    def page(self) -> Path:
        """The page to open."""
        return self.folder / "index.html"

    def run_page(self, run: str) -> Path:
        """Return the page of a run."""
        return self.folder / run_folder(run) / "index.html"

    def list_page(self, wanted: Mapping[str, Any]) -> Path:
        """Return the list of the records of a side of the only run."""
        return self.folder / run_folder(self.runs[0].id) / page_file(list_name(wanted), 1)

    def record_page(self, key: AttemptKey) -> Path:
        """Return the page of a record."""
        return self.folder / run_folder(key.run) / "r" / record_file(key)


def site(
    folder: str | Path,
    source: Given | None = None,
    *,
    title: str = TITLE,
    records: bool = True,
    store: str | Store | None = None,
    agree: Callable[[SiteSize], bool] | None = None,
    progress: Progress | None = None,
) -> WrittenSite:
    """Write a site of runs or files (default: every run of the store) into a folder.

    Archived runs are left out unless they are named.

    The folder is new, empty, or holds an earlier site, which is replaced; other files in it stay.
    Without `records` only the pages of runs are written. `agree` gets the estimated size before
    anything is written.
    """
    place = SiteFolder(Path(folder))
    with ExitStack() as held:
        found = _runs(source, store, held)
        if not found:
            raise UsageError("There are no runs to write. 'pennyweight run SUITE' makes one.")
        size = SiteSize.total(run_size(run, at, records=records) for run, at in found)
        runs = tuple(run for run, _ in found)
        if agree and not agree(size):
            return WrittenSite(place.path, size, runs, written=False)
        known = {at.address: labels(at) for _, at in found}
        made = [_read(run, at, known[at.address], records=records) for run, at in found]
        for one in made:
            below = run_folder(one.run.id)
            for name, content in _files(one):
                place.write(f"{below}/{name}", content)
                if progress:
                    progress(place.files, max(size.files, place.files))
    place.write("style.css", stylesheet())
    for name, content in _list_pages(title, [_row(one) for one in made]):
        place.write(name, content)
    place.finish()
    return WrittenSite(place.path, SiteSize(place.files, place.bytes), runs)


def _runs(
    source: Given | None, store: str | Store | None, held: ExitStack
) -> list[tuple[StoredRun, Store]]:
    """Return the runs with their stores, the newest first; files are imported for the moment."""
    opened = open_store(store)
    if source is None:
        known = labels(opened)
        return [(run, opened) for run in opened.runs() if not _label(known, run).archived]
    sources = resolve(source, opened)
    found = [(one.run, one.store) for one in runs_of(sources)]
    files = [one for one in sources if one not in runs_of(sources)]
    if files:
        folder = held.enter_context(TemporaryDirectory(prefix="pennyweight-site-"))
        beside = Store(str(Path(folder) / "records.db"))
        held.callback(beside.close)
        made = import_logs(files, store=beside)
        found.append((beside.find(made.run_id), beside))
    once = {(run.id, at.address): (run, at) for run, at in found}
    return sorted(once.values(), key=lambda one: -one[0].created)


def _read(run: StoredRun, store: Store, known: Mapping[str, RunLabel], *, records: bool) -> SiteRun:
    """Read the numbers of a run, computed now if nobody did so before."""
    found = DigestCache(store).now(run)
    shown = records and not found.problem
    title = _label(known, run).title
    return SiteRun(run, store, found.digest, shown, found.problem, title)


def _label(known: Mapping[str, RunLabel], run: StoredRun) -> RunLabel:
    return known.get(run.id, NO_LABEL)


def _files(at: SiteRun) -> Iterator[Made]:
    """Yield the files of a run."""
    lists = RecordLists()
    yield from run_pages(at, lists)
    for name, (title, wanted) in lists.known.items():
        yield from list_pages(at.store, at.run, name, title, wanted)
    if at.records:
        yield from record_pages(at.run, at.store)


def _list_pages(title: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[Made]:
    """Yield the pages of the list of runs."""
    starts = range(0, len(rows), PAGE)
    for number, first in enumerate(starts, 1):
        values = {
            "title": title,
            "rows": rows[first : first + PAGE],
            "total": len(rows),
            "first": first + 1,
            "previous": page_file("index", number - 1) if number > 1 else "",
            "next": page_file("index", number + 1) if number < len(starts) else "",
        }
        yield page_file("index", number), page_text("site_index.html", "", values)


def _row(at: SiteRun) -> dict[str, Any]:
    """Return a run as the list shows it."""
    digest = at.digest
    metric = (digest["headline"] if digest else None) or ""
    sides = [one for one in side_headlines(digest) if one.value is not None] if digest else []
    return {
        "run": at.run,
        "title": at.title,
        "href": f"{run_folder(at.run.id)}/index.html",
        "status": at.status,
        "narrowed": "; ".join(narrowed_to(at.run)),
        "what": _what(at.run),
        "records": digest["whole"]["records"] if digest else 0,
        "errors": digest["whole"]["errors"] if digest else 0,
        "metric": metric,
        "count": len(digest["sides"]) if digest else 0,
        "points": are_points(sides),
        "sides": [
            (one.name, *written(one, metric), spark_of(metric, one.value, one.low, one.high))
            for one in sides[:MAX_SIDES]
        ],
    }


def _what(run: StoredRun) -> str:
    return " × ".join(
        ", ".join(names) if len(names) <= MAX_SIDES else plural(len(names), name)
        for name, names in run.sides.items()
        if name == "subject" or len(names) > 1
    )
