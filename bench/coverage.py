"""How often the intervals of `pennyweight.score` contain the true value, and how wide they are.

All data sets of a row are one frame, scored by one call with a group for each data set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from zlib import crc32

import numpy as np
import polars as pl
from scipy.stats import binom

import pennyweight
from bench.findings import Finding, share
from bench.reasoning_worlds import Reasoned
from bench.worlds import (
    Amounts,
    Calibrated,
    Columns,
    Efforts,
    Floats,
    Judged,
    Labels,
    Law,
    Passes,
    Repeats,
    World,
    drawn_laws,
)

SET = "data_set"
STATED, LEAST, WIDEST = 0.95, 0.93, 1.5
SECTION = "Intervals"


def records(columns: Columns, tasks: int, tries: int) -> pl.DataFrame:
    """Return all data sets as records in one frame."""
    sets = len(next(iter(columns.values())))
    names = np.array([f"t{i}" for i in range(tasks)])
    frame = {
        SET: np.repeat(np.arange(sets), tasks * tries),
        "task_id": np.tile(np.repeat(names, tries), sets),
        "attempt": np.tile(np.arange(1, tries + 1), sets * tasks),
    }
    flat = {
        name: values.reshape(len(frame[SET]), *values.shape[3:]) for name, values in columns.items()
    }
    return pl.DataFrame(frame | flat)


def size(tasks: int, tries: int) -> str:
    return str(tasks) if tries == 1 else f"{tasks}×{tries}"


@dataclass(frozen=True)
class Coverage:
    """A metric in a world."""

    metric: str
    world: World
    least: float = LEAST
    widest: float | None = WIDEST
    section: str = SECTION

    def measure(self, seed: int, sets: int) -> list[Finding]:
        rng = np.random.default_rng([seed, crc32(repr(self).encode())])
        world = self.world
        frame = records(world.draw(rng, sets), world.tasks, world.tries)
        options = world.options if isinstance(world, Labels | Repeats) else {}
        scores = pennyweight.score(frame, by=SET, metrics=self.metric, **options)
        found = [group[self.metric] for group in scores.groups]
        ends = np.array(
            [(e.value, e.low, e.high) for e in found if e.value is not None], dtype=np.float64
        )
        value, low, high = ends.T  # an interval that is missing (NaN) holds nothing
        truth = world.truth
        rounding = 1e-9 * max(abs(truth), 1e-9)
        rate, error = share((low - rounding <= truth) & (truth <= high + rounding))
        ideal = float(np.subtract(*np.quantile(value, [0.975, 0.025])))
        width = None
        if self.widest is not None and ideal > 0:
            width = float(np.nanmedian(high - low)) / ideal
        return [
            Finding(self.section, self.metric, str(world), size(world.tasks, world.tries), rate,
                    error, STATED, self.least, 1.0, len(value), width, self.widest)
        ]  # fmt: skip


@dataclass(frozen=True)
class ExactRate:
    """The interval of a pass rate; its coverage is computed, not simulated."""

    tasks: int
    low: float
    high: float
    least: float

    def measure(self, seed: int, sets: int) -> list[Finding]:  # noqa: ARG002
        passes = np.arange(self.tasks + 1)
        passed = np.arange(self.tasks)[None, :] < passes[:, None]
        frame = records({"passed": passed[:, :, None]}, self.tasks, 1)
        scores = pennyweight.score(frame, by=SET, metrics="pass_rate")
        groups = sorted(scores.groups, key=lambda g: int(g.group[SET]))
        found = [group["pass_rate"] for group in groups]
        ends = np.array([(e.low, e.high) for e in found], dtype=np.float64)
        truth = np.linspace(self.low, self.high, 1 if self.low == self.high else 2_000)
        chance: Floats = binom.pmf(passes[:, None], self.tasks, truth[None, :])
        held = (ends[:, :1] <= truth + 1e-12) & (truth - 1e-12 <= ends[:, 1:])
        rate = float((chance * held).sum(axis=0).min())
        world = (
            f"p = {self.low:g}"
            if self.low == self.high
            else f"worst p of {self.low:g} to {self.high:g}"
        )
        return [
            Finding(SECTION, "pass_rate", world, str(self.tasks), rate, 0.0, STATED, self.least,
                    1.0, len(truth))
        ]  # fmt: skip


THREE = (0.6, 0.3, 0.1), (0.9, 0.8, 0.7)
NEAR_ONE = Law("beta", 19, 0.2)


MEANS = (
    *(Amounts("cost_usd", Law("lognormal", s), n) for s in (0.7, 1.0, 1.5) for n in (20, 50, 200)),
    *(Amounts("cost_usd", Law("lognormal", 0.7), *n, 0.6) for n in ((30, 5), (10, 5), (5, 10))),
)
REPEATED = (
    Repeats("pass_at_k", (3, 1.5), 3, 20, 5),
    Repeats("pass_at_k", (3, 1.5), 3, 50, 5),
    Repeats("pass_at_k", (8, 0.5), 3, 20, 5),
    Repeats("pass_hat_k", (3, 1.5), 3, 20, 5),
    Repeats("pass_hat_k", (3, 1.5), 3, 50, 5),
    Repeats("pass_hat_k", (1, 3), 3, 50, 5),
    Repeats("g_pass_at_k", (3, 1.5), 4, 50, 8),
    Repeats("majority_accuracy", (3, 1.5), 5, 50, 5),
)
OF_REPEATS = ("task_sce_mean", "task_sce_corrected", "mode_share", "mode_accuracy", "stability")
REASONING = (
    *(Reasoned(m, "answers", n, 5) for m in (*OF_REPEATS, "di_at_0") for n in (20, 50)),
    *(Reasoned(m, "confidence", n) for m in ("confidence_auroc", "aurc") for n in (50, 200)),
    *(Reasoned(m, "confidence", 50, 4) for m in ("confidence_auroc", "aurc")),
    *(Reasoned(m, "confidence", 200) for m in ("brier_uncertainty", "ece_smooth")),
    *(
        Reasoned(m, "thinking", n)
        for m in ("thinking_share", "tokens_per_correct")
        for n in (20, 50)
    ),
    Reasoned("overthinking_tokens", "thinking", 50, 4),
    *(Reasoned("usr_math", "chains", n) for n in (20, 50)),
    Reasoned("usr_rag", "support", 50),
    *(Reasoned("truncation_aoc", "probes", n, 5) for n in (20, 50)),
)
LATENCIES = (Law("gamma", 0.5), Law("mixture", 10, 0.1))


def rows() -> Iterator[Coverage | ExactRate]:
    """The worlds that are named."""
    yield from (Coverage("cost_usd_mean", world) for world in MEANS)
    for law, tasks in product(LATENCIES, (20, 50)):
        yield Coverage("latency_mean_ms", Amounts("latency_ms", law, tasks))
    for rate, tasks in product((0.9, 1.0), (20, 50, 200)):
        yield Coverage("cost_of_pass", Passes(Law("lognormal", 1.0), rate, tasks))
    for tasks in (20, 50):
        yield Coverage("impl_rate_mean", Amounts("impl_rate", NEAR_ONE, tasks))
    yield ExactRate(50, 0.99, 0.99, LEAST)
    for tasks, ends in product((20, 50, 200), ((0.9, 0.999), (0.1, 0.9))):
        yield ExactRate(tasks, *ends, 0.92)
    yield Coverage("precision", Labels("precision", *THREE, 50))
    yield Coverage("recall", Labels("recall", (0.8, 0.2), (0.9, 0.8), 20, positive=True))
    yield Coverage("token_efficiency", Efforts(Law("lognormal", 0.7), 0.7, 20))
    for tasks in (12, 20, 50):
        yield Coverage("judge_alpha", Judged(0.7, 3, tasks))
    for tries in (5, 20):
        yield Coverage("brier", Calibrated(50, tries))
        yield Coverage("recall", Labels("recall", *THREE, 50, tries))
    for world in REPEATED:
        mostly_one = world.ease[1] < 1  # then nearly all estimates are 1, and the ideal width is 0
        yield Coverage(world.of, world, widest=None if mostly_one else WIDEST)
    yield from (Coverage(world.metric, world) for world in REASONING)


def drawn(seed: int) -> Iterator[Coverage]:
    """The worlds that only the seed knows."""
    rng = np.random.default_rng([seed, 1])
    section = "Worlds drawn from the seed"
    for law in drawn_laws(rng):
        tasks, tries = int(rng.integers(20, 201)), int(rng.integers(1, 6))
        spread = round(rng.uniform(0.2, 0.8), 2) if tries > 1 else 0.0
        world = Amounts("cost_usd", law, tasks, tries, spread)
        yield Coverage("cost_usd_mean", world, section=section)
    for law in drawn_laws(rng):
        rate, tasks = round(rng.uniform(0.5, 0.98), 2), int(rng.integers(20, 201))
        yield Coverage("cost_of_pass", Passes(law, rate, tasks), section=section)
    for _ in range(3):
        mean, strength = rng.uniform(0.5, 0.98), rng.uniform(1, 20)
        law = Law("beta", round(mean * strength, 2), round((1 - mean) * strength, 2))
        world = Amounts("impl_rate", law, int(rng.integers(20, 201)))
        yield Coverage("impl_rate_mean", world, section=section)
    for _ in range(2):
        shares = np.sort(rng.dirichlet([5, 3, 2]).round(2))[::-1]
        shares[0] = 1 - shares[1:].sum()
        right = rng.uniform(0.6, 0.98, 3).round(2)
        given = tuple(shares.round(2).tolist()), tuple(right.tolist())
        world = Labels("recall", *given, int(rng.integers(50, 201)), int(rng.integers(1, 4)))
        yield Coverage("recall", world, section=section)
        once = replace(world, of="precision", tries=1)
        yield Coverage("precision", once, section=section)
