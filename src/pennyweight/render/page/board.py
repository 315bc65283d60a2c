"""What the template of a leaderboard shows: columns, rows and what can be chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from markupsafe import Markup

from pennyweight.render.page.metric_titles import MetricTitle
from pennyweight.text.format import level

RANK_RANGES = (
    "A range of ranks contains the true rank; two sides whose ranges overlap may still differ."
)
Address = Callable[[Mapping[str, str]], str]
"""Returns the address of the same page with other choices; an empty one is left out."""


@dataclass(frozen=True, slots=True)
class BoardChoice:
    """What a reader chose: the columns of the sides, the order, the baseline, part of a name."""

    by: str = ""
    sort: str = ""
    reverse: bool = False
    baseline: str = ""
    find: str = ""
    every: bool = False


@dataclass(frozen=True, slots=True)
class BoardCell:
    """A metric of a side, and the same as a cell of the page's table."""

    value: str
    interval: str
    written: Markup


@dataclass(frozen=True, slots=True)
class BoardColumn:
    """A metric, with what it means and where a click on it leads."""

    metric: MetricTitle
    href: str = ""
    order: str = ""
    """`ascending` or `descending`, if the board is sorted by it."""
    axis: tuple[str, ...] | None = None
    """The ends of the scale of its bars."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The paired difference of a side from the baseline."""

    value: str
    interval: str
    shown: bool
    """Whether the difference is significant, adjusted for all sides."""
    words: str


@dataclass(frozen=True, slots=True)
class BoardVerdict:
    """The latest verdict of a policy on a side."""

    policy: str
    verdict: str
    current: bool
    when: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A side of the board."""

    name: str
    brief: str
    """The name where there is little room."""
    rank: str
    rank_words: str
    leads: bool
    """Whether no side is shown to be better."""
    cells: tuple[BoardCell, ...]
    errors: int
    records: int
    gap: Gap | None
    baseline: bool = False
    href: str | None = None
    """The records of the side."""
    choose: str = ""
    """The board with this side as the baseline."""
    verdicts: tuple[BoardVerdict, ...] = ()
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class BoardTab:
    """Another way to tell the sides apart."""

    title: str
    href: str
    current: bool


@dataclass(frozen=True, slots=True)
class BoardView:
    """What the template of a leaderboard shows."""

    rows: tuple[BoardRow, ...]
    columns: tuple[BoardColumn, ...]
    headline: MetricTitle
    by: str
    title: str = "Leaderboard"
    tabs: tuple[BoardTab, ...] = ()
    baseline: str = ""
    ranked: bool = False
    leaders: int = 0
    """How many of the first rows may be the best; 0 where the order is another."""
    unranked: str = ""
    """Why the last rows have no rank."""
    ordered: bool = False
    """Whether the rows are in the order of the headline metric."""
    sorts: tuple[tuple[str, str, bool], ...] = ()
    """The metrics to sort by: name, title, and whether it is the current one."""
    hidden: int = 0
    every_href: str = ""
    name_href: str = ""
    choice: BoardChoice = field(default_factory=BoardChoice)
    confidence: float = 0.95
    errors: bool = False
    verdicts: bool = False
    common: int = 0
    sides: int = 0
    """How many there are, also those that are not shown."""

    @property
    def caption(self) -> str:
        """What the intervals and ranks mean."""
        said = f"{level(self.confidence)} confidence intervals."
        if self.baseline and self.sides > 2:
            many = "all pairs of sides" if self.ranked else "all of them"
            said += f" Intervals of differences hold for {many} at once."
        return f"{said} {RANK_RANGES}" if self.ranked else said
