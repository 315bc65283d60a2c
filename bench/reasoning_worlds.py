"""Worlds for the metrics of reasoning: repeated answers, confidence, thinking, chains, probes.

What these metrics are worth with infinitely many tasks has no closed form, so their truth is the
value of one very large data set, of which every small one is a part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bench.worlds import Columns, Floats

Kind = Literal["answers", "confidence", "thinking", "chains", "probes", "support"]
POINTS = (0, 25, 50, 75, 100)
LARGE = 40_000
_MEANINGS: dict[Kind, str] = {
    "answers": "four answers, ease beta(2, 1)",
    "confidence": "a model that is too sure",
    "thinking": "tokens lognormal σ 0.7, ease beta(2, 1)",
    "chains": "1 to 6 equations a chain, mistakes beta(1, 9)",
    "probes": "the answer is fixed at 0 to 100 % of the chain",
    "support": "1 to 4 sentences, unsupported beta(1, 4)",
}


@dataclass(frozen=True)
class Reasoned:
    """Attempts at tasks of different ease, with all columns that metrics of a kind read."""

    metric: str
    kind: Kind
    tasks: int
    tries: int = 1

    def __str__(self) -> str:
        return _MEANINGS[self.kind]

    @property
    def truth(self) -> float:
        return _truth(replace(self, tasks=LARGE))

    def draw(self, rng: np.random.Generator, sets: int) -> Columns:
        shape = (sets, self.tasks, self.tries)
        ease = rng.beta(2, 1, (*shape[:2], 1))
        match self.kind:
            case "answers":
                return _answers(rng, ease, shape)
            case "confidence":
                chance = np.broadcast_to(ease, shape)
                stated = np.clip(chance + 0.3 * (1 - chance) + rng.normal(0, 0.1, shape), 0, 1)
                return {"prob_correct": stated, "correct": rng.random(shape) < chance}
            case "thinking":
                tokens = (400 * rng.lognormal(0, 0.7, shape)).astype(np.int64) + 1
                thought = (tokens * rng.beta(4, 2, shape)).astype(np.int64)
                right = rng.random(shape) < ease
                return {"completion_tokens": tokens, "reasoning_tokens": thought, "correct": right}
            case "chains":
                return {"cot": _texts(rng, shape, 6, rng.beta(1, 9, shape), _equation)}
            case "support":
                said = _texts(rng, shape, 4, rng.beta(1, 4, shape), _sentence)
                context = np.full(shape, " ".join(f"{_FACT} number {i}." for i in range(100)))
                return {"response": said, "context": context}
            case "probes":
                return _probes(rng, shape)


@lru_cache
def _truth(world: Reasoned) -> float:
    import pennyweight  # noqa: PLC0415
    from bench.coverage import records  # noqa: PLC0415 - it lists these worlds

    frame = records(world.draw(np.random.default_rng(7), 1), world.tasks, world.tries)
    found = pennyweight.score(frame, metrics=world.metric)[world.metric].value
    assert found is not None
    return found


def _answers(rng: np.random.Generator, ease: Floats, shape: tuple[int, ...]) -> Columns:
    """Draw the right answer as often as a task is easy, else one of three wrong ones."""
    favourite = rng.integers(1, 4, ease.shape)  # most mistakes at a task are the same one
    other = np.where(rng.random(shape) < 0.6, favourite, rng.integers(1, 4, shape))
    chosen = np.where(rng.random(shape) < ease, 0, other)
    return {
        "answer": np.array(list("abcd"))[chosen],
        "target": np.full(shape, "a"),
        "temperature": np.zeros(shape),
    }


def _probes(rng: np.random.Generator, shape: tuple[int, ...]) -> Columns:
    """Draw the point from which on the answer is the last one; before it there are guesses."""
    assert shape[2] == len(POINTS)
    fixed = rng.choice(len(POINTS), (*shape[:2], 1), p=[0.4, 0.1, 0.1, 0.2, 0.2])
    answers = np.where(np.arange(len(POINTS)) >= fixed, 9, rng.integers(0, 9, shape))
    return {
        "answer": answers.astype(str),
        "target": np.full(shape, "9"),
        "tier": np.broadcast_to(np.array([f"probe@{p}%" for p in POINTS]), shape),
        "attempt": np.ones(shape, np.int64),
        "subject": np.full(shape, "m"),
    }


def _texts(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    most: int,
    wrong: Floats,
    line: Callable[[np.random.Generator, bool], str],
) -> NDArray[np.generic]:
    """Write texts of 1 to `most` lines, each wrong with the chance of its text."""
    lines = rng.integers(1, most + 1, shape).ravel()
    made = [
        " ".join(line(rng, is_wrong) for is_wrong in rng.random(n) < p)
        for n, p in zip(lines, wrong.ravel(), strict=True)
    ]
    return np.array(made, object).reshape(shape)


def _equation(rng: np.random.Generator, is_wrong: bool) -> str:
    a, b = rng.integers(2, 90, 2)
    return f"{a} + {b} = {a + b + is_wrong}."


_FACT = "The bridge over the river was opened by the mayor in spring as"


def _sentence(rng: np.random.Generator, is_wrong: bool) -> str:
    if is_wrong:
        return f"Nobody ever found out why 7{rng.integers(100, 999)} cats had left home."
    return f"{_FACT} number {rng.integers(0, 100)}."
