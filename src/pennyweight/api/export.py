"""Export the records of a run to a file, with the answers extracted from them."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import polars as pl

from pennyweight.api.sources import run_source
from pennyweight.define import Measure, add_measures, dtype, measure_passes, needed_measures
from pennyweight.errors import InputError, UsageError
from pennyweight.record import BY_NAME
from pennyweight.render.plain import csv_table
from pennyweight.scoring.selection import refuse_empty, selects
from pennyweight.store.store import Store
from pennyweight.stored_runs.source import RunSource
from pennyweight.text.matching import MatchRule

EXTRACTED = ("answer", "cot", "prob_correct")
"""Columns that scoring extracts from a response."""


def export(
    source: str | RunSource = "latest",
    output: str | Path | None = None,
    *,
    judgments: bool = False,
    where: Mapping[str, str] | None = None,
    store: str | Store | None = None,
) -> None:
    """Write the records of a run as JSONL, CSV (its cells guarded) or Parquet.

    The name of `output` tells the format; without one, JSONL goes to standard output. The answers
    are found by the rules of the run's suite, so a score of the file is the score of the run. With
    `judgments`, the judgments are written in place of the records. `where` leaves out records with
    other values in columns or measures, such as `{"passed": "false"}`.
    """
    found = run_source(source, store) if isinstance(source, str) else source
    if where and judgments:
        raise UsageError("--where selects records; it does not apply to --judgments.")
    run, path = found.run, Path(output) if output is not None else None
    kind = path.suffix if path else ".jsonl"
    if kind not in {".jsonl", ".csv", ".parquet"}:
        raise UsageError(f"-o {path}: the name must end in .jsonl, .csv or .parquet.")
    frames: Iterator[pl.DataFrame] = (
        _with_answers(frame, found) for frame in _selected(found, where or {})
    )
    if judgments:
        judged = found.store.judgments(run.id)
        if judged.is_empty():
            raise InputError([f"run {run.id} has no judgments; 'pennyweight judge' makes them."])
        frames = iter([judged])
    if kind == ".parquet":
        with (
            _replacing(path) as file,
            TemporaryDirectory(prefix=".pennyweight", dir=path.parent if path else None) as folder,
        ):
            parts = []
            for number, frame in enumerate(frames):  # the whole table need not fit in memory
                parts.append(Path(folder) / f"{number:08}.parquet")
                frame.write_parquet(parts[-1])
            if not parts:
                raise InputError([f"run {run.id} has no records yet."])
            pl.scan_parquet(parts).sink_parquet(file)
        return
    with _replacing(path) as file:
        for index, frame in enumerate(frames):
            if kind == ".jsonl":
                file.write(frame.write_ndjson().encode())
            else:
                head = [frame.columns] if index == 0 else []
                file.write(csv_table([*head, *frame.rows()]).encode())


def _selected(source: RunSource, where: Mapping[str, str]) -> Iterator[pl.DataFrame]:
    """Yield the records with these values; refuse a selection without any."""
    if not where:
        yield from source.frames()
        return
    chosen = replace(source, task_columns=tuple(where))
    measures = needed_measures(where)
    found, present = False, set[str]()
    for frame in source.frames():
        table = _measured(chosen.with_task_columns(frame), measures, source.options())
        present |= set(table.columns)
        absent = (pl.lit(None, pl.String).alias(n) for n in where if n not in table.columns)
        keys = (selects(column, value) for column, value in where.items())
        kept = table.with_columns(absent).select(pl.all_horizontal(keys).fill_null(value=False))
        if (rows := frame.filter(kept.to_series())).height:
            found = True
            yield rows
    if present and not found:
        refuse_empty(where, present)


def _measured(
    frame: pl.DataFrame, measures: Sequence[Measure], options: Mapping[str, Any]
) -> pl.DataFrame:
    """Add measures to records, some columns of which may be absent."""
    read = {name for one in measures for name in one.inputs if name in BY_NAME}
    absent = sorted(read - set(frame.columns))
    table = frame.lazy().with_columns(pl.lit(None, dtype=dtype(n)).alias(n) for n in absent)
    return add_measures(table, measure_passes(measures, options)).collect()


def _with_answers(frame: pl.DataFrame, source: RunSource) -> pl.DataFrame:
    """Add what the run's own rules decide; `matched_by` tells scoring to leave it so."""
    options = source.options()
    rule: MatchRule | None = options["match_rule"]
    loose = rule.kind if rule and rule.kind != "exact" else None
    names = [*EXTRACTED, "correct"] if loose else [*EXTRACTED]
    table = _measured(frame, needed_measures(names), options)
    table = table.select(*dict.fromkeys([*frame.columns, *names]))
    return table.with_columns(matched_by=pl.lit(loose)) if loose else table


@contextmanager
def _replacing(path: Path | None) -> Iterator[IO[bytes]]:
    """Write a file under another name first, so that it is complete or absent."""
    if path is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            yield sys.stdout.buffer
        else:  # that of a notebook takes text alone
            with io.BytesIO() as held:
                yield held
                sys.stdout.write(held.getvalue().decode())
        sys.stdout.flush()
        return
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise InputError([f"{path}: cannot be written: {error.strerror or error}."]) from error
    finally:
        part.unlink(missing_ok=True)
