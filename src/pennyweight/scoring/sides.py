"""The sides of a comparison: what tells them apart, their names, and the baseline among them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.sources.loader import FILE
from pennyweight.sources.source import Source
from pennyweight.text.natural_order import natural

SIDE = "\0side"
SOURCE = "source"
"""Given in place of a column, compares the sources with each other."""
DEFAULT_COLUMNS = ("tier", "subject")
"""Without `by`, the first of these columns with several values distinguishes the sides."""
MAX_SIDES = 100
_HELP = "--by COLUMN selects what to compare; several sources are compared with each other."


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

    @classmethod
    def of(cls, sources: Sequence[Source], by: Sequence[str]) -> Sides:
        """Use these columns; without any, or by run, several sources are sides by themselves."""
        columns = tuple(dict.fromkeys(by))
        runs = any(source.run_id is not None for source in sources)
        origins = tuple(dict.fromkeys(source.origin for source in sources))
        by_source = columns in {(), ("run",), (SOURCE,)} and all(origins)
        if by_source and len(sources) > 1:
            names = [source.name for source in sources]
            if same := next((s for s in sources if names.count(s.name) > 1), None):
                raise UsageError(f"{same.origin} is named twice; name two different sources.")
        if not by_source or len(origins) < 2:
            return cls(columns, runs=runs)
        short = [Path(name).name or name for name in origins]
        titles = short if len(set(short)) == len(short) else list(origins)
        side_of = tuple(origins.index(source.origin) for source in sources)
        return cls(columns, tuple(titles), origins, side_of, runs)

    @property
    def grouped(self) -> list[str]:
        """The columns that records are grouped by while they are read."""
        return [FILE] if self.sources else list(self.columns)

    def named(
        self, frame: pl.DataFrame, only: Collection[str] = ()
    ) -> tuple[tuple[str, ...], pl.DataFrame]:
        """Add the side of each record, and drop records without one; also return the columns.

        `only` names the sides to keep, if not all of them.
        """
        if not frame.height:
            raise InputError(["There are no records to compare."])
        columns = self.columns
        if self.sources:
            names = {source: self.sources[side] for source, side in enumerate(self.side_of)}
            side = pl.col(FILE).replace_strict(names, default=None, return_dtype=pl.String)
            if columns == ("run",):
                side = pl.coalesce(pl.col("run").cast(pl.String), side)
            columns = columns or ("run",)
        else:
            columns = columns or (_first(frame),)
            side = pl.concat_str(pl.col(columns).cast(pl.String), separator=" / ")
        named = frame.with_columns(side.alias(SIDE)).drop_nulls(SIDE)
        present = named[SIDE].unique().to_list()
        order = [n for n in self.sources if n in present]
        order += sorted((n for n in present if n not in order), key=natural)
        what = ", ".join(columns)
        if only:
            if missing := next((n for n in only if n not in order), None):
                raise UsageError(unknown("Side", missing, order, f"It is none by {what}."))
            order = [n for n in order if n in only]
            named = named.filter(pl.col(SIDE).is_in(order))
        if len(order) < 2:
            only = f": {order[0]!r}" if order else ""
            raise UsageError(f"There is only one side to compare by {what}{only}. {_HELP}")
        if len(order) > MAX_SIDES:
            limit = f"at most {MAX_SIDES} can be compared"
            raise UsageError(f"{what} has {len(order):,} values; {limit}.")
        return columns, named.with_columns(pl.col(SIDE).cast(pl.Enum(order)))

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


def _first(frame: pl.DataFrame) -> str:
    for name in DEFAULT_COLUMNS:
        if frame[name].drop_nulls().n_unique() > 1:
            return name
    raise UsageError(f"The records have neither several tiers nor several subjects. {_HELP}")
