"""How large a site will be, from a sample of its pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pennyweight.api.pages.records import RecordReader
from pennyweight.api.pages.task_attempts import task_attempts
from pennyweight.api.static_site.lists import ROWS
from pennyweight.api.static_site.record_pages import PlacedRecord, record_files, task_page
from pennyweight.api.static_site.run_pages import MAX_INLINE_SIDES, grid_rows_for
from pennyweight.record import AttemptKey
from pennyweight.store.store import Store, StoredRun
from pennyweight.store.whole_records import RecordSizes, record_sizes, sampled_rows, text_length

SAMPLE = 24
"""Records of a run that are rendered to see how large their pages are."""
SAMPLED_TASKS = 8
ROW_BYTES, CELL_BYTES, RUN_BYTES, SIDE_BYTES, METRICS_BYTES = 350, 75, 30_000, 17_000, 120_000


@dataclass(frozen=True, slots=True)
class SiteSize:
    """About how many files a site has, and how many bytes."""

    files: int
    bytes: int

    @classmethod
    def total(cls, sizes: Iterable[SiteSize]) -> SiteSize:
        """Add up the sizes of runs."""
        every = list(sizes)
        return cls(sum(s.files for s in every), sum(s.bytes for s in every))


def run_size(run: StoredRun, store: Store, *, records: bool) -> SiteSize:
    """Estimate the pages of a run."""
    sides = max(1, len(run.sides["subject"])) * max(1, len(run.sides["tier"]))
    held = record_sizes(store, run.id)
    cells = 2 * sides * held.tasks  # all tasks, and about as many among those that the filters show
    grid = -(-held.tasks // grid_rows_for(sides)) + 3
    metrics = -(-sides // MAX_INLINE_SIDES) if sides > MAX_INLINE_SIDES else 0
    files = 1 + grid + metrics
    size = RUN_BYTES + SIDE_BYTES * min(sides, MAX_INLINE_SIDES)
    size += CELL_BYTES * cells + 5_000 * grid + METRICS_BYTES * metrics
    if not records or not held.records:
        return SiteSize(files, size)
    lists = 2 if sides > 1 else 1
    files += held.records + held.tasks + lists * -(-held.records // ROWS) + (lists - 1) * sides
    size += lists * held.records * ROW_BYTES
    more, pages = _pages(run, store, held)
    return SiteSize(files + more, size + pages)


def _pages(run: StoredRun, store: Store, held: RecordSizes) -> tuple[int, int]:
    """Estimate the files of complete texts, and the bytes of all pages of records and tasks.

    The size of a page goes with the length of its texts, which the database adds up.
    """
    rows = sampled_rows(store, run.id, held.records, SAMPLE)
    tasks: dict[str, int] = {}
    sizes: list[tuple[int, int]] = []
    texts = 0
    for detail in RecordReader.of(run, store).details(rows):
        key = AttemptKey.of(detail.row)
        found = task_attempts(store, key)
        if found is None:  # it was removed in the meantime
            continue
        made = list(record_files(run, PlacedRecord(detail, key, key), found))
        sizes.append((text_length(detail.row), sum(_bytes(content) for _, content in made)))
        texts += len(made) - 1
        if len(tasks) < SAMPLED_TASKS and key.task_id not in tasks:
            tasks[key.task_id] = _bytes(task_page(run, store, key, found)[1])
    page, character = _line(sizes)
    of_tasks = held.tasks * sum(tasks.values()) / max(1, len(tasks))
    of_records = held.records * page + held.characters * character
    return round(texts / len(rows) * held.records), round(of_records + of_tasks)


def _line(points: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Fit bytes to characters by least squares: those of a page without text, and of a character.

    >>> _line([(0, 5000), (1000, 7000), (2000, 9000)]), _line([(10, 5000)])
    ((5000.0, 2.0), (5000.0, 0.0))
    """
    mean_x, mean_y = (sum(one) / len(points) for one in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    both = sum((x - mean_x) * (y - mean_y) for x, y in points)
    slope = max(0.0, both / spread) if spread else 0.0
    return max(0.0, mean_y - slope * mean_x), slope


def _bytes(content: str | bytes) -> int:
    return len(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
