"""The page with a million records, and a report of ten thousand: time and memory.

Each page is measured against its SELECT: the statements by which the page itself reads what it
shows, with all their columns, fetched whole by the driver alone in the same database. For the
leaderboard that is the row of the run, the row with the stored numbers of its sides, and one page
of the grid; for the grid, one page of its rows. Nothing is decoded, computed or written in that
time. It is the strictest SELECT there is. The other candidate, a GROUP BY over all records, is what
the leaderboard would cost without stored numbers. It takes thousands of times as long and would
flatter, so it is printed and no bound rests on it.

An answer over HTTP cannot be quicker than an icon over HTTP, which in SQLite takes longer than most
of these statements. So the bound is 5 × the SELECT or 5 × an icon, whichever is larger; both ratios
are printed. The client accepts gzip, as browsers do, and does not unpack in the measured time.

A page that was asked for before is answered from memory after the state of its run was read. So the
leaderboard and the grid are also measured at an address that nobody asked for before: the
leaderboard in another order, above the same tasks and above other tasks, and other tasks alone.
"""

import gzip
import http.client
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, repeat
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import PENNYWEIGHT, Result, spend
from bench.page_queries import asked
from bench.sample_store import RECORDS, RUN, a_run, fill, fill_list, write
from bench.score import generate
from pennyweight.store.store import Store

TIMES = 50
FOLDER = os.environ.get("PENNYWEIGHT_BENCH_FOLDER")
"""A folder that keeps the stores, so that the next benchmark need not fill them."""
BESIDE, OPEN = 60_000, "20270101-000000-0001"
"""Records that are written while a page is open, and their run."""
PACKED = {"Accept-Encoding": "gzip"}
ROUNDS = 3
"""Number of rounds, of which the fastest counts: other processes disturb the rest."""


def run() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="pennyweight-bench-") as name:
        folder = Path(FOLDER or name)
        return [
            *report(Path(name)),
            *pages(folder, str(folder / "pennyweight.db")),
            *postgres(folder),
        ]


def report(folder: Path) -> list[Result]:
    """Write a report of ten thousand records."""
    generate(folder / "records.jsonl", 10_000)
    out = folder / "report.html"
    spent = spend([*PENNYWEIGHT, "report", str(folder / "records.jsonl"), "-o", str(out)])
    size = out.stat().st_size / 1e6
    print(f"report of 10,000 records: {spent.seconds:.2f} s, {size:.2f} MB")
    return [
        Result("report of 10,000 records", spent.seconds, 10, " s"),
        Result("size of that report", size, 3, " MB"),
    ]


def postgres(folder: Path) -> list[Result]:
    """Serve the same run from PostgreSQL, if it is installed."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    import postgres as private  # noqa: PLC0415

    if private.binaries() is None:
        print("PostgreSQL is missing (sh tools/services.sh postgresql).")
        return []
    private.SETTINGS["shared_buffers"] = "256MB"
    with contextmanager(private.cluster)() as cluster:
        return pages(folder, cluster.database())


def pages(folder: Path, address: str) -> list[Result]:
    """Serve a run of a million records and request its pages."""
    kind = "PostgreSQL" if "://" in address else "SQLite"
    environment = {**os.environ, "PENNYWEIGHT_STORE": address}
    _prepare(address, environment)
    fetch, close = _fetcher(address)
    results = []
    with server(folder, environment) as (port, pid):
        with asking(port) as ask:
            ask("/docs")
            idle = memory(pid, "VmRSS")
            print(f"{kind}: p95 of {TIMES} requests in ms: the page, its query, an icon")
            largest = 0
            _time_aggregate(fetch)
            for what, (path, queries) in asked(RUN, like=kind != "SQLite").items():
                addresses = map(path, count()) if callable(path) else repeat(path)
                largest = max(largest, len(_unpacked(port, next(addresses))))
                took, base, least = p95(
                    lambda a=addresses: ask(next(a)),
                    lambda q=queries: [fetch(*one) for one in q],
                    lambda: ask("/static/icon.svg"),
                )
                ratio = took / max(base, least)
                shown = "".join(f"{t * 1e3:>9.2f}" for t in (took, base, least))
                print(f"{what:<22}{shown} {took / base:>7.1f} × its query, {ratio:.1f} × bound")
                results.append(Result(f"{kind}: {what}, relative to its query", ratio, 5, " ×"))
            more = memory(pid, "VmHWM") - idle
            print(f"memory: {idle:.0f} MiB idle, {more:.0f} MiB more at the peak")
        results.append(Result(f"{kind}: the largest of these pages", largest / 1e3, 300, " kB"))
        results.append(Result(f"{kind}: peak memory above the idle server", more, 50, " MiB"))
        results += beside(kind, address, port)
    close()
    return results


def _time_aggregate(fetch: Callable[..., Any]) -> None:
    """Print how long the plain aggregate of the sides takes, without stored numbers."""
    query = (
        "SELECT subject, tier, count(*), avg(CASE WHEN correct THEN 1.0 ELSE 0.0 END), "
        "avg(latency_ms), sum(cost_usd) FROM pennyweight_measured WHERE run = ? "
        "GROUP BY subject, tier"
    )
    began = time.perf_counter()
    fetch(query, (RUN,))
    print(f"for comparison, sides by GROUP BY: {(time.perf_counter() - began) * 1e3:.0f} ms")


def _unpacked(port: int, path: str) -> bytes:
    """Return a page, which must be compressed if it is large."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path, headers=PACKED)
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    assert reply.headers["content-encoding"] == "gzip", path
    return gzip.decompress(body)


