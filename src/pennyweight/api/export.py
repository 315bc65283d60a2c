"""Export the records of a run to a file, with the answers extracted from them."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import polars as pl

from pennyweight import __version__
from pennyweight.api.score import score
from pennyweight.api.sources import run_source
from pennyweight.define import Measure, add_measures, dtype, measure_passes, needed_measures
from pennyweight.errors import InputError, UsageError
from pennyweight.exports.export_format import ExportedRun
from pennyweight.exports.judgment_files import write_judgments
from pennyweight.exports.partitioned import write_partitions
from pennyweight.exports.registry import format_named
from pennyweight.record import BY_NAME, KEY_IN_RUN, PERSON, PERSON_NOTES
from pennyweight.render.plain import csv_table
from pennyweight.scoring.estimates import Estimate
from pennyweight.scoring.labelled import Label, label_frame
from pennyweight.scoring.selection import refuse_empty, selects
from pennyweight.store.remarks import record_verdicts
from pennyweight.store.store import Store
from pennyweight.stored_runs.panel import NEEDED, Panel
from pennyweight.stored_runs.source import RunSource
from pennyweight.text.matching import MatchRule

EXTRACTED = ("answer", "cot", "prob_correct")
"""Columns that scoring extracts from a response."""
DECIDED = (*EXTRACTED, "correct", "passed", "impl_rate", "cost_usd")
"""Columns that other tools have no rules for, so that an export states them."""
CONFIDENCE = 0.95
_FILES = (".json", ".jsonl", ".csv", ".parquet", ".eval")


def export(
    source: str | RunSource = "latest",
    output: str | Path | None = None,
    *,
    format: str | None = None,  # noqa: A002
    judgments: bool = False,
    where: Mapping[str, str] | None = None,
    partition_by: str | Sequence[str] = (),
    store: str | Store | None = None,
) -> None:
    """Write the records of a run as JSONL, CSV (its cells guarded) or Parquet.

    The name of `output` tells the format; without one, JSONL goes to standard output. The answers
    are found by the rules of the run's suite, so a score of the file is the score of the run. With
    `judgments`, the judgments are written in place of the records; where `output` has no ending,
    as a folder with a `judgment.json` for each. `where` leaves out records with
    other values in columns or measures, such as `{"passed": "false"}`.

    With the name of another tool as `format`, `output` is a new folder: `inspect`
    (Inspect AI), `every_eval_ever`, `openai-evals`, `atif` or `otel`. With `partition_by`, it is a
    new folder too: Parquet files in folders such as `subject=ours/tier=T0`.
    """
    columns = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    found = run_source(source, store) if isinstance(source, str) else source
    if where and judgments:
        raise UsageError("--where selects records; it does not apply to --judgments.")
    if format is not None:
        if judgments:
            raise UsageError("--as writes records; it does not apply to --judgments.")
        if columns:
            raise UsageError("--partition-by writes Parquet; it does not apply to --as.")
        _write_as(format, output, found, where or {})
        return
    path = Path(output) if output is not None else None
    kind = path.suffix if path else ".jsonl"
    if judgments and path is not None and not path.suffix and not columns:
        _write_judgments(path, found)
        return
    if not columns and kind not in {".jsonl", ".csv", ".parquet"}:
        raise UsageError(f"-o {path}: the name must end in .jsonl, .csv or .parquet.")
    said = _said(found)
    frames: Iterator[pl.DataFrame] = (
        _with_people(_with_answers(frame, found), said) for frame in _selected(found, where or {})
    )
    if judgments:
        judged = found.store.judgments(found.run_id)
        if judged.is_empty():
            raise InputError([f"{found.name} has no judgments; 'pennyweight judge' makes them."])
        frames = iter([judged])
    if columns:
        with _new_folder(output, "--partition-by", found) as part:
            write_partitions(part, frames, columns)
        return
    _write_table(path, kind, frames, found)


def _write_judgments(folder: Path, source: RunSource) -> None:
    """Write the judgments that count as files of the judge protocol."""
    panel = Panel.of(source.run, source.store, items=True)
    if panel is None or panel.judgments.is_empty():
        raise InputError([f"{source.name} has no judgments; 'pennyweight judge' makes them."])
    frames = source.frames(frozenset(NEEDED))
    rows = (row for frame in frames for row in panel.current(frame).iter_rows(named=True))
    with _new_folder(folder, "--judgments", source) as part:
        write_judgments(part, rows, panel.rules["rubric"])


def _write_table(
    path: Path | None, kind: str, frames: Iterator[pl.DataFrame], source: RunSource
) -> None:
    """Write records as they are read."""
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
                raise InputError([f"{source.name} has no records yet."])
            pl.scan_parquet(parts).sink_parquet(file)
        return
    with _replacing(path) as file:
        for index, frame in enumerate(frames):
            if kind == ".jsonl":
                file.write(frame.write_ndjson().encode())
            else:
                head = [frame.columns] if index == 0 else []
                file.write(csv_table([*head, *frame.rows()], nulls=True).encode())


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


def _write_as(
    name: str, output: str | Path | None, source: RunSource, where: Mapping[str, str]
) -> None:
    """Write the records in the format of another tool, into a folder that is complete or absent."""
    chosen = format_named(name)
    run = source.run
    rates = cache(partial(_pass_rates, source, where))
    about = ExportedRun(run.id, run.suite, run.status, run.created, __version__, CONFIDENCE, rates)
    with _new_folder(output, f"--as {name}", source) as part:
        chosen.write(part, about, decided_rows(source, where))


@contextmanager
def _new_folder(output: str | Path | None, option: str, source: RunSource) -> Iterator[Path]:
    """Write a folder under another name first, so that it is complete or absent."""
    if output is None:
        raise UsageError(f"{option} writes a folder: name it with -o FOLDER.")
    folder = Path(output)
    if folder.suffix in _FILES:
        raise UsageError(f"-o {folder}: {option} writes a folder. Name it without an ending.")
    if folder.is_symlink():
        raise UsageError(f"-o {folder}: it is a link. Name the folder itself, or a new one.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"-o {folder}: it exists already. Name a new folder, or delete it first.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".pennyweight", dir=folder.parent) as held:
            part = Path(held) / "part"
            part.mkdir()
            yield part
            if not any(part.iterdir()):
                raise InputError([f"{source.name} has no records yet."])
            part.replace(folder)
    except OSError as error:
        raise InputError([f"{folder}: cannot be written: {error.strerror or error}."]) from error


def _pass_rates(source: RunSource, where: Mapping[str, str]) -> dict[tuple[str, str], Estimate]:
    """Return the pass rate of each subject and tier that has one."""
    found = score(
        source.run_id,
        by=["subject", "tier"],
        metrics=["pass_rate"],
        confidence=CONFIDENCE,
        where=where,
        store=source.store,
    ).groups
    rates = {(str(one.group["subject"]), str(one.group["tier"])): one["pass_rate"] for one in found}
    return {side: rate for side, rate in rates.items() if rate.value is not None}


def decided_rows(source: RunSource, where: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the records one by one, with the measures that decide."""
    measures, options = needed_measures(DECIDED), source.options()
    for frame in _selected(source, where):
        table = _measured(frame, measures, options)
        yield from table.select(*dict.fromkeys([*frame.columns, *DECIDED])).iter_rows(named=True)


