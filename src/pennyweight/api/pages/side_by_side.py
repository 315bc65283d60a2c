"""Stored runs side by side: their comparison, the tasks that changed, the replies to one task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from threading import Lock
from typing import TYPE_CHECKING, Any

from pennyweight.api.pages.measured_records import TASK_COLUMNS
from pennyweight.api.pages.run_sides import (
    SIDE_COLUMNS,
    RunSide,
    SideNames,
    default_columns,
    further_columns,
    shared_columns,
    tasks_of,
    values_of,
)
from pennyweight.api.pages.task_attempts import shown_reply
from pennyweight.api.score import rescored
from pennyweight.errors import InputError, UsageError
from pennyweight.render.charts.svg import letter
from pennyweight.render.comparison import words
from pennyweight.scoring import chart_data
from pennyweight.scoring.comparison import Comparison, compare
from pennyweight.scoring.digest import group_digest, headline
from pennyweight.scoring.overview import LEADERBOARD_FROM, best_first
from pennyweight.scoring.pipeline import ScoreRequest
from pennyweight.scoring.sides import side_name
from pennyweight.sources.source import Source
from pennyweight.store import cache, queries
from pennyweight.store.flips import Changes, changes
from pennyweight.store.store import Store, StoredRun
from pennyweight.store.task_sums import tried_tasks
from pennyweight.stored_runs.source import RunSource
from pennyweight.text.word_diff import MarkedWords, WordDiff

if TYPE_CHECKING:
    from pennyweight.api.pages.digest_cache import DigestCache

FILTERED = (*SIDE_COLUMNS, *TASK_COLUMNS)
"""Columns whose values a side can be chosen by."""
MAX_RUNS = 8
"""Runs that are compared at once."""
MAX_ATTEMPTS = 50_000
"""Larger runs are compared in the terminal."""
MAX_REPLIES = 20
"""Attempts at one task that are shown side by side."""
MAX_REPLY_CHARACTERS = 20_000
MAX_CACHED = 24
NO_SIDE = "The address names what is no side of this comparison, so it has no effect"
ONE_SIDE = "This run has one subject in one tier. Choose another run to compare it with."


@dataclass(frozen=True, slots=True)
class PairTest:
    """Two sides, tested on the tasks that both tried, and the tasks that changed."""

    first: RunSide
    second: RunSide
    titles: tuple[str, str]
    words: Sequence[str]
    pairs: Sequence[Mapping[str, Any]]
    changes: Changes | None = None
    """None where a side has no records of its own in the store."""
    of: int = 2
    """From how many sides it was chosen."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The sides of runs, compared with a baseline."""

    by: tuple[str, ...]
    choices: Sequence[tuple[str, str]] = ()
    """What can tell the sides apart: columns, and their title."""
    sides: Sequence[tuple[RunSide, str]] = ()
    """What can be chosen as the baseline, and be compared with it."""
    digest: Mapping[str, Any] | None = None
    shown_by: tuple[str, ...] = ()
    shown: Mapping[str, RunSide] = field(default_factory=dict)
    """The sides of the digest: of whole runs, their subjects and tiers."""
    waiting: Sequence[str] = ()
    """Runs whose records are being measured."""
    note: str = ""
    letters: Mapping[str, str] = field(default_factory=dict)
    """The letter of each run, where there are several."""
    baseline: str = ""
    pair: PairTest | None = None
    pooled: Sequence[str] = ()
    """Columns with several values that no side is restricted to."""


@dataclass(frozen=True, slots=True)
class ShownReply:
    """A reply, and what is different in the other one; no `record` without such an attempt."""

    run: str
    record: Mapping[str, Any] | None
    pieces: MarkedWords
    marked: bool
    """False where finding the differences takes too long."""


@dataclass(frozen=True, slots=True)
class ReplyPair:
    """The replies of two sides in the same attempt."""

    title: str
    replies: tuple[ShownReply, ...]


@dataclass(frozen=True, slots=True)
class TaskReplies:
    """The replies of two sides to one task, in pairs."""

    pairs: Sequence[ReplyPair]
    more: bool
    """Whether there are more attempts than are shown."""
    record: Mapping[str, Any] | None
    """A record of the first side, for the task's input and target."""


