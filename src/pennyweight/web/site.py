"""What the page and the API share: the store, what is kept of it, and what is under way."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pennyweight.api.status import INTERRUPTED, status_of
from pennyweight.errors import NotFoundError
from pennyweight.store import cache as kept
from pennyweight.store import queries as look
from pennyweight.store.remarks import of_runs
from pennyweight.web.addresses import is_storable
from pennyweight.web.jobs import left_behind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markupsafe import Markup

    from pennyweight.api.suites import SuiteLibrary
    from pennyweight.store.cache import PolicyVerdict, RunState
    from pennyweight.store.store import Run, Store
    from pennyweight.web.access import Access
    from pennyweight.web.digest_cache import Digests
    from pennyweight.web.jobs import Jobs

SMALL = 50_000
"""Records up to which a run's statuses are counted while it is being written."""
KEPT = 8
LISTED = (
    *("id", "suite", "status", "attempts", "created", "ended", "metric", "value", "low", "high"),
    *("records", "errors", "cost_usd"),
)
COMPUTED = ("metric", "value", "low", "high", "records", "errors", "cost_usd")
_RECORDS, _STATUS = kept.LISTED.index("records"), kept.LISTED.index("status")
"""The status of a run that nobody makes any more, though nobody ended it."""
FRESH = 10.0
"""Seconds that a process has to take the run that it has just made an entry for."""
WORST = ("fail", "inconclusive", "pass")


