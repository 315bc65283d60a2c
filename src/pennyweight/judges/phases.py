"""The phases of a run: attempts, scores by a rubric, questions of scorers and about behaviours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pennyweight.models.prices import Prices
from pennyweight.store.store import Store, StoredRun
from pennyweight.suite.values import Judging, LoadedSuite, Price

if TYPE_CHECKING:
    from pennyweight.judges.judging import JudgingResult, Progress


class PhaseKind(StrEnum):
    """What a phase of a run does."""

    CHECKS = "checks"
    """The checks of agents are tried before any agent begins."""
    ATTEMPTS = "attempts"
    SCORES = "scores"
    """Judges score attempts by a rubric."""
    SCORER = "scorer"
    """Judges answer the question of a scorer."""
    BEHAVIOURS = "behaviours"
    """Judges say whether sentences about attempts are true."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase that begins."""

    kind: PhaseKind
    run: str
    suite: LoadedSuite | None = None
    """The attempts that are made."""
    judges: tuple[str, ...] = ()
    rubric: str = ""
    """The rubric, or the scorer whose question is asked."""
    behaviours: int = 0
    """How many behaviours the judges are asked about."""
    checks: int = 0
    """In how many workspaces checks are tried."""

    @classmethod
    def scores(cls, run: str, judging: Judging) -> Phase:
        """Describe scoring by a rubric."""
        judges = tuple(judge.name for judge in judging.judges)
        return cls(PhaseKind.SCORES, run, judges=judges, rubric=judging.rubric.name)


def judge_phases(
    suite: LoadedSuite,
    run: StoredRun,
    store: Store,
    *,
    progress: Progress,
    record: Path | None = None,
    began: float | None = None,
    deadline: float | None = None,
) -> Iterator[tuple[Phase, Callable[[], JudgingResult]]]:
    """Yield each phase of judging with the function that carries it out.

    A judge whose scores could not be read is still asked about the sentences.
    """
    judging = suite.judge
    if judging is None:
        return
    # Only a suite with judges needs these: another run starts faster without them.
    from pennyweight.judges.judging import JudgingJob, judge_run  # noqa: PLC0415
    from pennyweight.judges.questions import ask_question  # noqa: PLC0415
    from pennyweight.judges.sentences import ask, questions_of  # noqa: PLC0415

    job = JudgingJob(run, store, suite.limits, suite.prices, progress, record, began, deadline)
    if judging.scores:
        yield Phase.scores(run.id, judging), lambda: judge_run(job, judging)
    for scorer in suite.scorers:
        if scorer.question:
            phase = replace(
                Phase.scores(run.id, judging), kind=PhaseKind.SCORER, rubric=scorer.name
            )
            for order in range(scorer.question.orders):
                yield phase, partial(ask_question, job, judging, scorer, suite.scorers, order)
    questions = questions_of(suite)
    if count := sum(map(len, questions.values())):
        phase = Phase(PhaseKind.BEHAVIOURS, run.id, behaviours=count)
        yield phase, lambda: ask(job, judging, questions)


def unpriced_judges(judging: Judging, prices: Mapping[str, Price]) -> list[str]:
    """Return a note for each judge whose price is unknown."""
    missing = Prices(prices).unknown((*judging.judges, *judging.more))
    return [
        f"The price of the judge {model} is not known, so its cost is null: {why}."
        for model, why in missing.items()
    ]
