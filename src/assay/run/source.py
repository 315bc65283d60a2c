"""Runs as sources: the records of a run, scored by the rules of its suite."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import InputError, UsageError
from assay.source.chunks import Rows
from assay.text.extract import AnswerRule
from assay.text.match import MatchRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from assay.store.store import Run, Store


@dataclass(frozen=True, slots=True)
class RunSource:
    """The records of one run."""

    run: Run
    store: Store

    @property
    def path(self) -> str:
        """What messages call it."""
        return f"run {self.run.id}"

    def frames(self) -> Iterator[pl.DataFrame]:
        """Read the records, some thousand at a time."""
        return self.store.records(self.run.id)

    def chunks(self) -> Iterator[Rows]:
        """Cut the records into chunks."""
        first = 1
        for frame in self.frames():
            yield Rows(self.path, frame.lazy(), range(first, first + frame.height))
            first += frame.height

    def options(self) -> dict[str, Any]:
        """Give the options with which its suite wants it scored."""
        settings = self.run.settings
        match = settings["match"]
        return {
            "answer_rule": AnswerRule(**settings["answer"]),
            "match_rule": MatchRule(
                match["kind"],
                Decimal(match["absolute"]),
                Decimal(match["relative"]),
                match["separator"],
                match["each"],
            ),
            "confidence_from": settings.get("confidence"),
        }


def resolve(names: Sequence[str], store: Store) -> list[str | RunSource]:
    """Tell paths from runs: what exists as a path is one, else it must be a run."""
    found: list[str | RunSource] = []
    problems: list[str] = []
    for name in names:
        if name == "-" or Path(name).exists():
            found.append(name)
            continue
        try:
            found.append(RunSource(store.find(name), store))
        except UsageError as error:
            looks = any(s in name for s in (".", "/", "\\"))
            text = f"{name}: no such file or folder." if looks else f"{name}: no such file. {error}"
            problems.append(text)
    if problems:
        raise InputError(problems)
    return found
