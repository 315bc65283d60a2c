"""How a format of another tool is declared, and what is exported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pennyweight.scoring.estimates import Estimate

RecordRow = Mapping[str, Any]
"""One record of a run, with the measures that decide: answer, passed, correct, cost, …"""


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """What the records of an export have in common."""

    id: str
    suite: str
    status: str
    created: float
    version: str
    """The version of Pennyweight that writes the export."""
    confidence: float
    """Of the intervals of pass rates."""
    pass_rates: Callable[[], Mapping[tuple[str, str], Estimate]]
    """Computes the pass rate of each subject and tier where something was decided."""


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format of another tool."""

    name: str
    """The value of `--as`."""
    title: str
    """The name of the tool, as its makers write it."""
    write: Callable[[Path, ExportedRun, Iterator[RecordRow]], None]
    """Writes records into an empty folder."""
    lost: str
    """What the format has no place for."""
