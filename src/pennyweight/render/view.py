"""Views of a digest: the rows that pages and reports put into their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pennyweight.catalogue import METRICS
from pennyweight.define import Metric
from pennyweight.render.catalogue import by_family, needs, tabled, twins
from pennyweight.render.format import difference_cells, estimate_cells, is_amount, unseen_line
from pennyweight.scoring.estimates import Estimate, Value
from pennyweight.scoring.pooling import pooled_words
from pennyweight.suite.narrowing import change_words, part_words
from pennyweight.text.format import MISSING, count, money, plural, times
from pennyweight.text.notation import SHARE
from pennyweight.text.safe import clean

if TYPE_CHECKING:  # the database is not loaded to show a file
    from pennyweight.store.store import StoredRun

KEY_FIGURES = {
    "accuracy": "Accuracy",
    "pass_rate": "Pass rate",
    "safety_rate": "Safety rate",
    "behavior_coverage": "Behavior coverage",
    "impl_rate_mean": "Implementation rate",
    "cost_usd_total": "Cost",
    "latency_p95_ms": "Latency, P95",
    "ece": "Calibration error",
    "total_tokens_mean": "Tokens per attempt",
    "cost_of_pass": "Cost of a pass",
}
"""The metrics at the top of a report, as far as they have a value, with their titles."""
MAX_KEY_FIGURES = 6
ABOUT = "Intervals are about tasks like these (generalised accuracy), not these tasks alone."


def estimate(cells: Sequence[Any]) -> Estimate:
    """Read an estimate from a digest, in which infinity is a string."""
    value, low, high = (float("inf") if c == "Infinity" else c for c in cells[:3])
    return Estimate(value, low, high, cells[3], cells[4])


def families(group: Mapping[str, Any], *, known: bool = False) -> list[dict[str, Any]]:
    """Return the metrics of a group by family; with `known` only those that have a value."""
    has_value = {name: cells[0] is not None for name, cells in group["estimates"].items()}
    shown = set(tabled(has_value, labelled=group["labelled"]))
    shown -= twins({name: [cells[0]] for name, cells in group["estimates"].items()})
    found = {
        name: _row(METRICS[name], estimate(cells)) | {"skewed": name in group.get("skewed", ())}
        for name, cells in group["estimates"].items()
        if name in shown and name in METRICS and (cells[0] is not None or not known)
    }
    return [
        {
            "title": title,
            "rows": [r for r in rows if r["known"]],
            "unknown": [r for r in rows if not r["known"]],
        }
        for title, rows in by_family(found)
    ]


def _row(metric: Metric, e: Estimate) -> dict[str, Any]:
    value, interval = estimate_cells(metric.name, e)
    return {
        "name": metric.name,
        "known": e.value is not None,
        "value": value,
        "interval": interval,
        "spark": spark(metric, e),
        "records": e.records,
        "skipped": e.skipped,
        "needs": "" if e.value is not None else needs(metric.name),
        "better": metric.better,
        "summary": metric.summary,
        "formula": metric.formula,
        "spec": metric.spec,
    }


def metric_cells(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return the cells of a metric in a plain table: name, value, interval, records."""
    return row["name"], row["value"], row["interval"], count(row["records"])


def spark(metric: Metric, e: Estimate) -> dict[str, float] | None:
    """Place a share or a score on a track from 0 to 1."""
    if metric.range != (0, 1) or not isinstance(e.value, float):
        return None
    low, high = (e.value if x is None or isinstance(x, str) else x for x in (e.low, e.high))
    return {"at": 4 + 88 * e.value, "low": 4 + 88 * low, "high": 4 + 88 * high}


def spark_of(
    name: str, value: float | None, low: float | None, high: float | None
) -> dict[str, float] | None:
    """Place a value of a metric on a track from 0 to 1, if it is a share or a score."""
    metric = METRICS.get(name)
    return spark(metric, Estimate(value, low, high)) if metric else None


