"""The sides of a stored run against a baseline that a reader chose."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence, Set
from typing import Any

import polars as pl

from pennyweight.scoring.groups import GROUP
from pennyweight.scoring.pairs import MOST_TRIES, RECORDS, SCORED, Compared, Units
from pennyweight.scoring.ranking import AllPairs, board_pairs
from pennyweight.scoring.sides import DEFAULT_COLUMNS, Overlap
from pennyweight.stats.paired import Kind
from pennyweight.stats.resample import CLUSTER
from pennyweight.store.store import Store
from pennyweight.store.task_sums import task_sums, task_values

COLUMNS: dict[str, tuple[str, Kind]] = {
    "accuracy": ("correct", "rate"),
    "pass_rate": ("passed", "rate"),
    "impl_rate_mean": ("impl_rate", "score"),
}
"""The stored measure whose mean is a headline metric, and its kind."""
MAX_CACHED = 64

Place = tuple[str, str, tuple[str, ...], str]


class BoardPairs:
    """Compares the sides of runs, and remembers the last comparisons."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: OrderedDict[Place, list[dict[str, Any]]] = OrderedDict()
        self._lock = threading.Lock()

    def to(
        self,
        run: str,
        stamp: str,
        metric: str | None,
        board: Mapping[str, Any],
        baseline: str,
        changed: Sequence[str] = (),
    ) -> list[dict[str, Any]] | None:
        """Compare the sides of a board with one of them, task by task, all sides at once.

        `changed` are the tasks that are not the same on all sides; they are left
        out. None if there is no such side, or the board's sides have no tasks in common.
        """
        names = [side["name"] for side in board["sides"]]
        if metric not in COLUMNS or board["comparison"] is None or baseline not in names:
            return None
        if baseline == board["comparison"]["baseline"]:
            return list(board["comparison"]["gaps"])
        place = (run, stamp, tuple(board["by"]), baseline)
        with self._lock:
            if place in self._known:
                self._known.move_to_end(place)
                return self._known[place]
        found = self._compared(run, metric, board, names.index(baseline), frozenset(changed))
        with self._lock:
            self._known[place] = found
            while len(self._known) > MAX_CACHED:
                self._known.popitem(last=False)
        return found

    def _compared(
        self,
        run: str,
        metric: str,
        board: Mapping[str, Any],
        first: int,
        changed: Set[str],
    ) -> list[dict[str, Any]]:
        column, kind = COLUMNS[metric]
        sums = [row for row in task_sums(self.store, run, column) if row[2] not in changed]
        names = [side["name"] for side in board["sides"]]
        single = kind == "score" and sum(row[4] for row in sums) <= MOST_TRIES * len(names)
        values = task_values(self.store, run, column) if single else ()
        each = [row for row in values if row[2] not in changed]
        units = _units(sums, each, metric, kind, board)
        present = set(units.table[GROUP])
        which = [(first, g) for g in range(len(names)) if g != first and {first, g} <= present]
        overlaps = {pair: _overlap(units, names, *pair) for pair in which}
        tests = board["comparison"]["tests"]
        tests = AllPairs(**tests) if tests else None
        found = board_pairs(units, names, which, overlaps, tests, confidence=0.95, seed=0)
        return [pair.to_dict() for pair in found]


def _units(
    sums: Sequence[Sequence[Any]],
    each: Sequence[Sequence[Any]],
    metric: str,
    kind: Kind,
    board: Mapping[str, Any],
) -> Units:
    """Number the sides and the tasks of the sums, and of single values."""
    by = list(board["by"])
    groups = [side["group"] for side in board["sides"]]
    sides = pl.DataFrame(groups, dict.fromkeys(by, pl.String)).with_row_index(GROUP)

    def numbered(rows: Sequence[Sequence[Any]], *values: str) -> pl.DataFrame:
        types = dict.fromkeys(("subject", "tier", "task_id"), pl.String)
        schema: Any = {**types, **dict.fromkeys(values, pl.Float64)}
        table = pl.DataFrame(rows, schema, orient="row").join(sides, on=by)
        return table.with_columns(pl.col("task_id").hash().alias(CLUSTER))

    total, count, open_ = (f"{metric}/{part}" for part in ("s", "n", "open"))
    cells = numbered(sums, total, count, SCORED, RECORDS)
    without = pl.lit(0.0) if metric == "pass_rate" else pl.col(SCORED) - pl.col(count)
    cells = cells.with_columns(without.alias(open_))
    table, frame = cells.filter(pl.col(count) > 0), numbered(each, metric)
    others = [name for name in DEFAULT_COLUMNS if name not in by]
    one = Compared(metric, pl.col(metric), kind)
    return Units(table, [one], others, frame, frame.clear(), cells)


def _overlap(units: Units, names: Sequence[str], a: int, b: int) -> Overlap:
    """Return the tasks that two sides both tried."""
    tasks = [units.cells.filter(pl.col(GROUP) == g)[CLUSTER].unique() for g in (a, b)]
    both = tasks[0].filter(tasks[0].is_in(tasks[1].implode()))
    none = (None, None)
    return Overlap(names[a], names[b], len(both), False, none, none, none, (), both)
