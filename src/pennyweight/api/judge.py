"""Judge the attempts of a stored run, without making them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pennyweight.api.event_loop import awaitable, outside_a_loop
from pennyweight.api.sources import open_store
from pennyweight.api.stored_suites import stored_judging
from pennyweight.api.watching import ShowProgress, Watcher, watcher
from pennyweight.errors import UsageError
from pennyweight.judges.judging import JudgingJob, JudgingResult, judge_run
from pennyweight.judges.phases import Phase, unpriced_judges
from pennyweight.store.store import Store, StoredRun
from pennyweight.suite.rubric import DEFAULT, load_rubric
from pennyweight.suite.values import Judging, Limits, Price, Subject


def judge(
    run: str = "latest",
    *,
    rubric: str | Path | None = None,
    models: Sequence[str] = (),
    suite: str | Path | None = None,
    usd: float | None = None,
    record: str | Path | None = None,
    store: str | Store | None = None,
    watch: Watcher | None = None,
    progress: ShowProgress = None,
) -> JudgingResult:
    """Ask the judges of a run about every attempt that has no valid judgment yet.

    A judgment is reused while the rubric, the judge and the judged text are the same. `rubric` and
    `models` replace those of the suite, `usd` its limit for the whole run. `suite` names the
    suite's file if it is not where the run was started; a suite from the store is not trusted.
    """
    watch, at = watcher(watch, progress), open_store(store)
    found = at.find(run)
    judging, limits, prices = _chosen(found, rubric, models, suite, watch)
    limits = limits if usd is None else replace(limits, usd=usd)
    watch.begin(Phase.scores(found.id, judging))
    for note in unpriced_judges(judging, prices):
        watch.note(note)
    try:
        tape = None if record is None else Path(record)
        job = JudgingJob(found, at, limits, prices, watch.progress, tape)
        return outside_a_loop(lambda: judge_run(job, judging))
    finally:
        watch.end()


def _chosen(
    run: StoredRun,
    rubric: str | Path | None,
    models: Sequence[str],
    suite: str | Path | None,
    watch: Watcher,
) -> tuple[Judging, Limits, Mapping[str, Price]]:
    """Combine the suite's judges with the options, which take precedence."""
    named, limits, prices = stored_judging(
        run, trust=watch.trust, file=suite, models=models, rubric=rubric
    )
    if not named and not models:
        raise UsageError(
            f"The suite of run {run.id} names no judge. Name one with --model, or add 'judge:' "
            f"to {run.place}."
        )
    known = {s.name: s for s in (*named.judges, *named.more)} if named else {}
    judges = tuple(known.get(name) or Subject(name, name) for name in models)
    judging = named or Judging(judges, DEFAULT)
    if judges:
        more = tuple(s for s in judging.more if s not in judges)
        judging = replace(judging, judges=judges, more=more)
    if rubric:
        judging = replace(judging, rubric=load_rubric(str(rubric)))
    return judging, limits, prices


judge_async = awaitable(judge)
