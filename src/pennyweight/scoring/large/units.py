"""Sums of two sides' values, task by task, for records on disk: some of the tasks at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from pennyweight.scoring.groups import GROUP, sums
from pennyweight.scoring.large.spill import Spill
from pennyweight.scoring.pairs import (
    MOST_TRIES,
    Compared,
    Extremes,
    Pair,
    PairwiseTest,
    cells_of,
    corrected,
    overlapping,
    shared_by_all,
)
from pennyweight.scoring.sides import Overlap
from pennyweight.stats.interval import Floats
from pennyweight.stats.paired import Paired
from pennyweight.stats.resample import CLUSTER

SLICE = 1_500_000
"""About how many records are added up at a time."""
SAMPLE = 64
"""One of so many tasks usually tells whether two sides have any in common."""
_SLICE = "\0slice"
_WAITS = "\0waits"
_HASHES = 1 << 64


@dataclass(frozen=True)
class LargeUnits:
    """What `Units` gives, of records on disk: one metric of two sides is in memory at a time."""

    spill: Spill
    compared: list[Compared]
    others: list[str]

    @classmethod
    def of(cls, spill: Spill, compared: list[Compared], others: list[str]) -> LargeUnits:
        """Take records on disk; values that read several records are computed in memory."""
        compared = [*compared]
        for i, one in enumerate(compared):
            if not one.alone:
                compared[i], values = one.computed(spill.frame(one.columns, named=one.named))
                spill.add(values)
        return cls(spill, compared, others)

    @property
    def _counted(self) -> pl.Expr:
        """Whether a record has a task and no error."""
        return pl.col("status").ne_missing("error") & pl.col("task_id").is_not_null()

    def tables(self, *names: str) -> Iterator[pl.DataFrame]:
        """Yield the sums and counts of metrics, for some of the tasks at a time."""
        chosen = [one for one in self.compared if one.name in names]
        values = [one.values.alias(one.name) for one in chosen]
        for _, rows in self._slices([GROUP, *self.shared(), *values], self._counted):
            plain = [replace(one, values=pl.col(one.name)) for one in chosen]
            yield _table(rows, plain, self.shared())

    def shared(self) -> list[str]:
        """Return the columns in which tries must agree that all sides are compared by."""
        return [name for name in self.others if shared_by_all(name, self._distinct)]

    def named_tasks(self) -> Iterator[pl.DataFrame]:
        """Yield the number and the name of each record's task."""
        return self.spill.rows([CLUSTER, "task_id"], pl.col("task_id").is_not_null())

    def overlap(self, names: Sequence[str], a: int, b: int) -> Overlap:
        """Return what two sides, given by their numbers, both tried."""
        key = self._key(a, b)
        columns = [GROUP, *key[1:], "status", "passed", "cost_usd"]
        tried = pl.col(GROUP).is_in([a, b]) & pl.col("task_id").is_not_null()
        slices = (rows for _, rows in self._slices(columns, tried))
        return Overlap.of(slices, (names[a], names[b]), (a, b), key)

    def pairs(
        self,
        names: Sequence[str],
        which: Sequence[tuple[int, int]],
        overlaps: Mapping[tuple[int, int], Overlap],
        asked: PairwiseTest,
    ) -> list[Pair]:
        """Compare pairs of sides, given by their numbers, in every value that both have."""
        known = self._known(len(names))
        chosen = [
            (a, b, one) for a, b in which for one in self.compared if known[one.name] >= {a, b}
        ]
        if not asked.comparisons:
            some = ((one, a, b) for a, b, one in chosen if overlaps[a, b].tasks)
            asked = asked.counted(sum(self._meet(*pair) for pair in some))
        found = []
        for a, b, one in chosen:
            tried, extremes = overlaps[a, b].clusters, None
            paired = self._paired(one, a, b, tried)
            if self.lacking(one.name) & {a, b}:
                extremes = self._extremes(one, a, b, tried)
            found.append(asked(names[a], names[b], one, *paired, extremes))
        return corrected(found)

    def lacking(self, metric: str) -> set[int]:
        """Return the sides that have records without a value of a metric; errors have none."""
        return self._lacking[metric]

    @cached_property
    def _lacking(self) -> dict[str, set[int]]:
        """Return which sides have records without a value of each metric; errors have none."""
        scored = pl.col("status").ne_missing("error")
        values = [(~scored | one.values.is_null()).alias(one.name) for one in self.compared]
        named = pl.col("task_id").is_not_null()
        found = pl.concat(
            rows.group_by(GROUP).agg(pl.all().any())
            for rows in self.spill.rows([GROUP, *values], named)
        )
        return {one.name: {*found.filter(pl.col(one.name))[GROUP]} for one in self.compared}

    def _extremes(self, one: Compared, a: int, b: int, tried: pl.Series) -> Extremes | None:
        """Return what the missing results of two sides could change."""
        key = self._key(a, b)
        scored = pl.col("status").ne_missing("error")
        value = pl.when(scored).then(one.values).alias(one.name)
        waits = one.waiting.alias(_WAITS)
        keep = pl.col("task_id").is_not_null() & pl.col(GROUP).is_in([a, b])
        plain = replace(one, values=pl.col(one.name), waiting=pl.col(_WAITS))
        cells = [
            cells_of(rows, [plain], key[1:])
            for _, rows in self._slices([GROUP, *key[1:], "status", value, waits], keep)
        ]
        table = pl.concat(cells)
        return plain.extremes([table.filter(pl.col(GROUP) == g) for g in (a, b)], key, tried)

    def _known(self, sides: int) -> dict[str, set[int]]:
        """Return which sides have values of each metric."""
        values = [one.values.is_not_null().alias(one.name) for one in self.compared]
        found = pl.concat(
            rows.group_by(GROUP).agg(pl.all().any())
            for rows in self.spill.rows([GROUP, *values], self._counted)
        )
        return {
            one.name: set(found.filter(pl.col(one.name))[GROUP]) & set(range(sides))
            for one in self.compared
        }

    def _meet(self, one: Compared, a: int, b: int) -> bool:
        """Whether two sides have a value at the same task."""
        some = pl.col(CLUSTER) < _HASHES // SAMPLE
        for only in (some, ~some):
            for _, rows in self._values(one, a, b, only):
                key = self._key(a, b)
                sides = [rows.filter(pl.col(GROUP) == g).select(key) for g in (a, b)]
                if sides[0].join(sides[1], on=key, how="semi", nulls_equal=True).height:
                    return True
        return False

    def _values(
        self, one: Compared, a: int, b: int, only: pl.Expr
    ) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield the values of two sides, for some of the tasks at a time."""
        value = one.values.alias(one.name)
        key = [n for n in self._key(a, b) if n != CLUSTER]
        keep = self._counted & pl.col(GROUP).is_in([a, b]) & one.values.is_not_null() & only
        return self._slices([GROUP, *key, value], keep)

    def _paired(self, one: Compared, a: int, b: int, tried: pl.Series) -> tuple[Paired, int, int]:
        """Pair two sides, as `Compared.by_task` does."""
        key, plain = self._key(a, b), replace(one, values=pl.col(one.name))
        both: list[pl.DataFrame] = []
        only, uneven = [0, 0], False
        for bucket, rows in self._values(one, a, b, pl.lit(value=True)):
            table = _table(rows, [plain], key[1:])
            tables = [table.filter(pl.col(GROUP) == g) for g in (a, b)]
            units, alone = plain.in_both(tables, key, tried.filter(self._bucket(tried) == bucket))
            both.append(plain.tasks(units))
            only = [total + more for total, more in zip(only, alone, strict=True)]
            uneven = uneven or plain.needs_tries(units)
        mean_a, mean_b, tries_a, tries_b = _arrays(both)
        if uneven and tries_a.sum() + tries_b.sum() <= MOST_TRIES:
            tasks = pl.concat([part[CLUSTER] for part in both]).implode()
            few = self._values(one, a, b, pl.col(CLUSTER).is_in(tasks))
            frame = pl.concat(rows for _, rows in few)
            table = _table(frame, [plain], key[1:])
            tables = [table.filter(pl.col(GROUP) == g) for g in (a, b)]
            return plain.by_task(tables, key, frame, tried)[0], only[0], only[1]
        return Paired(mean_a, mean_b, tries_a, tries_b, one.kind), only[0], only[1]

    @cached_property
    def _distinct(self) -> pl.DataFrame:
        """The values of the other configurations on each side."""
        columns = [pl.col(name).cast(pl.String) for name in self.others]
        found = [rows.unique() for rows in self.spill.rows([GROUP, *columns], self._counted)]
        return pl.concat(found).unique()

    def _key(self, a: int, b: int) -> list[str]:
        """Return the columns in which compared tries must agree."""
        sides = [self._distinct.filter(pl.col(GROUP) == g) for g in (a, b)]
        return [CLUSTER, *(n for n in self.others if overlapping(n, *sides))]

    def _slices(
        self, columns: Sequence[str | pl.Expr], keep: pl.Expr
    ) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield columns of the records that count, some of the tasks at a time, in their order."""
        buckets: list[list[pl.DataFrame]] = [[] for _ in range(self._size)]
        empty = pl.DataFrame()
        for rows in self.spill.rows([CLUSTER, *columns], keep):
            empty = rows.clear()
            numbered = rows.with_columns(self._bucket(rows[CLUSTER]).alias(_SLICE))
            for (number,), part in numbered.partition_by(
                _SLICE, as_dict=True, include_key=False
            ).items():
                buckets[number].append(part)
        for number in range(self._size):
            whole = pl.concat(buckets[number] or [empty], rechunk=True)
            buckets[number] = []
            yield number, whole

    @property
    def _size(self) -> int:
        return max(1, -(-self.spill.height // SLICE))

    def _bucket(self, clusters: pl.Series) -> pl.Series:
        """Return in which slice tasks are."""
        if self._size == 1:
            return pl.Series([0], dtype=pl.UInt64).new_from_index(0, len(clusters))
        return clusters // (_HASHES // self._size + 1)


def _table(rows: pl.DataFrame, compared: Sequence[Compared], others: Sequence[str]) -> pl.DataFrame:
    """Add up the values of each side, task by task, in each other configuration."""
    values = {one.name: one.values for one in compared}
    return rows.group_by(GROUP, CLUSTER, *others).agg(sums(values))


def _arrays(tasks: list[pl.DataFrame]) -> list[Floats]:
    """Return the means and the tries of both sides; the same number of tries is held once."""
    found: list[Floats] = []
    for name in tasks[0].columns:
        if name == CLUSTER:
            continue
        column = np.concatenate([part[name].to_numpy() for part in tasks])
        if len(column) and (column == column[0]).all():
            column = np.broadcast_to(column[:1].copy(), column.shape)
        found.append(column)
    return found
