"""The pages of a comparison: sides next to each other, and two replies to one task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from pennyweight.render.charts import charts
from pennyweight.render.view import side_rows
from pennyweight.web import comparison_links as paired
from pennyweight.web import comparison_sides as pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request

    from pennyweight.store.store import Run
    from pennyweight.web.site import Site

Shown = tuple[str, dict[str, Any]]


def compare(request: Request, site: Site) -> Shown:
    """Show sides next to each other, and the tasks that changed between two of them."""
    query = request.query_params
    everything = site.store.runs()
    names, base = dict.fromkeys(query.getlist("run")), query.get("baseline")
    chosen = sorted(
        (r for r in everything if r.id in names), key=lambda r: (r.id != base, r.created)
    )
    unknown = [n for n in names if n not in {r.id for r in everything}]
    missing = unknown + [r.id for r in chosen[pairs.MOST :]]
    chosen = chosen[: pairs.MOST]
    values: dict[str, Any] = {"runs": everything[:200], "chosen": [r.id for r in chosen]}
    values |= {"unknown": unknown, "missing": missing, "most": pairs.MOST}
    if not chosen:
        return "compare.html", {**values, "table": None}
    table = pairs.table(site, chosen)
    pair = pairs.pair(site, table, query.get("a"), query.get("b"))
    link = paired.leading(values["chosen"], table.sides)
    return "compare.html", {
        **values,
        "chosen_runs": chosen,
        "swapped": {r.id: _compared(chosen, r.id) for r in chosen},
        "turned": _turned(chosen, pair),
        "table": table,
        "charts": charts(table.digest, link) if table.digest else [],
        "families": side_rows(table.digest) if table.digest else [],
        **pair,
    }


def _compared(runs: Sequence[Run], base: str, **more: str) -> str:
    """Write the query of a comparison with another baseline."""
    return urlencode([*(("run", r.id) for r in runs), ("baseline", base), *more.items()])


def _turned(runs: Sequence[Run], pair: Mapping[str, Any]) -> str:
    """Write the query of the same comparison the other way round."""
    if pair["a"] is None:
        return ""
    base = pair["b"].run if len(runs) > 1 else runs[0].id
    return _compared(runs, base, a=pair["b"].write(), b=pair["a"].write())


def compare_task(request: Request, site: Site) -> Shown:
    """Show the replies of two sides to one task, with their difference marked."""
    query = request.query_params
    a, b = (pairs.Side.read(query.get(n, "")) for n in "ab")
    told = pairs.replies(site, a, b, query.get("task", ""))
    return "compare_task.html", {**told, "back": urlencode(told["back"])}
