"""Scores: what `pennyweight score` found, as plain values with several views."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight.define import METRICS, canonical
from pennyweight.errors import unknown
from pennyweight.scoring.estimands import USUAL, Estimand
from pennyweight.scoring.estimates import Estimate, Value
from pennyweight.scoring.pooling import pooled_words
from pennyweight.scoring.repeats import Repeats
from pennyweight.scoring.result import Result
from pennyweight.text.format import MISSING, estimate, plural, quantity
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.scoring.labelled import LabelledRun


@dataclass(frozen=True, slots=True)
class MetricsSummary:
    """The metrics of one pass over a data set, with the fields of their specification."""

    accuracy: float | None
    brier: float | None
    ece: float | None
    sce: float | None
    usr: float | None
    cot_tokens_mean: float | None
    cot_chars_mean: float | None
    step_count_mean: float | None
    ra_ratio_mean: float | None
    self_correction_rate: float | None
    prompt_tokens_mean: float | None
    completion_tokens_mean: float | None
    total_tokens_mean: float | None
    latency_mean_ms: float | None
    latency_p95_ms: float | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Median, mean, mode, range and population standard deviation of values."""

    median: float
    mean: float
    mode: float
    min: float
    max: float
    std_dev: float | None
    """None where a value is infinite."""
    count: int


