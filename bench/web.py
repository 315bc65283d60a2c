"""The page over a million records, and the report of ten thousand: time and memory, as ratios."""

import http.client
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from assay.store.store import CALL_COLUMNS, RECORD_COLUMNS, Run, Store
from bench.measure import ASSAY, Result, spend
from bench.score import generate

RECORDS = int(os.environ.get("ASSAY_BENCH_RECORDS", "1_000_000"))
TIMES, PAGE, BATCH = 50, 50, 10_000
LEAST = 0.001
"""Seconds: a SELECT of one row takes a hundredth of it, and no page can be five times as quick."""
TIERS = ("T0", "T1", "T2", "T3")
WORDS = "the sum of both numbers is taken first then divided by what remains and checked".split()
MATCH = {"kind": "exact", "absolute": "0", "relative": "0", "separator": None, "each": False}
RARE = "needle in a haystack"


def run() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as name:
        return [*report(Path(name)), *pages(Path(name))]


def report(folder: Path) -> list[Result]:
    """Make the report of ten thousand records."""
    generate(folder / "records.jsonl", 10_000)
    out = folder / "report.html"
    spent = spend([*ASSAY, "report", str(folder / "records.jsonl"), "-o", str(out)])
    size = out.stat().st_size / 1e6
    print(f"report of 10,000 records: {spent.seconds:.2f} s, {size:.2f} MB")
    return [
        Result("report of 10,000 records", spent.seconds, 10, " s"),
        Result("its size", size, 3, " MB"),
    ]


def pages(folder: Path) -> list[Result]:
    """Serve a run of a million records and ask for its pages."""
    path = folder / "assay.db"
    began = time.perf_counter()
    name = fill(Store(str(path)), RECORDS)
    print(f"{RECORDS:,} records written in {time.perf_counter() - began:.0f} s")
    environment = {**os.environ, "ASSAY_STORE": str(path)}
    began = time.perf_counter()
    digest = [sys.executable, "-m", "assay.web.digests", name]
    subprocess.run(digest, env=environment, check=True)
    print(f"its digest, once, beside the server: {time.perf_counter() - began:.0f} s")
    connection = sqlite3.connect(path)
    results = []
    with server(folder, environment) as (port, pid):
        ask(port, "/docs")
        idle = memory(pid, "VmRSS")
        for what, (address, queries) in asked(name).items():
            took = p95(lambda a=address: ask(port, a))
            base = p95(lambda q=queries: [connection.execute(*one).fetchall() for one in q])
            print(f"{what:<22}{took * 1e3:>9.1f} ms {base * 1e3:>9.1f} ms  {took / base:>6.1f} ×")
            results.append(Result(f"{what}, to its SELECT", took / max(base, LEAST), 5, " ×"))
        more = memory(pid, "VmHWM") - idle
        print(f"memory: {idle:.0f} MiB idle, {more:.0f} MiB more at most")
    connection.close()
    return [*results, Result("memory beyond an idle server", more, 50, " MiB")]


def asked(run: str) -> dict[str, tuple[str, list[tuple[str, tuple[Any, ...]]]]]:
    """Give each page's address, and the SELECTs that fetch the same rows."""
    at = f"/runs/{run}"
    columns = "r.*, m.*"
    both = (
        f"SELECT {columns} FROM assay_record r LEFT JOIN assay_measured m ON m.run = r.run AND "
        "m.task_id = r.task_id AND m.subject = r.subject AND m.tier = r.tier AND "
        "m.attempt = r.attempt WHERE r.run = ?"
    )
    order = "ORDER BY r.task_id {0}, r.subject {0}, r.tier {0}, r.attempt {0} LIMIT 51"
    text = "(r.input LIKE ? OR r.response LIKE ? OR r.reasoning LIKE ? OR r.task_id LIKE ?)"
    rare, often = (tuple([f"%{t}%"] * 4) for t in (RARE, "divided"))
    runs = [("SELECT * FROM assay_run", ()), ("SELECT * FROM assay_digest", ())]
    one = [("SELECT * FROM assay_run WHERE id = ?", (run,))]
    one += [("SELECT * FROM assay_digest WHERE run = ?", (run,))]
    wrong = (
        f"SELECT {columns} FROM assay_measured m CROSS JOIN assay_record r WHERE m.run = ? AND "
        "m.correct = 0 AND m.latency_ms >= 3000 AND m.run = r.run AND m.task_id = r.task_id AND "
        "m.subject = r.subject AND m.tier = r.tier AND m.attempt = r.attempt ORDER BY m.task_id, "
        "m.subject, m.tier, m.attempt LIMIT 51"
    )
    return {
        "runs": ("/", runs),
        "run": (at, one),
        "first page": (f"{at}/records", [(f"{both} {order.format('')}", (run,))]),
        "last page": (f"{at}/records?last=1", [(f"{both} {order.format('DESC')}", (run,))]),
        "filter by measures": (f"{at}/records?correct=no&latency_ms_min=3000", [(wrong, (run,))]),
        "search, frequent": (
            f"{at}/records?q=divided",
            [(f"{both} AND {text} {order.format('')}", (run, *often))],
        ),
        "search, rare": (
            f"{at}/records?q={quote(RARE)}",
            [(f"{both} AND {text} {order.format('')}", (run, *rare))],
        ),
    }


