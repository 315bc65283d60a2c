"""`pennyweight score` on tables of many files: memory, and time per record from 5 to 50 million.

Also the table on a Ray cluster of two nodes on this machine. The tables are removed afterwards.
"""

import json
import math
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.measure import PENNYWEIGHT, Result, Spent, spend
from bench.score import tail

KINDS = 2_000
PART = 500_000
TIERS = 3
SMALL, LARGE = 5_000_000, 50_000_000


def generate(folder: Path, records: int) -> None:
    """Write records of about 600 bytes to folders that name their tier, each task tried once."""
    rng = random.Random(7)
    kinds = pl.DataFrame([json.loads("{" + tail(rng)) for _ in range(KINDS)])
    for number, start in enumerate(range(0, records, PART)):
        size = min(PART, records - start)
        draw = np.random.default_rng(number)
        place = folder / f"tier=T{number % TIERS}"
        place.mkdir(parents=True, exist_ok=True)
        rows = kinds[draw.integers(0, KINDS, size)]
        rows.with_columns(
            task_id=pl.format("task-{}", pl.int_range(start, start + size)),
            latency_ms=pl.Series(draw.lognormal(6, 0.7, size).round(2)),
            cost_usd=pl.Series((draw.random(size) / 100).round(6)),
        ).write_parquet(place / f"part-{number:04}.parquet")


def _score(table: Path, *options: str) -> tuple[Spent, Any]:
    """Score a table with every metric; also return the numbers."""
    with tempfile.TemporaryFile("w+") as out:
        command = [*PENNYWEIGHT, "score", str(table), "--format", "json", *options]
        spent = spend(command, out)
        out.seek(0)
        return spent, json.load(out)


@contextmanager
def _cluster() -> Iterator[str]:
    """Start two Ray nodes on loopback; yield their address."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 500_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        cluster.add_node(**node)
        yield f"ray://{cluster.address}"
    finally:
        cluster.shutdown()


def apart(one: Any, other: Any) -> float:
    """Return the largest relative difference between the numbers of two results."""
    if isinstance(one, dict):
        return max((apart(one[k], other[k]) for k in one), default=0.0)
    if isinstance(one, list):
        return max(map(apart, one, other), default=0.0)
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) / max(abs(one), abs(other), 1e-300)
    return 0.0 if one == other else math.inf


def run() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="pennyweight-bench-") as name:
        spent: dict[int, Spent] = {}
        for records in (SMALL, LARGE):
            table = Path(name, f"{records}")
            generate(table, records)
            spent[records], found = _score(table)
            one = spent[records]
            print(f"{records:>10,} records: {one.seconds:.0f} s, {one.cpu:.0f} s of CPU, "
                  f"{one.mebibytes:,.0f} MiB")  # fmt: skip
        by_tier, _ = _score(table, "--by", "tier")
        print(
            f"{LARGE:>10,} records by tier: {by_tier.seconds:.0f} s, {by_tier.mebibytes:,.0f} MiB"
        )
        with _cluster() as address:
            on_ray, other = _score(table, "--on", address)
        print(f"{LARGE:>10,} records on two Ray nodes: {on_ray.seconds:.0f} s")
    small, large = (one.cpu / records for records, one in spent.items())
    return [
        Result(
            "score, memory for 5,000,000 records in files", spent[SMALL].mebibytes, 2048, " MiB"
        ),
        Result("score, memory for 50,000,000 records", spent[LARGE].mebibytes, 4096, " MiB"),
        Result("score --by tier, memory for 50,000,000 records", by_tier.mebibytes, 4096, " MiB"),
        Result("score, CPU per record, 50 relative to 5 million records", large / small, 1.2, " ×"),
        Result("score on Ray, largest relative difference", apart(found, other), 0, ""),
    ]
