"""The runs of a store: list, find, describe, score and delete them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight.api.sources import LoadedRun, open_store
from pennyweight.engine.ending import EndKind, RunEnd
from pennyweight.errors import PennyweightError, UsageError
from pennyweight.metrics.probes import is_probe
from pennyweight.record import KEY_IN_RUN
from pennyweight.store import lease, search_index
from pennyweight.store.cells import DamagedRun, sound
from pennyweight.store.labels import NO_LABEL, RunLabel, labels, save_label
from pennyweight.store.lanes.batches import OutBatches, check_collected, out_batches
from pennyweight.store.remarks import of_runs
from pennyweight.store.store import Spending, Store, StoredRun
from pennyweight.stored_runs.failures import Failure, failures
from pennyweight.stored_runs.imported import spent_on
from pennyweight.stored_runs.replies import UnscoredReply, replies
from pennyweight.stored_runs.source import RunSource
from pennyweight.suite.narrowing import part_words
from pennyweight.text.format import estimate, plural, share
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.api.score import ScoredRecords
    from pennyweight.gates.policy import Policy
    from pennyweight.gates.verdict import Verdict
    from pennyweight.judges.judging import JudgingResult
    from pennyweight.render.report import Report
    from pennyweight.scoring.comparison import Comparison
    from pennyweight.scoring.estimates import Headline
    from pennyweight.scoring.scores import Scores

INTERRUPTED = "interrupted"
owner_of = lease.owner_of


def status_of(run: StoredRun, store: Store, *, starting: float = 0.0) -> str:
    """Return `running`, `waiting` (for batches), `interrupted`, `done`, `stopped` or `failed`.

    A run whose process is gone before it ended was interrupted. For `starting` seconds after its
    creation it is taken to be running: its process may not have taken it yet.
    """
    if run.status != "running" or time.time() - run.created < starting:
        return run.status
    return run.status if lease.is_running(store, run.id) else INTERRUPTED


@dataclass(frozen=True, slots=True, repr=False)
class Run(LoadedRun):
    """A run: what it came to, and what its records say."""

    stored: StoredRun
    """The run as the store holds it."""
    store: Store
    attempts: int
    """How many attempts were to be made, now; a resumed run has fewer."""
    made: int
    """How many of them were answered."""
    errors: Mapping[str, int]
    """How many of them failed, by the kind of error."""
    missing: int
    """How many of them have no answer: failed, or not tried."""
    spent: Spending
    """What the whole run cost so far, judges included."""
    ended: RunEnd
    """How making the attempts ended; each of `judgings` has an end of its own."""
    error_examples: tuple[Failure, ...] = ()
    """An example of each kind of error."""
    retries: int | None = None
    """How many calls were repeated; None for a run that was loaded."""
    last_error: str = ""
    """The last error that was retried."""
    broken_checks: int = 0
    """How many checks raised an error."""
    score_errors: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """How often each scorer failed, and with which error first."""
    judgings: tuple[JudgingResult, ...] = ()
    verdict: Verdict | None = None
    """The verdict of the policy, for a run that ends when it is decided."""
    is_early_stopping: bool = False
    has_judges: bool = False
    """Whether the suite names judges."""
    notes: tuple[str, ...] = ()
    """Advice that follows from the records."""

    def __repr__(self) -> str:
        made = f"{self.made:,} of {plural(self.attempts, 'attempt')}"
        return f"Run({self.id!r}, {self.suite!r}, {self.status}, {made})"

    def _repr_html_(self) -> str:
        from pennyweight.render.notebook import run_html  # noqa: PLC0415

        scores, notes = scores_of_run(self.stored, overview=True, store=self.store)
        facts = f"{self.suite} · run {self.id} · {self.status}"
        made = f"{self.made:,} of {plural(self.attempts, 'attempt')} answered"
        if part := part_words(self.stored.settings):
            made = f"{made}, {part}"
        every = self.records() if scores is not None else pl.DataFrame()
        rows = self._first(every) if every.height else []
        return run_html(facts, made, scores, rows, every.height, [*self.notes, *notes])

    def _first(self, every: pl.DataFrame) -> list[dict[str, Any]]:
        """Return the records that a notebook shows, those that failed first."""
        from pennyweight.api.score import not_passed  # noqa: PLC0415
        from pennyweight.render.attempts import judgments_text  # noqa: PLC0415
        from pennyweight.stored_runs.task_results import with_judgments  # noqa: PLC0415

        wrong = not_passed(every)
        right = every.join(wrong, on=KEY_IN_RUN, how="anti", maintain_order="left")
        first = pl.concat([wrong, right]).head(MAX_SHOWN_RECORDS).to_dicts()
        judged = with_judgments(first, self.stored, self.store)
        return [{**row, "judgments": judgments_text(row)} for row in judged]

    @property
    def id(self) -> str:
        """The id by which every command and function finds the run."""
        return self.stored.id

    @property
    def suite(self) -> str:
        """The name of the suite."""
        return self.stored.suite

    @property
    def status(self) -> str:
        """`running`, `waiting`, `interrupted`, `done`, `stopped` or `failed`, as it was read."""
        return self.stored.status

    @property
    def source(self) -> RunSource:
        """The records of the run, for any function that takes a source."""
        return RunSource(self.stored, self.store)

    @property
    def is_waiting(self) -> bool:
        """Whether requests are out in providers' batches, of attempts or of judges."""
        return self.ended.kind is EndKind.WAITING or any(j.tally.waits for j in self.judgings)

    @property
    def exit_code(self) -> int:
        """What `pennyweight run` exits with."""
        if self.ended.kind is EndKind.INTERRUPTED:
            return 130
        if self.is_waiting:
            return 0
        judging = next((j.exit_code for j in reversed(self.judgings) if j.exit_code), 0)
        if self.is_early_stopping:
            return judging or (self.verdict.exit_code if self.verdict else 4)
        return 4 if self.missing else judging

    def records(self) -> pl.DataFrame:
        """Return every record with its measures."""
        from pennyweight.api.score import measured_frame  # noqa: PLC0415

        return measured_frame(self.source)

    def failures(self) -> pl.DataFrame:
        """Return the records that did not pass, and those that could not be made."""
        from pennyweight.api.score import not_passed  # noqa: PLC0415

        return not_passed(self.records())

    def scores(self, by: str | Sequence[str] | None = None, **options: Any) -> ScoredRecords:
        """Score the records as `pennyweight.score` does; by default, each subject and tier."""
        from pennyweight.api.score import score  # noqa: PLC0415

        return score(self.source, by=_sides(self.stored) if by is None else by, **options)

    def compare(self, by: str | Sequence[str] | None = None, **options: Any) -> Comparison:
        """Compare its tiers, subjects or other groups, as `pennyweight.compare` does."""
        from pennyweight.api.compare import compare  # noqa: PLC0415

        return compare(self.source, by=by, **options)

    def gate(self, policy: str | Path | Policy | Sequence[str | Path], **options: Any) -> Verdict:
        """Decide a policy on the run, as `pennyweight.gate` does."""
        from pennyweight.api.gate import gate  # noqa: PLC0415

        return gate(self.source, policy, **{"store": self.store, **options})

    def judge(self, **options: Any) -> JudgingResult:
        """Ask judges about its attempts, as `pennyweight.judge` does."""
        from pennyweight.api.judge import judge  # noqa: PLC0415

        return judge(self.id, **{"store": self.store, **options})

    def report(self, path: str | Path | None = None, **options: Any) -> Report:
        """Report on the run, and write it to a file, as `pennyweight.report` does."""
        from pennyweight.api.report import report  # noqa: PLC0415

        return report(self.source, path, **{"store": self.store, **options})


