"""What the page and the API share: the store, what is kept of it, and what is under way."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.store import look
from assay.store.look import FLAGS, RANGES, SAME, Filter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from markupsafe import Markup

    from assay.store.look import Key
    from assay.store.store import Run, Store
    from assay.web.access import Access
    from assay.web.digests import Digests
    from assay.web.jobs import Jobs
    from assay.web.suites import Suites

SMALL = 50_000
"""Records up to which a run's statuses are counted while it is being written."""
KEPT = 8
YES = {"yes": True, "no": False}


class NotFoundError(UsageError):
    """There is no such run or record."""


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

    def run(self, name: str) -> Run:
        """Find a run by its whole id."""
        found = None if "\0" in name or _lone(name) else look.run(self.store, name)
        if found is None:
            raise NotFoundError(f"There is no run {name!r} in this store.")
        return found

    def runs(self) -> list[dict[str, Any]]:
        """List the runs with what is kept of them; what is missing is asked for."""
        runs = self.store.runs()
        if not runs:
            return []
        kept = look.digests(self.store)
        said: dict[str, dict[str, Any]] = {}
        for remark in reversed(look.remarks(self.store)):
            entry = said.setdefault(remark["run"], {"tags": [], "note": None})
            entry["note"] = remark["note"] or entry["note"]
            if remark["tags"] is not None:
                entry["tags"] = remark["tags"]
        for run in runs:
            if run.id not in kept and run.status != "running":
                self.digests.ask(run)
        return [self._listed(run, kept.get(run.id), said.get(run.id)) for run in runs]

    def _listed(
        self, run: Run, kept: Mapping[str, Any] | None, said: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        known = kept or dict.fromkeys(("metric", "value", "low", "high", "records", "errors"))
        return {
            "id": run.id,
            "suite": run.suite,
            "status": run.status,
            "subjects": run.settings.get("subjects", []),
            "tiers": run.settings.get("tiers", []),
            "attempts": run.attempts,
            "created": run.created,
            "ended": run.ended,
            **{n: known[n] for n in ("metric", "value", "low", "high", "records", "errors")},
            "cost_usd": kept["cost_usd"] if kept else None,
            "tags": said["tags"] if said else [],
            "note": said["note"] if said else None,
        }

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
            "said": self.jobs.said(run.id),
            "took": time.monotonic() - began,
        }


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
