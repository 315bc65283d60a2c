"""Stored runs side by side: their metrics, the tasks that changed, the replies to one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any

from pennyweight.api.pages.digest import compared
from pennyweight.errors import InputError, UsageError
from pennyweight.render.charts.svg import letter
from pennyweight.scoring.chart_data import differences
from pennyweight.store import cache, queries
from pennyweight.store.flips import Changes, changes
from pennyweight.store.store import Store, StoredRun
from pennyweight.stored_runs.source import RunSource
from pennyweight.text.word_diff import MarkedWords, WordDiff

if TYPE_CHECKING:
    from pennyweight.api.pages.digest_cache import DigestCache

    Inside = Mapping[str, frozenset[str]]
    """The subjects and the tiers of a run."""

SIDE_COLUMNS = ("subject", "tier")
MAX_RUNS = 8
"""Runs that are compared at once."""
MAX_ATTEMPTS = 50_000
"""Larger runs are compared in the terminal."""
MAX_REPLIES = 20
"""Attempts at one task that are shown side by side."""
MAX_REPLY_CHARACTERS = 20_000
MAX_CACHED = 8
ONE_SIDE = "This run has one subject in one tier. Choose another run to compare it with."


@dataclass(frozen=True, slots=True)
class RunSide:
    """The records of a run, or of one subject or tier in it."""

    run: str
    chosen: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Several sides with their titles, and one digest of all of them."""

    sides: Sequence[tuple[RunSide, str]]
    digest: dict[str, Any] | None
    waiting: Sequence[str]
    """Runs whose metrics are being computed."""
    note: str = ""
    letters: Mapping[str, str] = field(default_factory=dict)
    """The letter of each run, where there are several."""
    inside: Mapping[str, Inside] = field(default_factory=dict)
    comparable: bool = True
    """Whether the sides have tasks in common that can be compared."""

    def shared_columns(self, first: RunSide, second: RunSide) -> list[str]:
        """Name the columns in which compared attempts must agree, as `pennyweight compare` does."""
        both = {
            n: [_values(side, self.inside, n) for side in (first, second)] for n in SIDE_COLUMNS
        }
        return [name for name, (a, b) in both.items() if not a or not b or a & b]


@dataclass(frozen=True, slots=True)
class ChangedTasks:
    """The tasks that changed from one side to another; no sides where nothing can be compared."""

    first: RunSide | None = None
    second: RunSide | None = None
    changes: Changes = field(default_factory=Changes)


@dataclass(frozen=True, slots=True)
class ShownReply:
    """A reply, and what is different in the other one; no `record` without such an attempt."""

    run: str
    record: Mapping[str, Any] | None
    pieces: MarkedWords
    marked: bool
    """False where finding the differences takes too long."""


@dataclass(frozen=True, slots=True)
class TaskReplies:
    """The replies of two sides to one task, in pairs."""

    pairs: Sequence[tuple[ShownReply, ...]]
    more: bool
    """Whether there are more attempts than are shown."""
    record: Mapping[str, Any] | None
    """A record of the first side, for the task's input and target."""