MAX_SHOWN_RECORDS = 20
"""Records that a notebook shows of a run, those that failed first."""


def load(run: str = "latest", store: str | Store | None = None) -> Run:
    """Load a run: its id, a unique prefix of it, or `latest`."""
    at = open_store(store)
    return _loaded(at.find(run), at)


def runs(store: str | Store | None = None) -> list[Run]:
    """List the runs of a store, the newest first, except damaged ones."""
    at = open_store(store)
    found: list[Run] = []
    sound(at.all_runs()[0], lambda run: run.id, lambda run: found.append(_loaded(run, at)))
    return found


_ENDS = {
    "done": EndKind.DONE,
    "failed": EndKind.INCOMPLETE,
    "stopped": EndKind.STOPPED,
    "waiting": EndKind.WAITING,
    "running": EndKind.INTERRUPTED,
    INTERRUPTED: EndKind.INTERRUPTED,
}
"""How a run ended, as far as its status says."""


def _loaded(run: StoredRun, store: Store) -> Run:
    """Describe a run by its records."""
    statuses = store.statuses(run.id)
    kinds = failures(run.id, store) if statuses.get("error") else []
    made = sum(statuses.values()) - statuses.get("error", 0)
    current = replace(run, status=status_of(run, store))
    return Run(
        stored=current,
        store=store,
        attempts=run.attempts,
        made=made,
        errors={failure.kind: failure.count for failure in kinds},
        missing=max(0, run.attempts - made),
        spent=spent_on(run, store),
        ended=RunEnd(_ENDS[current.status]),
        error_examples=tuple(kinds),
        has_judges="judge" in run.settings,
        is_early_stopping="until_decided" in run.settings,
    )


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run with its status as it is now, its records by status, and what it cost."""

    run: StoredRun
    records: dict[str, int]
    spent: Spending
    out: OutBatches | None = None
    """What is out in providers' batches, if anything is."""


def list_runs(store: str | Store | None = None) -> list[RunSummary]:
    """List the runs of a store, the newest first, except damaged ones."""
    return all_runs(store)[0]