@dataclass(frozen=True, slots=True)
class Listing:
    """What is known of all runs, as the store has it; two of the same say the same."""

    rows: tuple[tuple[Any, ...], ...]
    said: tuple[tuple[str, str | None, str | None], ...]
    decisions: tuple[PolicyVerdict, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """Why the metrics of a run cannot be computed."""
    interrupted: frozenset[str] = frozenset()
    outdated: frozenset[str] = frozenset()
    """Runs that went on since their metrics were computed: what is kept of them is not shown."""

    @property
    def running(self) -> bool:
        """Whether a run is being made."""
        return any(r[_STATUS] == "running" and r[0] not in self.interrupted for r in self.rows)

    def runs(self) -> list[dict[str, Any]]:
        """Give the runs with what is kept and was said of them."""
        said: dict[str, dict[str, Any]] = {}
        for run, note, tags in self.said:
            entry = said.setdefault(run, {"tags": [], "note": None})
            entry["note"] = note or entry["note"]
            if tags is not None:
                entry["tags"] = json.loads(tags)
        decided: dict[str, list[PolicyVerdict]] = {}
        for one in self.decisions:
            decided.setdefault(one.run, []).append(one)
        problems = dict(self.problems)
        found = []
        for values in self.rows:
            row = dict(zip(kept.LISTED, values, strict=True))
            settings = json.loads(row["settings"])
            if row["id"] in self.interrupted:
                row["status"] = INTERRUPTED
            if row["id"] in self.outdated:
                row |= dict.fromkeys(COMPUTED)
            named: dict[str, Any] = {n: settings.get(n, []) for n in ("subjects", "tiers")}
            named["problem"] = problems.get(row["id"])
            own = said.get(row["id"], {"tags": [], "note": None})
            verdicts = _verdicts(decided.get(row["id"], []))
            found.append({**{n: row[n] for n in LISTED}, **named, **own, **verdicts})
        return found


def _verdicts(found: Sequence[PolicyVerdict]) -> dict[str, Any]:
    """Put the worst verdict first: of those on the run as it is, else of the earlier ones."""
    ranked = sorted(found, key=lambda d: (not d.current, WORST.index(d.verdict)))
    worst = ranked[0] if ranked else None
    return {
        "verdict": worst.verdict if worst else None,
        "policy": worst.policy if worst else None,
        "side": worst.side if worst else None,
        "decided": worst.current if worst else None,
        "verdicts": [
            {"policy": d.policy, "side": d.side, "verdict": d.verdict, "decided": d.current}
            for d in ranked
        ],
    }


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of a server."""

    store: Store
    digests: Digests
    jobs: Jobs
    suites: SuiteLibrary
    access: Access
    compared: dict[Any, dict[str, Any] | str] = field(default_factory=dict)
    """Comparisons of runs that were made of late, or why there can be none."""
    views: dict[int, tuple[dict[str, Any], Markup]] = field(default_factory=dict)
    """What was drawn of digests of late, with the digest itself."""

    def drawn(self, digest: dict[str, Any], draw: Callable[[], Markup]) -> Markup:
        """Draw the views of a digest once, for as long as it is remembered."""
        place = id(digest)
        if place not in self.views or self.views[place][0] is not digest:
            while len(self.views) >= KEPT:
                self.views.pop(next(iter(self.views)), None)
            self.views[place] = (digest, draw())
        return self.views[place][1]

    def state(self, name: str) -> RunState:
        """Find a run by its whole id, as it is now."""
        found = kept.state(self.store, name) if is_storable(name) else None
        if found is None:
            raise NotFoundError(f"There is no run {name!r} in this store.")
        return found

    def run(self, name: str) -> Run:
        """Find a run by its whole id."""
        return self.state(name).run

    def listing(self) -> Listing:
        """Read the runs and what is kept of them; what is missing is asked for."""
        rows = kept.listed(self.store)
        if not rows:
            return Listing((), ())
        problems: list[tuple[str, str]] = []
        interrupted: set[str] = set()
        outdated = kept.outdated(rows)
        old: set[str] = set()
        for row in rows:
            settled = row[_RECORDS] is not None and row[0] not in outdated
            if settled and row[_STATUS] != "running":
                continue
            now = kept.state(self.store, row[0])
            if now is None:  # it was removed in the meantime
                continue
            status = self.status(now.run)
            if status == INTERRUPTED:
                interrupted.add(row[0])
            if status != "running" and now.kept != now.stamp:
                old.add(row[0])
                told = self.digests.get(now.run, wait=False, state=now)
                problems += [(row[0], told.problem)] if told.problem else []
        return Listing(
            *(rows, of_runs(self.store), kept.policy_verdicts(self.store)),
            *(tuple(problems), frozenset(interrupted), frozenset(old)),
        )

    def status(self, run: Run) -> str:
        """Say how a run is: one that nobody makes and nobody ended was interrupted."""
        if run.status != "running" or self.jobs.running(run.id):
            return run.status
        return status_of(run, self.store, starting=FRESH)

    def left_behind(self, run: Run) -> int | None:
        """Give the process of a run that an earlier server began, and that outlived it."""
        if run.status != "running" or self.jobs.running(run.id):
            return None
        return left_behind(self.store.holder(run.id))

    def stop(self, run: Run) -> None:
        """End a run of this server, or of one before it, in good order."""
        process = self.left_behind(run)
        if process is None:
            self.jobs.stop(run.id)
        else:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGINT)

    def runs(self) -> list[dict[str, Any]]:
        """List the runs with what is kept of them."""
        return self.listing().runs()

    def progress(self, state: RunState) -> dict[str, Any]:
        """Say how far a run is, from the store alone, so that nothing is lost by a reload.

        Who watches has newer metrics made; `shown` marks those that there are.
        """
        began, run = time.monotonic(), state.run
        told = self.digests.get(run, wait=False, state=state)
        made = look.made(self.store, run.id)
        errors = usd = None
        if made <= SMALL:
            errors = self.store.statuses(run.id).get("error", 0)
            usd = self.store.spent(run.id)["usd"]
        here = self.jobs.running(run.id) or self.left_behind(run) is not None
        return {
            "run": run.id,
            "status": self.status(run),
            "made": made,
            "attempts": run.attempts,
            "errors": errors,
            "cost_usd": usd,
            "here": here,
            "digest": run.id in self.digests.waiting,
            "problem": told.problem,
            "shown": mark(state.kept) if told.digest is not None else "",
            "digest_done": self.digests.done(run.id),
            "said": self.jobs.said(run.id),
            "took": time.monotonic() - began,
        }


def mark(stamp: str | None) -> str:
    """Give a short mark of a state of a run, for a page to know whether there is a newer one."""
    return sha256(stamp.encode()).hexdigest()[:12] if stamp else ""
