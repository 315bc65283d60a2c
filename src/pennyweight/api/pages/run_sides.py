"""The sides of stored runs: their records, their names, and what tells them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from pennyweight.define import MEASURES
from pennyweight.record import BY_NAME, EXPORTED
from pennyweight.scoring.sides import side_name, side_values
from pennyweight.store import queries
from pennyweight.store.store import Store, StoredRun
from pennyweight.stored_runs.imported import extra_of

SIDE_COLUMNS = ("subject", "tier")
MAX_COLUMNS = 20
"""How many columns of the user's own are looked at."""


@dataclass(frozen=True, slots=True)
class RunSide:
    """The records of one run or several, or of one subject, tier or category in them."""

    runs: tuple[str, ...]
    chosen: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SideNames:
    """The names of sides: as comparisons make them of columns, and as pages show them."""

    runs: tuple[str, ...]
    columns: tuple[str, ...]
    letters: Mapping[str, str]
    titles: Mapping[str, str]
    known: Mapping[str, RunSide]

    @classmethod
    def of(
        cls, runs: Sequence[StoredRun], columns: tuple[str, ...], letters: Mapping[str, str]
    ) -> SideNames:
        """Name the sides that the suites of runs have; others are named by their values."""
        ids = tuple(run.id for run in runs)
        titles: dict[str, str] = {}
        known: dict[str, RunSide] = {}
        if {*columns} <= {"run", *SIDE_COLUMNS}:
            values = [ids if n == "run" else values_of(runs, n) for n in columns]
            for side in product(*values):
                where = dict(zip(columns, side, strict=True))
                name = side_name(side)
                told = [letters.get(v, v) if n == "run" else v for n, v in where.items()]
                titles[name] = side_name(told, " · ")
                run = where.pop("run", None)
                known[titles[name]] = RunSide((run,) if run else ids, tuple(where.items()))
        return cls(ids, columns, letters, titles, known)

    def raw(self, title: str) -> str:
        """Return the name of a side in comparisons."""
        return next((name for name, own in self.titles.items() if own == title), title)

    def side(self, title: str) -> RunSide:
        """Return the records of a side."""
        if title in self.known:
            return self.known[title]
        values = [title] if len(self.columns) == 1 else side_values(title)
        return RunSide(self.runs, tuple(zip(self.columns, values, strict=False)))

    def name_of(self, side: RunSide | None) -> str | None:
        """Return the name of a side in comparisons; None if it is not among the sides."""
        if side is None:
            return None
        title = next((title for title, own in self.known.items() if own == side), None)
        if title is None and not self.known and self.columns == tuple(n for n, _ in side.chosen):
            title = side_name([value for _, value in side.chosen])
        return None if title is None else self.raw(title)

    def group(self, title: str) -> dict[str, str]:
        """Return the values of a side by column; a run is named by its letter."""
        side = self.side(title)
        run = {"run": self.letters.get(side.runs[0], side.runs[0])} if "run" in self.columns else {}
        return {**run, **dict(side.chosen)}


def default_columns(runs: Sequence[StoredRun]) -> tuple[str, ...]:
    """Return what tells sides apart unless somebody chooses: subjects and tiers, or runs.

    Several runs are compared as runs if they have the same subjects. Runs of different subjects
    are compared by subject, as if they were one run.
    """
    several = tuple(n for n in SIDE_COLUMNS if len(values_of(runs, n)) > 1)
    if len(runs) < 2:
        return several or ("tier",)
    subjects = [frozenset(run.sides["subject"]) for run in runs]
    apart = sum(map(len, subjects)) == len(frozenset.union(*subjects))
    return several if apart and "subject" in several else ("run",)


def shared_columns(runs: Sequence[StoredRun], first: RunSide, second: RunSide) -> list[str]:
    """Name the columns in which compared attempts must agree, as `pennyweight compare` does."""

    def own(side: RunSide, name: str) -> set[str]:
        chosen = dict(side.chosen)
        return {chosen[name]} if name in chosen else set(values_of(runs, name, side.runs))

    both = {n: [own(side, n) for side in (first, second)] for n in SIDE_COLUMNS}
    return [name for name, (a, b) in both.items() if not a or not b or a & b]


def digest_sides(run: str, digest: Mapping[str, Any]) -> list[tuple[RunSide, str]]:
    """Return the sides of a run's digest with their titles."""
    if not set(digest["by"]) <= set(SIDE_COLUMNS):
        return []
    return [
        (RunSide((run,), tuple((k, str(v)) for k, v in side["group"].items())), side["name"])
        for side in digest["sides"]
    ]


def tasks_of(side: RunSide, tried: Mapping[str, Mapping[tuple[str, str], set[str]]]) -> set[str]:
    """Return the tasks of a side, given those of each run by subject and tier."""
    chosen = set(side.chosen)
    return {
        task
        for run in side.runs
        for known, tasks in tried[run].items()
        if chosen <= set(zip(SIDE_COLUMNS, known, strict=True))
        for task in tasks
    }


def values_of(
    runs: Sequence[StoredRun], name: str, among: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the subjects or the tiers of runs."""
    chosen = (run for run in runs if among is None or run.id in among)
    return tuple(dict.fromkeys(value for run in chosen for value in run.sides[name]))


def is_own(name: str) -> bool:
    """Whether a further column of a record is the user's own, so that sides can be told by it."""
    return name.isidentifier() and not any(name in known for known in (BY_NAME, EXPORTED, MEASURES))


def further_columns(store: Store, runs: Sequence[StoredRun]) -> list[str]:
    """Name the columns of the user's own, as far as the first records of runs have them."""
    texts = (text for run in runs for text in queries.extras(store, run.id))
    found = dict.fromkeys(name for text in texts for name in extra_of(text))
    return [name for name in found if is_own(name)][:MAX_COLUMNS]
