"""What the page and the API share: the store, what is kept of it, and what is under way."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any

from pennyweight.errors import UsageError
from pennyweight.store import cache as kept
from pennyweight.store import queries as look
from pennyweight.store.queries import AMONG, FLAGS, RANGES, RESULT, SAME, SORTS, Filter, Sort
from pennyweight.store.remarks import of_runs
from pennyweight.store.tables import MEASURED
from pennyweight.web.jobs import left_behind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from markupsafe import Markup

    from pennyweight.store.cache import Decision, State
    from pennyweight.store.queries import Key, Place
    from pennyweight.store.store import Run, Store
    from pennyweight.web.access import Access
    from pennyweight.web.digest_cache import Digests
    from pennyweight.web.jobs import Jobs
    from pennyweight.web.suite_files import Suites

SMALL = 50_000
"""Records up to which a run's statuses are counted while it is being written."""
KEPT = 8
MOST = 20
"""Values of a column that a filter lists."""
YES = {"yes": True, "no": False, "known": None}
LISTED = (
    *("id", "suite", "status", "attempts", "created", "ended", "metric", "value", "low", "high"),
    *("records", "errors", "cost_usd"),
)
COMPUTED = ("metric", "value", "low", "high", "records", "errors", "cost_usd")
_RECORDS, _STATUS = kept.LISTED.index("records"), kept.LISTED.index("status")
INTERRUPTED = "interrupted"
"""The status of a run that nobody makes any more, though nobody ended it."""
FRESH = 10.0
"""Seconds that a process has to take the run that it has just made an entry for."""
ENDS = {"min": "from", "max": "below"}
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
WORST = ("fail", "inconclusive", "pass")
_KINDS = {RESULT: bool} | {
    n: (int, float) if MEASURED.c[n].type.python_type is float else MEASURED.c[n].type.python_type
    for n in SORTS
    if n != RESULT
}


class NotFoundError(UsageError):
    """There is no such run or record."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What is known of all runs, as the store has it; two of the same say the same."""

    rows: tuple[tuple[Any, ...], ...]
    said: tuple[tuple[str, str | None, str | None], ...]
    decisions: tuple[Decision, ...] = ()
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
        decided: dict[str, list[Decision]] = {}
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


def _verdicts(found: Sequence[Decision]) -> dict[str, Any]:
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
    suites: Suites
    access: Access
    compared: dict[Any, dict[str, Any] | str] = field(default_factory=dict)
    """Comparisons of runs that were made of late, or why there can be none."""
    views: dict[int, tuple[dict[str, Any], Markup]] = field(default_factory=dict)
    """What was drawn of digests of late, with the digest itself."""
    changing: Lock = field(default_factory=Lock)
    """Held while what is there is read and changed."""

    def drawn(self, digest: dict[str, Any], draw: Callable[[], Markup]) -> Markup:
        """Draw the views of a digest once, for as long as it is remembered."""
        place = id(digest)
        if place not in self.views or self.views[place][0] is not digest:
            while len(self.views) >= KEPT:
                self.views.pop(next(iter(self.views)), None)
            self.views[place] = (digest, draw())
        return self.views[place][1]

    def state(self, name: str) -> State:
        """Find a run by its whole id, as it is now."""
        found = None if "\0" in name or _lone(name) else kept.state(self.store, name)
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
            *(rows, of_runs(self.store), kept.decisions(self.store)),
            *(tuple(problems), frozenset(interrupted), frozenset(old)),
        )

    def status(self, run: Run) -> str:
        """Say how a run is: one that nobody makes and nobody ended was interrupted."""
        if run.status != "running" or self.jobs.running(run.id):
            return run.status
        young = time.time() - run.created < FRESH
        return "running" if young or self.store.is_made(run.id) else INTERRUPTED

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

    def progress(self, state: State) -> dict[str, Any]:
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


def read_sort(query: Mapping[str, str]) -> Sort | None:
    """Read by what records are sorted from an address."""
    name, order = query.get("sort", ""), query.get("order", "") or "up"
    if not name:
        return None
    if name not in SORTS:
        raise UsageError(f"sort is {name[:40]!r}; it is one of {', '.join(SORTS)}.")
    if order not in {"up", "down"}:
        raise UsageError(f"order is {order[:40]!r}; it is up or down.")
    return Sort(name, order == "down")


