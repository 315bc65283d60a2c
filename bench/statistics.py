# noqa: A005
"""How often intervals, comparisons, ranks and gates are right, on data whose truth is known.

`python -m bench statistics` runs all of it; `--seed` draws other data, and other worlds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol

from bench import coverage, differences, early_stops, limits, ranks, ratchets
from bench.findings import Finding

SEED, SETS = 2026, 1_000


class Row(Protocol):
    """One small declaration: what is measured, in which world, and what is promised."""

    def measure(self, seed: int, sets: int) -> list[Finding]: ...


def sections(seed: int) -> dict[str, list[Row]]:
    """Return all rows by section; the seed draws the worlds of one of them."""
    return {
        "intervals": [*coverage.rows()],
        "comparisons": [*differences.rows()],
        "ranks": [*ranks.rows()],
        "gates": [*limits.rows()],
        "early-stops": [*early_stops.rows()],
        "ratchet": [*ratchets.rows()],
        "drawn": [*coverage.drawn(seed), *differences.drawn(seed), *limits.drawn(seed)],
    }


def measured(row: Row, *, seed: int, sets: int) -> list[Finding]:
    return row.measure(seed, sets)


def findings(
    seed: int, sets: int, only: Sequence[str] = (), jobs: int | None = None
) -> Iterator[Finding]:
    """Measure all rows, or those of some sections, in worker processes."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # the workers use all processors already
    every = sections(seed)
    rows = [row for name in only or every for row in every[name]]
    with ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for found in pool.map(partial(measured, seed=seed, sets=sets), rows):
            yield from found


def run() -> Iterator[Finding]:
    """Measure everything, as one of the benchmarks."""
    return findings(SEED, SETS)


def main(arguments: Sequence[str]) -> int:
    """Print every row; return 1 if one misses its bound."""
    parser = argparse.ArgumentParser(prog="python -m bench statistics", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="default: %(default)s")
    parser.add_argument(
        "--sets", type=int, default=SETS, help="data sets a row; default: %(default)s"
    )
    parser.add_argument(
        "--only", action="append", choices=list(sections(0)), help="one section; can be repeated"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the findings as JSON")
    parser.add_argument("--jobs", type=int, help="worker processes; default: one a processor")
    given = parser.parse_args(arguments)
    found: list[Finding] = []
    for finding in findings(given.seed, given.sets, given.only or (), given.jobs):
        if not found or found[-1].section != finding.section:
            print(f"\n{finding.section}")
        found.append(finding)
        print(f"{'ok    ' if finding.met else 'MISSED'}  {finding}", flush=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    missed = [finding for finding in found if not finding.met]
    print(f"\n{len(found)} rows, {len(missed)} missed")
    print(f"seed {given.seed}, {given.sets:,} data sets a row")
    print(f"{used.ru_utime + used.ru_stime:.0f} s of CPU time")
    if given.json:
        told = {"seed": given.seed, "sets": given.sets, "rows": [f.to_dict() for f in found]}
        given.json.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
