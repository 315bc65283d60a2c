"""The list of runs: filtered, sorted, in pages, with a trend of each subject over one suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from markupsafe import Markup
from starlette.requests import Request

from pennyweight.api.pages.headlines import SideHeadline
from pennyweight.api.pages.run_list import WORST_FIRST, RunListing, RunRow
from pennyweight.render.charts.trends import MAX_LINES, TrendPoint, trends
from pennyweight.render.view import spark_of, when
from pennyweight.web.addresses import run_url, whole_number
from pennyweight.web.assets import rendered
from pennyweight.web.site import Shown, Site

RUN_SORTS: dict[str, Callable[[RunRow], Any]] = {
    "when": lambda r: r.created,
    "suite": lambda r: (r.title or r.suite).lower(),
    "value": lambda r: (r.metric or "", -1.0 if r.value is None else r.value),
    "cost": lambda r: -1.0 if r.cost_usd is None else r.cost_usd,
    "attempts": lambda r: r.attempts,
    "verdict": lambda r: WORST_FIRST.index(r.worst.verdict) if r.worst else -1,
}
FILTERS = ("q", "suite", "status", "tag", "archived")
PAGE = 50
"""Runs on a page."""
MAX_SHOWN_SIDES = 3
MAX_TREND_RUNS = 60


def runs(request: Request, site: Site) -> Shown:
    """Show the runs."""
    names = (*FILTERS, "sort", "order", "page")
    asked = tuple((n, request.query_params.get(n, "")) for n in names)
    listing = site.listing()
    waiting = frozenset(site.digests.waiting)
    values = {"total": len(listing.rows), "waiting": waiting, "running": listing.running}
    values["damaged"] = listing.damaged
    return "runs.html", {**values, "listed": _listed(listing, asked, waiting)}


@lru_cache(8)
def _listed(
    listing: RunListing, asked: tuple[tuple[str, str], ...], waiting: frozenset[str]
) -> Markup:
    """Render the list, cached by its content."""
    query, everything = dict(asked), listing.runs()
    wanted = {n: query[n] for n in FILTERS}
    found = [r for r in everything if _fits(r, wanted)]
    sort = query["sort"] or "when"
    reverse = query["order"] in {"", "down"}
    found.sort(key=RUN_SORTS.get(sort, RUN_SORTS["when"]), reverse=reverse)
    suites = sorted({r.suite for r in everything})
    line = _trend(found, wanted["suite"] or (suites[0] if len(suites) == 1 else ""))
    pages = max(1, -(-len(found) // PAGE))
    page = min(pages, max(1, whole_number(query["page"])))
    values: dict[str, Any] = {
        "runs": found[PAGE * (page - 1) : PAGE * page],
        "found": len(found),
        "page": page,
        "pages": pages,
        "size": PAGE,
        "waiting": waiting,
        "wanted": wanted,
        "sort": sort,
        "order": "down" if reverse else "up",
        "suites": suites,
        "statuses": sorted({r.status for r in everything}),
        "tags": sorted({t for r in everything for t in r.tags}),
        "archived": sum(r.archived for r in everything),
        "trend": line,
        "bar": _bar,
        "most": MAX_SHOWN_SIDES,
    }
    return rendered("runs_list.html", values)


def _fits(run: RunRow, wanted: Mapping[str, str]) -> bool:
    texts = (run.id, run.title, run.suite, *run.subjects, *run.tiers, *run.tags, run.note)
    text = " ".join(filter(None, texts)).lower()
    return (
        (not wanted["suite"] or run.suite == wanted["suite"])
        and (not wanted["status"] or run.status == wanted["status"])
        and (not wanted["tag"] or wanted["tag"] in run.tags)
        and (bool(wanted["archived"]) == run.archived)
        and all(word in text for word in wanted["q"].lower().split())
    )


def _bar(side: SideHeadline, metric: str | None) -> dict[str, float] | None:
    """Place a headline on a track from 0 to 1, if its metric is a share or a score."""
    return spark_of(metric or "", side.value, side.low, side.high)


def _trend(found: Sequence[RunRow], suite: str) -> dict[str, str] | None:
    """Draw the headline of each subject over the whole runs of one suite."""
    known = [r for r in found if r.suite == suite and r.value is not None and r.status != "running"]
    known = [r for r in known if not r.narrowed]
    known = sorted((r for r in known if r.metric == known[0].metric), key=lambda r: r.created)
    known = known[-MAX_TREND_RUNS:]
    if len(known) < 2:
        return None
    lines: dict[str, list[TrendPoint]] = {}
    for place, run in enumerate(known):
        for name, side in _by_subject(run).items():
            if side.value is not None:
                point = TrendPoint(place, side.value, side.low, side.high, run.id, run_url(run.id))
                lines.setdefault(name, []).append(point)
    lines = {name: line for name, line in lines.items() if len(line) > 1}
    if not lines:
        return None
    order = sorted(lines, key=lambda n: (-lines[n][-1].place, -len(lines[n]), -lines[n][-1].value))
    shown = {name: lines[name] for name in order[:MAX_LINES]}
    if len(lines) == 1 and len({name for r in known for name in r.subjects}) == 1:
        shown = {"": next(iter(shown.values()))}
    times, metric = [when(r.created) for r in known], known[0].metric or ""
    tiers = any(side.tier for r in known for side in r.sides)
    return {
        "suite": suite,
        "metric": metric,
        "svg": trends(shown, times, metric),
        "small": trends(shown, times, metric, 420),
        "more": str(len(lines) - len(shown)) if len(lines) > len(shown) else "",
        "note": "Of each subject its best tier. " if tiers else "",
    }


def _by_subject(run: RunRow) -> dict[str, SideHeadline]:
    """Return the best side of each subject of a run."""
    best: dict[str, SideHeadline] = {}
    for side in run.sides:
        name = side.subject or (run.subjects[0] if len(run.subjects) == 1 else "")
        best.setdefault(name, side)
    return best
