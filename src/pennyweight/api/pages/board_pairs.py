"""The sides of a stored run against a baseline that a reader chose."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pennyweight.scoring.groups import GROUP
from pennyweight.scoring.pairs import Compared, Units
from pennyweight.scoring.ranking import AllPairs, board_pairs
from pennyweight.scoring.sides import DEFAULT_COLUMNS, Overlap
from pennyweight.stats.paired import Kind
from pennyweight.stats.resample import CLUSTER
from pennyweight.store.store import Store
from pennyweight.store.task_sums import task_sums

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
        self, run: str, stamp: str, metric: str | None, board: Mapping[str, Any], baseline: str
    ) -> list[dict[str, Any]] | None:
        """Compare the sides of a board with one of them, task by task, all sides at once.

        None if there is no such side, or the board's sides have no tasks in common.
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
        found = self._compared(run, metric, board, names.index(baseline))
        with self._lock:
            self._known[place] = found
            while len(self._known) > MAX_CACHED:
                self._known.popitem(last=False)
        return found

    def _compared(
        self, run: str, metric: str, board: Mapping[str, Any], first: int
    ) -> list[dict[str, Any]]:
        column, kind = COLUMNS[metric]
        units = _units(task_sums(self.store, run, column), metric, kind, board)
        names = [side["name"] for side in board["sides"]]
        present = set(units.table[GROUP])
        which = [(first, g) for g in range(len(names)) if g != first and {first, g} <= present]
        overlaps = {pair: _overlap(units, names, *pair) for pair in which}
        tests = board["comparison"]["tests"]
        tests = AllPairs(**tests) if tests else None
        found = board_pairs(units, names, which, overlaps, tests, confidence=0.95, seed=0)
        return [pair.to_dict() for pair in found]


def _units(
    rows: Sequence[Sequence[Any]], metric: str, kind: Kind, board: Mapping[str, Any]
) -> Units:
    """Number the sides and the tasks of the sums."""
    total, count = f"{metric}/s", f"{metric}/n"
    types = dict.fromkeys(("subject", "tier", "task_id"), pl.String)
    schema: Any = {**types, total: pl.Float64, count: pl.Float64}
    table = pl.DataFrame(rows, schema, orient="row")
    by = list(board["by"])
    sides = pl.DataFrame(
        [side["group"] for side in board["sides"]], schema=dict.fromkeys(by, pl.String)
    )
    numbered = table.join(sides.with_row_index(GROUP), on=by).with_columns(
        pl.col("task_id").hash().alias(CLUSTER)
    )
    others = [name for name in DEFAULT_COLUMNS if name not in by]
    compared = Compared(metric, pl.col(total), kind)
    return Units(numbered, [compared], others, numbered.clear(), numbered.clear())


def _overlap(units: Units, names: Sequence[str], a: int, b: int) -> Overlap:
    """Return the tasks that two sides both have results of."""
    tasks = [units.table.filter(pl.col(GROUP) == g)[CLUSTER].unique() for g in (a, b)]
    both = tasks[0].filter(tasks[0].is_in(tasks[1].implode()))
    none = (None, None)
    return Overlap(names[a], names[b], len(both), False, none, none, none, (), both)
