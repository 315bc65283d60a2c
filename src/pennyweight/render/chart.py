"""A chart: a picture, a sentence on how to read it, and the table behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Link = Callable[[Mapping[str, Any]], str | None]
    """Gives the address of the records behind a mark, by their filter."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, what it shows, and its numbers; the first row is the head."""

    name: str
    title: str
    note: str
    rows: tuple[tuple[Any, ...], ...]
    svg: str
    units: tuple[str, ...] = ()
    """The unit of each column of numbers."""
    links: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """Where the marks lead, by the row and the column of their numbers."""
    wide: str = ""
    """The picture over several columns, where else a hole would be left beside it."""
    span: int = 1
    """How many columns of three it takes then."""


def nowhere(_: Mapping[str, Any]) -> None:
    """Lead nowhere, as in a report that stands alone."""


def named(metric: str) -> str:
    """Write a metric's name as a title has it."""
    return metric.replace("_", " ").capitalize()
