"""Metrics of scores: what scorers gave each record, as a measure with its mean or its shares.

Scores have the names that users give them, so they are declared when records with scores are read.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import polars as pl

from pennyweight.define import MEASURES, METRICS, STORED, Better, Declaration, Measure, Metric
from pennyweight.errors import UsageError
from pennyweight.record import BY_NAME, EXPORTED
from pennyweight.stats.skewness import Range

FAMILY = STORED
COLUMN = "scores"
"""The column of the record that holds the scores by name, as JSON."""
MAX_LABELS = 20
"""Texts with more distinct values than this are no labels; their shares are not reported."""
MAX_NAME_LENGTH = 60

ScoreKind = Literal["number", "flag", "label"]
_TYPES: dict[ScoreKind, Any] = {"number": pl.Float64, "label": pl.String}


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """A score of records: its name, what its values are, and how to read them."""

    name: str
    kind: ScoreKind = "number"
    labels: tuple[str, ...] = ()
    """The labels that records got, if they are few enough to report their shares."""
    summary: str = ""
    unit: str = ""
    range: Range | None = None
    better: Better | None = "higher"

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, as a run stores it."""
        return {name: value for name, value in asdict(self).items() if name != "name"}

    @classmethod
    def of(cls, name: str, given: Mapping[str, Any]) -> ScoreColumn:
        """Read what `plain` returned."""
        ends = given.get("range")
        return cls(
            name=name,
            kind=given["kind"],
            labels=tuple(given.get("labels") or ()),
            summary=given.get("summary") or "",
            unit=given.get("unit") or "",
            range=(ends[0], ends[1]) if ends else None,
            better=given.get("better"),
        )

    def joined(self, other: ScoreColumn) -> ScoreColumn:
        """Return the column of two sources; refuse labels next to numbers."""
        if "label" in {self.kind, other.kind} and self.kind != other.kind:
            raise UsageError(
                f"{self.name} is a label in one source and a number in the other; score them apart."
            )
        labels = tuple(dict.fromkeys((*self.labels, *other.labels)))
        return replace(self, kind="number" if self.kind != other.kind else self.kind, labels=labels)

    def measure(self) -> Measure:
        """Return the measure of one record."""
        return Measure(**self._common(self.name, _value(self), (COLUMN,), "The score of a record."))

    def metrics(self) -> list[Metric]:
        """Return the mean of a score; for labels, the share of each."""
        if self.kind == "label":
            return [self._share(label) for label in self.labels]
        is_flag = self.kind == "flag"
        common = self._common(self.name, pl.Expr.mean, (self.name,), "Mean of the scores.")
        common["unit"] = "share" if is_flag else self.unit
        ends: Range | None = (0, 1) if is_flag else self.range
        formula = f"(1/N) Σ {self.name}_i"
        return [_metric(common, formula, ends, self.better)]

    def _share(self, label: str) -> Metric:
        name = f"{self.name}.{label}"
        common = self._common(name, lambda x: (x == label).mean(), (self.name,), "")
        common |= {"unit": "share", "summary": f"Share of records whose {self.name} is {label!r}."}
        return _metric(common, f"(1/N) Σ [{self.name}_i = {label}]", (0, 1), None)

    def _common(
        self, name: str, function: Any, inputs: tuple[str, ...], summary: str
    ) -> dict[str, Any]:
        return {
            "name": name,
            "function": function,
            "inputs": inputs,
            "options": {},
            "summary": self.summary or summary,
            "details": "",
            "example": "",
            "family": FAMILY,
            "unit": self.unit,
            "spec": "",
        }


def _metric(
    common: Mapping[str, Any], formula: str, ends: Range | None, better: Better | None
) -> Metric:
    return Metric(
        **common,
        formula=formula,
        range=ends,
        better=better,
        needs=common["inputs"],
        over="scored",
        interval=None,
        title=common["name"].replace("_", " "),
    )


def _value(column: ScoreColumn) -> Any:
    """Return the function that reads a score from the column of scores."""

    def read(scores: pl.Expr) -> pl.Expr:
        text = scores.str.json_path_match(f"$.{column.name}")
        if column.kind == "flag":
            return text.replace_strict({"true": True, "false": False}, default=None)
        flags = text.replace({"true": "1", "false": "0"}) if column.kind == "number" else text
        return flags.cast(_TYPES[column.kind], strict=False)

    return read


def declare_scores(columns: Iterable[ScoreColumn]) -> list[str]:
    """Declare scores as measures and metrics; return the names of the metrics.

    A measure of the user whose code is loaded stays as it is; stored values stand for it where it
    is not. A name that belongs to something else, which only a foreign store can contain, is left
    out.
    """
    names: list[str] = []
    for column in joined(columns):
        loaded = MEASURES.get(column.name)
        if loaded is None or not loaded.is_users:
            if name_problem(column.name):
                continue
            MEASURES[column.name] = column.measure()
        for metric in column.metrics():
            if METRICS.get(metric.name, metric).family == FAMILY:
                METRICS[metric.name] = metric
                names.append(metric.name)
    return names


def is_replaced(name: str) -> bool:
    """Whether a score of this name takes the place of a screen; it is a share from 0 to 1.

    >>> is_replaced("usr_rag"), is_replaced("accuracy")
    (True, False)
    """
    return name in METRICS and METRICS[name].replaceable


def joined(columns: Iterable[ScoreColumn]) -> Sequence[ScoreColumn]:
    """Return each score once: those of several sources under one name are one score."""
    found: dict[str, ScoreColumn] = {}
    for column in columns:
        before = found.get(column.name)
        found[column.name] = before.joined(column) if before else column
    return list(found.values())


def name_problem(name: str) -> str:
    """Return why a score cannot have a name; empty if it can.

    >>> name_problem("politeness"), name_problem("accuracy")
    ('', "'accuracy' is the name of a metric.")
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or keyword.iskeyword(name):
        return f"{name[:80]!r} must be a name of letters, digits and underscores."
    if len(name) > MAX_NAME_LENGTH:
        return f"{name[:80]!r} is longer than {MAX_NAME_LENGTH} characters."
    if is_replaced(name):
        return ""
    known: dict[str, Mapping[str, Declaration]] = {"metric": METRICS, "measure": MEASURES}
    for kind, declared in known.items():
        if name in declared and declared[name].family != FAMILY:
            return f"{name!r} is the name of a {kind}."
    if name in BY_NAME or name in EXPORTED:
        return f"{name!r} is the name of a column of the record."
    return ""
