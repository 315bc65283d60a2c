"""The runs of a store as a list shows them: headline metric, cost, tags, note and verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from operator import attrgetter, itemgetter
from typing import Any

from pennyweight.api.pages.digest_cache import DigestCache
from pennyweight.api.pages.headlines import SideHeadline, are_points, unpack
from pennyweight.api.runs import INTERRUPTED
from pennyweight.errors import DamagedError, NotFoundError
from pennyweight.store import cache, queries
from pennyweight.store.cache import PolicyVerdict, RunState
from pennyweight.store.cache import policy_verdicts as policy_verdicts  # noqa: PLC0414
from pennyweight.store.cells import DamagedRun, checked, json_cell, sound
from pennyweight.store.cells import damaged as damaged_cell
from pennyweight.store.labels import NO_LABEL, RunLabel, labels
from pennyweight.store.lanes.batches import out_batches
from pennyweight.store.remarks import of_runs
from pennyweight.store.store import Store, StoredRun
from pennyweight.store.tables import DECISION, REMARK
from pennyweight.suite.narrowing import part_words

__all__ = ["RunState", "Store", "StoredRun"]

MAX_COUNTED_RECORDS = 50_000
"""In a larger run, errors and cost are not counted while it is being written."""
COMPUTED = ("metric", "value", "low", "high", "records", "errors", "cost_usd", "sides")
WORST_FIRST = ("fail", "inconclusive", "pass")
_RECORDS, _STATUS, _SIDES = map(cache.LISTED.index, ("records", "status", "sides"))


@dataclass(frozen=True, slots=True)
class SavedVerdict:
    """The verdict of a policy on a side of a run; `decided` is False if the run changed since."""

    policy: str
    side: str
    verdict: str
    decided: bool


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in the list of runs."""

    id: str
    suite: str
    status: str
    attempts: int
    created: float
    ended: float | None
    metric: str | None
    value: float | None
    """The headline metric: of the best side, if there are several."""
    low: float | None
    high: float | None
    sides: tuple[SideHeadline, ...]
    """The headline of each side, the best first."""
    records: int | None
    errors: int | None
    cost_usd: float | None
    subjects: tuple[str, ...]
    tiers: tuple[str, ...]
    narrowed: str
    """What part of its suite it has, in words; empty for all of it."""
    problem: str | None
    """Why its metrics cannot be computed."""
    tags: tuple[str, ...]
    note: str | None
    title: str | None
    """The title that somebody gave it."""
    archived: bool
    out: int
    """Its requests that are out in batches."""
    verdicts: tuple[SavedVerdict, ...]
    """The worst first: of those on the run as it is now, then of the earlier ones."""

    @property
    def points(self) -> bool:
        """Whether the sides are the points of a probe."""
        return are_points(self.sides)

    @property
    def worst(self) -> SavedVerdict | None:
        """The verdict that the list shows."""
        return self.verdicts[0] if self.verdicts else None