def _with_answers(frame: pl.DataFrame, source: RunSource) -> pl.DataFrame:
    """Add what the run's own rules decide; `matched_by` tells scoring to leave it so."""
    options = source.options()
    rule: MatchRule | None = options["match_rule"]
    loose = rule.kind if rule and rule.kind != "exact" else None
    names = [*EXTRACTED, "correct"] if loose else [*EXTRACTED]
    table = _measured(frame, needed_measures(names), options)
    table = table.select(*dict.fromkeys([*frame.columns, *names]))
    return table.with_columns(matched_by=pl.lit(loose)) if loose else table


def _said(source: RunSource) -> pl.DataFrame | None:
    """Return what people say about the records of a run; None if nobody said anything."""
    verdicts = record_verdicts(source.store, source.run_id)
    if not verdicts:
        return None
    labels = [Label(tuple(one.key[1:]), one.who, one.verdict, one.draws) for one in verdicts]
    notes: dict[tuple[Any, ...], str] = {}
    for one in verdicts:
        text = f"{one.who}: {one.verdict}" + (f" ({one.note})" if one.note else "")
        notes[one.key[1:]] = "; ".join(filter(None, (notes.get(one.key[1:]), text)))
    frame = label_frame(labels)
    words = pl.col("label").replace_strict({1.0: "right", 0.0: "wrong"}, default="unsure")
    named = pl.Series(PERSON_NOTES, [notes[key] for key in frame.select(KEY_IN_RUN).rows()])
    return frame.with_columns(words.alias(PERSON), named).drop("label", "drawn")


def _with_people(frame: pl.DataFrame, said: pl.DataFrame | None) -> pl.DataFrame:
    """Add people's verdicts and notes."""
    if said is None:
        return frame
    kinds = {name: frame.schema[name] for name in KEY_IN_RUN}
    return frame.join(said.cast(kinds), on=KEY_IN_RUN, how="left", maintain_order="left")  # type: ignore[arg-type]


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
