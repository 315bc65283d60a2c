"""Export the records of a run to a file, with the answers extracted from them."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import polars as pl

from pennyweight.api.sources import run_source
from pennyweight.define import add_measures, dtype, measure_passes, needed_measures
from pennyweight.errors import InputError, UsageError
from pennyweight.record import BY_NAME
from pennyweight.render.plain import csv_table
from pennyweight.runs.source import RunSource
from pennyweight.store.store import Store
from pennyweight.text.matching import MatchRule

EXTRACTED = ("answer", "cot", "prob_correct")
"""Columns that scoring extracts from a response."""


def export(
    source: str | RunSource = "latest",
    output: str | Path | None = None,
    *,
    judgments: bool = False,
    store: str | Store | None = None,
) -> None:
    """Write the records of a run as JSONL, CSV (its cells guarded) or Parquet.

    The name of `output` tells the format; without one, JSONL goes to standard output. The answers
    are found by the rules of the run's suite, so a score of the file is the score of the run. With
    `judgments`, the judgments are written in place of the records.
    """
    found = run_source(source, store) if isinstance(source, str) else source
    run, path = found.run, Path(output) if output is not None else None
    kind = path.suffix if path else ".jsonl"
    if kind not in {".jsonl", ".csv", ".parquet"}:
        raise UsageError(f"-o {path}: the name must end in .jsonl, .csv or .parquet.")
    frames: Iterator[pl.DataFrame] = (_with_answers(f, found) for f in found.frames())
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


def _with_answers(frame: pl.DataFrame, source: RunSource) -> pl.DataFrame:
    """Add what the run's own rules decide; `matched_by` tells scoring to leave it so."""
    options = source.options()
    rule: MatchRule = options["match_rule"]
    names = [*EXTRACTED, "correct"] if rule.kind != "exact" else [*EXTRACTED]
    measures = needed_measures(names)
    read = {name for one in measures for name in one.inputs if name in BY_NAME}
    absent = sorted(read - set(frame.columns))
    table = frame.lazy().with_columns(pl.lit(None, dtype=dtype(n)).alias(n) for n in absent)
    table = add_measures(table, measure_passes(measures, options)).select(
        *dict.fromkeys([*frame.columns, *names])
    )
    if "correct" in names:
        table = table.with_columns(pl.lit(rule.kind).alias("matched_by"))
    return table.collect()


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
