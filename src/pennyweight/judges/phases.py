"""The phases of a run: attempts, scores by a rubric, questions about behaviours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from pennyweight.engine.budget import Budget
from pennyweight.engine.tally import Tally
from pennyweight.judges.judging import JudgingResult, judge_run
from pennyweight.judges.sentences import ask, questions_of
from pennyweight.models.prices import Prices
from pennyweight.store.store import Row, Run, Store
from pennyweight.suite.values import Judging, Price, Suite

if TYPE_CHECKING:
    Progress = Callable[[Tally, Budget, list[Row]], None]


class PhaseKind(StrEnum):
    """What a phase of a run does."""

    ATTEMPTS = "attempts"
    SCORES = "scores"
    """Judges score attempts by a rubric."""
    BEHAVIOURS = "behaviours"
    """Judges say whether sentences about attempts are true."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase that begins."""

    kind: PhaseKind
    run: str
    suite: Suite | None = None
    """The attempts that are made."""
    judges: tuple[str, ...] = ()
    rubric: str = ""
    behaviours: int = 0
    """How many behaviours the judges are asked about."""

    @classmethod
    def scores(cls, run: str, judging: Judging) -> Phase:
        """Describe scoring by a rubric."""
        judges = tuple(judge.name for judge in judging.judges)
        return cls(PhaseKind.SCORES, run, judges=judges, rubric=judging.rubric.name)


def judge_phases(
    suite: Suite,
    run: Run,
    store: Store,
    *,
    progress: Progress,
    record: Path | None = None,
    began: float | None = None,
) -> Iterator[tuple[Phase, Callable[[], JudgingResult | None]]]:
    """Yield what the judges of a suite are asked, and the function that asks it.

    A judge whose scores could not be read is asked about the sentences all the same.
    """
    judging = suite.judge
    if judging is None:
        return
    if judging.scores:
        yield (
            Phase.scores(run.id, judging),
            lambda: judge_run(
                run, judging, store, limits=suite.limits, prices=suite.prices, watch=progress,
                record=record, began=began,
            ),
        )  # fmt: skip
    if count := sum(map(len, questions_of(suite).values())):
        yield (
            Phase(PhaseKind.BEHAVIOURS, run.id, behaviours=count),
            lambda: ask(suite, run, store, watch=progress, record=record, began=began),
        )


def unpriced_judges(judging: Judging, prices: Mapping[str, Price]) -> list[str]:
    """Return a note for each judge whose price is unknown."""
    missing = Prices(prices).unknown((*judging.judges, *judging.more))
    return [f"The price of the judge {model} is unknown: its cost is null." for model in missing]
