"""Sides of a comparison: runs, or the subjects and tiers inside them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.report.digest import differences
from assay.store import kept, look
from assay.web.record import difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.store.store import Run
    from assay.web.site import Site

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


LARGE = 50_000
"""Attempts from which runs are compared in the terminal."""
KEPT = 8


def _compared(site: Site, runs: Sequence[Run], confidence: float) -> dict[str, Any] | None:
    """Compare runs with each other, once for each state of them."""
    from assay.report.digest import comparison  # noqa: PLC0415
    from assay.run.source import RunSource  # noqa: PLC0415

    state = tuple((run.id, kept.stamp(site.store, run)) for run in runs)
    if state not in site.compared:
        while len(site.compared) >= KEPT:
            site.compared.pop(next(iter(site.compared)), None)
        sources = [RunSource(run, site.store) for run in runs]
        site.compared[state] = comparison(sources, confidence, ["run"])
    return site.compared[state]


def table(site: Site, runs: Sequence[Run]) -> Table:
    """Put the sides of runs next to each other: of one run its own, of several each whole."""
    sides: list[tuple[Side, str]] = []
    groups: list[dict[str, Any]] = []
    waiting: list[str] = []
    first: dict[str, Any] | None = None
    for run in runs:
        told = site.digests.get(run).digest
        if told is None:
            waiting.append(run.id)
            continue
        first = first or told
        inner = told["sides"] if told["sides"] and set(told["by"]) <= set(INSIDE) else []
        if len(runs) > 1:
            name = f"{run.suite} {run.id}"
            sides.append((Side(run.id), name))
            groups.append({**told["whole"], "name": name})
        for group in inner:
            chosen = tuple((k, str(v)) for k, v in group["group"].items())
            name = group["name"] if len(runs) == 1 else f"{run.id} · {group['name']}"
            sides.append((Side(run.id, chosen), name))
            groups.append({**group, "name": name})
        if len(runs) == 1 and not inner:
            sides.append((Side(run.id), run.id))
            groups.append({**told["whole"], "name": run.id})
    if first is None:
        return Table(sides, None, waiting)
    metric = first["headline"]
    rows = [row for group, (side, _) in zip(groups, sides, strict=True)
            if (row := _row(group, metric, side))]  # fmt: skip
    paired, note = first["comparison"], ""
    if len(runs) > 1 and sum(run.attempts for run in runs) > LARGE:
        names = " ".join(run.id for run in runs)
        paired, note = None, f"These runs are large; in a terminal: assay compare {names}"
    elif len(runs) > 1:
        paired = _compared(site, runs, first["confidence"])
    whole = {**first, "sides": groups, "comparison": paired}
    whole["charts"] = {
        "sides": {"metric": metric, "rows": rows} if rows else None,
        "differences": differences(paired, metric),
    }
    return Table(sides, whole, waiting, note)


def _row(group: dict[str, Any], metric: str | None, side: Side) -> dict[str, Any] | None:
    cells = group["estimates"].get(metric) if metric else None
    if not cells or not isinstance(cells[0], float):
        return None
    value, low, high, count = cells[:4]
    return {"name": group["name"], "value": value, "low": low, "high": high, "n": count,
            "filter": dict(side.chosen)}  # fmt: skip


def pair(site: Site, found: Table, a: str | None, b: str | None) -> dict[str, Any]:
    """Choose two sides and list the tasks that changed from one to the other."""
    if len(found.sides) < 2:
        return {"a": None, "b": None, "worse": [], "better": []}
    default = [side for side, _ in found.sides if side.chosen] or [s for s, _ in found.sides]
    many = len({side.run for side, _ in found.sides}) > 1
    if many or len(default) < 2:
        default = [side for side, _ in found.sides if not side.chosen]
    first = Side.read(a) if a else default[0]
    second = Side.read(b) if b else default[-1]
    changes = look.changes(
        site.store, (first.run, dict(first.chosen)), (second.run, dict(second.chosen))
    )
    return {
        "a": first,
        "b": second,
        "worse": [c for c in changes if c.second < c.first],
        "better": [c for c in reversed(changes) if c.second > c.first],
    }


def replies(site: Site, a: Side, b: Side, task: str) -> dict[str, Any]:
    """Read the replies of two sides to one task, attempt by attempt, with differences marked."""
    rows = []
    for side in (a, b):
        site.run(side.run)
        tries = look.siblings(site.store, side.run, task)
        chosen = dict(side.chosen)
        rows.append([t for t in tries if all(t[n] == v for n, v in chosen.items())])
    pairs = []
    for index in range(min(20, max(map(len, rows)))):
        left, right = (tries[index] if index < len(tries) else None for tries in rows)
        marked = difference((left or {}).get("response"), (right or {}).get("response"))
        pairs.append([(left, marked[0]), (right, marked[1])])
    shown = look.page(site.store, a.run, look.Filter({"task_id": task}), limit=1).rows
    return {"a": a, "b": b, "task": task, "pairs": pairs, "shown": shown[0] if shown else None}
