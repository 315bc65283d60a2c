"""The rate of `pennyweight run` against a fast local server, as a ratio to a bare aiohttp loop."""

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
"""The middle of so many pairs counts."""


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
    """Make calls with nothing around them; gives calls a second."""
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


def made(address: str, tasks: int, connections: int = CONNECTIONS) -> tuple[Spent, float]:
    """Run the command; gives what it took, and the calls a second while it made attempts."""
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
        for _ in range(ROUNDS):  # by turns and equally long, so that both meet the same machine
            base = asyncio.run(bare(address, 20_000))
            pairs.append((10_000 / made(address, 10_000)[0].seconds, base))
        large, _ = made(address, 100_000)
    with server(delay=DELAY) as address:
        few, _ = made(address, 10_000, MANY)
        many, slow = made(address, 100_000, MANY)
    core = 90_000 / (many.cpu - few.cpu)  # what one core can, start-up apart
    shares = sorted(own / base for own, base in pairs)
    small, rate, ideal = max(own for own, _ in pairs), 100_000 / large.seconds, MANY / DELAY
    share = round(0.9 * min(1.0, core / ideal), 2)
    for own, base in pairs:
        print(f"pennyweight run {own:,.0f}/s, bare aiohttp {base:,.0f}/s: {own / base:.2f} ×")
    print(f"pennyweight run of 100,000: {rate:,.0f}/s")
    print(
        f"from the first call to the last answer, {MANY:,} connections, {DELAY * 1000:.0f} ms a "
        f"response: {slow:,.0f}/s; ideal {ideal:,.0f}/s, what one core can {core:,.0f}/s"
    )
    return [
        Result(
            "pennyweight run, 10,000 tasks, to bare aiohttp", shares[ROUNDS // 2], 0.4, " ×", True
        ),
        Result("memory at 100,000 tasks", large.mebibytes, 400, " MiB"),
        Result("time a sample from 10,000 to 100,000", small / rate, 1.0, " ×"),
        Result("1,000 slow connections, to the ideal", slow / ideal, share, " ×", True),
    ]
