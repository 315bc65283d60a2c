"""Simulated releases: how often gates raise a false alarm, and how often they catch a regression.

Each release tries fresh tasks. What a task is worth varies (Beta), so tasks are not alike; the
functions called are the ones that `assay gate` and `assay run --until-decided` decide with.
"""

import numpy as np

from assay.gates.ends import rate_ends
from assay.gates.running import DISCORDANT
from assay.gates.sequential import bets
from assay.run.until import sizes
from assay.stats.compare import Paired, interval
from bench.measure import Result

RELEASES = 2_000
LEVEL = 0.05
ALARMS = 6.0
GOOD, BAD = 0.90, 0.80
"""A system that is as good as it has to be, and one that regressed."""
SMALL, TASKS, PAIRED, MOST = 20, 200, 300, 2_000
MARGIN, WORSE = 0.02, 0.10
POWER = 90.0
SPREAD = 3.0
"""How much tasks vary: the smaller, the nearer each is to always or never passing."""


def run() -> list[Result]:
    rng = np.random.default_rng(2026)
    everything = [*points(rng), *confident(rng), *against_a_baseline(rng), *sequential(rng)]
    print(f"{RELEASES:,} releases; a gate is stated to be wrong at most {LEVEL:.0%} of the time\n")
    print(f"{'gate':<58}{'false alarms':>14}{'caught':>9}{'tasks':>8}")
    for name, alarms, caught, tasks, _ in everything:
        print(f"{name:<58}{alarms:>12.1f} %{_percent(caught):>9}{tasks:>8.0f}")
    results = []
    for name, alarms, caught, tasks, fixed in everything:
        if name.startswith("point"):
            continue
        results.append(Result(f"{name}: false alarms", alarms, ALARMS, " %"))
        if caught is not None:
            results.append(Result(f"{name}: regressions caught", caught, POWER, " %", True))
        if fixed:
            saved = 100 * (1 - tasks / fixed)
            results.append(Result(f"{name}: saved of {fixed} tasks", saved, 40, " %", True))
    return results


Row = tuple[str, float, float | None, float, int | None]
"""A gate, its false alarms and catches in percent, the tasks it takes, and those of its rival."""


def points(rng: np.random.Generator) -> list[Row]:
    """Gates that compare a point: every test must pass; not below the last release."""
    must = [100 * np.mean(passes(rng, rate, SMALL).mean(1) < 1) for rate in (0.95, 0.85)]
    last, same, worse = (passes(rng, r, TASKS).mean(1) for r in (GOOD, GOOD, BAD))
    least = [100 * np.mean(now < GOOD) for now in (same, worse)]
    below = [100 * np.mean(now < last) for now in (same, worse)]
    return [
        ("point: all of 20 must pass, the system is right in 95 %", *must, SMALL, None),
        ("point: below the threshold", *least, TASKS, None),
        ("point: below the last release", *below, TASKS, None),
    ]