@dataclass(frozen=True, slots=True)
class RunListing:
    """All runs as the store has them. Equal listings show the same, so that pages can be cached."""

    rows: tuple[tuple[Any, ...], ...]
    remarks: tuple[tuple[str, str | None, str | None], ...] = ()
    decisions: tuple[PolicyVerdict, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """Why the metrics of a run cannot be computed."""
    interrupted: frozenset[str] = frozenset()
    outdated: frozenset[str] = frozenset()
    """Runs that changed since their metrics were computed; those metrics are not shown."""
    damaged: tuple[DamagedRun, ...] = ()
    """Runs that cannot be read."""
    labels: tuple[tuple[str, RunLabel], ...] = ()
    out: tuple[tuple[str, int], ...] = ()
    """How many requests of a run are out in batches."""

    @property
    def running(self) -> bool:
        """Whether a run is in progress."""
        return any(r[_STATUS] == "running" and r[0] not in self.interrupted for r in self.rows)

    def runs(self) -> list[RunRow]:
        """Return the runs, the newest first."""
        notes = {run: note for run, note, _ in self.remarks if note}
        tags = {run: json.loads(tags) for run, _, tags in self.remarks if tags is not None}
        decided: dict[str, list[PolicyVerdict]] = {}
        for decision in self.decisions:
            decided.setdefault(decision.run, []).append(decision)
        problems, labels, out = dict(self.problems), dict(self.labels), dict(self.out)
        rows = []
        for values in self.rows:
            row = dict(zip(cache.LISTED, values, strict=True))
            run = row["id"]
            settings = json.loads(row["settings"])
            if run in self.interrupted:
                row["status"] = INTERRUPTED
            if run in self.outdated:
                row |= dict.fromkeys(COMPUTED)
            row["sides"] = unpack(row["sides"])
            label = labels.get(run, NO_LABEL)
            rows.append(
                RunRow(
                    **{f.name: row[f.name] for f in fields(RunRow) if f.name in row},
                    title=label.title,
                    archived=label.archived,
                    out=out.get(run, 0),
                    subjects=tuple(settings.get("subjects", ())),
                    tiers=tuple(settings.get("tiers", ())),
                    narrowed=part_words(settings),
                    problem=problems.get(run),
                    tags=tuple(tags.get(run, ())),
                    note=notes.get(run),
                    verdicts=tuple(_worst_first(decided.get(run, ()))),
                )
            )
        return rows


def _worst_first(found: Sequence[PolicyVerdict]) -> Iterator[SavedVerdict]:
    ranked = sorted(found, key=lambda d: (not d.current, WORST_FIRST.index(d.verdict)))
    return (SavedVerdict(d.policy, d.side, d.verdict, d.current) for d in ranked)


def listing(store: Store, digests: DigestCache, status: Callable[[StoredRun], str]) -> RunListing:
    """Read all runs and what is cached of them; missing metrics are computed in the background."""
    rows, damaged = cache.readable(cache.listed(store))
    if not rows:
        return RunListing((), damaged=damaged)
    unread: list[DamagedRun] = []
    problems: list[tuple[str, str]] = []
    interrupted: set[str] = set()
    outdated = cache.outdated(rows)
    old: set[str] = set()
    stamps: dict[str, str] = {}
    for row in rows:
        settled = None not in (row[_RECORDS], row[_SIDES]) and row[0] not in outdated
        if settled and row[_STATUS] != "running":
            continue
        try:
            now = cache.state(store, row[0])
            current = status(now.run) if now else ""
        except DamagedError as error:
            unread.append(DamagedRun(row[0], error.problem))
            continue
        if now is None:  # it was removed in the meantime
            continue
        stamps[row[0]] = now.stamp
        if current == INTERRUPTED:
            interrupted.add(row[0])
        if current != "running" and now.digest_stamp != now.stamp:
            old.add(row[0])
            problem = digests.get(now.run, wait=False, state=now).problem
            made = problem and queries.has(store, row[0], "task_id")
            problems += [(row[0], problem)] if problem and made else []
        elif current != "running" and not settled:  # a damaged digest, or an old one
            old.add(row[0])
            digests.ask(now.run)
    remarks, bad_remarks = sound(of_runs(store), itemgetter(0), _check_remark)
    verdicts, bad_verdicts = sound(
        cache.policy_verdicts(store), attrgetter("run"), _check_policy_verdict
    )
    verdicts = tuple(  # where the digest is missing or old, it says nothing about them
        replace(v, current=v.stamp == stamps[v.run]) if v.run in stamps else v for v in verdicts
    )
    unread += (*bad_remarks, *bad_verdicts)
    hidden = {one.id for one in unread}
    return RunListing(
        tuple(row for row in rows if row[0] not in hidden),
        remarks,
        verdicts,
        tuple(problems),
        frozenset(interrupted),
        frozenset(old),
        (*damaged, *unread),
        tuple(labels(store).items()),
        tuple((run, one.requests - one.done) for run, one in out_batches(store).items()),
    )


def _check_remark(remark: tuple[str, str | None, str | None]) -> None:
    run, note, tags = remark
    checked(REMARK, {"run": run, "note": note, "tags": tags})
    if tags is not None:
        json_cell(tags, [str], f"tags of run {run}")


def _check_policy_verdict(found: PolicyVerdict) -> None:
    values = {"run": found.run, "policy": found.policy, "side": found.side}
    checked(DECISION, values)
    if found.verdict not in WORST_FIRST:
        raise damaged_cell(f"a verdict on run {found.run} is {found.verdict!r:.60}")


def state(store: Store, run: str) -> RunState:
    """Read a run by its complete id, with the state of its digest."""
    found = cache.state(store, run)
    if found is None:
        raise NotFoundError(f"There is no run {run!r} in this store.")
    return found


def state_mark(stamp: str | None) -> str:
    """Return a short mark of a state of a run, by which a page recognises a newer one."""
    return sha256(stamp.encode()).hexdigest()[:12] if stamp else ""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How far a run is; `errors` and `cost_usd` are None in a large run."""

    made: int
    errors: int | None
    cost_usd: float | None


def counts(store: Store, run: str) -> RunCounts:
    """Count the records of a run and add up its cost, from the store alone."""
    made = queries.total(store, run)
    if made > MAX_COUNTED_RECORDS:
        return RunCounts(made, None, None)
    return RunCounts(made, store.statuses(run).get("error", 0), store.spent(run)["usd"])