def _prepare(address: str, environment: dict[str, str]) -> None:
    store = Store(address)
    if store.runs():
        print(f"{address}: reused")
    else:
        began = time.perf_counter()
        fill(store)
        print(f"{RECORDS:,} records written in {time.perf_counter() - began:.0f} s")
        fill_list(store)
    store.close()
    began = time.perf_counter()
    digest = [sys.executable, "-m", "pennyweight.api.pages.digest_cache", RUN]
    subprocess.run(digest, env=environment, check=True, stdout=subprocess.DEVNULL)
    print(f"its digest, once, beside the server: {time.perf_counter() - began:.0f} s")


def _fetcher(address: str) -> tuple[Callable[..., Any], Callable[[], None]]:
    """Return a function that fetches the rows of a query with the driver alone."""
    if "://" not in address:
        lite = sqlite3.connect(address)
        return lambda query, values: lite.execute(query, values).fetchall(), lite.close
    import psycopg  # noqa: PLC0415

    large = psycopg.connect(address, autocommit=True)
    plain = lambda query, values: large.execute(query.replace("?", "%s"), values).fetchall()  # noqa: E731
    return plain, large.close


def beside(kind: str, address: str, port: int) -> list[Result]:
    """Write a run with and without its page open: neither must slow down the other."""
    quiet: list[float] = []
    watched: list[float] = []
    idle: list[float] = []
    busy: list[float] = []
    for _ in range(3):
        quiet.append(_written(address))
        with _looking(port, idle):
            time.sleep(5)
        with _following(port), _looking(port, busy):
            watched.append(_written(address))
    _remove(address)
    alone, beside = (f"{median(t) * 1e3:.1f} ms (p95 {_high(t) * 1e3:.1f})" for t in (idle, busy))
    print(
        f"{BESIDE:,} records written: {min(quiet):.1f} s alone, {min(watched):.1f} s with their "
        f"page open; a page of records: {alone} alone, {beside} during the writing"
    )
    slower = min(watched) / min(quiet)
    return [
        Result(f"{kind}: writing a run, with its page open relative to without", slower, 1.25, " ×")
    ]


def _remove(address: str) -> None:
    store = Store(address)
    store.remove(OPEN)
    store.close()


def _written(address: str) -> float:
    """Write a run in a separate process and return the seconds it took."""
    _remove(address)
    code = f"from bench.web import write_one; write_one({address!r})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)


def write_one(address: str) -> None:
    """Write a run as fast as possible and print the seconds it took."""
    store = Store(address)
    store.add_run(a_run(OPEN, BESIDE, "running"))
    began = time.perf_counter()
    write(store, OPEN, BESIDE, batch=500)
    print(time.perf_counter() - began)
    store.close()


@contextmanager
def _following(port: int) -> Iterator[None]:
    """Keep the page of a run open, as a browser does."""
    over = threading.Event()

    def follow() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while not over.is_set():
            connection.request("GET", f"/api/runs/{OPEN}/events")
            reply = connection.getresponse()
            while not over.is_set() and reply.status == 200 and reply.readline():
                pass
            reply.read() if reply.status != 200 else connection.close()
            over.wait(0.1)
        connection.close()

    threading.Thread(target=follow, daemon=True).start()
    try:
        yield
    finally:
        over.set()


@contextmanager
def _looking(port: int, taken: list[float]) -> Iterator[None]:
    """Open a page of records every half second, as a person might."""
    over = threading.Event()

    def turn() -> None:
        with asking(port) as ask:
            while not over.wait(0.5):
                began = time.perf_counter()
                ask(f"/runs/{RUN}/records")
                taken.append(time.perf_counter() - began)

    thread = threading.Thread(target=turn, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def p95(*actions: Callable[[], Any]) -> list[float]:
    """Call each action repeatedly, in turns, and return the 95th percentiles of the seconds."""
    for action in actions:
        action()
    end = time.perf_counter() + 30
    best = [float("inf")] * len(actions)
    for _ in range(ROUNDS):
        taken: list[list[float]] = [[] for _ in actions]
        while len(taken[0]) < TIMES and (time.perf_counter() < end or len(taken[0]) < 5):
            for action, times in zip(actions, taken, strict=True):
                began = time.perf_counter()
                action()
                times.append(time.perf_counter() - began)
        best = [min(one, _high(times)) for one, times in zip(best, taken, strict=True)]
        if time.perf_counter() > end:
            break
    return best


def _high(times: Sequence[float]) -> float:
    return sorted(times)[int(0.95 * (len(times) - 1) + 0.5)]


@contextmanager
def asking(port: int) -> Iterator[Callable[[str], int]]:
    """Request pages over one connection, as a browser does."""
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask(path: str) -> int:
        try:
            connection.request("GET", path, headers=PACKED)
            reply = connection.getresponse()
        except (
            http.client.RemoteDisconnected,
            ConnectionError,
        ):  # the server closed an idle connection
            connection.close()
            connection.request("GET", path, headers=PACKED)
            reply = connection.getresponse()
        body = reply.read()
        assert reply.status == 200, (path, reply.status, body[:400])
        return len(body)

    try:
        yield ask
    finally:
        connection.close()


@contextmanager
def server(folder: Path, environment: dict[str, str]) -> Iterator[tuple[int, int]]:
    command = [*PENNYWEIGHT, "serve", "--port", "0", "--no-token"]
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
    """Return a figure of a process's memory, in MiB."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(rf"{name}:\s+(\d+) kB", text)
    assert found
    return int(found[1]) / 1024