def confident(rng: np.random.Generator) -> list[Row]:
    """Gates on the interval of a rate; one alone, and five that share their error rate."""
    same, worse = (fails(rng, rate, LEVEL) for rate in (GOOD, BAD))
    five = np.any([fails(rng, GOOD, LEVEL / 5) for _ in range(5)], axis=0)
    again = [100 * repeated(rng, rate).mean() for rate in (GOOD, BAD)]
    others = [fails(rng, GOOD, LEVEL / 5) for _ in range(4)]
    caught = np.any([*others, fails(rng, BAD, LEVEL / 5)], axis=0)
    return [
        ("confident", 100 * same.mean(), 100 * worse.mean(), TASKS, None),
        ("confident, half the tasks tried three times", *again, TASKS // 2, None),
        ("confident, five gates", 100 * five.mean(), 100 * caught.mean(), TASKS, None),
    ]


def fails(rng: np.random.Generator, rate: float, level: float) -> np.ndarray:
    """Say for each release whether all of the interval misses the threshold."""
    found = passes(rng, rate, TASKS)
    count = np.full(RELEASES, float(TASKS))
    error = found.std(axis=1, ddof=1) / np.sqrt(TASKS)
    _, high = rate_ends(found.mean(axis=1), error, count, count, level)
    return high < GOOD


def repeated(rng: np.random.Generator, rate: float) -> np.ndarray:
    """Say the same of tasks that were each tried three times."""
    tasks, times = TASKS // 2, 3
    chances = worth(rng, rate, tasks)
    means = rng.binomial(times, chances) / times
    count, clusters = (np.full(RELEASES, float(x)) for x in (tasks * times, tasks))
    error = means.std(axis=1, ddof=1) / np.sqrt(tasks)
    _, high = rate_ends(means.mean(axis=1), error, count, clusters, LEVEL)
    return high < GOOD


def against_a_baseline(rng: np.random.Generator) -> list[Row]:
    """Gates on the paired difference from a baseline."""
    alarms = {}
    for drop in (0.0, MARGIN, WORSE):
        chances = worth(rng, GOOD, PAIRED)
        before, now = (
            rng.random(chances.shape) < c for c in (chances, chances * (1 - drop / GOOD))
        )
        ones = np.ones(PAIRED)
        ends = [
            interval(Paired(b.astype(float), n.astype(float), ones, ones, "rate"), 1 - 2 * LEVEL)
            for b, n in zip(before, now, strict=True)
        ]
        alarms[drop] = 100 * np.mean([end[1] < -MARGIN for end in ends if end])
    name = f"no worse than {MARGIN:.0%}"
    return [
        (name, alarms[0.0], alarms[WORSE], PAIRED, None),
        (f"{name}, worse by just that", alarms[MARGIN], None, PAIRED, None),
    ]


def sequential(rng: np.random.Generator) -> list[Row]:
    """Gates that look again and again, beside a test of fixed size with the same error rates."""
    looks = np.array(list(sizes(MOST)))
    rates = [
        stopped(passes(rng, rate, MOST).astype(float), GOOD, BAD, None, looks)
        for rate in (GOOD, BAD)
    ]
    fixed = fixed_size()
    drop, found = 0.05, []
    for by in (0.0, drop):
        chances = worth(rng, GOOD, MOST)
        before, now = (rng.random(chances.shape) < c for c in (chances, chances * (1 - by / GOOD)))
        values = (now.astype(float) - before + 1) / 2
        found.append(stopped(values, 0.5, (1 - drop) / 2, DISCORDANT, looks))
        discordant = np.mean(before != now)
    paired = round(float(discordant) * (2 * 1.6449 / drop) ** 2)
    return [
        _row("sequential", rates, fixed),
        _row(f"sequential, no worse than {drop:.0%}", found, paired),
    ]


def _row(name: str, both: list[tuple[np.ndarray, np.ndarray]], fixed: int) -> Row:
    (same, first), (worse, second) = both
    tasks = float((first.mean() + second.mean()) / 2)
    return name, 100 * same.mean(), 100 * worse.mean(), tasks, fixed


def stopped(
    values: np.ndarray, good: float, bad: float, variance: float | None, looks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Say which releases failed, and after how many tasks each was decided, or all were tried."""
    limit = np.log(1 / LEVEL)
    rises = bets(values, bad, good, variance=variance) >= limit
    falls = bets(1 - values, 1 - good, 1 - bad, variance=variance) >= limit
    up, down = (np.where(x.any(1), x.argmax(1) + 1, MOST + 1) for x in (rises, falls))
    end = np.minimum(np.minimum(up, down), MOST)
    return down < up, looks[np.searchsorted(looks, end)]


def fixed_size() -> int:
    """Give the smallest number of tasks with which one test has both error rates, exactly."""
    from scipy.stats import binom  # noqa: PLC0415

    for tasks in range(10, 2_000):
        least = binom.ppf(LEVEL, tasks, GOOD)
        if binom.sf(least - 1, tasks, BAD) <= LEVEL:
            return tasks
    raise AssertionError


def worth(rng: np.random.Generator, rate: float, tasks: int) -> np.ndarray:
    """Draw how often each task passes."""
    return rng.beta(rate * SPREAD, (1 - rate) * SPREAD, (RELEASES, tasks))


def passes(rng: np.random.Generator, rate: float, tasks: int) -> np.ndarray:
    """Draw which tasks pass."""
    return rng.random((RELEASES, tasks)) < worth(rng, rate, tasks)


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{value:.1f} %"


if __name__ == "__main__":
    for result in run():
        print(result)
