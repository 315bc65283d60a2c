"""A store with a run of a million records and some hundred other runs."""

import json
import os
import random
from collections.abc import Callable
from typing import Any

from pennyweight.api.pages.headlines import SideHeadline, pack
from pennyweight.store import cache as kept
from pennyweight.store.store import CALL_COLUMNS, RECORD_COLUMNS, Store, StoredRun

RECORDS = int(os.environ.get("PENNYWEIGHT_BENCH_RECORDS", "1_000_000"))
RUNS, BATCH = 200, 10_000
RUN = "20260101-000000-0001"
TIERS = ("T0", "T1", "T2", "T3")
SUBJECTS = tuple(f"m{i}" for i in range(9))
SIDES = len(SUBJECTS) * len(TIERS)
WORDS = "the sum of both numbers is taken first then divided by what remains and checked".split()
MATCH = {"kind": "exact", "absolute": "0", "relative": "0", "separator": "", "each": "exact"}
RARE = "needle in a haystack"
OFTEN = "divided"


def fill(store: Store, records: int = RECORDS, name: str = RUN) -> None:
    """Write a run with records of about a kilobyte each."""
    store.add_run(a_run(name, records))
    write(store, name, records)


def fill_list(store: Store) -> None:
    """Add the other runs, with the figures that a list shows."""
    for i in range(1, RUNS):
        name = f"20250101-000000-{i:04}"
        store.add_run(a_run(name, 100 * i, created=1.0 / (i + 1)))
        stamp = kept.stamp(store, store.find(name))
        told = {"stamp": stamp, "metric": "accuracy", "value": i / RUNS, "low": 0.0, "high": 1.0}
        told |= {"records": 100 * i, "errors": 0, "cost_usd": 0.01 * i, "data": "{}"}
        told |= {"sides": pack([SideHeadline("", None, None, i / RUNS, 0.0, 1.0)])}
        kept.save_digest(store, name, **told)


def a_run(name: str, records: int, status: str = "done", created: float = 1.0) -> StoredRun:
    """Describe a run."""
    settings = {
        "subjects": list(SUBJECTS), "tiers": list(TIERS), "tasks": -(-records // SIDES),
        "runs": 1, "seed": 1,
        "answer": {"kind": "last_number", "value": ""}, "match": MATCH, "confidence": None,
    }  # fmt: skip
    ended = created + 1 if status == "done" else None
    values = ("bench", "suite.yaml", "suite: bench", "hash", status, records, created, ended)
    return StoredRun(name, *values, settings)


def write(
    store: Store,
    run: str,
    records: int,
    batch: int = BATCH,
    wrote: Callable[[int], None] = lambda _: None,
) -> None:
    """Write records into a run, in batches."""
    rng = random.Random(7)
    texts = [" ".join(rng.choices(WORDS, k=90)) for _ in range(500)]
    rows: list[Any] = []
    calls: list[Any] = []
    for i in range(records):
        row = _row(run, i, rng, texts, records)
        rows.append(tuple(map(row.get, RECORD_COLUMNS)))
        call = {**row, "kind": "attempt", "at": 1.5}
        calls.append(tuple(map(call.get, CALL_COLUMNS)))
        if len(rows) == batch or i == records - 1:
            store.write(rows, calls)
            wrote(i + 1)
            rows, calls = [], []


def _row(run: str, i: int, rng: random.Random, texts: list[str], records: int) -> dict[str, Any]:
    target = i % 97
    said = target if rng.random() < 0.9 - 0.05 * (i % SIDES // 4) else target + 1
    rare = f" {RARE}" if i == 777_777 % records else ""
    return {
        "run": run, "subject": SUBJECTS[i % SIDES // 4], "tier": TIERS[i % 4],
        "task_id": f"task-{i // SIDES:07}",
        "attempt": 1, "fingerprint": "f", "status": "ok", "model": "m",
        "input": f"What is {i}? {texts[i % 499][:200]}", "target": str(target),
        "category": f"kind-{i // SIDES % 7}",
        "messages": json.dumps([{"role": "user", "content": texts[i % 499][:200]}]),
        "response": f"1. {texts[i % 500]}{rare}\nThe answer is {said}", "finish": "stop",
        "prompt_tokens": 80 + i % 50, "completion_tokens": 90 + i % 70,
        "latency_ms": round(rng.lognormvariate(6, 0.7), 2), "cost_usd": 0.0001,
        "started": 1.0, "ended": 2.0,
    }  # fmt: skip
