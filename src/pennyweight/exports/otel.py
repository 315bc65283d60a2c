"""OpenTelemetry: a trace of GenAI spans for each attempt, as OTLP JSON, with its evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from pennyweight.exports.export_format import ExportedRun, ExportFormat, RecordRow
from pennyweight.exports.spans import TracedRun, spans_of
from pennyweight.exports.values import dumped, file_name, side_of


def write(folder: Path, run: ExportedRun, rows: Iterator[RecordRow]) -> None:
    """Write a file for each subject and tier, one request a line, each with one trace."""
    made: dict[tuple[str, str], IO[bytes]] = {}
    traced = TracedRun(run.id, run.suite, run.created, run.version)
    with ExitStack() as files:
        for row in rows:
            side = side_of(row)
            if side not in made:
                path = folder / f"{file_name(*side).replace('.', '-')}.traces.jsonl"
                made[side] = files.enter_context(path.open("wb"))
            made[side].write(dumped(traced.traces(spans_of(row, traced))) + b"\n")


FORMAT = ExportFormat(
    "otel",
    "OpenTelemetry",
    write,
    lost="targets, answers, checks, judges' scores, log-probabilities, timeouts and budgets; calls "
    "and tools have the times of their attempt, and the calls of a conversation no tokens each",
)
