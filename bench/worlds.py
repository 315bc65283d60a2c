"""The worlds from which the simulations draw: laws of numbers, and tasks that are tried.

A world draws many data sets at once, one row each; its truth is known exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom

Floats = NDArray[np.float64]
Columns = dict[str, NDArray[np.generic]]
"""The values of each column: data sets × tasks × attempts."""
Family = Literal["lognormal", "gamma", "Weibull", "mixture", "beta", "steady", "two"]
SIGNS = {"lognormal": "σ", "gamma": "shape", "Weibull": "shape"}


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


@dataclass(frozen=True)
class Law:
    """The distribution of a number, such as the cost of an attempt."""

    family: Family
    a: float = 1.0
    b: float = 0.0

    def __str__(self) -> str:
        if self.family == "mixture":
            return f"mixture, {percent(self.b)} are {self.a:g} times as large"
        if self.family == "beta":
            return f"beta({self.a:g}, {self.b:g})"
        if self.family == "steady":
            return "steady"
        if self.family == "two":
            return f"one price, {self.a:g} times as much in {percent(self.b)}"
        return f"{self.family} {SIGNS[self.family]} {self.a:g}"

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        if self.family == "lognormal":
            return rng.lognormal(0, self.a, shape)
        if self.family == "gamma":
            return rng.gamma(self.a, 1, shape)
        if self.family == "Weibull":
            return rng.weibull(self.a, shape)
        if self.family == "beta":
            return rng.beta(self.a, self.b, shape)
        many = np.where(rng.random(shape) < self.b, self.a, 1.0)
        return many if self.family == "two" else many * rng.gamma(20, 1 / 20, shape)

    @property
    def mean(self) -> float:
        return {
            "lognormal": lambda: math.exp(self.a**2 / 2),
            "gamma": lambda: self.a,
            "Weibull": lambda: math.gamma(1 + 1 / self.a),
            "beta": lambda: self.a / (self.a + self.b),
            "mixture": lambda: 1 + self.b * (self.a - 1),
            "two": lambda: 1 + self.b * (self.a - 1),
            "steady": lambda: 1.0,
        }[self.family]()


class World(Protocol):
    """A kind of records, and the true value of a metric of them."""

    tasks: int
    tries: int

    @property
    def truth(self) -> float: ...

    def draw(self, rng: np.random.Generator, sets: int) -> Columns: ...


@dataclass(frozen=True)
class Amounts:
    """Numbers such as costs; a task multiplies those of its attempts by a log-normal factor."""

    column: str
    law: Law
    tasks: int
    tries: int = 1
    task_sd: float = 0.0

    def __str__(self) -> str:
        return f"{self.law}, tasks σ {self.task_sd:g}" if self.task_sd else str(self.law)

    @property
    def truth(self) -> float:
        return self.law.mean * math.exp(self.task_sd**2 / 2)

    def draw(self, rng: np.random.Generator, sets: int) -> Columns:
        task = rng.lognormal(0, self.task_sd, (sets, self.tasks, 1))
        return {self.column: task * self.law.draw(rng, (sets, self.tasks, self.tries))}


@dataclass(frozen=True)
class Passes:
    """Attempts that cost something and pass at a rate."""

    law: Law
    rate: float
    tasks: int
    tries: int = 1

    def __str__(self) -> str:
        return f"{self.law}, {'all' if self.rate == 1 else percent(self.rate)} pass"

    @property
    def truth(self) -> float:
        return self.law.mean / self.rate

    def draw(self, rng: np.random.Generator, sets: int) -> Columns:
        shape = (sets, self.tasks, self.tries)
        return {
            "cost_usd": self.law.draw(rng, shape),
            "passed": rng.random(shape) < self.rate,
        }


@dataclass(frozen=True)
class Efforts:
    """Answers that are right at a rate, and the tokens that they take."""

    law: Law
    rate: float
    tasks: int
    tries: int = 1

    def __str__(self) -> str:
        return f"tokens {self.law}, {percent(self.rate)} right"

    @property
    def truth(self) -> float:
        """Right answers per token; the tokens are whole numbers, so nearly that."""
        return self.rate / (2000 * self.law.mean)

    def draw(self, rng: np.random.Generator, sets: int) -> Columns:
        shape = (sets, self.tasks, self.tries)
        tokens = np.maximum(np.rint(2000 * self.law.draw(rng, shape)), 1).astype(np.int64)
        return {
            "correct": rng.random(shape) < self.rate,
            "prompt_tokens": np.zeros(shape, np.int64),
            "completion_tokens": tokens,
        }


@dataclass(frozen=True)
class Labels:
    """Labels with their shares; an answer is right at a rate, else one of the other labels."""

    of: Literal["precision", "recall"]
    shares: tuple[float, ...]
    right: tuple[float, ...]
    tasks: int
    tries: int = 1
    positive: bool = False
    """Whether only the last label counts."""

    def __str__(self) -> str:
        shares, right = (
            ", ".join(f"{100 * one:.0f}" for one in each) for each in (self.shares, self.right)
        )
        which = "the rarest of " if self.positive else ""
        return f"{which}labels with shares of {shares} %, right in {right} %"

    @property
    def options(self) -> dict[str, str]:
        return {"positive": f"label {len(self.shares) - 1}"} if self.positive else {}

    @property
    def truth(self) -> float:
        asked, right = np.array(self.shares), np.array(self.right)
        wrong = asked * (1 - right) / (len(asked) - 1)
        answered = asked * right + wrong.sum() - wrong
        each = right if self.of == "recall" else asked * right / answered
        return float(each[-1] if self.positive else each.mean())

    def draw(self, rng: np.random.Generator, sets: int) -> Columns:
        count, shape = len(self.shares), (sets, self.tasks, self.tries)
        target = rng.choice(count, (sets, self.tasks, 1), p=self.shares)
        target = np.broadcast_to(target, shape)
        other = (target + rng.integers(1, count, shape)) % count
        answer = np.where(rng.random(shape) < np.array(self.right)[target], target, other)
        names = np.array([f"label {i}" for i in range(count)])
        return {"target": names[target], "answer": names[answer]}


@dataclass(frozen=True)
class Repeats:
    """Tasks whose pass probabilities have a beta distribution, each tried several times."""

    of: Literal["pass_at_k", "pass_hat_k", "g_pass_at_k", "majority_accuracy"]
    ease: tuple[float, float]
    k: int
    tasks: int
    tries: int

    def __str__(self) -> str:
        k = "" if self.of == "majority_accuracy" else f", k = {self.k}"
        return f"ease beta({self.ease[0]:g}, {self.ease[1]:g}){k}"

    @property
    def options(self) -> dict[str, int]:
        return {} if self.of == "majority_accuracy" else {"k": self.k}

    @property
    def truth(self) -> float:
        """The chance that enough of k fresh attempts at a task pass."""
        drawn = self.tries if self.of == "majority_accuracy" else self.k
        half = drawn // 2 + 1 if self.of == "majority_accuracy" else math.ceil(drawn / 2)
        least = {"pass_at_k": 1, "pass_hat_k": drawn}.get(self.of, half)
        return float(betabinom.sf(least - 1, drawn, *self.ease))

    def draw(self, rng: np.random.Generator, sets: int) -> Columns:
        shape = (sets, self.tasks, self.tries)
        passed = rng.random(shape) < rng.beta(*self.ease, shape[:2])[:, :, None]
        if self.of != "majority_accuracy":
            return {"passed": passed}
        return {"target": np.full(shape, "yes"), "answer": np.where(passed, "yes", "no")}


@dataclass(frozen=True)
class Calibrated:
    """Tasks of every ease, and a model that knows its chance at each."""

    tasks: int
    tries: int

    def __str__(self) -> str:
        return "calibrated model, ease uniform"

    @property
    def truth(self) -> float:
        return 1 / 6

    def draw(self, rng: np.random.Generator, sets: int) -> Columns:
        shape = (sets, self.tasks, self.tries)
        chance = np.broadcast_to(rng.random((sets, self.tasks, 1)), shape)
        return {"prob_correct": chance, "correct": rng.random(shape) < chance}


@dataclass(frozen=True)
class Judged:
    """Attempts scored by judges; alpha is the share of the variance that attempts explain."""

    alpha: float
    judges: int
    tasks: int
    tries: int = 1

    def __str__(self) -> str:
        return f"{self.judges} judges, alpha {self.alpha:g}"

    @property
    def truth(self) -> float:
        return self.alpha

    def draw(self, rng: np.random.Generator, sets: int) -> Columns:
        own = rng.normal(0, math.sqrt(self.alpha), (sets, self.tasks, self.tries, 1))
        noise = rng.normal(0, math.sqrt(1 - self.alpha), (*own.shape[:3], self.judges))
        return {"judge_scores": 0.5 + (own + noise) / 12}  # six deviations from either end


def drawn_laws(rng: np.random.Generator) -> Iterator[Law]:
    """Draw laws that nobody tuned to, one of each family; the skewness is at most about 6."""
    yield Law("lognormal", round(rng.uniform(0.3, 1.0), 2))
    yield Law("gamma", round(float(np.exp(rng.uniform(np.log(0.4), np.log(5)))), 2))
    yield Law("Weibull", round(rng.uniform(0.7, 2.0), 2))
    yield Law("mixture", round(rng.uniform(3, 10), 1), round(rng.uniform(0.05, 0.25), 2))
