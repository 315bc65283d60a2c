"""The tasks that two sides have in common, and those their comparison leaves out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import polars as pl

from pennyweight.scoring.groups import GROUP
from pennyweight.stats.resample import CLUSTER


@dataclass(frozen=True, slots=True)
class Alone:
    """Values of a column that only one side has, and how many records stay out with them."""

    side: str
    values: tuple[str, ...]
    records: int


@dataclass(frozen=True, slots=True)
class Common:
    """The values of a column that both sides have, where one has others too."""

    column: str
    values: tuple[str, ...]
    alone: tuple[Alone, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """The tasks that two sides both tried, and what a pass costs there."""

    a: str
    b: str
    tasks: int
    whole: bool
    """Whether both sides tried the same tasks, so that nothing is left out."""
    passes: tuple[float | None, float | None]
    """The cost of a pass of each side on what both tried."""
    rates: tuple[float | None, float | None]
    costs: tuple[float | None, float | None]
    """How often each side passed there, and what an attempt cost."""
    common: tuple[Common, ...]
    clusters: pl.Series = field(repr=False, compare=False)
    """The tasks."""

    @classmethod
    def of(
        cls, frame: pl.DataFrame, names: tuple[str, str], groups: tuple[int, int], key: list[str]
    ) -> Overlap:
        """Find what two sides of the records have in common; errors are tries too."""
        tried = frame.filter(pl.col("task_id").is_not_null())
        sides = [tried.filter(pl.col(GROUP) == group) for group in groups]
        units = [side.select(key).unique() for side in sides]
        both = units[0].join(units[1], on=key, how="semi", nulls_equal=True)
        clusters = both[CLUSTER].unique()
        shared = [side.join(both, on=key, how="semi", nulls_equal=True) for side in sides]
        return cls(
            *names,
            tasks=len(clusters),
            whole=all(one.height == both.height for one in units),
            passes=(_cost_of_pass(shared[0]), _cost_of_pass(shared[1])),
            rates=(_mean(shared[0], "passed"), _mean(shared[1], "passed")),
            costs=(_mean(shared[0], "cost_usd"), _mean(shared[1], "cost_usd")),
            common=tuple(
                one for name in key if name != CLUSTER and (one := _common(name, names, sides))
            ),
            clusters=clusters,
        )

    def better(self, name: str) -> bool:
        """Whether a side passed more often than the other on what both tried."""
        return _above(self.rates, first=name == self.a)

    def dearer(self, name: str) -> bool:
        """Whether an attempt of a side cost more than the other's on what both tried."""
        return _above(self.costs, first=name == self.a)


def _above(values: tuple[float | None, float | None], *, first: bool) -> bool:
    """Whether one of two numbers is above the other by more than their last digits."""
    own, other = values if first else values[::-1]
    if own is None or other is None:
        return False
    return own > other and not math.isclose(own, other, rel_tol=1e-9)


def _cost_of_pass(frame: pl.DataFrame) -> float | None:
    """Return what a pass costs in records that have a cost and a verdict."""
    known = frame.filter(
        pl.col("status").ne_missing("error"),
        pl.col("cost_usd").is_not_null(),
        pl.col("passed").is_not_null(),
    )
    if not known.height:
        return None
    passes = float(known["passed"].cast(pl.Float64).sum())
    return float(known["cost_usd"].sum()) / passes if passes else math.inf


def _mean(frame: pl.DataFrame, column: str) -> float | None:
    scored = frame.filter(pl.col("status").ne_missing("error"))
    return scored.select(pl.col(column).cast(pl.Float64).mean()).item()  # type: ignore[no-any-return]


def _common(column: str, names: tuple[str, str], sides: list[pl.DataFrame]) -> Common | None:
    """Describe which values both sides have, where they differ."""
    counts = [
        dict(side.group_by(pl.col(column).cast(pl.String)).len().iter_rows()) for side in sides
    ]
    alone = []
    for name, own, other in zip(names, counts, reversed(counts), strict=True):
        if only := [value for value in own if value not in other]:
            records = sum(own[value] for value in only)
            alone.append(Alone(name, _texts(only), records))
    both = [value for value in counts[0] if value in counts[1]]
    return Common(column, _texts(both), tuple(alone)) if alone else None


def _texts(values: list[str | None]) -> tuple[str, ...]:
    return tuple(sorted("none" if value is None else value for value in values))
