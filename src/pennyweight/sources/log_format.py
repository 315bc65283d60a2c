"""How a log format is declared: who recognises it, who reads it, and what it gives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pennyweight.errors import UsageError, unknown
from pennyweight.sources.log_tally import Expectation, LogTally
from pennyweight.sources.peek import Peek

Row = dict[str, Any]
"""One record: columns of the record, and others that people may group by or map."""

PROBLEM = "\0problem"
"""The only key of a row that says what is wrong with a record that cannot be read."""


@dataclass(frozen=True, slots=True)
class LogPart:
    """Some rows that are read when it is called, in any thread and at the same time as others."""

    size: int
    """The number of rows, those with a problem included: it says which number each one has."""
    read: Callable[[], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What a user chooses where a log has several scores."""

    scorer: str | None = None
    """The score that decides; by default the tool's headline, else its first."""
    filter: str | None = None
    """The filter of the responses, where a tool scores each response once a filter."""
    rematch: bool = False
    """Whether answers are compared with targets again, in place of the tool's verdict."""
    prefix: bool = False
    """Whether tasks are named after their suite too: several logs may use the same names."""


USUAL = LogOptions()


@dataclass(frozen=True, slots=True)
class Log:
    """One log that is being read: its files, what is wanted, and what is found out on the way."""

    format: LogFormat
    path: Path
    """The file, or the folder that the files belong to."""
    files: tuple[Path, ...]
    """The recognised files, in order of their names."""
    options: LogOptions = USUAL
    wanted: frozenset[str] | None = None
    """The columns to read; None for all."""
    tally: LogTally = field(default_factory=LogTally)
    expectations: list[Expectation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    offered: dict[str, None] = field(default_factory=dict)
    """The scores that were seen, one of which may decide."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wants(self, *columns: str) -> bool:
        """Whether any of these columns is wanted. Leave out what is expensive and not wanted."""
        return self.wanted is None or not self.wanted.isdisjoint(columns)

    def note(self, text: str) -> None:
        """Say something once, on standard error, after the log was read."""
        with self._lock:
            if text not in self.notes:
                self.notes.append(text)

    def expect(self, expectation: Expectation) -> None:
        """Have a number of the tool's own summary compared with what the records give."""
        with self._lock:
            if expectation not in self.expectations:
                self.expectations.append(expectation)

    def offer(self, names: Iterable[Any]) -> None:
        """Take down the scores of a record."""
        self.offered.update(dict.fromkeys(map(str, names)))

    def check_scorer(self) -> None:
        """Refuse a chosen score that no record has, once all are read."""
        scorer = self.options.scorer
        if scorer is not None and scorer not in self.offered:
            hint = f"The log has {', '.join(self.offered) or 'no scores'}."
            raise UsageError(f"--scorer: {unknown('Score', scorer, self.offered, hint)}")

    def count(self, rows: Sequence[Row]) -> None:
        """Count rows in the tally."""
        with self._lock:
            self.tally.add(rows)


Reader = Callable[[Log], Iterator[Row | LogPart]]


def itself(path: Path) -> Path:
    """Return the path: a file that is a log by itself."""
    return path


@dataclass(frozen=True, slots=True)
class LogFormat:
    """The log of a tool."""

    name: str
    """A short name: the value of the column `tool`."""
    title: str
    """The name of the tool, as its makers write it."""
    recognise: Callable[[Peek], bool]
    """Whether a file is a log of this tool, or a part of one; by its content."""
    read: Reader | None = None
    """Yields the records. None: the log is recognised and refused."""
    home: Callable[[Path], Path] = itself
    """The folder (or file) that identifies a log: recognised files with the same home are one log.
    Everything below a folder belongs to it and is not read as records."""
    scores: bool = False
    """Whether its logs may have several scores, so that `--scorer` chooses one."""
    filters: bool = False
    """Whether its logs may have several filters of responses, so that `--filter` chooses one."""
    counts_errors: bool = False
    """Whether the tool counts attempts that broke as failed."""
    lost: str = ""
    """What of the log is not read."""
    refusal: str = ""
    """What to do instead, if the log (or this form of it) is not read."""

    def __str__(self) -> str:
        return self.title
