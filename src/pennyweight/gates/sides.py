"""A policy decided on every side: which sides there are, and the verdict on all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import polars as pl

from pennyweight.errors import UsageError
from pennyweight.gates.invariants import ATTEMPTS
from pennyweight.gates.verdict import Decision, SideVerdict, Verdict
from pennyweight.scoring.large.spill import Spill
from pennyweight.scoring.pipeline import ScoreRequest, Scoring
from pennyweight.scoring.pooling import most_pooled
from pennyweight.sources.source import Source
from pennyweight.text.format import plural
from pennyweight.text.natural_order import natural

MAX_SIDES = 100


def sides_of(
    sources: Sequence[Source],
    columns: Sequence[str],
    where: Mapping[str, str],
    *,
    map: Mapping[str, str] | None = None,  # noqa: A002
    skip_bad: bool = False,
) -> list[tuple[dict[str, str], bool]]:
    """List the sides that columns tell apart, and whether each has records.

    A subject in a tier of a run is a side even before it has a record.
    """
    if not all(source.rereadable for source in sources):
        raise UsageError("--each reads its source several times; write it to a file and name that.")
    request = ScoreRequest("pass_rate", map=map, skip_bad=skip_bad, where=where)
    with Spill.open(columns) as spill:
        measured = Scoring.of(sources, request, columns).measure(sources, spill=spill)
        frame = spill.gathered(columns) if measured.spilled else measured.frame
    values = frame.select(pl.col(columns).cast(pl.String))
    known = [name for name in columns if values[name].null_count() < values.height]
    for name in known:
        if missing := values[name].null_count():
            have = plural(missing, "record has", "records have")
            raise UsageError(f"--each {name}: {have} no {name}, so no side would contain them.")
    if not known:
        raise UsageError(f"--each: no record has a {' or a '.join(columns)}.")
    found = dict.fromkeys(values.select(known).unique().iter_rows(), True)
    for source in sources:
        planned = product(*(_planned(source, name, where) for name in known))
        found = dict.fromkeys(planned, False) | found
    if len(found) > MAX_SIDES:
        raise UsageError(f"--each: {len(found):,} sides; at most {MAX_SIDES} can be decided.")
    ordered = sorted(found.items(), key=lambda side: [natural(name) for name in side[0]])
    return [(dict(zip(known, row, strict=True)), there) for row, there in ordered]


def _planned(source: Source, column: str, where: Mapping[str, str]) -> list[str]:
    """Return the values of a column that a run was to have; none if that is not known."""
    wanted = where.get(column)
    values = source.sides.get(column, ())
    return [v for v in values if wanted is None or v.lower() == wanted.strip().lower()]


def joined(sides: Sequence[SideVerdict]) -> Verdict:
    """Return the verdict on all sides, which is the worst of theirs."""
    first = sides[0].verdict
    left_out = max(one.verdict.evidence.left_out for one in sides)
    return Verdict(
        policy=first.policy,
        gates=tuple(gate for one in sides for gate in _gates(one)),
        records=sum(one.verdict.records for one in sides),
        errors=sum(one.verdict.errors for one in sides),
        error_rate=first.error_rate,
        baseline=next((one.verdict.baseline for one in sides if one.verdict.baseline), None),
        sequential=any(one.verdict.sequential for one in sides),
        notes=tuple(dict.fromkeys(note for one in sides for note in one.verdict.notes)),
        sides=tuple(sides),
        evidence=replace(first.evidence, side="", left_out=left_out),
        pooled=most_pooled(one.verdict.pooled for one in sides),
        errors_as=next((o.verdict.errors_as for o in sides if o.verdict.gates), "exclude"),
    )


def _gates(one: SideVerdict) -> list[Decision]:
    if one.verdict.gates:
        return [replace(gate, side=one.name) for gate in one.verdict.gates]
    why = "no attempt has been made yet."
    return [Decision(ATTEMPTS, "errors", "inconclusive", why, kind="count", side=one.name)]