def read_place(text: str, sort: Sort | None) -> Place:
    """Read a place in a list from an address: a key, after the value it is sorted by."""
    if sort is None:
        return read_key(text)
    try:
        value, *key = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise UsageError("A place is written [value, task, subject, tier, attempt].") from None
    kind = _KINDS[sort.name]
    fits = value is None or (isinstance(value, kind) and (kind is bool) == isinstance(value, bool))
    if not fits or (isinstance(value, int) and abs(value) >= 2**63):
        raise UsageError(f"A place in a list sorted by {sort.name} begins with a {sort.name}.")
    if isinstance(value, str) and ("\0" in value or _lone(value)):
        raise NotFoundError("There is no such record.")
    return value, *read_key(json.dumps(key))


def write_place(row: Mapping[str, Any], sort: Sort | None) -> str:
    """Write the place of a record in a list for an address."""
    if sort is None:
        return write_key(row)
    return json.dumps([row[sort.name], *(row[n] for n in look.KEY)], separators=(",", ":"))


def read_filter(query: Mapping[str, str]) -> Filter:
    """Read a filter from an address; what makes no sense is told."""
    same = {n: query[n] for n in SAME if query.get(n)}
    flags: dict[str, bool | None] = {}
    for name in FLAGS:
        if value := query.get(name):
            if value not in YES:
                raise UsageError(f"{name} is {value!r}; it is yes, no or known.")
            flags[name] = YES[value]
    ranges: dict[str, tuple[float | None, float | None]] = {}
    for name in RANGES:
        low, high = (_number(query, name, end) for end in ENDS)
        if low is not None and high is not None and low >= high:
            raise UsageError(
                f"{name}: nothing is from {low:g} on and below {high:g}; make the second larger."
            )
        if (low, high) != (None, None):
            ranges[name] = (low, high)
    among = {n: _list(query, f"{n}_in") for n in AMONG if query.get(f"{n}_in")}
    return Filter(same, flags, ranges, query.get("q", "")[:500], among)


def _list(query: Mapping[str, str], name: str) -> tuple[str | None, ...]:
    try:
        read = json.loads(query[name])
    except (ValueError, RecursionError):
        read = None
    texts = isinstance(read, list) and all(v is None or isinstance(v, str) for v in read)
    if not texts or not 1 <= len(read) <= MOST:
        raise UsageError(f'{name} is a list of at most {MOST} texts, such as ["7", "7.0", null].')
    return tuple(
        None if v is None else v.replace("\0", "") for v in read if v is None or not _lone(v)
    )


def _number(query: Mapping[str, str], name: str, end: str) -> float | None:
    """Read a number as people and pages write it: `1,000`, `−2`, `$0.01`."""
    text = query.get(f"{name}_{end}", "").strip()
    if not text:
        return None
    plain = text.replace("−", "-").removeprefix("$")
    plain = plain.replace(",", "") if _THOUSANDS.fullmatch(plain) else plain
    try:
        value = float(plain)
    except ValueError:
        value = math.inf
    if not abs(value) < 1e300:
        what = f"{text[:40]!r} is not a number, such as 1000, 1,000 or 0.5."
        raise UsageError(f"{name}, {ENDS[end]}: {what}")
    return value


def write_filter(wanted: Mapping[str, Any]) -> dict[str, str]:
    """Write a filter as an address has it: a range is a pair, exact to the last digit."""
    query: dict[str, str] = {}
    for name, value in wanted.items():
        if isinstance(value, tuple):
            ends = zip(("min", "max"), value, strict=True)
            query |= {f"{name}_{end}": repr(v) for end, v in ends if v is not None}
        elif isinstance(value, list):
            query[name] = json.dumps(value, ensure_ascii=False)
        else:
            query[name] = str(value)
    return query


def read_key(text: str) -> Key:
    """Read the key of a record from an address."""
    try:
        task, subject, tier, attempt = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise UsageError("A record is named by [task, subject, tier, attempt].") from None
    texts = (task, subject, tier)
    whole = isinstance(attempt, int) and not isinstance(attempt, bool) and abs(attempt) < 2**31
    if not whole or not all(isinstance(t, str) for t in texts):
        raise UsageError("A record is named by [task, subject, tier, attempt].")
    if any("\0" in t or _lone(t) for t in texts):
        raise NotFoundError("There is no such record.")
    return task, subject, tier, attempt


def _lone(text: str) -> bool:
    return any(0xD800 <= ord(sign) <= 0xDFFF for sign in text)


def write_key(row: Mapping[str, Any]) -> str:
    """Write the key of a record for an address."""
    return json.dumps([row[n] for n in look.KEY], ensure_ascii=True, separators=(",", ":"))