def p95(action: Callable[[], Any]) -> float:
    """Act so many times and give the 95th percentile of the seconds; slow acts are few."""
    action()
    taken: list[float] = []
    end = time.perf_counter() + 60
    while len(taken) < TIMES and (time.perf_counter() < end or len(taken) < 5):
        began = time.perf_counter()
        action()
        taken.append(time.perf_counter() - began)
    return sorted(taken)[int(0.95 * (len(taken) - 1) + 0.5)]


def ask(port: int, path: str) -> None:
    """Ask for a page."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path)
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    assert reply.status == 200, (path, reply.status, body[:400])


@contextmanager
def server(folder: Path, environment: dict[str, str]) -> Iterator[tuple[int, int]]:
    command = [*ASSAY, "serve", "--port", "0"]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr
        found = re.search(r":(\d+)/", process.stderr.readline())
        assert found
        yield int(found[1]), process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def memory(pid: int, name: str) -> float:
    """Read a figure of a process's memory, in MiB."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(rf"{name}:\s+(\d+) kB", text)
    assert found
    return int(found[1]) / 1024


def fill(store: Store, records: int) -> str:
    """Write a run of about so many records, of about a kilobyte each."""
    name = "20260101-000000-0001"
    settings = {
        "subjects": ["m"], "tiers": list(TIERS), "tasks": records // 4, "runs": 1, "seed": 1,
        "answer": {"kind": "last_number", "value": ""}, "match": MATCH, "confidence": None,
    }  # fmt: skip
    values = ("bench", "suite.yaml", "suite: bench", "hash", "done", records, 1.0, 2.0, settings)
    store.add_run(Run(name, *values))
    rng = random.Random(7)
    texts = [" ".join(rng.choices(WORDS, k=90)) for _ in range(500)]
    rows: list[Any] = []
    calls: list[Any] = []
    for i in range(records):
        row = _row(name, i, rng, texts)
        rows.append(tuple(map(row.get, RECORD_COLUMNS)))
        call = {**row, "kind": "attempt", "at": 1.5}
        calls.append(tuple(map(call.get, CALL_COLUMNS)))
        if len(rows) == BATCH or i == records - 1:
            store.write(rows, calls)
            rows, calls = [], []
    store.close()
    return name


def _row(run: str, i: int, rng: random.Random, texts: list[str]) -> dict[str, Any]:
    target = i % 97
    said = target if rng.random() < 0.7 else target + 1
    rare = f" {RARE}" if i == 777_777 % RECORDS else ""
    return {
        "run": run, "subject": "m", "tier": TIERS[i % 4], "task_id": f"task-{i // 4:07}",
        "attempt": 1, "fingerprint": "f", "status": "ok", "model": "m",
        "input": f"What is {i}? {texts[i % 499][:200]}", "target": str(target),
        "category": f"kind-{i // 4 % 7}",
        "messages": json.dumps([{"role": "user", "content": texts[i % 499][:200]}]),
        "response": f"1. {texts[i % 500]}{rare}\nThe answer is {said}", "finish": "stop",
        "prompt_tokens": 80 + i % 50, "completion_tokens": 90 + i % 70,
        "latency_ms": round(rng.lognormvariate(6, 0.7), 2), "cost_usd": 0.0001,
        "started": 1.0, "ended": 2.0,
    }  # fmt: skip
