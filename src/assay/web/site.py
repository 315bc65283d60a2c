"""What the page and the API share: the store, what is kept of it, and what is under way."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.store import kept, look
from assay.store.look import FLAGS, RANGES, SAME, SORTS, Filter, Sort
from assay.store.remarks import of_runs
from assay.store.tables import MEASURED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from markupsafe import Markup

    from assay.store.kept import State
    from assay.store.look import Key, Place
    from assay.store.store import Run, Store
    from assay.web.access import Access
    from assay.web.digests import Digests
    from assay.web.jobs import Jobs
    from assay.web.suites import Suites

SMALL = 50_000
"""Records up to which a run's statuses are counted while it is being written."""
KEPT = 8
YES = {"yes": True, "no": False}
LISTED = (
    *("id", "suite", "status", "attempts", "created", "ended", "metric", "value", "low", "high"),
    *("records", "errors", "cost_usd", "verdict", "policy", "side", "decided"),
)
_RECORDS, _STATUS = kept.LISTED.index("records"), kept.LISTED.index("status")
_KINDS = {
    n: (int, float) if MEASURED.c[n].type.python_type is float else MEASURED.c[n].type.python_type
    for n in SORTS
}


class NotFoundError(UsageError):
    """There is no such run or record."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What is known of all runs, as the store has it; two of the same say the same."""

    rows: tuple[tuple[Any, ...], ...]
    said: tuple[tuple[str, str | None, str | None], ...]

    def runs(self) -> list[dict[str, Any]]:
        """Give the runs with what is kept and was said of them."""
        said: dict[str, dict[str, Any]] = {}
        for run, note, tags in self.said:
            entry = said.setdefault(run, {"tags": [], "note": None})
            entry["note"] = note or entry["note"]
            if tags is not None:
                entry["tags"] = json.loads(tags)
        found = []
        for values in self.rows:
            row = dict(zip(kept.LISTED, values, strict=True))
            settings = json.loads(row["settings"])
            named = {n: settings.get(n, []) for n in ("subjects", "tiers")}
            own = said.get(row["id"], {"tags": [], "note": None})
            found.append({**{n: row[n] for n in LISTED}, **named, **own})
        return found


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of a server."""

    store: Store
    digests: Digests
    jobs: Jobs
    suites: Suites
    access: Access
    compared: dict[Any, dict[str, Any] | None] = field(default_factory=dict)
    """Comparisons of runs that were made of late."""
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
        for row in rows:
            if row[_RECORDS] is None and row[_STATUS] != "running":
                self.digests.ask(self.run(row[0]))
        return Listing(rows, of_runs(self.store) if rows else ())

    def runs(self) -> list[dict[str, Any]]:
        """List the runs with what is kept of them."""
        return self.listing().runs()

    def progress(self, run: Run) -> dict[str, Any]:
        """Say how far a run is, from the store alone, so that nothing is lost by a reload."""
        began = time.monotonic()
        made = look.made(self.store, run.id)
        errors = usd = None
        if made <= SMALL:
            errors = self.store.statuses(run.id).get("error", 0)
            usd = self.store.spent(run.id)["usd"]
        here = self.jobs.running(run.id)
        return {
            "run": run.id,
            "status": run.status,
            "made": made,
            "attempts": run.attempts,
            "errors": errors,
            "cost_usd": usd,
            "here": here,
            "digest": run.id in self.digests.waiting,
            "digest_done": self.digests.done(run.id),
            "said": self.jobs.said(run.id),
            "took": time.monotonic() - began,
        }


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
    flags: dict[str, bool] = {}
    for name in FLAGS:
        if value := query.get(name):
            if value not in YES:
                raise UsageError(f"{name} is {value!r}; it is yes or no.")
            flags[name] = YES[value]
    ranges: dict[str, tuple[float | None, float | None]] = {}
    for name in RANGES:
        ends = (_number(query, f"{name}_min"), _number(query, f"{name}_max"))
        if ends != (None, None):
            ranges[name] = ends
    return Filter(same, flags, ranges, query.get("q", "")[:500])


def _number(query: Mapping[str, str], name: str) -> float | None:
    text = query.get(name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{name} is {text[:40]!r}; it must be a number.") from None
    if not abs(value) < 1e300:
        raise UsageError(f"{name} must be a finite number.")
    return value


def write_filter(wanted: Mapping[str, Any]) -> dict[str, str]:
    """Write a filter as an address has it: a range is a pair."""
    query: dict[str, str] = {}
    for name, value in wanted.items():
        if isinstance(value, tuple):
            query |= {f"{name}_min": f"{value[0]:g}", f"{name}_max": f"{value[1]:g}"}
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
