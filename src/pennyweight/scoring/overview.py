"""What a default table shows: the headline metric and a few around it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from pennyweight.catalogue import FAMILIES, METRICS, metric_named
from pennyweight.metrics.probes import is_probe
from pennyweight.metrics.scores import FAMILY as SCORES
from pennyweight.scoring.digest import HEADLINES, headline
from pennyweight.scoring.scores import Group

MAX_METRICS = 8
"""The most metrics of a default table."""
LEADERBOARD_FROM = 4
"""From this many groups on, sides are the rows of a table and metrics its columns."""
_SCENARIOS = ("safety_rate", "behavior_coverage")
_JUDGED = ("judge_alpha", "judge_cost_usd_total")
"""Metrics that only records with judgments have."""
_FURTHER = ("judge_alpha", "ece")
_LABELLED = "judge_pass_rate_corrected"
"""The metric that only records with labels of people have."""
_REPEATED = "pass_at_k"
_COSTS = ("cost_of_pass", "cost_usd_total")
_WITHOUT_COST = "total_tokens_mean"
_CALLS = ("latency_p95_ms", "ttft_p95_ms", "attempt_error_rate")
_RATES = ("reported_failure_rate", "truncated_rate")
"""Metrics that are shown unless they are 0."""
_CANDIDATES = dict.fromkeys(
    (
        *HEADLINES,
        *_SCENARIOS,
        *_JUDGED,
        *_FURTHER,
        _LABELLED,
        _REPEATED,
        *_COSTS,
        _WITHOUT_COST,
        *_CALLS,
        *_RATES,
    )
)
"""The metrics that `overview` chooses from, and those by which it chooses."""


def candidates() -> list[str]:
    """Return the metrics that a default table may show, whatever the records are.

    Only these are computed where nothing but such a table is shown; the others would be hidden.
    """
    return [*_CANDIDATES, *(n for n, m in METRICS.items() if m.family not in FAMILIES)]


def is_choice(metrics: Iterable[str]) -> bool:
    """Whether a table chooses from metrics, because none was asked for by name."""
    return _CANDIDATES.keys() <= set(metrics)


def overview(groups: Sequence[Group]) -> list[str]:
    """Return the metrics that a table of all metrics shows by default, the headline first.

    The others are what the records are about, then cost, latency and errors. Metrics that were
    asked for by name are all shown.
    """
    names = list(groups[0].estimates) if groups else []
    if not is_choice(names):
        return names
    first = headline(*groups) or "accuracy"  # which then says why it has no value
    always = [n for n in _always(groups) if n != first]
    room = MAX_METRICS - 1 - len(always)
    return [first, *[n for n in _about(groups) if n != first][:room], *always]


def _about(groups: Sequence[Group]) -> Iterator[str]:
    """Yield the metrics of what the records are about, the most important first."""
    if _known(groups, _LABELLED):
        yield _LABELLED
    if _known(groups, "accuracy") and any(
        g["accuracy"].value != g["pass_rate"].value for g in groups
    ):
        yield from ("pass_rate", "accuracy")
    own = [n for n, m in METRICS.items() if m.family == SCORES or m.family not in FAMILIES]
    yield from (n for n in own if n in groups[0].estimates and _known(groups, n))
    yield from (n for n in _SCENARIOS if _known(groups, n))
    judged = any(_known(groups, n) for n in _JUDGED)
    if _known(groups, "impl_rate_mean") and (judged or not _known(groups, "behavior_coverage")):
        yield "impl_rate_mean"
    yield from (n for n in _FURTHER if _known(groups, n))
    if _known(groups, _REPEATED) and any(g.repeats is None or g.repeats.k > 1 for g in groups):
        yield _REPEATED  # of one attempt, it is the share that passes


def _always(groups: Sequence[Group]) -> Iterator[str]:
    """Yield the metrics of cost, latency and errors."""
    if any(_known(groups, n) for n in _COSTS):
        yield from (n for n in _COSTS if _known(groups, n))
    elif _known(groups, _WITHOUT_COST):
        yield _WITHOUT_COST
    yield from (n for n in _CALLS if _known(groups, n))
    yield from (n for n in _RATES if any(group[n].value for group in groups))


def _known(groups: Sequence[Group], name: str) -> bool:
    """Whether a metric has a value in a group."""
    return any(group[name].value is not None for group in groups)


def is_curve(groups: Sequence[Group]) -> bool:
    """Whether groups are the points of a probe, which have an order of their own."""
    names = ([p for v in g.group.values() for p in str(v).split(" / ")] for g in groups)
    return all(any(map(is_probe, parts)) for parts in names)


def best_first(groups: Sequence[Group], metric: str) -> list[Group]:
    """Order groups by a metric, those without a value last.

    The largest value is first where neither direction is better; grades are in their order.
    """
    sign = 1 if metric_named(metric).better == "lower" else -1

    def key(group: Group) -> tuple[float, str]:
        value = group[metric].value
        if isinstance(value, str):
            return 0.0, value
        return (math.inf, "~") if value is None else (sign * value, "")

    return sorted(groups, key=key)