@dataclass(frozen=True, slots=True)
class Group:
    """The scores of one group of records."""

    group: Mapping[str, Any]
    records: int
    errors: int
    estimates: Mapping[str, Estimate]
    statistics: Mapping[str, Statistics | None]
    tasks: int
    """The tasks of its records, errors left out; a record without a task counts as one."""
    repeats: Repeats | None = None
    """The attempts at its tasks; None if no task was tried several times."""
    labelled: bool = False
    """Whether targets are labels: few different ones, each of several tasks, or a positive one."""

    pooled: Mapping[str, int] = field(default_factory=dict)
    """How many values each column has that tells sides, data sets or tools apart, if several."""

    def __getitem__(self, metric: str) -> Estimate:
        name = metric if metric in self.estimates else canonical(metric)
        if name not in self.estimates:
            raise KeyError(unknown("Metric", metric, self.estimates))
        return self.estimates[name]

    def __contains__(self, metric: object) -> bool:
        return metric in self.estimates or canonical(str(metric)) in self.estimates

    @property
    def is_yes_or_no(self) -> bool:
        """Whether composite scores are all 0 or 1, so that their median is one of these ends."""
        found = self.statistics.get("composite_score")
        if found is None or found.std_dev is None or found.median not in {0.0, 1.0}:
            return False
        spread = found.mean * (1 - found.mean)  # the most that values from 0 to 1 can vary
        return found.min >= 0 and found.max <= 1 and abs(found.std_dev**2 - spread) < 1e-9

    @property
    def name(self) -> str:
        """The group in words, such as `tier=T0`."""
        return clean(", ".join(f"{k}={_shown(v)}" for k, v in self.group.items())) or "all"

    def summary(self) -> MetricsSummary:
        """Return the metrics of the specification of reasoning metrics, null where not computed."""
        fields = MetricsSummary.__dataclass_fields__
        return MetricsSummary(
            **{n: self.estimates[n].value if n in self.estimates else None for n in fields}
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `pennyweight score --format json` prints for one group."""
        found = self.estimates.items()
        return {
            "group": {name: json_value(value) for name, value in self.group.items()},
            "records": self.records,
            "errors": self.errors,
            "tasks": self.tasks,
            "metrics": {n: json_value(e.value) for n, e in found},
            "intervals": {
                n: None if e.low is None else [json_value(e.low), json_value(e.high)]
                for n, e in found
            },
            "skipped": {n: e.skipped for n, e in found},
            "skewed": dict.fromkeys((n for n, e in found if e.skewed), True),
            "statistics": {
                n: None if s is None else {k: json_value(v) for k, v in asdict(s).items()}
                for n, s in self.statistics.items()
            },
            "repeats": None if self.repeats is None else self.repeats.to_dict(),
            "pooled": dict(self.pooled),
        }


@dataclass(frozen=True, slots=True)
class Scores(Result):
    """The scores of all groups, such as `scores["T1"]["accuracy"]`.

    With one group, its metrics can be asked for by name: `scores["accuracy"]`.
    """

    groups: tuple[Group, ...]
    confidence: float = 0.95
    left_out: int = 0
    problems: tuple[str, ...] = field(default=(), repr=False)
    unused: tuple[str, ...] = field(default=(), repr=False)
    unpriced: tuple[str, ...] = ()
    """Subjects whose cost stays, since the price list given does not name them."""
    estimand: Estimand = USUAL
    score_errors: Mapping[str, tuple[int, str]] = field(default_factory=dict, repr=False)
    """How often each scorer failed, and with which error first."""
    notes: tuple[str, ...] = field(default=(), repr=False)
    """What people should know, such as verdicts of another tool that differ."""
    errors: str = "exclude"
    """What errors count as: they are left out, or are `failures`."""
    people: tuple[LabelledRun, ...] = field(default=(), repr=False)
    """What people's verdicts on runs say about their metrics, where there are any."""

    def __getitem__(self, name: str | tuple[str, ...]) -> Any:
        """Return a group by its value or values, or a metric where there is only one group."""
        if len(self.groups) == 1 and name in self.groups[0].estimates:
            return self.groups[0][str(name)]
        values = (name,) if isinstance(name, str) else name
        for group in self.groups:
            if tuple(_shown(value) for value in group.group.values()) == values:
                return group
        if len(self.groups) == 1:
            return self.groups[0][str(name)]  # under another of its names
        raise KeyError(f"No group {name!r}. There are: {', '.join(map(_key, self.groups))}.")

    def __contains__(self, name: Any) -> bool:
        try:
            self[name]
        except KeyError:
            return False
        return True

    def __repr__(self) -> str:
        failed = (
            f"{name} failed on {plural(count, 'record')}: {first}"
            for name, (count, first) in self.score_errors.items()
        )
        return "\n".join((*(_lines(group) for group in self.groups), *failed))

    def summary(self) -> MetricsSummary:
        """Return the summary of the only group."""
        (group,) = self.groups
        return group.summary()

    def to_dict(self) -> dict[str, Any]:
        """Return what `pennyweight score --format json` prints."""
        return {
            "groups": [group.to_dict() for group in self.groups],
            "errors": self.errors,
            "weight": self.estimand.weight,
            "estimand": self.estimand.about,
            **({"people": [one.to_dict() for one in self.people]} if self.people else {}),
        }

    def to_polars(self) -> pl.DataFrame:
        """Return a row for each group and metric; a grade is text, in `grade`."""
        rows = [
            {
                **group.group,
                "metric": name,
                "value": e.value if isinstance(e.value, float) else None,
                "low": e.low if isinstance(e.low, float) else None,
                "high": e.high if isinstance(e.high, float) else None,
                "grade": e.value if isinstance(e.value, str) else None,
                "records": e.records,
                "skipped": e.skipped,
            }
            for group in self.groups
            for name, e in group.estimates.items()
        ]
        numbers = dict.fromkeys(("value", "low", "high"), pl.Float64)
        return pl.DataFrame(rows, schema_overrides={**numbers, "grade": pl.String}, strict=False)


def _key(group: Group) -> str:
    """Write how a group is asked for."""
    return ", ".join(repr(_shown(value)) for value in group.group.values())


def _shown(value: Any) -> str:
    return "—" if value is None else str(value)


def json_value(value: Value | int) -> Value | int:
    """Make a value fit for strict JSON: infinity is a string, what overflowed is null."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _lines(group: Group) -> str:
    counts = [plural(group.records, "record"), plural(group.errors, "error")]
    lines = [f"{group.name}: {', '.join(filter(None, (*counts, pooled_words(group.pooled))))}"]
    for name, e in group.estimates.items():
        value, ends = _written(e, METRICS[name].unit if name in METRICS else "")
        lines.append(f"  {name:<24}{value:>10}  {ends}".rstrip())
    return "\n".join(lines)


def _written(e: Estimate, unit: str) -> tuple[str, str]:
    if isinstance(e.value, str) or e.value is None:
        return e.value or MISSING, ""
    if not isinstance(e.low, float) or not isinstance(e.high, float):
        return quantity(e.value, unit), ""
    return estimate(e.value, e.low, e.high, unit)
