"""What judges are asked after the attempts were made: scores by a rubric, then sentences.

`pennyweight run`, the page and the pytest plugin all go through the same phases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pennyweight.judges.judging import judge_run
from pennyweight.judges.sentences import ask, questions_of
from pennyweight.models.prices import Prices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pennyweight.engine.budget import Budget
    from pennyweight.engine.execution import Outcome
    from pennyweight.engine.tally import Tally
    from pennyweight.judges.judging import Judged
    from pennyweight.store.store import Row, Store
    from pennyweight.suite.values import Suite

    Watch = Callable[[Tally, Budget, list[Row]], None]


@dataclass(frozen=True, slots=True)
class Phase:
    """One round of questions: what it is, and how it is carried out."""

    title: str
    carry_out: Callable[[Watch], Judged | None]


def phases(
    outcome: Outcome,
    suite: Suite,
    store: Store,
    *,
    record: Path | None = None,
    began: float | None = None,
) -> Iterator[Phase]:
    """Give what is asked of the judges, one round after the other.

    A judge whose scores could not be read is asked about the sentences all the same.
    """
    judging, run = suite.judge, outcome.run
    if judging is None or outcome.interrupted or outcome.tally.exhausted:
        return
    if judging.scores:
        who = ", ".join(s.name for s in judging.judges)

        def by_rubric(watch: Watch) -> Judged:
            return judge_run(
                run, judging, store, limits=suite.limits, prices=suite.prices, watch=watch,
                record=record, began=began,
            )  # fmt: skip

        yield Phase(f"Judging run {run.id} by the rubric {judging.rubric.name}: {who}.", by_rubric)
    count = sum(map(len, questions_of(suite).values()))
    if count:

        def by_sentence(watch: Watch) -> Judged | None:
            return ask(suite, run, store, watch=watch, record=record, began=began)

        behaviours = "1 behaviour" if count == 1 else f"{count:,} behaviours"
        yield Phase(f"Asking the judges about {behaviours}.", by_sentence)


def unpriced(suite: Suite) -> list[str]:
    """Say of which judges the price is not known."""
    judging = suite.judge
    if judging is None:
        return []
    missing = Prices(suite.prices).unknown((*judging.judges, *judging.more))
    return [
        f"The price of {model} is not known: what it costs as a judge is null." for model in missing
    ]
