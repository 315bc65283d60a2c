"""Baselines: measured records under a name, with where they came from.

Each is a Parquet file in `.pennyweight/baselines`: every measure, no long texts. It outlives its
run, is the same for every kind of store, and can be kept in version control.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from pennyweight import __version__
from pennyweight.catalogue import METRICS
from pennyweight.define import dtype, needed_columns
from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.gates.records import BESIDE, GateRecords, numbered

FOLDER = Path(".pennyweight", "baselines")
_KEY = "pennyweight.baseline"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Baseline:
    """A baseline and its origin."""

    name: str
    source: str
    created: float
    records: int
    pennyweight: str = __version__
    run: str | None = None
    suite: str | None = None
    data_hash: str | None = None
    """Of the suite's tasks, where it was made of a run."""
    pass_rate: float | None = None
    planned: int | None = None

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return FOLDER / f"{self.name}.parquet"


def save(name: str, records: GateRecords, source: str, run: Any = None) -> Baseline:
    """Keep records as a baseline; one of the same name is replaced once the new one is written."""
    if not _NAME.fullmatch(name) or name == "latest":
        raise UsageError(f"{name!r} is no name for a baseline; use letters, digits, '-' and '_'.")
    value = records.estimate("pass_rate", 0.9).value
    made = Baseline(
        name=name,
        source=source,
        created=time.time(),
        records=records.frame.height,
        run=run.id if run else None,
        suite=run.suite if run else None,
        data_hash=run.data_hash if run else None,
        pass_rate=value if isinstance(value, float) else None,
        planned=None if records.planned is None else records.frame.height + records.to_come,
    )
    frame = records.frame.select(c for c in records.frame.columns if not c.startswith("\0"))
    frame = frame.with_columns(pl.col(pl.Categorical).cast(pl.String))
    fresh = made.path.with_suffix(".new")
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(fresh, metadata={_KEY: json.dumps(asdict(made))})
        fresh.replace(made.path)
    except OSError as error:
        raise InputError([f"{made.path}: cannot be written: {error.strerror or error}."]) from error
    return made


def names() -> list[str]:
    """Name the baselines."""
    return sorted(path.stem for path in FOLDER.glob("*.parquet"))


def baselines() -> tuple[list[Baseline], list[str]]:
    """List the baselines, the newest first; and what is wrong with those that cannot be read."""
    found, problems = [], []
    for name in names():
        try:
            found.append(described(name))
        except InputError as error:
            problems.append(str(error))
    return sorted(found, key=lambda b: (-b.created, b.name)), problems


def described(name: str) -> Baseline:
    """Read the origin of a baseline; its name is that of its file."""
    path = FOLDER / f"{name}.parquet"
    try:
        told = json.loads(pl.read_parquet_metadata(path)[_KEY])
        known = Baseline.__dataclass_fields__
        return Baseline(**{**{k: v for k, v in told.items() if k in known}, "name": name})
    except (OSError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
        raise InputError(
            [f"{path}: no baseline, or a damaged one."],
            hint="'pennyweight baseline set' writes it again.",
        ) from None


def is_baseline(name: str) -> bool:
    """Whether there is a baseline of this name."""
    return bool(_NAME.fullmatch(name)) and (FOLDER / f"{name}.parquet").is_file()


def load(name: str, options: Mapping[str, Any], metrics: Sequence[str] = ()) -> GateRecords:
    """Read a baseline; refuse one that lacks what metrics need."""
    told = described(name)
    frame = pl.read_parquet(told.path)
    needed = {"task_id", "status", *needed_columns([METRICS[m] for m in metrics], options)}
    lacking = sorted(needed - set(frame.columns))
    if lacking:
        what = f"{told.path}: lacks {', '.join(lacking)}; Pennyweight {told.pennyweight} kept it."
        hint = f"'pennyweight baseline set {name} RUN' writes it again."
        raise InputError([what], hint=hint)
    frame = frame.with_columns(
        pl.lit(None, dtype=dtype(column)).alias(column)
        for column in BESIDE
        if column not in frame.columns
    )
    label = f"baseline {name} ({told.source})"
    found = GateRecords(numbered(frame), options, name=label, planned=told.planned)
    return replace(found, to_come=max(0, (told.planned or 0) - frame.height))


def remove(name: str) -> None:
    """Delete a baseline."""
    if not is_baseline(name):
        where = "'pennyweight baseline list' shows them."
        raise UsageError(unknown("Baseline", name, names(), where))
    (FOLDER / f"{name}.parquet").unlink()
