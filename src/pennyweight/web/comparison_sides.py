"""Sides of a comparison: runs, or the subjects and tiers inside them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pennyweight.errors import InputError, UsageError
from pennyweight.render.labels import letter
from pennyweight.scoring.chart_data import differences
from pennyweight.store import cache as kept
from pennyweight.store import queries as look
from pennyweight.store.flips import Changes, changes
from pennyweight.text.word_diff import WordDiff
from pennyweight.web.addresses import write_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennyweight.store.store import Run
    from pennyweight.web.site import Site

INSIDE = ("subject", "tier")


@dataclass(frozen=True, slots=True)
class Side:
    """Some records of a run."""

    run: str
    chosen: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, text: str) -> Side:
        """Read a side from an address."""
        try:
            run, chosen = json.loads(text)
            pairs = tuple((n, v) for n, v in chosen.items() if n in INSIDE)
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise UsageError('A side is written ["run", {"tier": "T0"}].') from None
        if not isinstance(run, str) or not all(isinstance(v, str) for _, v in pairs):
            raise UsageError('A side is written ["run", {"tier": "T0"}].')
        return cls(run, pairs)

    def write(self) -> str:
        """Write a side for an address."""
        return json.dumps([self.run, dict(self.chosen)], separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Table:
    """The digests of several sides, as one."""

    sides: list[tuple[Side, str]]
    digest: dict[str, Any] | None
    waiting: list[str]
    note: str = ""
    letters: Mapping[str, str] = field(default_factory=dict)
    """What each of several runs is called."""
    there: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """The subjects and tiers of each run, as far as they are known."""
    apart: bool = False
    """Whether the sides have nothing that can be compared task by task."""

    def alike(self, sides: Sequence[Side]) -> list[str]:
        """Name what tries of two sides must have in common, as `pennyweight compare` has it."""
        found = []
        for name in INSIDE:
            values = [_values(side, self.there, name) for side in sides]
            if not all(values) or values[0] & values[1]:
                found.append(name)
        return found


def _values(
    side: Side, there: Mapping[str, Mapping[str, frozenset[str]]], name: str
) -> frozenset[str]:
    own = dict(side.chosen)
    return frozenset([own[name]]) if name in own else there.get(side.run, {}).get(name, frozenset())


MOST = 8
"""Runs that are compared at once."""
SHOWN = 20
"""Attempts at one task that are put side by side."""
LONGEST = 20_000
"""Characters of a reply that are put side by side."""
LARGE = 50_000
"""Attempts from which runs are compared in the terminal."""
KEPT = 8
ONE = "This run has one subject in one tier: choose another run to compare it with."


def _compared(site: Site, runs: Sequence[Run], confidence: float) -> dict[str, Any] | str:
    """Compare runs with each other, once for each state of them; or say why that cannot be."""
    from pennyweight.api.digest import compared  # noqa: PLC0415
    from pennyweight.runs.source import RunSource  # noqa: PLC0415

    state = tuple((run.id, kept.stamp(site.store, run)) for run in runs)
    if state not in site.compared:
        while len(site.compared) >= KEPT:
            site.compared.pop(next(iter(site.compared)), None)
        sources = [RunSource(run, site.store) for run in runs]
        try:
            site.compared[state] = {**compared(sources, confidence, ["run"])}
        except (UsageError, InputError) as error:
            site.compared[state] = str(error)
    return site.compared[state]


def table(site: Site, runs: Sequence[Run]) -> Table:
    """Put the sides of runs next to each other: of one run its own, of several each whole.

    Several runs are named by letters, since their ids fit no chart; the first is the baseline.
    Where one has subjects or tiers that another lacks, numbers stand only for what all have.
    """
    sides: list[tuple[Side, str]] = []
    groups: list[tuple[Side, dict[str, Any]]] = []
    waiting: list[str] = []
    first: dict[str, Any] | None = None
    there: dict[str, Mapping[str, frozenset[str]]] = {}
    letters = {run.id: letter(i) for i, run in enumerate(runs)} if len(runs) > 1 else {}
    for run in runs:
        told = site.digests.get(run).digest
        if told is None:
            waiting.append(run.id)
            continue
        first = first or told
        inner = told["sides"] if told["sides"] and set(told["by"]) <= set(INSIDE) else []
        there[run.id] = _inside(run, inner)
        if letters or not inner:
            name = letters.get(run.id, run.id)
            sides.append((Side(run.id), name))
            groups.append((Side(run.id), {**told["whole"], "name": name}))
        for group in inner:
            side = Side(run.id, tuple((k, str(v)) for k, v in group["group"].items()))
            name = f"{letters[run.id]} · {group['name']}" if letters else group["name"]
            sides.append((side, name))
            groups.append((side, {**group, "name": name}))
    if first is None:
        return Table(sides, None, waiting, letters=letters)
    groups = _of_all(groups, there)
    metric = first["headline"]
    rows = [row for side, group in groups if (row := _row(group, metric, side))]
    paired, note, apart = first["comparison"], "", False
    if letters and sum(run.attempts for run in runs) > LARGE:
        names = " ".join(run.id for run in runs)
        paired, note = None, f"These runs are large; in a terminal: pennyweight compare {names}"
    elif waiting:
        paired, apart = None, True
    elif letters:
        found = _compared(site, runs, first["confidence"])
        paired, note = (None, found) if isinstance(found, str) else (_lettered(found, letters), "")
        apart = paired is None or not any(p["tasks"] for p in paired["pairs"])
    elif len(sides) < 2:
        note = ONE
    whole = {**first, "sides": [group for _, group in groups], "comparison": paired}
    whole["charts"] = {
        "sides": {"metric": metric, "rows": rows} if rows and not apart else None,
        "differences": differences(paired, metric),
    }
    return Table(sides, whole, waiting, note, letters, there, apart)


def _inside(run: Run, groups: Sequence[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    """Say which subjects and tiers a run has: those of its records, else those of its suite."""
    found: dict[str, frozenset[str]] = {}
    for name in INSIDE:
        seen = {str(g["group"][name]) for g in groups if name in g["group"]}
        found[name] = frozenset(seen or run.sides[name])
    return found


def _of_all(
    groups: list[tuple[Side, dict[str, Any]]],
    there: Mapping[str, Mapping[str, frozenset[str]]],
) -> list[tuple[Side, dict[str, Any]]]:
    """Leave out the sides that not all runs have, and the sums over them."""
    common = {n: frozenset.intersection(*(t[n] for t in there.values())) for n in INSIDE}
    uneven = {n for n in INSIDE if common[n] and any(t[n] != common[n] for t in there.values())}
    if not uneven:
        return groups
    split = {side.run for side, _ in groups if side.chosen}
    return [(side, group) for side, group in groups
            if (side.chosen or side.run not in split)
            and all(_values(side, there, n) <= common[n] for n in uneven)]  # fmt: skip


def _lettered(found: dict[str, Any], letters: Mapping[str, str]) -> dict[str, Any]:
    """Write letters for the ids of runs, in numbers and in words."""
    pairs = [
        {**p, "a": letters.get(p["a"], p["a"]), "b": letters.get(p["b"], p["b"])}
        for p in found["pairs"]
    ]
    words = list(found["words"])
    for run, sign in letters.items():
        words = [line.replace(run, sign) for line in words]
    return {**found, "pairs": pairs, "words": words}


def _row(group: dict[str, Any], metric: str | None, side: Side) -> dict[str, Any] | None:
    cells = group["estimates"].get(metric) if metric else None
    if not cells or not isinstance(cells[0], float):
        return None
    value, low, high, count = cells[:4]
    return {"name": group["name"], "value": value, "low": low, "high": high, "n": count,
            "filter": dict(side.chosen)}  # fmt: skip


def pair(site: Site, found: Table, a: str | None, b: str | None) -> dict[str, Any]:
    """Choose two sides and list the tasks that changed from one to the other."""
    if len(found.sides) < 2 or found.apart:
        return {"a": None, "b": None, "changed": Changes()}
    default = [side for side, _ in found.sides if side.chosen] or [s for s, _ in found.sides]
    many = len({side.run for side, _ in found.sides}) > 1
    if many or len(default) < 2:
        default = [side for side, _ in found.sides if not side.chosen]
    first = Side.read(a) if a else default[0]
    second = Side.read(b) if b else default[-1]
    for side in (first, second):
        site.run(side.run)
    sides = [(side.run, dict(side.chosen)) for side in (first, second)]
    changed = changes(site.store, sides[0], sides[1], alike=found.alike((first, second)))
    return {"a": first, "b": second, "changed": changed}


def replies(site: Site, a: Side, b: Side, task: str) -> dict[str, Any]:
    """Read the replies of two sides to one task, attempt by attempt, with differences marked."""
    rows = []
    for side in (a, b):
        site.run(side.run)
        chosen = dict(side.chosen)
        tries = look.siblings(site.store, side.run, task, chosen, limit=SHOWN + 1, longest=LONGEST)
        rows.append(tries)
    pairs, marker = [], WordDiff()
    for index in range(min(SHOWN, max(map(len, rows)))):
        left, right = (tries[index] if index < len(tries) else None for tries in rows)
        texts = [(one or {}).get("response") or "" for one in (left, right)]
        marked = marker.mark(*texts)
        told = marked or [[(text, False)] for text in texts]
        pairs.append(
            {
                "sides": [
                    {**(one or {}), "run": side.run, "key": write_key(one) if one else None,
                     "pieces": pieces}
                    for one, side, pieces in zip((left, right), (a, b), told, strict=True)
                ],
                "compared": marked is not None,
            }
        )  # fmt: skip
    shown = look.page(site.store, a.run, look.Filter({"task_id": task}), limit=1).rows
    return {
        "a": a,
        "b": b,
        "task": task,
        "pairs": pairs,
        "more": max(map(len, rows)) > SHOWN,
        "longest": LONGEST,
        "shown": shown[0] if shown else None,
        "back": [*(("run", run) for run in dict.fromkeys((a.run, b.run))), ("baseline", a.run),
                 ("a", a.write()), ("b", b.write())],
    }  # fmt: skip
