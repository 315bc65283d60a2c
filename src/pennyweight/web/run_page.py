"""The page of a run: the conclusion, the leaderboard, the charts and every metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from pennyweight.api.lanes.collect import batches_out
from pennyweight.api.pages import records as api_records
from pennyweight.api.pages.board_verdicts import board_verdicts
from pennyweight.api.pages.run_list import RunState
from pennyweight.api.pages.run_sides import digest_sides
from pennyweight.api.pages.side_by_side import FILTERED
from pennyweight.api.runs import INTERRUPTED
from pennyweight.errors import NotFoundError, UsageError
from pennyweight.render.charts.catalogue import charts
from pennyweight.render.charts.svg import Chart, Link, alone
from pennyweight.render.page.board import BoardChoice
from pennyweight.render.page.conclusion import conclusion
from pennyweight.render.page.leaderboard import board_name, board_of, leaderboard
from pennyweight.render.page.people import waiting_questions
from pennyweight.render.page.reasoning_panel import reasoning_panel
from pennyweight.render.page.what_failed import what_failed
from pennyweight.render.plain import csv_table
from pennyweight.render.repeats import repeat_words
from pennyweight.render.runs import out_fact
from pennyweight.render.view import (
    families,
    key_figures,
    narrowed_to,
    run_facts,
    run_outcome,
    side_rows,
)
from pennyweight.web.addresses import run_url, url, whole_number
from pennyweight.web.assets import rendered
from pennyweight.web.comparison import chart_links
from pennyweight.web.gates import MAX_SAVED, saved_verdicts
from pennyweight.web.grid_page import grid_view
from pennyweight.web.site import Shown, Site

UNFINISHED = ("running", "waiting", "stopped", "failed", INTERRUPTED)
"""Statuses of a run that may continue; its progress is shown."""
MAX_INLINE_SIDES = 9
"""The metrics of more sides are on a page of their own, and this many there at once."""
FIRST_CHARTS = ("sides", "frontier")
"""With many sides, the other charts are on the page of all metrics."""
CHART_BYTES = 130_000
"""About how large charts beside tables of all metrics are; further ones are on the next page."""
MOST_CHART_BYTES = 165_000
"""How large the charts of a page without these tables are at most."""
MAX_PAIRS, MAX_PAIRS_BESIDE_CHARTS = 120, 40
CHOICES = ("by", "sort", "order", "baseline", "find", "all")
"""What an address says about the leaderboard."""


def run(request: Request, site: Site, now: RunState) -> Shown:
    """Show one run."""
    found, cached = now.run, site.digests.get(now.run, state=now)
    now = now if now.settled else site.state(found.id)  # a digest may just have been made
    digest = cached.digest
    statuses = digest["statuses"] if digest and cached.current else None
    state, status = None, site.status(found)
    if statuses is None or status != "done":
        state = site.progress(now)
    live = state is not None and (state.here or status in UNFINISHED)
    spent = digest["spent"] if digest else {}
    errors = state.errors or 0 if state else 0
    counted = statuses or ({"ok": state.made - errors, "error": errors} if state else {})
    remarks = api_records.remarks(site.store, found.id) if now.newest_remark else []
    values: dict[str, Any] = {
        "run": found,
        "title": now.title,
        "status": status,
        "outcome": run_outcome(
            status, found.attempts, sum(counted.values()), counted.get("error", 0)
        ),
        "live": live,
        "cached": cached,
        "shown": state.shown if state else "",
        "facts": run_facts(replace(found, status=status), counted, spent, live=live),
        "narrowed": narrowed_to(found),
        "out": out_fact(batches_out(site.store, found.id), "table") if status == "waiting" else "",
        "state": state,
        "remarks": remarks,
        "saved": saved_verdicts(site, found)[:MAX_SAVED] if now.decided else [],
        "tags": next((r.tags for r in remarks if r.tags is not None), ()),
        "digest": digest,
    }
    if digest:
        values["questions"] = waiting_questions(digest["questions"])
        values["board"] = _board(request, site, now, digest)
        values["grid"] = grid_view(site, found.id, digest, request.query_params)
        values["drawn"] = site.once(digest, ("charts",), lambda: _drawn(digest, found.id))
    return "run.html", values


def read_choice(query: QueryParams) -> BoardChoice:
    """Read what an address says about the leaderboard; what makes no sense has no effect."""
    texts = {name: query.get(name, "")[:400] for name in CHOICES}
    return BoardChoice(
        by=texts["by"],
        sort=texts["sort"],
        reverse=texts["order"] == "reverse",
        baseline=texts["baseline"],
        find=texts["find"],
        every=texts["all"] == "1",
    )


def _board(request: Request, site: Site, now: RunState, digest: dict[str, Any]) -> Markup:
    """Write the conclusion and the leaderboard as they were asked for."""
    run, query, choice = now.run.id, request.query_params, read_choice(request.query_params)
    given = {name: query[name] for name in CHOICES if query.get(name)}
    base = run_url(run)

    def address(changed: Mapping[str, str]) -> str:
        chosen = {**given, **changed}
        if "by" in changed:  # another board has other sides
            chosen.pop("baseline", None)
            chosen.pop("find", None)
        return url(base, **chosen) + "#board"

    board = board_of(digest, choice.by)
    pairs = None
    if board and choice.baseline:
        stamp = now.digest_stamp or ""
        pairs = site.pairs.to(
            run, stamp, digest["headline"], board, choice.baseline, digest["changed"]
        )
    verdicts = {}
    if board and now.decided:
        verdicts = board_verdicts(site.store, now.run, board, _gates_of(run))

    link = site.once(digest, ("links",), lambda: _record_links(run, digest))
    said = site.once(digest, ("conclusion", choice.by), lambda: conclusion(digest, choice.by))
    shown = board_name(board["by"]) if board else ""
    values = {
        "run": run,
        "digest": digest,
        "unknown": choice.by if shown != choice.by else "",
        "shown": shown,
        "figures": [] if digest["sides"] else key_figures(digest["whole"]),
        "board": leaderboard(
            digest, choice, pairs=pairs, verdicts=verdicts, link=link, address=address
        ),
        "conclusion": said,
        "kept": {n: v for n, v in given.items() if n not in {"sort", "order", "find"}},
    }
    return rendered("board_part.html", values)


def _gates_of(run: str) -> Callable[[Mapping[str, str]], str]:
    return lambda side: url("/gates", run=run, **side)


def _record_links(run: str, digest: dict[str, Any]) -> Link:
    """Return the addresses of the records of sides, which are the same on every board."""
    link = chart_links([run], digest_sides(run, digest))
    written = cache(lambda *side: link(dict(side)))
    return lambda side: written(*side.items()) if set(side) <= set(FILTERED) else None


def _drawn(digest: dict[str, Any], run: str) -> Markup:
    """Render the parts of a digest that are the same for every reader."""
    link = chart_links([run], digest_sides(run, digest))
    inline = len(digest["sides"]) <= MAX_INLINE_SIDES
    first, rest = _charts(digest, link)
    panel, others = reasoning_panel(digest, first) if inline else (None, first)
    values = {
        "run": run,
        "inline": inline,
        "digest": digest,
        "failed": link({"status": "error"}),
        "weak": what_failed(digest, link),
        "charts": others,
        "rest": rest,
        "roomy": inline and not rest and sum(map(_size, first)) <= CHART_BYTES,
        "reasoning": panel,
        "families": families(digest["whole"]),
        "sides": side_rows(digest) if inline else [],
        "repeats": repeat_words(digest),
    }
    return rendered("digest.html", values)


def metrics(request: Request, site: Site, now: RunState) -> Shown:
    """Show every metric of each side, some sides at a time, the best first."""
    run, cached = now.run, site.digests.get(now.run, state=now)
    digest = cached.digest
    if digest is None:
        raise UsageError(cached.problem or "The metrics of this run are still being computed.")
    view = leaderboard({**digest, "boards": []}, BoardChoice(every=True))
    known = {side["name"]: side for side in digest["sides"]}
    order = [known[row.name] for row in view.rows] if view else []
    pages = max(1, -(-len(order) // MAX_INLINE_SIDES))
    asked = request.query_params.get("page", "1")
    page = min(pages, max(1, whole_number(asked)))
    first = (page - 1) * MAX_INLINE_SIDES
    sides = order[first : first + MAX_INLINE_SIDES]
    shown = {**digest, "sides": sides}
    names = {side["name"] for side in sides}
    every = (digest["comparison"] or {}).get("pairs", ())
    pairs = [p for p in every if names & {p["a"], p["b"]}]
    link = chart_links([run.id], digest_sides(run.id, digest))
    drawn = list(_on_page(_charts(digest, link)[1], page, pages))
    return "metrics_page.html", {
        "charts": drawn,
        "run": run,
        "shown": shown,
        "sides": side_rows(shown),
        "compared": {"pairs": pairs[: MAX_PAIRS_BESIDE_CHARTS if drawn else MAX_PAIRS]},
        "pairs": len(pairs),
        "page": page,
        "pages": pages,
        "first": first + 1,
        "total": len(order),
        "families": families(digest["whole"]),
        "repeats": repeat_words(digest),
    }


def _charts(digest: Mapping[str, Any], link: Link) -> tuple[list[Chart], list[Chart]]:
    """Return the charts of the run's page, and those that are on the page of all metrics."""
    many, room = len(digest["sides"]) > MAX_INLINE_SIDES, MOST_CHART_BYTES
    first: list[Chart] = []
    rest: list[Chart] = []
    for chart in charts(digest, link):
        fits = chart.name in FIRST_CHARTS or (not many and _size(chart) <= room)
        (first if fits else rest).append(chart)
        room -= _size(chart) if fits else 0
    return first, rest


def _on_page(drawn: Sequence[Chart], page: int, pages: int) -> Iterator[Chart]:
    """Yield the charts of a page: the first ones, and the rest where it has room."""
    before = 0
    for chart in drawn:
        if min(pages, 1 + before // CHART_BYTES) == page:
            yield chart
        before += _size(chart)


def _size(chart: Chart) -> int:
    cells = 36 * sum(map(len, chart.rows)) + sum(len(at) + 40 for at in chart.links.values())
    return len(chart.svg) + len(chart.wide or "") + cells


def chart_file(request: Request) -> Response:
    """Answer with a chart as SVG, or its numbers as CSV, to be saved."""
    site: Site = request.app.state.site
    digest = site.digests.get(site.run(request.path_params["run"])).digest
    name, _, kind = request.path_params["name"].rpartition(".")
    found = next((c for c in charts(digest) if c.name == name), None) if digest else None
    if found is None or kind not in {"svg", "csv"}:
        raise NotFoundError("There is no such chart of this run.")
    text = alone(found) if kind == "svg" else csv_table(found.rows)
    return Response(
        text,
        media_type="image/svg+xml" if kind == "svg" else "text/csv",
        headers={"content-disposition": f'attachment; filename="{found.name}.{kind}"'},
    )
