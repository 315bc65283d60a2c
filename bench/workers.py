"""Throughput of workers that share a run in PostgreSQL, relative to one process alone."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from bench.measure import PENNYWEIGHT, Result
from bench.run import CONNECTIONS, server, suite

QUICK, SLOW = 20_000, 96
WORKERS = 4
ROUNDS = 7
"""Number of rounds; the median of their ratios counts, because a rate varies by a fifth."""
ALONE = (
    "import sys\nfrom pennyweight.engine import execution\nexecution.can_share = lambda _: False\n"
    "from pennyweight.cli import main\nsys.argv = ['pennyweight', *sys.argv[1:]]\nmain()\n"
)
"""`pennyweight` that makes a run alone, without taking portions of it from the store."""


@contextmanager
def database() -> Iterator[Any]:
    """Start a PostgreSQL server of the tests; its `database()` makes a new database."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    import postgres  # noqa: PLC0415

    yield from postgres.cluster()


def rate(address: str, attempts: int) -> float:
    """Return records per second while the middle half of them was made.

    Workers start one after the other and take a second of a processor each before they begin:
    that is no part of the throughput.
    """
    query = """SELECT count(*), percentile_disc(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY ended)
        FROM pennyweight_record"""
    with closing(psycopg.connect(address)) as connection:
        count, (early, late) = connection.execute(query).fetchone()
    assert count == attempts
    return count / 2 / (late - early)


def run_alone(command: list[str], path: Path, address: str) -> float:
    subprocess.run(
        [*command, "run", str(path), "--store", address], capture_output=True, check=True
    )
    return rate(address, QUICK)


def run_workers(number: int, path: Path, address: str, attempts: int) -> float:
    """Make a run with workers that start together."""
    put = [*PENNYWEIGHT, "run", str(path), "--on", "workers", "--store", address]
    subprocess.run(put, capture_output=True, check=True)
    work = [*PENNYWEIGHT, "work", "--suite", str(path), "--store", address]
    started = [subprocess.Popen(work, stderr=subprocess.DEVNULL) for _ in range(number)]
    assert not any(worker.wait() for worker in started)
    return rate(address, attempts)


def agents(folder: Path) -> Path:
    """Write a suite of agents that wait, as agents do that call a model."""
    path = folder / "agents.yaml"
    tasks = ", ".join(f"{{id: t{i}, input: wait}}" for i in range(SLOW))
    command = '{name: slow, command: [sh, -c, "sleep 1; echo 4"], sandbox: none}'
    path.write_text(f"suite: agents\ntasks: [{tasks}]\nsubjects: [{command}]\n")
    return path


def run() -> list[Result]:
    with (
        tempfile.TemporaryDirectory(prefix="pennyweight-bench-") as name,
        database() as servers,
        server() as address,
    ):
        path, alone = suite(Path(name), address, QUICK, CONNECTIONS), [sys.executable, "-c", ALONE]
        rates = []
        for _ in range(ROUNDS):  # alternating, so that all see the machine in the same state
            own = run_alone(alone, path, servers.database())
            leased = run_alone([*PENNYWEIGHT], path, servers.database())
            many = run_workers(WORKERS, path, servers.database(), QUICK)
            print(
                f"quick calls: alone {own:,.0f}/s, one worker {leased:,.0f}/s, four {many:,.0f}/s"
            )
            rates.append((own, leased, many))
        waiting = agents(Path(name))
        one_slow = run_workers(1, waiting, servers.database(), SLOW)
        four_slow = run_workers(WORKERS, waiting, servers.database(), SLOW)
    first = median(leased / own for own, leased, _ in rates)
    more = median(many / leased for _, leased, many in rates)
    print(f"agents of one second: one worker {one_slow:.1f}/s, four {four_slow:.1f}/s")
    return [
        Result("workers, one relative to a process alone", first, 0.95, " ×", True),
        Result("workers, four relative to one, quick calls", more, 1.0, " ×", True),
        Result("workers, four relative to one, slow agents", four_slow / one_slow, 2.5, " ×", True),
    ]