class RunComparisons:
    """Puts the runs of a store side by side, and remembers the last comparisons."""

    def __init__(self, store: Store, digests: DigestCache) -> None:
        self.store, self.digests = store, digests
        self._compared: dict[tuple[Any, ...], Comparison | str] = {}
        self._busy = Lock()

    def side_by_side(
        self,
        runs: Sequence[StoredRun],
        by: Sequence[str] = (),
        first: RunSide | None = None,
        second: RunSide | None = None,
    ) -> SideBySide:
        """Compare runs by columns; the first side is the baseline, and is tested with the second.

        Several runs are named by letters, because ids are too long for charts.
        """
        letters = {run.id: letter(i) for i, run in enumerate(runs)} if len(runs) > 1 else {}
        columns = tuple(by) or _columns(first) or default_columns(runs)
        found = SideBySide(columns, self._choices(runs, columns), letters=letters)
        if sum(run.attempts for run in runs) > MAX_ATTEMPTS:
            names = " ".join(run.id for run in runs)
            how = f"pennyweight compare {names} --by {','.join(columns)}"
            return replace(found, note=f"These runs are large. Use the terminal: {how}")
        waiting = [run.id for run in runs if self.digests.get(run).digest is None]
        if waiting:
            return replace(found, waiting=waiting)
        naming = SideNames.of(runs, columns, letters)
        whole = self._comparison(runs, naming, baseline=naming.name_of(first))
        if isinstance(whole, str) and first:  # it may be no side of these runs
            whole = self._comparison(runs, naming)
        if isinstance(whole, str):
            alone = len(runs) == 1 and all(len(names) < 2 for names in runs[0].sides.values())
            return replace(found, note=ONE_SIDE if alone and not by else whole)
        if first is None and (base := self._sharing(runs, naming, whole)):
            again = self._comparison(runs, naming, baseline=naming.raw(base))
            whole = whole if isinstance(again, str) else again
        pooled = [n for n in SIDE_COLUMNS if n not in columns and len(values_of(runs, n)) > 1]
        shown, named = self._matched(runs, naming, whole, pooled) or (whole, naming)
        found = replace(
            found,
            sides=[(naming.side(s.name), s.name) for s in whole.sides],
            digest=_digest(shown, named),
            shown_by=named.columns,
            shown={s.name: named.side(s.name) for s in shown.sides},
            baseline=whole.baseline,
            pooled=pooled,
        )
        known = dict(found.sides)
        given = [side for side in (first, second) if side and side not in known]
        strange = [side_name([v for _, v in side.chosen] or side.runs, " · ") for side in given]
        if strange:
            found = replace(found, note=f"{NO_SIDE}: {' and '.join(strange)}.")
        chosen = known.get(second) if second else None
        other = chosen or _best(whole)
        if other == whole.baseline or not any(pair.tasks for pair in whole.pairs):
            return found
        return replace(found, pair=self._pair(runs, naming, whole, other))

    def _sharing(
        self, runs: Sequence[StoredRun], naming: SideNames, whole: Comparison
    ) -> str | None:
        """Return a side that has tasks in common with more sides than the baseline has, if any."""
        names = [side.name for side in whole.sides]
        if len(_tested(whole)) == len(names) - 1 or not naming.known:
            return None
        tried = {run.id: tried_tasks(self.store, run.id) for run in runs}
        tasks = {name: tasks_of(naming.side(name), tried) for name in names}
        shared = {n: sum(not own.isdisjoint(o) for o in tasks.values()) for n, own in tasks.items()}
        best = max(names, key=lambda name: shared[name])
        return best if shared[best] > shared[whole.baseline] else None

    def _comparison(
        self,
        runs: Sequence[StoredRun],
        naming: SideNames,
        baseline: str | None = None,
        only: tuple[tuple[str, str], ...] = (),
    ) -> Comparison | str:
        """Compare runs, once for each state of them; else return why they cannot be compared."""
        states = tuple((run.id, cache.stamp(self.store, run)) for run in runs)
        place = (states, naming.columns, baseline, only)
        with self._busy:
            if place not in self._compared:
                while len(self._compared) >= MAX_CACHED:
                    self._compared.pop(next(iter(self._compared)), None)
                sources: list[Source] = [RunSource(run, self.store) for run in runs]
                try:
                    known, _ = rescored(sources, naming.columns)
                    self._compared[place] = compare(
                        known, ScoreRequest(), naming.columns, baseline,
                        titles=naming.titles, only=only,
                    )  # fmt: skip
                except (UsageError, InputError) as error:
                    self._compared[place] = str(error)
            return self._compared[place]

    def _matched(
        self,
        runs: Sequence[StoredRun],
        naming: SideNames,
        whole: Comparison,
        pooled: Sequence[str],
    ) -> tuple[Comparison, SideNames] | None:
        """Compare each subject and tier of a run with the same one of the baseline's run.

        None where runs are not what is compared, or where they have one side in common.
        """
        if naming.columns != ("run",) or not pooled:
            return None
        finer = SideNames.of(runs, ("run", *pooled), naming.letters)
        base = naming.raw(whole.baseline)
        shared = product(
            *(
                [v for v in values_of(runs, n) if all(v in run.sides[n] for run in runs)]
                for n in pooled
            )
        )
        sides = list(shared)
        pairs = tuple(
            (side_name((base, *side)), side_name((run.id, *side)))
            for run in runs
            if run.id != base
            for side in sides
        )
        if len(sides) < 2:
            return None
        found = self._comparison(runs, finer, only=pairs)
        return None if isinstance(found, str) else (found, finer)

    def _pair(
        self, runs: Sequence[StoredRun], naming: SideNames, whole: Comparison, other: str
    ) -> PairTest | None:
        """Test two sides alone, and find the tasks that changed."""
        titles = (whole.baseline, other)
        tested = replace(
            whole,
            sides=tuple(whole[name] for name in titles),
            pairs=tuple(pair for pair in whole.pairs if (pair.a, pair.b) == titles),
            steps=tuple(s for s in whole.steps if {s.start, s.end} == {*titles}),
            dominated=tuple(d for d in whole.dominated if {d.by, d.name} == {*titles}),
            ranking=None,
            common=whole.common if len(whole.sides) == 2 else None,
        )
        first, second = map(naming.side, titles)
        found: Changes | None = None
        if all(name in FILTERED for side in (first, second) for name, _ in side.chosen):
            found = changes(
                self.store,
                (first.runs, dict(first.chosen)),
                (second.runs, dict(second.chosen)),
                alike=shared_columns(runs, first, second),
                result="passed" if "pass_rate" in tested.tested else "correct",
                without=tested.exam.left.to_list() if tested.exam else (),
            )
        pairs = [pair.to_dict() for pair in tested.pairs]
        said = words(tested)
        return PairTest(first, second, titles, said, pairs, found, len(whole.sides))

    def _choices(self, runs: Sequence[StoredRun], columns: Sequence[str]) -> list[tuple[str, str]]:
        """List the columns that can tell sides apart, and their titles."""
        several = [n for n in SIDE_COLUMNS if len(values_of(runs, n)) > 1]
        first = ["run"] if len(runs) > 1 else []
        sets = (
            [tuple(several), *((n,) for n in several)]
            if len(several) > 1
            else [(n,) for n in several]
        )
        sets = [*sets, *([("run",), *(("run", *one) for one in sets)] if first else [])]
        plain = (n for n in TASK_COLUMNS if any(queries.has(self.store, r.id, n) for r in runs))
        known = ((n,) for n in (*plain, *further_columns(self.store, runs)))
        every = dict.fromkeys([*sets, *known, tuple(columns)])
        return [(",".join(one), " × ".join(one)) for one in every if one]

    def replies(self, first: RunSide, second: RunSide, task: str) -> TaskReplies:
        """Read the replies of two sides to one task, attempt by attempt, differences marked."""
        sides = (first, second)
        cut = {"limit": MAX_REPLIES + 1, "longest": MAX_REPLY_CHARACTERS}
        attempts = [
            [
                (run, record)
                for run in side.runs
                for record in queries.siblings(self.store, run, task, dict(side.chosen), **cut)
            ]
            for side in sides
        ]
        pairs, diff = [], WordDiff()
        for title, pair in islice(_aligned(attempts), MAX_REPLIES):
            texts = [shown_reply(one[1] if one else None) for one in pair]
            marked = diff.mark(*texts)
            pieces = marked or [[(text, False)] for text in texts]
            shown = []
            for side, one, piece in zip(sides, pair, pieces, strict=True):
                run, record = one or (side.runs[0], None)
                shown.append(ShownReply(run, record, piece, marked is not None))
            pairs.append(ReplyPair(title, tuple(shown)))
        example = queries.page(
            self.store, first.runs[0], queries.Filter({"task_id": task}), limit=1
        )
        more = max(map(len, attempts)) > MAX_REPLIES
        return TaskReplies(pairs, more, next(iter(example.rows), None))