def key_figures(group: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the few figures at the top."""
    judged = group["estimates"].get("impl_rate_mean", (None,))[0] is not None
    first = {"pass_rate": KEY_FIGURES["pass_rate"]} if judged else {}
    figures = figures_of(group, first | KEY_FIGURES)[:MAX_KEY_FIGURES]
    words = pooled_words(group["pooled"])
    return [{**one, "title": f"{one['title']}, {words}"} for one in figures] if words else figures


def value_head(digest: Mapping[str, Any]) -> str:
    """Return the head of a column of values over all records, which says what is pooled in it."""
    sides = len(digest["sides"])
    every = f"{plural(sides, 'side')} pooled" if sides > 1 else "value"
    return pooled_words(digest["whole"]["pooled"]) or every


def figures_of(group: Mapping[str, Any], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return metrics that have a value; a share that repeats the one before is omitted."""
    figures: list[dict[str, Any]] = []
    shares: set[tuple[Value, Value, Value]] = set()
    for name, title in titles.items():
        cells = group["estimates"].get(name)
        if not cells or cells[0] is None:
            continue
        e = estimate(cells)
        numbers = (e.value, e.low, e.high)
        if METRICS[name].unit == SHARE and numbers in shares:
            continue
        shares.add(numbers)
        value, interval = estimate_cells(name, e)
        figures.append({"title": title, "value": value, "note": interval})
    return figures


def side_rows(digest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the metrics of several sides next to each other, by family."""
    sides = digest["sides"]
    rows: dict[str, dict[str, Any]] = {}
    every = digest["whole"]["estimates"]
    known = {n: any(s["estimates"][n][0] is not None for s in sides) for n in every}
    hidden = twins({n: [s["estimates"][n][0] for s in sides] for n in every})
    medians = {s["estimates"].get("composite_median", [None])[0] for s in sides}
    if medians <= {0, 1, None}:  # the median of yes or no grades sides A or F that are nearly equal
        hidden |= {"composite_median", "grade"}
    for name in tabled(known, labelled=digest["whole"]["labelled"]):
        if name not in METRICS or not known[name] or name in hidden:
            continue
        found = [estimate(side["estimates"][name]) for side in sides]
        texts = [estimate_cells(name, e, narrow=True, others=found) for e in found]
        few = [name in side.get("skewed", ()) for side in sides]
        cells = [
            {"value": value, "interval": interval, "skewed": skewed}
            for (value, interval), skewed in zip(texts, few, strict=True)
        ]
        rows[name] = {"name": name, "cells": cells, "better": METRICS[name].better}
    return [{"title": title, "rows": members} for title, members in by_family(rows)]


def interval_words(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what the intervals of groups are about, and what they do not allow for."""
    known = [
        group.get("tasks", 0)
        for group in groups
        if any(is_amount(n) and cells[1] is not None for n, cells in group["estimates"].items())
    ]
    return [ABOUT, *unseen_line(min(known, default=0))]


def difference(pair: Mapping[str, Any]) -> tuple[str, str]:
    """Write a paired difference and its interval, in its metric's unit.

    >>> difference({"metric": "accuracy", "difference": 0.15625, "interval": [-0.027, 0.335]})
    ('+15.6 points', '−2.7 to +33.5 points')
    """
    low, high = pair["interval"] or (None, None)
    return difference_cells(pair["metric"], pair["difference"], low, high)


def difference_grid(pairs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Arrange paired differences by pair of sides and metric."""
    metrics = list(dict.fromkeys(pair["metric"] for pair in pairs))
    rows: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for pair in pairs:
        rows.setdefault((pair["a"], pair["b"]), {})[pair["metric"]] = pair
    return {"metrics": metrics, "rows": rows}


def family(pairs: Sequence[Mapping[str, Any]]) -> str:
    """Say what intervals and adjusted p-values of a table of pairs hold for.

    >>> family([{"metric": "accuracy", "primary": True, "p": 0.5, "p_adjusted": 0.5}])
    'accuracy is one comparison, so nothing is adjusted.'
    """
    tested = [pair for pair in pairs if pair.get("p") is not None]
    first = [pair for pair in tested if pair.get("primary")]
    said = []
    if len(first) == 1 and first[0]["p_adjusted"] == first[0]["p"] < 1:
        said.append(f"{first[0]['metric']} is one comparison, so nothing is adjusted.")
    elif first:
        name = first[0]["metric"]
        said.append(f"{name}: intervals and adjusted p hold for all pairs of sides at once.")
    if len(tested) > len(first):
        said.append(
            f"{'Other metrics' if first else 'All metrics'}: each interval is of its own "
            "comparison, and adjusted p is Holm's over all comparisons of these metrics."
        )
    return " ".join(said)


def multiple(pair: Mapping[str, Any]) -> str:
    """Write the ratio of a pair's means with its interval; nothing for rates and scores.

    >>> multiple({"ratio": 1.774, "ratio_low": 1.733, "ratio_high": 1.816}), multiple({})
    ('1.77 × (1.73 to 1.82)', '')
    """
    return times(*(pair.get(name) for name in ("ratio", "ratio_low", "ratio_high")))


def when(seconds: float | None) -> str:
    """Write a time for people."""
    if seconds is None:
        return MISSING
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


EVERY_ERROR = "no result: every attempt is an error"
_BAD = ("failed", "stopped", "interrupted")


def run_outcome(status: str, attempts: int, records: int, errors: int) -> tuple[str, str]:
    """Return how a run went, from its records, and whether that is `good`, `bad` or neither.

    A run that tried every attempt is done, whatever a few of them ended in. One without any result
    is not, whether it was made here or imported.

    >>> run_outcome("failed", 720, 720, 3), run_outcome("done", 30, 30, 0)
    (('done, 3 errors', ''), ('done', 'good'))
    >>> run_outcome("done", 30, 30, 30), run_outcome("failed", 720, 100, 3)
    (('no result: every attempt is an error', 'bad'), ('failed', 'bad'))
    """
    if status in ("done", "failed") and errors and records >= attempts:
        if errors >= records:
            return EVERY_ERROR, "bad"
        return f"done, {plural(errors, 'error')}", ""
    return status, "good" if status == "done" else "bad" if status in _BAD else ""


def run_facts(
    run: StoredRun, statuses: Mapping[str, int], spent: Mapping[str, Any], *, live: bool = False
) -> list[list[str]]:
    """Describe a run in labelled texts; `live` leaves out what its progress shows."""
    settings = run.settings
    failed = statuses.get("error", 0)
    made = sum(statuses.values()) - failed
    outcome, _ = run_outcome(run.status, run.attempts, made + failed, failed)
    facts: list[tuple[str, Any]] = [
        ("Run", run.id),
        ("Suite", run.suite),
        ("Status", None if live else outcome),
        ("Subjects", ", ".join(settings.get("subjects", []))),
        ("Tiers", ", ".join(settings.get("tiers", []))),
        ("Tasks", count(settings.get("tasks", 0))),
        ("Narrowed to", part_words(settings)),
        ("Changed", change_words(settings)),
        ("Attempts per task", settings.get("runs")),
        ("Attempts made", None if live else f"{count(made)} of {count(run.attempts)}"),
        ("Attempts with an error", count(failed) if failed and not live else None),
        ("Started", when(run.created)),
        ("Ended", when(run.ended)),
        ("Cost", None if live else money(spent.get("usd"))),
        ("Answers extracted by", _rule(settings.get("answer"))),
        ("Answers matched by", _rule(settings.get("match"))),
        ("Seed", settings.get("seed")),
        ("Data hash", run.data_hash[:16]),
        ("Pennyweight", settings.get("pennyweight")),
    ]
    return [[label, clean(str(v))] for label, v in facts if v not in {None, "", MISSING}]


def narrowed_to(run: StoredRun) -> list[str]:
    """Return what part of its suite a run has, in words; nothing if it has all of it."""
    return [words] if (words := part_words(run.settings)) else []


def _rule(rule: Mapping[str, Any] | None) -> str:
    if not rule:
        return ""
    value = rule.get("value")
    return f"{rule['kind']} {value}".strip() if value else str(rule["kind"])
