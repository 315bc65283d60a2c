"""The ratchet on a system that never changes: each release that fails is a false alarm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import numpy as np

from bench.early_stops import Rates
from bench.findings import Finding, share
from bench.limits import Prepared
from pennyweight.api.gate import raise_thresholds
from pennyweight.errors import PennyweightError
from pennyweight.gates.decision import decide
from pennyweight.gates.loader import load_policy

STATED, MOST = 0.05, 0.06
SLOWER = 8
RELEASES = (2, 10, 20)
MARGIN = 0.01
"""The default of `--margin`."""


@dataclass(frozen=True)
class Ratchet:
    """A policy whose threshold rises after each release that passes."""

    on: str
    rate: float = 0.9
    tasks: int = 200
    start: float = 0.8

    def measure(self, seed: int, sets: int) -> list[Finding]:
        rng = np.random.default_rng([seed, crc32(repr(self).encode())])
        world, sets = Rates(self.rate, self.tasks), sets // SLOWER
        failed = np.zeros((sets, RELEASES[-1]), dtype=bool)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "policy.json"
            for number in range(sets):
                failed[number] = list(self.releases(world, path, rng))
        return [
            Finding("The ratchet on a system that does not change", f"ratchet on: {self.on}",
                    f"{world} at every release, release {n}", str(self.tasks),
                    *share(failed[:, n - 1]), STATED, 0.0, MOST, sets)
            for n in RELEASES
        ]  # fmt: skip

    def releases(self, world: Rates, path: Path, rng: np.random.Generator) -> Iterator[bool]:
        """Decide one release after the other; yield whether it failed."""
        policy = {"on": self.on, "thresholds": {"pass_rate": self.start}}
        path.write_text(json.dumps(policy), encoding="utf-8")
        columns = world.draw(rng, RELEASES[-1])
        ready = Prepared.of(policy, columns, world)
        for number in range(RELEASES[-1]):
            now = replace(ready, policy=load_policy(str(path)))
            verdict = decide(now.policy, now.filled(columns, number))
            with suppress(PennyweightError):  # if it refuses, the threshold stays
                raise_thresholds(verdict, MARGIN)
            yield verdict.verdict == "fail"


def rows() -> Iterator[Ratchet]:
    yield Ratchet("value")
    yield Ratchet("confident")
