"""Views of a digest: the rows that pages and reports put into their tables."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pennyweight.catalogue import FAMILIES, METRICS
from pennyweight.render.scores import ends_shown, sources, value_shown
from pennyweight.render.sentences import money as dollars
from pennyweight.scoring.estimates import Estimate
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pennyweight.define import Metric

KEY_METRICS = (
    *("accuracy", "pass_rate", "safety_rate", "behavior_coverage", "impl_rate_mean"),
    *("cost_usd_total", "latency_p95_ms", "ece", "total_tokens_mean", "cost_of_pass"),
)
"""What stands at the top of a report, as far as it is known."""

TITLES = {
    "accuracy": "Accuracy",
    "pass_rate": "Pass rate",
    "safety_rate": "Safety rate",
    "behavior_coverage": "Behavior coverage",
    "impl_rate_mean": "Implementation rate",
    "ece": "Calibration error",
    "latency_p95_ms": "Latency, P95 (ms)",
    "total_tokens_mean": "Tokens an attempt",
    "cost_usd_total": "Cost",
    "cost_of_pass": "Cost of a pass",
}


def estimate(cells: Sequence[Any]) -> Estimate:
    """Read an estimate from a digest, where infinity is a word."""
    value, low, high = (float("inf") if c == "Infinity" else c for c in cells[:3])
    return Estimate(value, low, high, cells[3], cells[4])


def families(group: Mapping[str, Any], *, known: bool = False) -> list[dict[str, Any]]:
    """Give the metrics of a group by family; with `known` only those that have a value."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, cells in group["estimates"].items():
        if name in METRICS and (cells[0] is not None or not known):
            family = METRICS[name].family
            found.setdefault(family, []).append(_row(METRICS[name], estimate(cells)))
    order = [*FAMILIES, *(f for f in found if f not in FAMILIES)]
    return [
        {
            "title": FAMILIES.get(f, f.capitalize()),
            "rows": [r for r in found[f] if r["known"]],
            "unknown": [r for r in found[f] if not r["known"]],
        }
        for f in order
        if f in found
    ]


def _row(metric: Metric, e: Estimate) -> dict[str, Any]:
    return {
        "name": metric.name,
        "known": e.value is not None,
        "value": written(metric.name, e),
        "interval": interval(metric.name, e),
        "spark": _spark(metric, e),
        "records": e.records,
        "skipped": e.skipped,
        "needs": "" if e.value is not None else _needs(metric),
        "better": metric.better,
        "summary": metric.summary,
        "formula": metric.formula,
        "spec": metric.spec,
    }


def written(name: str, e: Estimate) -> str:
    """Write a value; money as all money is written."""
    if METRICS[name].unit == "US$" and isinstance(e.value, float):
        return money(e.value)
    return value_shown(name, e)


def interval(name: str, e: Estimate) -> str:
    """Write an interval; money as all money is written."""
    ends = [x for x in (e.low, e.high) if isinstance(x, float)]
    if METRICS[name].unit != "US$" or len(ends) < 2:
        return _plain_ends(ends_shown(name, e))
    if isinstance(e.value, float) and math.isinf(e.value) and math.isfinite(ends[0]):
        return f"more than {money(ends[0])}"
    return " to ".join(monies(ends))


def _plain_ends(text: str) -> str:
    """Write the interval of a terminal's table as pages have it.

    >>> _plain_ends("[0.125, 0.298]"), _plain_ends("[1,200, 3,400]"), _plain_ends("more than $2")
    ('0.125 to 0.298', '1,200 to 3,400', 'more than $2')
    """
    return text.strip("[]").replace(", ", " to ")


def difference(pair: Mapping[str, Any]) -> tuple[str, str]:
    """Write a paired difference and its interval, in its metric's unit.

    >>> difference({"metric": "accuracy", "difference": 0.15625, "interval": [-0.027, 0.335]})
    ('+0.156', '−0.027 to +0.335')
    """
    metric, ends = METRICS.get(pair["metric"]), pair["interval"]
    given = [x for x in (pair["difference"], *(ends or ())) if isinstance(x, int | float)]
    if metric and metric.unit == "US$":
        told = monies(given)
    elif metric is None or metric.range == (0, 1):
        told = [f"{abs(x):.3f}" for x in given]
    else:
        told = [number(float(abs(x))) for x in given]
    signs = ["−" if x < 0 else "+" if x > 0 else "" for x in given]
    texts = [sign + text.lstrip("−") for sign, text in zip(signs, told, strict=True)]
    value = texts.pop(0) if pair["difference"] is not None else "—"
    return value, " to ".join(texts)


def probability(p: float | None) -> str:
    """Write a p-value: as in a terminal, so that a column of them can be read down.

    >>> probability(0.0443), probability(1.4e-9), probability(None)
    ('0.044', '< 0.001', '—')
    """
    return "—" if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001"


