"""Throughput of `pennyweight run` on a fast local server, relative to a bare aiohttp loop."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import aiohttp

from bench.measure import PENNYWEIGHT, Result, Spent, spend

CONNECTIONS = 64
MANY, DELAY = 1_000, 0.2
ROUNDS = 5
"""Number of paired measurements; their median counts."""


@contextmanager
def server(delay: float = 0.0) -> Iterator[str]:
    command = [sys.executable, "-m", "bench.server", str(delay)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.stdin.close()
        process.wait(10)


async def bare(address: str, calls: int) -> float:
    """Make calls without any harness; return calls per second."""
    left = iter(range(calls))
    body = {"model": "x", "messages": [{"role": "user", "content": "2 + 2?"}]}

    async def worker(session: aiohttp.ClientSession) -> None:
        for _ in left:
            async with session.post(f"{address}/chat/completions", json=body) as reply:
                json.loads(await reply.read())

    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(connector=connector) as session:
        start = time.perf_counter()
        await asyncio.gather(*(worker(session) for _ in range(CONNECTIONS)))
        return calls / (time.perf_counter() - start)


def suite(folder: Path, address: str, tasks: int, connections: int) -> Path:
    with (folder / "tasks.jsonl").open("w") as file:
        for i in range(tasks):
            file.write(json.dumps({"id": f"t{i}", "input": f"2 + {i}?", "target": "4"}) + "\n")
    path = folder / "suite.yaml"
    path.write_text(
        "suite: instant\ntasks: tasks.jsonl\nsubjects:\n"
        f'  - {{name: m, model: openai/instant, base_url: "{address}"}}\n'
        f"limits: {{concurrency: {connections}}}\n"
    )
    return path


def measure(address: str, tasks: int, connections: int = CONNECTIONS) -> tuple[Spent, float]:
    """Run the command; return its resources, and calls per second between first and last call."""
    with tempfile.TemporaryDirectory(prefix="pennyweight-bench-") as name:
        folder = Path(name)
        path = suite(folder, address, tasks, connections)
        store = str(folder / "store.db")
        spent = spend([*PENNYWEIGHT, "run", str(path), "--store", store, "--format", "json"])
        with closing(sqlite3.connect(store)) as database:
            query = "SELECT count(*), max(ended) - min(started) FROM pennyweight_record"
            count, seconds = database.execute(query).fetchone()
        assert count == tasks
        return spent, count / seconds


def run() -> list[Result]:
    pairs = []
    with server() as address:
        for _ in range(ROUNDS):  # alternating, so that both see the machine in the same state
            base = asyncio.run(bare(address, 20_000))
            pairs.append((10_000 / measure(address, 10_000)[0].seconds, base))
        large, _ = measure(address, 100_000)
    with server(delay=DELAY) as address:
        few, _ = measure(address, 10_000, MANY)
        many, slow = measure(address, 100_000, MANY)
    core = 90_000 / (many.cpu - few.cpu)  # throughput of one core, without start-up
    shares = sorted(own / base for own, base in pairs)
    small, rate, ideal = max(own for own, _ in pairs), 100_000 / large.seconds, MANY / DELAY
    share = round(0.9 * min(1.0, core / ideal), 2)
    for own, base in pairs:
        print(f"pennyweight run {own:,.0f}/s, bare aiohttp {base:,.0f}/s: {own / base:.2f} ×")
    print(f"pennyweight run of 100,000: {rate:,.0f}/s")
    print(
        f"from the first call to the last response, {MANY:,} connections, {DELAY * 1000:.0f} ms "
        f"per response: {slow:,.0f}/s; ideal {ideal:,.0f}/s, limit of one core {core:,.0f}/s"
    )
    return [
        Result(
            "run, speed relative to bare aiohttp, 10,000 tasks",
            shares[ROUNDS // 2],
            0.4,
            " ×",
            True,
        ),
        Result("run, memory for 100,000 tasks", large.mebibytes, 400, " MiB"),
        Result("run, time per attempt, 100,000 relative to 10,000 tasks", small / rate, 1.0, " ×"),
        Result(
            "run, throughput relative to the ideal, 1,000 slow connections",
            slow / ideal,
            share,
            " ×",
            True,
        ),
    ]
