"""The sides of a comparison: what tells them apart, their names, the tasks that two both tried."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.metrics.cost import cost_and_passes
from pennyweight.scoring.groups import GROUP
from pennyweight.sources.loader import FILE
from pennyweight.sources.source import Rerun, Source
from pennyweight.stats.interval import Floats
from pennyweight.stats.resample import CLUSTER
from pennyweight.text.natural_order import natural

SIDE = "\0side"
SOURCE = "source"
"""Given in place of a column, compares the sources with each other."""
DEFAULT_COLUMNS = ("tier", "subject")
"""Without `by`, the first of these columns with several values distinguishes the sides."""
MAX_SIDES = 100
_BETWEEN = (" / ", " · ")
"""What is between the columns of a side: in comparisons and in tables of text, and on pages."""
_PART = re.compile(r'("(?:[^"\\]|\\.)*"|.*?)(?: / |\Z)', re.DOTALL)
_HELP = "Compare by another column (--by), or several sources with each other."


def side_name(values: Sequence[str], between: str = _BETWEEN[0]) -> str:
    """Name a side by its values; a value that would make the name ambiguous is quoted.

    >>> side_name(["ours", "T0"]), side_name(["a", "b / c"]), side_name(["a / b"])
    ('ours / T0', 'a / "b / c"', 'a / b')
    """
    return between.join(map(_quote, values)) if len(values) > 1 else "".join(values)


def side_values(name: str) -> list[str]:
    """Return the values that several columns of a side have, given its name in comparisons.

    >>> side_values('a / "b / c"'), side_values("ours / T0")
    (['a', 'b / c'], ['ours', 'T0'])
    """
    values, at = [], 0
    while at <= len(name):
        found = _PART.match(name, at)
        assert found
        part = found[1]
        whole = len(part) > 1 and part[0] == part[-1] == '"'
        values.append(re.sub(r"\\(.)", r"\1", part[1:-1]) if whole else part)
        at = found.end() + (found.end() == len(name) and not found[0].endswith(_BETWEEN[0]))
    return values


def _quote(value: str) -> str:
    if value[:1] != '"' and not any(sign in f" {value} " for sign in _BETWEEN):
        return value
    return '"' + value.replace("\\", r"\\").replace('"', r"\"") + '"'


def _quoted(values: pl.Series) -> pl.Series:
    """Quote the values of a column as in names of sides."""
    known = values.drop_nulls().unique().to_list()
    changed = {value: quoted for value in known if (quoted := _quote(value)) != value}
    return values.replace(changed) if changed else values


def reruns_of(sources: Iterable[Source]) -> dict[str, Rerun]:
    """Return how changed tasks are tried again, by the ids of runs: of all runs but the newest."""
    made = sorted((one.rerun, one.run_id) for one in sources if one.rerun and one.run_id)
    return {run_id: rerun for rerun, run_id in made[:-1]}


@dataclass(frozen=True, slots=True)
class Sides:
    """The columns that distinguish the sides of a comparison, or the sources themselves."""

    columns: tuple[str, ...]
    sources: tuple[str, ...] = ()
    """The name of each side, if sources are sides."""
    origins: tuple[str, ...] = ()
    """The argument that each side comes from, if sources are sides."""
    side_of: tuple[int, ...] = ()
    """The side of each source: the files of a folder are one side."""
    runs: bool = False
    """Whether a source is a run."""
    reruns: Mapping[str, Rerun] = field(default_factory=dict)
    """How changed tasks are tried again, by the ids of runs: of all runs but the newest."""

    @classmethod
    def of(cls, sources: Sequence[Source], by: Sequence[str]) -> Sides:
        """Use these columns; without any, or by run, several sources are sides by themselves."""
        columns = tuple(dict.fromkeys(by))
        runs = any(source.run_id is not None for source in sources)
        again = reruns_of(sources)
        origins = tuple(dict.fromkeys(source.origin for source in sources))
        by_source = columns in {(), ("run",), (SOURCE,)} and all(origins)
        if by_source and len(sources) > 1:
            names = [source.name for source in sources]
            if same := next((s for s in sources if names.count(s.name) > 1), None):
                raise UsageError(f"{same.origin} is named twice; name two different sources.")
        if not by_source or len(origins) < 2:
            return cls(columns, runs=runs, reruns=again)
        short = [Path(name).name or name for name in origins]
        titles = short if len(set(short)) == len(short) else list(origins)
        side_of = tuple(origins.index(source.origin) for source in sources)
        return cls(columns, tuple(titles), origins, side_of, runs, again)

    @property
    def grouped(self) -> list[str]:
        """The columns that records are grouped by while they are read."""
        return [FILE] if self.sources else list(self.columns)

    def named(self, frame: pl.DataFrame) -> tuple[tuple[str, ...], pl.DataFrame]:
        """Add the side of each record, and drop records without one; also return the columns."""
        if not frame.height:
            raise InputError(["There are no records to compare."])
        columns, side = self.side(lambda name: frame[name].drop_nulls().n_unique() > 1)
        return columns, frame.with_columns(side.alias(SIDE)).drop_nulls(SIDE)

    def ordered(
        self, named: pl.DataFrame, columns: Sequence[str], only: Collection[str] = ()
    ) -> pl.DataFrame:
        """Put the sides in their order; `only` names those to keep, if not all of them."""
        order = self.order(named[SIDE].unique().to_list(), columns, only)
        if only:
            named = named.filter(pl.col(SIDE).is_in(order))
        return named.with_columns(pl.col(SIDE).cast(pl.Enum(order)))

    def side(self, several: Callable[[str], bool]) -> tuple[tuple[str, ...], pl.Expr]:
        """Return the columns, and the side of a record; `several` tells if a column has values."""
        columns = self.columns
        if self.sources:
            names = {source: self.sources[side] for source, side in enumerate(self.side_of)}
            side = pl.col(FILE).replace_strict(names, default=None, return_dtype=pl.String)
            if columns == ("run",):
                side = pl.coalesce(pl.col("run").cast(pl.String), side)
            return columns or ("run",), side
        if not columns:
            columns = tuple(filter(several, DEFAULT_COLUMNS))[:1]
        if not columns:
            raise UsageError(
                f"The records have neither several tiers nor several subjects. {_HELP}"
            )
        texts = [pl.col(name).cast(pl.String) for name in columns]
        if len(texts) > 1:
            texts = [t.map_batches(_quoted, pl.String, is_elementwise=True) for t in texts]
        return columns, pl.concat_str(texts, separator=" / ")

    def order(
        self, present: Sequence[str], columns: Sequence[str], only: Collection[str] = ()
    ) -> list[str]:
        """Order the sides that records have; refuse too few or too many."""
        order = [n for n in self.sources if n in present]
        order += sorted((n for n in present if n not in order), key=natural)
        what = ", ".join(columns)
        if only:
            if missing := next((n for n in only if n not in order), None):
                raise UsageError(unknown("Side", missing, order, f"It is none by {what}."))
            order = [n for n in order if n in only]
        if len(order) < 2:
            alone = f": {order[0]!r}" if order else ""
            raise UsageError(f"There is only one side to compare by {what}{alone}. {_HELP}")
        if len(order) > MAX_SIDES:
            limit = f"at most {MAX_SIDES} can be compared"
            raise UsageError(f"{what} has {len(order):,} values; {limit}.")
        return order

    def baseline(self, wanted: str | None, names: Sequence[str]) -> str:
        """Return the name of the side that the others are compared with."""
        if wanted is None:
            return "T0" if "T0" in names else names[0]
        if wanted in names:
            return wanted
        for name, origin in zip(self.sources, self.origins, strict=True):
            if wanted in {origin, Path(origin).stem} and name in names:
                return name
        listed = f"The sides are {', '.join(names[:12])}{' …' if len(names) > 12 else ''}."
        raise UsageError(f"--baseline: {unknown('Side', wanted, names, listed)}")


@dataclass(frozen=True, slots=True)
class UnsharedValues:
    """Values of a column that only one side has, and how many records are left out with them."""

    side: str
    values: tuple[str, ...]
    records: int


@dataclass(frozen=True, slots=True)
class SharedValues:
    """The values of a column that both sides have, if one side has others too."""

    column: str
    values: tuple[str, ...]
    alone: tuple[UnsharedValues, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """The tasks that two sides both tried.

    `passes`, `rates` and `costs` are the cost of a pass, the pass rate and the cost of an attempt
    of each side on these tasks.
    """

    a: str
    b: str
    tasks: int
    whole: bool
    """Whether both sides tried the same tasks, so that nothing is left out."""
    passes: tuple[float | None, float | None]
    rates: tuple[float | None, float | None]
    costs: tuple[float | None, float | None]
    common: tuple[SharedValues, ...]
    clusters: pl.Series = field(repr=False, compare=False)

    @classmethod
    def of(
        cls,
        slices: Iterable[pl.DataFrame],
        names: tuple[str, str],
        groups: tuple[int, int],
        key: list[str],
    ) -> Overlap:
        """Return what two sides have in common; errors count as tries.

        A slice has all records of its tasks; records without a task are in none.
        """
        clusters, whole, sums = [], True, [np.zeros(7)] * 2
        known: dict[str, list[Counter[str | None]]] = {
            name: [Counter(), Counter()] for name in key if name != CLUSTER
        }
        for rows in slices:
            sides = [rows.filter(pl.col(GROUP) == group) for group in groups]
            units = [side.select(key).unique() for side in sides]
            both = units[0].join(units[1], on=key, how="semi", nulls_equal=True)
            clusters.append(both[CLUSTER].unique())
            whole = whole and all(side.height == both.height for side in units)
            for i, side in enumerate(sides):
                paid = side.join(both, on=key, how="semi", nulls_equal=True)
                sums[i] = sums[i] + _sums(paid.select("status", pl.col(*_PAID).cast(pl.Float64)))
                for name, counts in known.items():
                    values = side.group_by(pl.col(name).cast(pl.String)).len()
                    counts[i].update(dict(values.iter_rows()))
        shared = (_shared_values(name, names, counts) for name, counts in known.items())
        (rate_a, cost_a), (rate_b, cost_b) = (_means(one) for one in sums)
        return cls(
            *names,
            tasks=sum(map(len, clusters)),
            whole=whole,
            passes=(_cost_of_pass(sums[0]), _cost_of_pass(sums[1])),
            rates=(rate_a, rate_b),
            costs=(cost_a, cost_b),
            common=tuple(values for values in shared if values),
            clusters=pl.concat(clusters),
        )

    def better(self, name: str) -> bool:
        """Whether a side passed more often than the other on the shared tasks."""
        return _above(self.rates, first=name == self.a)

    def dearer(self, name: str) -> bool:
        """Whether a side cost more per attempt than the other on the shared tasks."""
        return _above(self.costs, first=name == self.a)


def _above(values: tuple[float | None, float | None], *, first: bool) -> bool:
    """Whether the first or the second number is above the other by more than rounding."""
    own, other = values if first else values[::-1]
    if own is None or other is None:
        return False
    return own > other and not math.isclose(own, other, rel_tol=1e-9)


_PAID = {"passed": pl.Float64, "cost_usd": pl.Float64}


def _sums(paid: pl.DataFrame) -> Floats:
    """Return how many passes and costs are known, their sums, and cost and passes for a price.

    Errors count for the price of a pass only.
    """
    answered = paid.filter(pl.col("status").ne_missing("error")).select(*_PAID)
    columns = pl.col("cost_usd"), pl.col("passed"), pl.col("status").cast(pl.String)
    price = paid.select(one.alias(str(n)) for n, one in enumerate(cost_and_passes(*columns)))
    counts, totals = ([*row.row(0)] for row in (answered.count(), answered.sum()))
    return np.array([*counts, *totals, *price.row(0)], dtype=np.float64)


def _means(sums: Floats) -> list[float | None]:
    counts, totals = sums[:2].tolist(), sums[2:4].tolist()
    return [total / n if n else None for n, total in zip(counts, totals, strict=True)]


def _cost_of_pass(sums: Floats) -> float | None:
    spent, passes, decided = sums[4:].tolist()
    if not decided:
        return None
    return float(spent / passes) if passes else math.inf


def _shared_values(
    column: str, names: tuple[str, str], counts: Sequence[Mapping[str | None, int]]
) -> SharedValues | None:
    alone = []
    for name, own, other in zip(names, counts, reversed(counts), strict=True):
        if only := own.keys() - other.keys():
            alone.append(UnsharedValues(name, _texts(only), sum(own[value] for value in only)))
    both = counts[0].keys() & counts[1].keys()
    return SharedValues(column, _texts(both), tuple(alone)) if alone else None


def _texts(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted("none" if value is None else value for value in values))