def number(value: Any) -> str:
    """Write a measure.

    >>> number(1234.5), number(0.12345), number(None), number(True)
    ('1,234', '0.1235', '—', 'yes')
    """
    if value is None:
        return "—"
    if isinstance(value, float):
        return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}").replace("-", "−")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _needs(metric: Metric) -> str:
    if metric.open_parts:
        return "weights"
    names = metric.parts or metric.needs or metric.inputs
    return sources(metric.name, names)


def _spark(metric: Metric, e: Estimate) -> dict[str, float] | None:
    """Place an estimate on a track from 0 to 1."""
    if metric.range != (0, 1) or not isinstance(e.value, float):
        return None
    low, high = (e.value if x is None or isinstance(x, str) else x for x in (e.low, e.high))
    return {"at": 4 + 88 * e.value, "low": 4 + 88 * low, "high": 4 + 88 * high}


def key_figures(group: Mapping[str, Any], most: int = 6) -> list[dict[str, Any]]:
    """Give the few figures that stand at the top."""
    found: list[dict[str, Any]] = []
    for name in KEY_METRICS:
        cells = group["estimates"].get(name)
        if cells and cells[0] is not None:
            e = estimate(cells)
            note = interval(name, e)
            told = {"title": TITLES[name], "value": written(name, e), "note": note}
            if METRICS[name].range != (0, 1) or not _repeats(told, found):
                found.append(told)
    return found[:most]


def _repeats(one: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether a figure says the same as one before it: passed is right, where only that is."""
    return any(f["value"] == one["value"] and f["note"] == one["note"] for f in found)


def side_rows(digest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the metrics of several sides next to each other, by family."""
    sides = digest["sides"]
    found: dict[str, list[dict[str, Any]]] = {}
    for name in digest["whole"]["estimates"]:
        if name not in METRICS or all(s["estimates"][name][0] is None for s in sides):
            continue
        cells = []
        for side in sides:
            e = estimate(side["estimates"][name])
            cells.append({"value": written(name, e), "interval": interval(name, e)})
        found.setdefault(METRICS[name].family, []).append(
            {"name": name, "cells": cells, "better": METRICS[name].better}
        )
    return [
        {"title": FAMILIES.get(f, f.capitalize()), "rows": found[f]} for f in FAMILIES if f in found
    ]


def when(seconds: float | None) -> str:
    """Write a time for people."""
    if seconds is None:
        return "—"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


@lru_cache(4_096)
def money(value: float | None) -> str:
    """Write an amount on a page or in a report: in the terminal's way, to three digits.

    >>> money(1234.5), money(0.25), money(0.00005317), money(float("inf")), money(None)
    ('$1,234.50', '$0.250', '$0.0000532', '∞', '—')
    """
    return "—" if value is None else dollars(value, 3)


def monies(values: Sequence[float | None]) -> list[str]:
    """Write amounts that stand below each other with the same decimals, so that they align.

    >>> monies([0.0144, 0.000274, None]), monies([12.5, 0.25]), monies([0.0, float("inf")])
    (['$0.01440', '$0.00027', '—'], ['$12.50', '$0.25'], ['$0.00', '∞'])
    """
    known = [abs(v) for v in values if v and math.isfinite(v)]
    small = min(known, default=1.0)
    places = 2 if small >= 0.1 else min(9, 1 - math.floor(math.log10(small)))
    return [_amount(v, places) for v in values]


def _amount(value: float | None, places: int) -> str:
    if value is None or not math.isfinite(value):
        return money(value)
    return f"{'−' if value < 0 else ''}${abs(value):,.{places}f}"


def run_facts(run: Any, statuses: Mapping[str, int], spent: Mapping[str, Any]) -> list[list[str]]:
    """Give what a run is, as labelled text."""
    settings = run.settings
    failed = statuses.get("error", 0)
    made = sum(statuses.values()) - failed
    facts: Iterator[tuple[str, Any]] = iter(
        [
            ("Run", run.id),
            ("Suite", run.suite),
            ("Status", run.status),
            ("Subjects", ", ".join(settings.get("subjects", []))),
            ("Tiers", ", ".join(settings.get("tiers", []))),
            ("Tasks", f"{settings.get('tasks', 0):,}"),
            ("Attempts a task", settings.get("runs")),
            ("Attempts made", f"{made:,} of {run.attempts:,}"),
            ("Could not be made", f"{failed:,}" if failed else None),
            ("Began", when(run.created)),
            ("Ended", when(run.ended)),
            ("Cost", money(spent.get("usd"))),
            ("Answers found by", _rule(settings.get("answer"))),
            ("Answers matched by", _rule(settings.get("match"))),
            ("Seed", settings.get("seed")),
            ("Data", run.data_hash[:16]),
            ("Pennyweight", settings.get("pennyweight")),
        ]
    )
    return [[k, clean(str(v))] for k, v in facts if v not in {None, "", "—"}]


def _rule(rule: Mapping[str, Any] | None) -> str:
    if not rule:
        return ""
    value = rule.get("value")
    return f"{rule['kind']} {value}".strip() if value else str(rule["kind"])