def _columns(side: RunSide | None) -> tuple[str, ...]:
    return tuple(name for name, _ in side.chosen) if side else ()


def _tested(found: Comparison) -> set[str]:
    """Return the sides that have tasks in common with the baseline."""
    return {pair.b for pair in found.pairs if pair.tasks and pair.a == found.baseline}


def _best(found: Comparison) -> str:
    """Return the best side apart from the baseline, of those that share tasks with it, if any."""
    others = [side for side in found.sides if side.name != found.baseline]
    others = [side for side in others if side.name in _tested(found)] or others
    metric = headline(*(side.group for side in others))
    groups = best_first([side.group for side in others], metric) if metric else [others[0].group]
    return next(side.name for side in others if side.group is groups[0])


def _digest(found: Comparison, naming: SideNames) -> dict[str, Any]:
    """Return what tables and charts show of a comparison; many sides are sorted, the best first."""
    groups = [replace(side.group, group=naming.group(side.name)) for side in found.sides]
    metric = headline(*groups)
    if metric and len(groups) >= LEADERBOARD_FROM:
        groups = list(best_first(groups, metric))
    said: Any = {"words": words(found), "pairs": found.to_dict()["pairs"], "by": list(found.by)}
    sides = [group_digest(group) for group in groups]
    shared = "run" not in naming.columns or any(pair.tasks for pair in found.pairs)
    return {
        "confidence": found.confidence,
        "by": list(found.by),
        "headline": metric,
        "whole": {**sides[0], "labelled": any(side["labelled"] for side in sides)},
        "sides": sides,
        "comparison": said,
        "charts": {
            "sides": chart_data.estimates(groups, metric) if shared else None,
            "differences": chart_data.differences(said, metric),
            "frontier": chart_data.frontier(groups, metric),
        },
    }


def _aligned(
    attempts: Sequence[Sequence[tuple[str, Mapping[str, Any]]]],
) -> Iterator[tuple[str, list[tuple[str, Mapping[str, Any]] | None]]]:
    """Pair the attempts of two sides by their number, in each subject and tier that both have."""
    shared = [
        n for n in SIDE_COLUMNS if {r[n] for _, r in attempts[0]} & {r[n] for _, r in attempts[1]}
    ]
    tables: list[dict[tuple[Any, ...], list[Any]]] = [{}, {}]
    for table, own in zip(tables, attempts, strict=True):
        for run, record in own:
            key = (*(record[n] for n in shared), record["attempt"])
            table.setdefault(key, []).append((run, record))
    several = [n for n in shared if len({r[n] for own in attempts for _, r in own}) > 1]
    for key in dict.fromkeys([*tables[0], *tables[1]]):
        where = [v for n, v in zip(shared, key[:-1], strict=True) if n in several]
        title = " · ".join([*where, f"attempt {key[-1]}"])
        both = [table.get(key, []) for table in tables]
        for i in range(max(map(len, both))):
            yield title, [own[i] if i < len(own) else None for own in both]
