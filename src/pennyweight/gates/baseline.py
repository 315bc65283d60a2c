"""Baselines: named sets of measured records, and where they came from.

Each is a Parquet file in `.pennyweight/baselines` with every measure and no long texts. It outlives
its run, does not depend on the store, and can be kept in version control.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pennyweight import __version__
from pennyweight.catalogue import METRICS
from pennyweight.define import dtype, needed_columns
from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.gates.records import CONTEXT, GateRecords, numbered
from pennyweight.scoring.exam import EXAM
from pennyweight.sources.home import create_folder
from pennyweight.sources.source import Rerun

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
    """The hash of the suite's tasks, if it was set from a run."""
    pass_rate: float | None = None
    planned: int | None = None

    @property
    def path(self) -> Path:
        """The file of the baseline."""
        return FOLDER / f"{self.name}.parquet"


def save(name: str, records: GateRecords, source: str, run: Any = None) -> Baseline:
    """Save records as a baseline, in place of the one with this name."""
    if not _NAME.fullmatch(name) or name == "latest":
        raise UsageError(
            f"{name!r} cannot be the name of a baseline; use letters, digits, '.', '-' and '_'."
        )
    value = records.estimate("pass_rate", 0.9).value
    baseline = Baseline(
        name=name,
        source=source,
        created=time.time(),
        records=records.frame.height,
        run=run.id if run else None,
        suite=run.suite if run else None,
        data_hash=run.data_hash if run else None,
        pass_rate=value if isinstance(value, float) else None,
        planned=None if records.planned is None else records.frame.height + records.remaining,
    )
    frame = records.frame.select(c for c in records.frame.columns if not c.startswith("\0"))
    frame = frame.with_columns(pl.col(pl.Categorical).cast(pl.String))
    path = baseline.path
    fresh = path.with_suffix(".new")
    try:
        create_folder(FOLDER.parent)
        FOLDER.mkdir(exist_ok=True)
        frame.write_parquet(fresh, metadata={_KEY: json.dumps(asdict(baseline))})
        fresh.replace(path)
    except OSError as error:
        raise InputError([f"{path}: cannot be written: {error.strerror or error}."]) from error
    return baseline


def names() -> list[str]:
    """Return the names of the baselines."""
    return sorted(path.stem for path in FOLDER.glob("*.parquet"))


def baselines() -> tuple[list[Baseline], list[str]]:
    """Return the baselines, the newest first, and the problems of those that cannot be read."""
    readable, problems = [], []
    for name in names():
        try:
            readable.append(described(name))
        except InputError as error:
            problems.append(str(error))
    return sorted(readable, key=lambda b: (-b.created, b.name)), problems


def described(name: str) -> Baseline:
    """Read the description of a baseline."""
    path = FOLDER / f"{name}.parquet"
    try:
        saved = json.loads(pl.read_parquet_metadata(path)[_KEY])
        known = {k: v for k, v in saved.items() if k in Baseline.__dataclass_fields__}
        return Baseline(**{**known, "name": name})
    except (OSError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
        raise InputError(
            [f"{path}: not a baseline, or damaged."],
            hint=f"'pennyweight baseline set {name} RUN' replaces it.",
        ) from None


def is_baseline(name: str) -> bool:
    """Whether there is a baseline of this name."""
    return bool(_NAME.fullmatch(name)) and (FOLDER / f"{name}.parquet").is_file()


def load(name: str, options: Mapping[str, Any], metrics: Sequence[str] = ()) -> GateRecords:
    """Read a baseline; refuse one that lacks a column that the metrics need."""
    baseline = described(name)
    frame = pl.read_parquet(baseline.path)
    needed = {"task_id", "status", *needed_columns([METRICS[m] for m in metrics], options)}
    if missing := sorted(needed - set(frame.columns)):
        by = f"it was saved by Pennyweight {baseline.pennyweight}"
        raise InputError(
            [f"{baseline.path}: has no {', '.join(missing)}; {by}."],
            hint=f"'pennyweight baseline set {name} RUN' replaces it.",
        )
    if options.get("errors") == "failures" and (frame["status"].cast(pl.String) == "error").any():
        run = f"--baseline {baseline.run}" if baseline.run else "--baseline FILE"
        raise UsageError(
            f"The baseline {name} was saved with its errors left out; they cannot count as "
            f"failures. {run} names the records themselves."
        )
    absent = [column for column in (*CONTEXT, *EXAM) if column not in frame.columns]
    frame = frame.with_columns(pl.lit(None, dtype=dtype(c)).alias(c) for c in absent)
    again = f"pennyweight run --resume {baseline.run}, then "
    again += f"pennyweight baseline set {name} {baseline.run}"
    return GateRecords(
        numbered(frame),
        options,
        name=f"baseline {name} ({baseline.source})",
        planned=baseline.planned,
        remaining=max(0, (baseline.planned or 0) - frame.height),
        reruns={baseline.run: Rerun(baseline.created, again)} if baseline.run else {},
    )


def remove(name: str) -> None:
    """Delete a baseline."""
    if not is_baseline(name):
        raise UsageError(
            unknown("Baseline", name, names(), "'pennyweight baseline list' shows them.")
        )
    (FOLDER / f"{name}.parquet").unlink()
