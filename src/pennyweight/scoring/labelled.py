"""People's verdicts beside the automatic ones: agreement, and metrics corrected by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from pennyweight.record import KEY_IN_RUN
from pennyweight.stats.labels import Agreement, CorrectedShare, agreement, corrected_share

AUTOMATIC = {"correct": "accuracy", "passed": "pass_rate"}
"""The measures that people's verdicts are compared with, and the metric of each."""
VALUES = {"right": 1.0, "wrong": 0.0}
RANDOM = "random"
"""How a queue draws records so that they stand for all of them."""


@dataclass(frozen=True, slots=True)
class SideCorrection:
    """The metric of one side, corrected by labels."""

    side: str
    share: CorrectedShare


@dataclass(frozen=True, slots=True)
class LabelledMetric:
    """How well the measure behind a metric agrees with people, and what the metric really is."""

    metric: str
    agreement: Agreement
    sides: tuple[SideCorrection, ...]
    """Empty unless records were drawn at random."""


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """What people said about the records of a run, and what that says about its metrics."""

    run: str
    people: tuple[str, ...]
    labelled: int
    """Records that people call right or wrong, by majority."""
    undecided: int
    """Records about which people are unsure or divided."""
    drawn: int
    """Records among the labelled that a queue drew at random."""
    metrics: tuple[LabelledMetric, ...]
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Label:
    """What one person says about a record."""

    record: tuple[Any, ...]
    """The values of `KEY_IN_RUN`."""
    who: str
    verdict: str
    draws: frozenset[str]
    """How queues chose the record; none of them where the person did."""


def label_frame(labels: Iterable[Label]) -> pl.DataFrame:
    """Return one row a record: the majority's `label` (null if there is none) and `drawn`."""
    several: dict[tuple[Any, ...], list[Label]] = {}
    for one in labels:
        several.setdefault(one.record, []).append(one)
    rows = [
        (*record, _majority([VALUES.get(one.verdict) for one in said]),
         any(RANDOM in one.draws for one in said))
        for record, said in several.items()
    ]  # fmt: skip
    texts = {n: pl.Int64 if n == "attempt" else pl.String for n in KEY_IN_RUN}
    schema: dict[str, Any] = {**texts, "label": pl.Float64, "drawn": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _majority(values: Sequence[float | None]) -> float | None:
    votes = Counter(v for v in values if v is not None).most_common(2)
    tied = len(votes) == 2 and votes[0][1] == votes[1][1]
    return None if not votes or tied else votes[0][0]


def labelled_run(
    run: str, records: pl.DataFrame, labels: Sequence[Label], confidence: float
) -> LabelledRun:
    """Compare the automatic verdicts on records with people's labels."""
    said = label_frame(labels)
    keys = [pl.col(n).cast(pl.Int64 if n == "attempt" else pl.String) for n in KEY_IN_RUN]
    frame = records.with_columns(keys).join(said, on=KEY_IN_RUN, how="left", maintain_order="left")
    drawn = frame.filter(pl.col("drawn") & pl.col("label").is_not_null()).height
    found: list[LabelledMetric] = []
    for name, metric in AUTOMATIC.items():
        if _says_more(frame, name, [n for n in AUTOMATIC if AUTOMATIC[n] in _names(found)]):
            found.append(_metric(metric, frame.drop_nulls(name), name, drawn, confidence))
    return LabelledRun(
        run,
        tuple(dict.fromkeys(one.who for one in labels)),
        frame["label"].count(),
        said["label"].null_count(),
        drawn,
        tuple(found),
        confidence,
    )


def _names(found: Sequence[LabelledMetric]) -> list[str]:
    return [one.metric for one in found]


def _says_more(frame: pl.DataFrame, name: str, before: Sequence[str]) -> bool:
    """Whether a measure has values, and others than the measures before it."""
    known = frame[name].count()
    return bool(known) and not any(frame[name].equals(frame[n], null_equal=True) for n in before)


def _metric(
    metric: str, frame: pl.DataFrame, name: str, drawn: int, confidence: float
) -> LabelledMetric:
    counted = frame.with_columns(
        label=pl.when(pl.col("drawn")).then("label") if drawn else pl.col("label"),
        verdict=pl.col(name).cast(pl.Float64),
        task=pl.col("task_id").rank("dense").cast(pl.Int64),
    )
    both = counted.drop_nulls("label")
    sides: list[SideCorrection] = []
    for (subject, tier), group in counted.group_by("subject", "tier", maintain_order=True):
        share = corrected_share(*_arrays(group), confidence) if drawn else None
        if share and share.interval:  # one label of a side says nothing about it
            sides.append(SideCorrection(_side(counted, subject, tier), share))
    return LabelledMetric(metric, agreement(*_arrays(both), confidence), tuple(sides))


def _arrays(frame: pl.DataFrame) -> tuple[Any, Any, Any]:
    label = frame["label"].fill_null(np.nan)
    return frame["verdict"].to_numpy(), label.to_numpy(), frame["task"].to_numpy()


def _side(frame: pl.DataFrame, subject: Any, tier: Any) -> str:
    named = {"subject": subject, "tier": tier}
    return " · ".join(str(v) for n, v in named.items() if frame[n].n_unique() > 1)