class RunComparisons:
    """Puts the runs of a store side by side, and remembers the last comparisons."""

    def __init__(self, store: Store, digests: DigestCache) -> None:
        self.store, self.digests = store, digests
        self._compared: dict[tuple[tuple[str, str], ...], Any] = {}

    def side_by_side(self, runs: Sequence[StoredRun]) -> SideBySide:
        """Put runs side by side: one run by its own sides, several each as a whole.

        Several runs are named by letters, because ids are too long for charts; the first run is
        the baseline. Where runs differ in subjects or tiers, only what all have in common counts.
        """
        groups: list[tuple[RunSide, dict[str, Any]]] = []
        waiting: list[str] = []
        first: dict[str, Any] | None = None
        inside: dict[str, Inside] = {}
        letters = {run.id: letter(i) for i, run in enumerate(runs)} if len(runs) > 1 else {}
        for run in runs:
            digest = self.digests.get(run).digest
            if digest is None:
                waiting.append(run.id)
                continue
            first = first or digest
            inner = digest["sides"] if set(digest["by"]) <= set(SIDE_COLUMNS) else []
            inside[run.id] = _inside(run, inner)
            if letters or not inner:
                name = letters.get(run.id, run.id)
                groups.append((RunSide(run.id), {**digest["whole"], "name": name}))
            for (side, title), group in zip(digest_sides(run.id, digest), inner, strict=True):
                name = f"{letters[run.id]} · {title}" if letters else title
                groups.append((side, {**group, "name": name}))
        sides = [(side, group["name"]) for side, group in groups]
        if first is None:
            return SideBySide(sides, None, waiting, letters=letters)
        groups = _in_all_runs(groups, inside)
        comparison, note, comparable = first["comparison"], "", True
        if letters and sum(run.attempts for run in runs) > MAX_ATTEMPTS:
            names = " ".join(run.id for run in runs)
            comparison = None
            note = f"These runs are large. Use the terminal: pennyweight compare {names}"
        elif waiting:
            comparison, comparable = None, False
        elif letters:
            comparison, note = self._comparison(runs, first["confidence"], letters)
            comparable = any(p["tasks"] for p in comparison["pairs"]) if comparison else False
        elif len(sides) < 2:
            note = ONE_SIDE
        metric = first["headline"]
        rows = [row for side, group in groups if (row := _chart_row(group, metric, side))]
        charts = {
            "sides": {"metric": metric, "rows": rows} if rows and comparable else None,
            "differences": differences(comparison, metric),
        }
        shown = [group for _, group in groups]
        combined = {**first, "sides": shown, "comparison": comparison, "charts": charts}
        return SideBySide(sides, combined, waiting, note, letters, inside, comparable)

    def _comparison(
        self, runs: Sequence[StoredRun], confidence: float, letters: Mapping[str, str]
    ) -> tuple[Any, str]:
        """Compare runs, once for each state of them; else return why they cannot be compared."""
        state = tuple((run.id, cache.stamp(self.store, run)) for run in runs)
        if state not in self._compared:
            while len(self._compared) >= MAX_CACHED:
                self._compared.pop(next(iter(self._compared)), None)
            sources = [RunSource(run, self.store) for run in runs]
            try:
                self._compared[state] = compared(sources, confidence, ["run"], letters), ""
            except (UsageError, InputError) as error:
                self._compared[state] = None, str(error)
        result: tuple[Any, str] = self._compared[state]
        return result

    def changed_tasks(
        self, found: SideBySide, first: RunSide | None = None, second: RunSide | None = None
    ) -> ChangedTasks:
        """List the tasks that changed between two sides; by default the first and the last."""
        if len(found.sides) < 2 or not found.comparable:
            return ChangedTasks()
        parts = [side for side, _ in found.sides if side.chosen]
        wholes = [side for side, _ in found.sides if not side.chosen]
        default = wholes if len({s.run for s, _ in found.sides}) > 1 or len(parts) < 2 else parts
        first, second = first or default[0], second or default[-1]
        changed = changes(
            self.store,
            (first.run, dict(first.chosen)),
            (second.run, dict(second.chosen)),
            alike=found.shared_columns(first, second),
        )
        return ChangedTasks(first, second, changed)

    def replies(self, first: RunSide, second: RunSide, task: str) -> TaskReplies:
        """Read the replies of two sides to one task, attempt by attempt, differences marked."""
        sides = (first, second)
        cut = {"limit": MAX_REPLIES + 1, "longest": MAX_REPLY_CHARACTERS}
        attempts = [
            queries.siblings(self.store, side.run, task, dict(side.chosen), **cut) for side in sides
        ]
        pairs, diff = [], WordDiff()
        for pair in islice(zip_longest(*attempts), MAX_REPLIES):
            texts = [(record or {}).get("response") or "" for record in pair]
            marked = diff.mark(*texts)
            pieces = marked or [[(text, False)] for text in texts]
            shown = zip(sides, pair, pieces, strict=True)
            pairs.append(tuple(ShownReply(s.run, r, p, marked is not None) for s, r, p in shown))
        example = queries.page(self.store, first.run, queries.Filter({"task_id": task}), limit=1)
        more = max(map(len, attempts)) > MAX_REPLIES
        return TaskReplies(pairs, more, next(iter(example.rows), None))


def digest_sides(run: str, digest: Mapping[str, Any]) -> list[tuple[RunSide, str]]:
    """Return the sides of a run's digest with their titles."""
    if not set(digest["by"]) <= set(SIDE_COLUMNS):
        return []
    return [
        (RunSide(run, tuple((k, str(v)) for k, v in side["group"].items())), side["name"])
        for side in digest["sides"]
    ]


def _values(side: RunSide, inside: Mapping[str, Inside], name: str) -> frozenset[str]:
    chosen = dict(side.chosen)
    if name in chosen:
        return frozenset([chosen[name]])
    return inside.get(side.run, {}).get(name, frozenset())


def _inside(run: StoredRun, groups: Sequence[Mapping[str, Any]]) -> Inside:
    """Return the subjects and tiers of a run: those of its records, else those of its suite."""
    seen = {n: {str(g["group"][n]) for g in groups if n in g["group"]} for n in SIDE_COLUMNS}
    return {name: frozenset(values or run.sides[name]) for name, values in seen.items()}


def _in_all_runs(
    groups: list[tuple[RunSide, dict[str, Any]]], inside: Mapping[str, Inside]
) -> list[tuple[RunSide, dict[str, Any]]]:
    """Leave out the sides that not all runs have, and the runs as a whole that contain them."""
    common = {n: frozenset.intersection(*(i[n] for i in inside.values())) for n in SIDE_COLUMNS}
    uneven = {
        n for n in SIDE_COLUMNS if common[n] and any(i[n] != common[n] for i in inside.values())
    }
    if not uneven:
        return groups
    split = {side.run for side, _ in groups if side.chosen}
    return [
        (side, group)
        for side, group in groups
        if (side.chosen or side.run not in split)
        and all(_values(side, inside, n) <= common[n] for n in uneven)
    ]


def _chart_row(group: dict[str, Any], metric: str | None, side: RunSide) -> dict[str, Any] | None:
    cells = group["estimates"].get(metric) if metric else None
    if not cells or not isinstance(cells[0], float):
        return None
    row = dict(zip(("value", "low", "high", "n"), cells, strict=False))
    return {"name": group["name"], **row, "filter": dict(side.chosen)}
