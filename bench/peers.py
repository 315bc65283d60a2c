"""`python -m bench peers`: the gates of other projects and ours, on the same simulated releases.

The others are installed into an environment of their own, which is removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal
from zlib import crc32

import numpy as np

import pennyweight
from bench import peer_verdicts
from bench.coverage import size
from bench.limits import Prepared
from bench.worlds import Amounts, Columns, Floats, Law
from pennyweight.gates.decision import decide

PINNED = {"statgate": "0.1.1", "noisecheck": "0.1.1", "evalsig": "0.1.2"}
SEED, SETS = 2026, 400
Claim = Literal["no worse", "better"]
CLAIMS: dict[str, Claim] = {"statgate": "no worse", "noisecheck": "no worse", "evalsig": "better"}
"""What a pass of each gate claims: no worse than the margin, or better."""
NO_LOWER = ("statgate", "evalsig")
"""These have no way to say that lower values are better."""


@dataclass(frozen=True)
class Release:
    """A candidate and its baseline on the same tasks; the difference between them is known."""

    difference: float
    """How much better the candidate is: in points for passes, as a share for costs."""
    tasks: int
    tries: int = 1
    ease: tuple[float, float] | None = (8, 2)
    """The beta distribution of the tasks' pass probabilities; None for costs."""
    margin: float = 0.02
    same: bool = False
    """Whether both do the same, except for the tasks that the candidate breaks."""

    def __str__(self) -> str:
        if self.ease is None:
            return "costs: a steady baseline, now lognormal σ 1"
        if self.same:
            return "passes, the same except on tasks that break"
        return f"passes, ease beta({self.ease[0]:g}, {self.ease[1]:g})"

    def right(self, claim: Claim) -> str:
        """Return the verdict that is right; `inconclusive` at the limit, where both are wrong."""
        limit = -self.margin if claim == "no worse" else 0.0
        if np.isclose(self.difference, limit):
            return "inconclusive" if claim == "no worse" else "fail"
        return "pass" if self.difference > limit else "fail"

    def draw(self, rng: np.random.Generator, sets: int) -> tuple[Floats, Floats]:
        """Draw the values before and now: data sets × tasks × attempts."""
        shape = (sets, self.tasks, self.tries)
        if self.ease is None:
            law = Law("lognormal", 1.0)
            return np.ones(shape), law.draw(rng, shape) / law.mean * (1 - self.difference)
        ease, mean = rng.beta(*self.ease, shape[:2])[:, :, None], self.ease[0] / sum(self.ease)
        better = ease + (1 - ease) * self.difference / (1 - mean)
        moved = better if self.difference > 0 else ease * (1 + self.difference / mean)
        before, now = rng.random(shape) < ease, rng.random(shape) < moved
        if self.same:
            now = before & (rng.random(shape) >= -self.difference / mean)
        return before.astype(np.float64), now.astype(np.float64)


@dataclass(frozen=True)
class Tally:
    """How a gate decided the data sets of one release."""

    gate: str
    version: str
    claim: Claim
    world: str
    size: str
    difference: float
    margin: float
    right: str
    passed: float
    failed: float
    inconclusive: float
    sets: int

    @classmethod
    def of(
        cls, gate: str, version: str, claim: Claim, release: Release, words: Sequence[str]
    ) -> Tally:
        counts, sets = Counter(words), len(words)
        shares = (counts[word] / sets for word in ("pass", "fail", "inconclusive"))
        given = release.difference, release.margin, release.right(claim)
        where = str(release), size(release.tasks, release.tries)
        return cls(gate, version, claim, *where, *given, *shares, sets)

    def __str__(self) -> str:
        wrong = [
            f"{word} {100 * rate:5.1f} %{' wrong' if self.right != word else ''}"
            for word, rate in (("pass", self.passed), ("fail", self.failed))
        ]
        told = f"{100 * self.difference:+g} of {100 * self.margin:g}"
        return (
            f"{self.gate:<22}{wrong[0]:<20}{wrong[1]:<20}open {100 * self.inconclusive:5.1f} %  "
            f"{told}; {self.world}; {self.size}"
        )


