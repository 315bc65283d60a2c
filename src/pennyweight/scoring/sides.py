"""The sides of a comparison: which records stand against which."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.sources.loader import FILE

if TYPE_CHECKING:
    from pennyweight.sources.source import Source

SIDE = "\0side"

SOURCE = "source"
"""The name that compares several sources with each other, in place of a column."""

ASKED = ("tier", "subject")
"""The columns that tell sides apart when nothing was said, the first that can."""

MAX_SIDES = 100

_HELP = "--by COLUMN says what to compare; several sources are compared with each other."


@dataclass(frozen=True, slots=True)
class Sides:
    """The columns that distinguish the sides of a comparison, or the sources themselves."""

    columns: tuple[str, ...]
    sources: tuple[str, ...] = ()
    """The name of each source, where sources are sides."""
    origins: tuple[str, ...] = ()
    """What the user named for each side, where sources are sides."""
    side_of: tuple[int, ...] = ()
    """Which side each source belongs to: the files of a folder are one side."""
    runs: bool = False
    """Whether the records are those of runs, which have every column."""

    @classmethod
    def of(cls, sources: Sequence[Source], by: str | Sequence[str] | None) -> Sides:
        """Read what was asked for; several sources, or runs, are sides by themselves."""
        columns = (by,) if isinstance(by, str) else tuple(dict.fromkeys(by or ()))
        runs = any(source.run_id is not None for source in sources)
        origins = tuple(dict.fromkeys(source.origin for source in sources))
        alone = columns in {(), ("run",), (SOURCE,)} and all(origins)
        if alone and len(sources) > 1:
            names = [source.name for source in sources]
            if same := next((s for s in sources if names.count(s.name) > 1), None):
                what = f"{same.origin} is named twice"
                raise UsageError(f"{what}; a comparison needs two that differ.")
        if not alone or len(origins) < 2:
            return cls(columns, runs=runs)
        short = [Path(name).name or name for name in origins]
        titles = short if len(set(short)) == len(short) else list(origins)
        side_of = tuple(origins.index(source.origin) for source in sources)
        return cls(columns, tuple(titles), origins, side_of, runs)

    @property
    def grouped(self) -> list[str]:
        """The columns that records are grouped by while they are read."""
        return [FILE] if self.sources else list(self.columns)

    def named(self, frame: pl.DataFrame) -> tuple[tuple[str, ...], pl.DataFrame]:
        """Add the side of each record, null where it has none; also return the columns used."""
        if not frame.height:
            raise InputError(["There are no records to compare."])
        columns, side = self.columns, None
        if self.sources:
            names = {source: self.sources[side] for source, side in enumerate(self.side_of)}
            side = pl.col(FILE).replace_strict(names, default=None, return_dtype=pl.String)
            if columns == ("run",):
                side = pl.coalesce(pl.col("run").cast(pl.String), side)
            columns = columns or ("run",)
        elif not columns:
            columns = (_first(frame),)
        if side is None:
            parts = [pl.col(name).cast(pl.String) for name in columns]
            side = pl.concat_str(parts, separator=" / ")
        named = frame.with_columns(side.alias(SIDE))
        found = [name for name in named[SIDE].unique().to_list() if name is not None]
        order = [n for n in self.sources if n in found]
        order += sorted((n for n in found if n not in order), key=_natural)
        if len(order) < 2:
            what = ", ".join(columns)
            only = f": {order[0]!r}" if order else ""
            raise UsageError(f"There is only one side to compare by {what}{only}. {_HELP}")
        if len(order) > MAX_SIDES:
            what = ", ".join(columns)
            raise UsageError(
                f"{what} has {len(order):,} values; at most {MAX_SIDES} can be compared."
            )
        kept = named.drop_nulls(SIDE).with_columns(pl.col(SIDE).cast(pl.Enum(order)))
        return columns, kept

    def baseline(self, wanted: str | None, names: Sequence[str]) -> str:
        """Find the side that the others are compared with."""
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
    for name in ASKED:
        if frame[name].drop_nulls().n_unique() > 1:
            return name
    raise UsageError(f"The records have neither several tiers nor several subjects. {_HELP}")


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort T2 before T10."""
    parts = re.findall(r"\d+|\D+", name)
    return [(int(p) if p.isascii() and p.isdigit() else -1, p) for p in parts]
