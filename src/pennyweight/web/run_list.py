"""The list of runs: filtered, sorted, with a trend line over the runs of one suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from markupsafe import Markup
from starlette.requests import Request

from pennyweight.api.pages.run_list import WORST_FIRST, RunListing, RunRow
from pennyweight.render.charts.catalogue import trend
from pennyweight.render.view import when
from pennyweight.web.addresses import run_url
from pennyweight.web.assets import rendered
from pennyweight.web.site import Shown, Site

RUN_SORTS: dict[str, Callable[[RunRow], Any]] = {
    "when": lambda r: r.created,
    "suite": lambda r: r.suite.lower(),
    "value": lambda r: (r.metric or "", -1.0 if r.value is None else r.value),
    "cost": lambda r: -1.0 if r.cost_usd is None else r.cost_usd,
    "attempts": lambda r: r.attempts,
    "verdict": lambda r: WORST_FIRST.index(r.worst.verdict) if r.worst else -1,
}


def runs(request: Request, site: Site) -> Shown:
    """Show the runs."""
    names = ("q", "suite", "status", "tag", "sort", "order")
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
    wanted = {n: query[n] for n in ("q", "suite", "status", "tag")}
    found = [r for r in everything if _fits(r, wanted)]
    sort = query["sort"] or "when"
    reverse = query["order"] in {"", "down"}
    found.sort(key=RUN_SORTS.get(sort, RUN_SORTS["when"]), reverse=reverse)
    suites = sorted({r.suite for r in everything})
    line = _trend(found, wanted["suite"] or (suites[0] if len(suites) == 1 else ""))
    values: dict[str, Any] = {
        "runs": found[:500],
        "waiting": waiting,
        "wanted": wanted,
        "sort": sort,
        "order": "down" if reverse else "up",
        "suites": suites,
        "statuses": sorted({r.status for r in everything}),
        "tags": sorted({t for r in everything for t in r.tags}),
        "trend": line,
    }
    return rendered("runs_list.html", values)


def _fits(run: RunRow, wanted: Mapping[str, str]) -> bool:
    texts = (run.id, run.suite, *run.subjects, *run.tiers, *run.tags, run.note)
    return (
        (not wanted["suite"] or run.suite == wanted["suite"])
        and (not wanted["status"] or run.status == wanted["status"])
        and (not wanted["tag"] or wanted["tag"] in run.tags)
        and wanted["q"].lower() in " ".join(filter(None, texts)).lower()
    )


def _trend(found: list[RunRow], suite: str) -> dict[str, str] | None:
    known = [r for r in found if r.suite == suite and r.value is not None and r.status != "running"]
    known = [r for r in known if not r.narrowed]
    known = [r for r in known if r.metric == known[0].metric]
    if len(known) < 2:
        return None
    rows = [
        {n: getattr(r, n) for n in ("id", "value", "low", "high")}
        | {"href": run_url(r.id), "when": when(r.created)}
        for r in sorted(known, key=lambda r: r.created)[-60:]
    ]
    metric = known[0].metric or ""
    drawn = {"svg": trend(rows, metric), "small": trend(rows, metric, 420)}
    return {"suite": suite, "metric": metric, **drawn}
