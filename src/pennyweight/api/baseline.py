"""Baselines: keep records under a name, and read what a gate compares with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.api.score import scored
from pennyweight.api.sources import Given, rematched, resolve, runs_of, unmixed
from pennyweight.errors import InputError, unknown
from pennyweight.gates.baseline import (
    Baseline,
    baselines,
    described,
    is_baseline,
    load,
    names,
    remove,
    save,
)
from pennyweight.gates.records import SIDES, GateRecords, narrowed, one_side, read_records
from pennyweight.scoring.pipeline import ScoreRequest
from pennyweight.sources.objects import OBJECT_STORES
from pennyweight.sources.source import Source
from pennyweight.stored_runs.source import RunSource

if TYPE_CHECKING:
    from pennyweight.api.score import Scorers
    from pennyweight.store.store import Store

__all__ = ["SetBaseline", "baseline_records", "baselines", "remove", "set_baseline"]


@dataclass(frozen=True, slots=True)
class SetBaseline:
    """A baseline that was set, what it replaced, and what it lacks."""

    baseline: Baseline
    replaced: Baseline | None
    """The baseline of the same name; None also where it was damaged."""
    replaces: bool
    run: str
    """The run whose attempts are missing, if any are."""
    planned: int | None
    missing: int
    narrowed: str = ""
    """What part of its suite the run has, in words; empty for all of it."""


def baseline_records(
    baseline: str | Baseline | RunSource,
    metrics: Sequence[str],
    options: Mapping[str, Any],
    *,
    where: Mapping[str, str] | None = None,
    side: Mapping[str, str] | None = None,
    run: str | None = None,
    store: str | Store | None = None,
    scorers: Scorers = (),
    across: Collection[str] = (),
) -> GateRecords:
    """Read what a gate compares with: a file, a baseline by its name, or a run.

    `where` picks records. Without it, they are of the subject and the tier that is decided on
    (`side`), where the baseline has several; but not of `run`, which would be compared with
    itself. `scorers` score the records of a file or a run. `across` is that of `read_records`.
    """
    where = where or {}
    same_side = {} if where else side or {}
    if isinstance(baseline, str) and not Path(baseline).exists() and is_baseline(baseline):
        baseline = described(baseline)
    if isinstance(baseline, Baseline):
        records = load(baseline.name, options, metrics)
        chosen = records.where(list(narrowed(records.frame, where, same_side).items()))
        if not chosen.frame.height:
            raise InputError([f"The baseline {baseline.name} has no such records."])
        one_side(chosen.frame, [column for column in SIDES if column not in across])
        return chosen
    sources: list[Source] = _source(baseline, store) if isinstance(baseline, str) else [baseline]
    name = baseline if isinstance(baseline, str) else baseline.run.id
    if run is not None and any(source.run_id == run for source in sources):
        same_side = {}
    sources, _ = scored(rematched(sources, options), scorers, ScoreRequest())
    return read_records(
        sources, metrics, options, where=where, same_side=same_side, name=name, across=across
    )


def set_baseline(
    name: str,
    source: Given,
    *,
    where: Mapping[str, str] | None = None,
    map: Mapping[str, str] | None = None,  # noqa: A002
    store: str | Store | None = None,
) -> SetBaseline:
    """Keep the records of a source as the baseline `name`, in place of one of the same name."""
    sources = unmixed(resolve(source, store))
    records = read_records(sources, None, {}, where=where, map=map)
    runs = runs_of(sources)
    old: Baseline | None = None
    replaces = is_baseline(name)
    if replaces:
        with suppress(InputError):  # a damaged one is also replaced
            old = described(name)
    label = ", ".join(f"run {run.run.id}" for run in runs)
    label = label or sources[0].origin or sources[0].name
    baseline = save(name, records, label, runs[0].run if len(runs) == 1 else None)
    return SetBaseline(
        baseline, old, replaces, records.run, records.planned, records.remaining, records.narrowed
    )


def _source(name: str, store: str | Store | None) -> list[Source]:
    """Find a file or a run; otherwise the error says how to set a baseline."""
    try:
        return unmixed(resolve([name], store))
    except InputError as error:
        if name.startswith(OBJECT_STORES):
            raise
        known = names()
        existing = f"There are {', '.join(known)}." if known else "There is none yet."
        hint = f"'pennyweight baseline set {name} RUN' keeps one. {existing}"
        what = unknown("Baseline", name, known, "No file or run has that name either.")
        raise InputError([what], hint=hint) from error