def releases(seed: int) -> Iterator[Release]:
    """The releases that are named, and those that only the seed knows."""
    for tasks, tries in ((20, 1), (50, 1), (200, 1), (20, 5)):
        for difference in (-0.12, -0.02, 0.0, 0.1):
            yield Release(difference, tasks, tries)
    for tasks in (20, 50, 200):
        for difference in (-0.06, -0.02, 0.0):
            yield Release(difference, tasks, same=True)
    for tasks in (20, 50):
        for difference in (-0.5, -0.2, 0.0):
            yield Release(difference, tasks, ease=None, margin=0.2)
    rng = np.random.default_rng([seed, 4])
    mean, strength = rng.uniform(0.6, 0.95), rng.uniform(2, 20)
    ease = round(mean * strength, 2), round((1 - mean) * strength, 2)
    tasks = int(rng.integers(30, 301))
    for difference in (-0.02 - round(rng.uniform(0.01, 0.1), 3), 0.0):
        yield Release(difference, tasks, ease=ease)


def ours(release: Release, before: Floats, now: Floats, claim: Claim) -> list[str]:
    """Decide with our gate, as `pennyweight gate --baseline` does."""
    metric, column = (
        ("cost_usd_mean", "cost_usd") if release.ease is None else ("pass_rate", "passed")
    )
    rule = {"better": True} if claim == "better" else {"no_worse_than": f"{release.margin:.0%}"}
    sides: list[Columns] = [
        {column: values if release.ease is None else values > 0} for values in (before, now)
    ]
    world = Amounts(column, Law("steady"), release.tasks, release.tries)
    ready = Prepared.of({"gates": [{"metric": metric, **rule}]}, sides[1], world)
    return [
        decide(ready.policy, ready.filled(sides[1], n), ready.filled(sides[0], n)).verdict
        for n in range(len(now))
    ]


def installed(folder: Path, wanted: Sequence[str]) -> tuple[Path, list[str]]:
    """Install the others; return the interpreter, and the names of those that are there."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    found = []
    for name in wanted:
        command = [str(python), "-m", "pip", "install", "-q", f"{name}=={PINNED[name]}"]
        if subprocess.run(command, check=False, capture_output=True).returncode == 0:
            found.append(name)
        else:
            print(f"{name} {PINNED[name]} could not be installed, so it is left out.", flush=True)
    return python, found


def tallies(seed: int, sets: int, python: Path, names: Sequence[str]) -> Iterator[Tally]:
    """Let every gate decide every release."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        for release in releases(seed):
            rng = np.random.default_rng([seed, crc32(repr(release).encode())])
            before, now = release.draw(rng, sets)
            costs = release.ease is None
            path = Path(folder) / "release.npz"
            np.savez(path, before=before, now=now, margin=release.margin, lower=costs)
            asked = [name for name in names if not (costs and name in NO_LOWER)]
            jobs = {name: pool.submit(verdicts, python, name, path) for name in asked}
            for claim in dict.fromkeys(["no worse", *(CLAIMS[name] for name in asked)]):
                words = ours(release, before, now, claim)
                yield Tally.of("pennyweight", pennyweight.__version__, claim, release, words)
            for name, job in jobs.items():
                found = job.result()
                yield Tally.of(name, found["version"], CLAIMS[name], release, found["verdicts"])


def verdicts(python: Path, name: str, path: Path) -> dict[str, object]:
    """Ask one of the others, in its own environment."""
    script = Path(peer_verdicts.__file__)
    command = [str(python), "-P", str(script), name, str(path)]  # -P: not our own modules
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(run.stdout)
    return found


def main(arguments: Sequence[str]) -> int:
    """Install the others, let all gates decide, print and write what they did."""
    parser = argparse.ArgumentParser(prog="python -m bench peers", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="default: %(default)s")
    parser.add_argument("--sets", type=int, default=SETS, help="data sets; default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the tallies as JSON")
    parser.add_argument("--gate", action="append", choices=list(PINNED), help="only this one")
    parser.add_argument("--python", type=Path, help="an interpreter that has them installed")
    given = parser.parse_args(arguments)
    found = []
    with TemporaryDirectory() as folder:
        wanted = given.gate or [*PINNED]
        python, names = given.python, wanted
        if python is None:
            python, names = installed(Path(folder), wanted)
        for tally in tallies(given.seed, given.sets, python, names):
            found.append(asdict(tally))
            print(tally, flush=True)
    if given.json:
        told = {"seed": given.seed, "sets": given.sets, "rows": found}
        given.json.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
