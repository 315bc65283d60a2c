"""Records with metrics of one's choice, and policies decided on them."""

import json
from pathlib import Path

from pennyweight.gates.decision import decide, needed_metrics
from pennyweight.gates.loader import load_policy
from pennyweight.gates.records import read_records
from pennyweight.sources.source import RowsSource

DATA = Path(__file__).parent / "data"


def share(hits, total, name="t", **more):
    """Give records of which the first so many pass."""
    return [{"task_id": f"{name}{i}", "passed": i < hits, **more} for i in range(total)]


def answers(right, total, name="a", **more):
    """Give records of which the first so many are right."""
    return [
        {"task_id": f"{name}{i}", "answer": "4" if i < right else "5", "target": "4", **more}
        for i in range(total)
    ]


def behaviours(observed, expected, name="b", **more):
    """Give one record for each expected behaviour, of which so many are observed."""
    return [
        {"task_id": f"{name}{i}", "expected": 1, "observed": int(i < observed), **more}
        for i in range(expected)
    ]


def policy(given, version=None, suffix="json"):
    """Read a policy from a value, or from the name of a file of the specification."""
    if isinstance(given, str):
        return load_policy(DATA / given, version)
    return load_policy(f"policy.{suffix}", version, json.dumps(given))


def verdict(given, rows, baseline=None, version=None, plan=None):
    """Decide a policy on rows."""
    made = policy(given, version) if isinstance(given, dict | str) else given
    metrics = needed_metrics(made)
    records, before = (
        None if rows_ is None else records_of(rows_, metrics, made.options)
        for rows_ in (rows, baseline)
    )
    return decide(made, records, before, plan)


def records_of(rows, metrics, options):
    """Measure rows as gates do."""
    return read_records([RowsSource(list(rows))], metrics, options)


def gate(found, name):
    """Pick a gate of a verdict."""
    return next(g for g in found.gates if g.name == name)