def all_runs(
    store: str | Store | None = None, *, tag: str | None = None, archived: bool = True
) -> tuple[list[RunSummary], tuple[DamagedRun, ...]]:
    """List the runs of a store, the newest first, and those that cannot be read.

    `tag` selects those with this tag. Without `archived`, archived runs are left out.
    """
    at = open_store(store)
    runs, damaged = at.all_runs()
    if tag is not None:
        tagged = {run: json.loads(tags) for run, _, tags in of_runs(at) if tags is not None}
        runs = [run for run in runs if tag in tagged.get(run.id, ())]
    if not archived:
        known = labels(at)
        runs = [run for run in runs if not known.get(run.id, NO_LABEL).archived]
    found: list[RunSummary] = []
    _, more = sound(runs, lambda run: run.id, lambda run: found.append(summary(run, at)))
    return found, damaged + more


NEWEST = 20
"""Of so many runs the headline is computed, where it is not stored yet."""


def headlines(runs: Sequence[RunSummary], store: str | Store | None = None) -> dict[str, Headline]:
    """Return the headlines of runs by id: stored ones, and those of the newest runs if small."""
    from pennyweight.api.pages.digest_cache import DigestCache  # noqa: PLC0415
    from pennyweight.api.pages.headlines import side_headlines  # noqa: PLC0415
    from pennyweight.scoring.estimates import Estimate, Headline  # noqa: PLC0415

    digests = DigestCache(open_store(store))
    found = {}
    for place, one in enumerate(one for one in runs if one.run.status != "running"):
        with suppress(PennyweightError):  # the list is shown all the same
            digest = digests.get(one.run, wait=place < NEWEST).digest
            if digest is not None:
                best = side_headlines(digest)[0]
                value = Estimate(best.value, best.low, best.high)
                found[one.run.id] = Headline(str(digest["headline"]), value, best.name)
    digests.close()
    return found


def find_run(name: str = "latest", store: str | Store | None = None) -> StoredRun:
    """Find a run by its id, a unique prefix, or `latest`; its status is that of now."""
    at = open_store(store)
    found = at.find(name)
    return replace(found, status=status_of(found, at))


def summary(run: StoredRun, store: Store) -> RunSummary:
    """Summarise a run."""
    current = replace(run, status=status_of(run, store))
    out = out_batches(store, [run.id]).get(run.id) if current.status == "waiting" else None
    return RunSummary(current, store.statuses(run.id), spent_on(run, store), out)


def delete_run(run: str, store: str | Store | None = None, *, abandon: bool = False) -> None:
    """Delete a run with all its records, for good; one with batches out if you `abandon` them."""
    at = open_store(store)
    run = at.find_id(run)
    check_collected(at, run, abandon=abandon)
    if not lease.take_run(at, run, lease.Owner.here().text):
        raise UsageError(f"Run {run} is still running. Stop it (Ctrl-C), then delete it.")
    search_index.drop(at, run)
    at.remove(run)


def label_run(
    run: str,
    *,
    title: str | None = None,
    archived: bool | None = None,
    store: str | Store | None = None,
) -> None:
    """Give a run a title, or archive it: lists leave it out. An empty title removes it."""
    at = open_store(store)
    run = at.find_id(run)
    now = labels(at).get(run, NO_LABEL)
    named = now.title if title is None else clean(" ".join(title.split()))[:MAX_TITLE] or None
    save_label(at, run, RunLabel(named, now.archived if archived is None else archived))


MAX_TITLE = 120


def _sides(run: StoredRun) -> list[str]:
    """Return the columns that tell the sides of a run apart."""
    return [column for column in ("subject", "tier") if len(run.sides[column]) > 1]


def replies_of_run(run: StoredRun, store: str | Store | None = None) -> list[UnscoredReply]:
    """Return the replies of a run of which nothing can be scored: prompts without a target."""
    return replies(run, open_store(store))


def _probe_notes(scores: Scores) -> list[str]:
    """Say how long the answers of a probe still change, which takes all of its tiers."""
    found = scores.groups[0].estimates["truncation_aoc"]
    if not isinstance(found.value, float):
        return []
    value = share(found.value)
    if found.low is not None and found.high is not None:
        value = "{} ({})".format(*estimate(found.value, found.low, found.high, "share"))
    return [
        f"The area over the curve, truncation_aoc, is {value}: 0 % if the answers are "
        "fixed before the chain of thought begins. 'score --by subject' has it in its table."
    ]


def scores_of_run(
    run: StoredRun, by: Sequence[str] = (), *, store: str | Store | None = None, **options: Any
) -> tuple[Scores | None, list[str]]:
    """Score a run, its subjects and tiers side by side unless `by` names columns.

    `options` are those of `score`.
    Also returns notes about responses without an answer. There are no scores without records.
    """
    from pennyweight.api.score import score, unanswered  # noqa: PLC0415

    at = open_store(store)
    if not at.statuses(run.id):
        return None, []
    source = RunSource(run, at)
    columns = list(by) or _sides(run)
    scores = score([source], by=columns, **options)
    if all(map(is_probe, run.sides["tier"])):
        return scores, _probe_notes(score([source], by="subject", metrics="truncation_aoc"))
    right = [group.estimates["accuracy"].value for group in scores.groups]
    apart = len(run.sides["tier"]) == 1 or "tier" in columns
    if apart and all(isinstance(value, float) and value >= 0.5 for value in right):
        return scores, []  # where most are right, most have an answer
    return scores, unanswered([source])
