"""Metrics in plain words: what a column is called, and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pennyweight.catalogue import METRICS


@dataclass(frozen=True, slots=True)
class MetricTitle:
    """The name of a metric, the same in plain words, and what it means."""

    name: str
    title: str
    summary: str = ""
    better: str = ""

    @property
    def code(self) -> str:
        """The metric's name, where the plain words do not show it."""
        return "" if self.title.replace(" ", "_") == self.name else self.name

    @property
    def help(self) -> str:
        """What it means, and which direction is better."""
        told = f"{self.better.capitalize()} is better." if self.better else ""
        return " ".join(filter(None, (self.summary, told)))

    def __str__(self) -> str:
        return f"{self.title} ({self.name})" if self.code else self.title


@lru_cache(512)
def metric_title(name: str) -> MetricTitle:
    """Return a metric in plain words.

    >>> str(metric_title("ece")), str(metric_title("pass_rate"))
    ('calibration error (ece)', 'pass rate')
    """
    metric = METRICS.get(name)
    if metric is None:
        return MetricTitle(name, name.replace("_", " "))
    return MetricTitle(name, metric.title, metric.summary, metric.better or "")
