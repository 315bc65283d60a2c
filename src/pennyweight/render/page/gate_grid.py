"""The verdict of a policy on every side of a run: sides down, gates across."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pennyweight.gates.verdict import Decision, Verdict
from pennyweight.render.verdict import TITLES, amount, estimate_of, name_of, sign, threshold_of


@dataclass(frozen=True, slots=True)
class GateHead:
    """A gate: its name, what it asks, and whether it only warns."""

    name: str
    threshold: str
    by: str
    """What decides it: a rule, the value, the interval or a sequential test."""
    warning: bool


@dataclass(frozen=True, slots=True)
class GateCell:
    """A gate on a side."""

    verdict: str
    sign: str
    value: str
    interval: str
    why: str


@dataclass(frozen=True, slots=True)
class GateRow:
    """A side with its verdict, and where it is shown in full."""

    name: str
    verdict: str
    title: str
    records: int
    href: str
    cells: tuple[GateCell | None, ...]


@dataclass(frozen=True, slots=True)
class GateGrid:
    """What the template of the grid shows."""

    heads: tuple[GateHead, ...]
    rows: tuple[GateRow, ...]


def gate_grid(verdict: Verdict, href: Callable[[Mapping[str, str]], str]) -> GateGrid:
    """Arrange the verdicts on sides; those that fail first, then by name."""
    gates: dict[str, Decision] = {}
    for one in verdict.sides:
        for gate in one.verdict.gates:
            gates.setdefault(gate.name, gate)
    rows = []
    for one in verdict.sides:
        own = {gate.name: gate for gate in one.verdict.gates}
        cells = tuple(_cell(own[n]) if n in own else None for n in gates)
        word = one.verdict.verdict
        title = TITLES[word] if one.verdict.gates else "No records yet"
        href_ = href(one.side) if one.verdict.gates else ""
        rows.append(GateRow(one.name, word, title, one.verdict.records, href_, cells))
    order = ("fail", "inconclusive", "pass")
    rows.sort(key=lambda row: order.index(row.verdict))
    heads = (
        GateHead(name_of(g), threshold_of(g), g.test, g.level == "warning") for g in gates.values()
    )
    return GateGrid(tuple(heads), tuple(rows))


def _cell(gate: Decision) -> GateCell:
    _, interval = estimate_of(gate)
    return GateCell(gate.verdict, sign(gate), amount(gate, gate.value), interval, gate.why)
