"""What each page shows: data from the store, arranged for its template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup

from assay.errors import UsageError
from assay.report.charts import charts, trend
from assay.report.view import families, key_figures, run_facts, side_rows, when
from assay.store import look
from assay.store.look import FLAGS, RANGES, SAME
from assay.web import checking
from assay.web import record as reading
from assay.web import sides as pairs
from assay.web.rows import TEXT, table_rows
from assay.web.site import NotFoundError, read_filter, read_key, write_filter, write_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from assay.web.site import Site

Shown = tuple[str, dict[str, Any]]

SORTS = {
    "when": lambda r: r["created"],
    "suite": lambda r: r["suite"].lower(),
    "value": lambda r: -1.0 if r["value"] is None else r["value"],
    "cost": lambda r: -1.0 if r["cost_usd"] is None else r["cost_usd"],
    "attempts": lambda r: r["attempts"],
}
COLUMNS = (
    *("subject", "tier", "attempt", "category", "input", "answer", "target", "prob_correct"),
    *("cot_tokens", "total_tokens", "latency_ms", "cost_usd"),
)
MORE = ("capability", "response", "step_count", "self_correcting", "prompt_tokens",
        "completion_tokens", "impl_rate", "scenario_score", "violations", "finish")  # fmt: skip
PARTS = ("input", "messages", "response", "reasoning", "target", "error", "tool_calls", "work")
VERDICTS = ("right", "wrong", "unsure")


def runs(request: Request, site: Site) -> Shown:
    """Show the runs."""
    query = request.query_params
    everything = site.runs()
    wanted = {n: query.get(n, "") for n in ("q", "suite", "status", "tag")}
    found = [r for r in everything if _fits(r, wanted)]
    sort = query.get("sort", "when")
    reverse = query.get("order", "down") == "down"
    found.sort(key=SORTS.get(sort, SORTS["when"]), reverse=reverse)
    suites = sorted({r["suite"] for r in everything})
    line = _trend(found, wanted["suite"] or (suites[0] if len(suites) == 1 else ""))
    return "runs.html", {
        "runs": found[:500],
        "total": len(everything),
        "wanted": wanted,
        "sort": sort,
        "order": "down" if reverse else "up",
        "suites": suites,
        "statuses": sorted({r["status"] for r in everything}),
        "tags": sorted({t for r in everything for t in r["tags"]}),
        "trend": line,
        "waiting": site.digests.waiting,
    }


def _fits(run: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    texts = (run["id"], run["suite"], *run["subjects"], *run["tiers"], *run["tags"], run["note"])
    return (
        (not wanted["suite"] or run["suite"] == wanted["suite"])
        and (not wanted["status"] or run["status"] == wanted["status"])
        and (not wanted["tag"] or wanted["tag"] in run["tags"])
        and wanted["q"].lower() in " ".join(filter(None, texts)).lower()
    )


def _trend(found: list[dict[str, Any]], suite: str) -> dict[str, str] | None:
    known = [r for r in found if r["suite"] == suite and r["value"] is not None]
    known = [r for r in known if known and r["metric"] == known[0]["metric"]]
    if len(known) < 2:
        return None
    rows = [
        {**r, "href": f"/runs/{quote(r['id'], safe='')}", "when": when(r["created"])[:10]}
        for r in sorted(known, key=lambda r: r["created"])[-60:]
    ]
    return {"suite": suite, "metric": known[0]["metric"], "svg": trend(rows, known[0]["metric"])}


def run(request: Request, site: Site) -> Shown:
    """Show one run: its metrics in families, its charts, its sides."""
    found = site.run(request.path_params["run"])
    kept = site.digests.get(found)
    told = kept.digest
    statuses = told["statuses"] if told and kept.current else None
    state = None
    if statuses is None or found.status != "done":
        state = site.progress(found)
    spent = told["spent"] if told else {}
    values: dict[str, Any] = {
        "run": found,
        "kept": kept,
        "facts": run_facts(found, statuses or _statuses(state), spent),
        "state": state,
        "remarks": (said := look.remarks(site.store, found.id)),
        "tags": next((r["tags"] for r in said if r["tags"] is not None), []),
        "digest": told,
    }
    if told:
        values["drawn"] = site.drawn(told, lambda: _drawn(told, found.id))
    return "run.html", values


def _drawn(told: dict[str, Any], run: str) -> Markup:
    """Write what a page shows of a digest."""
    from assay.web.pages import run_url, templates  # noqa: PLC0415

    def link(wanted: Mapping[str, Any]) -> str:
        return run_url(run, "records", **write_filter(wanted))

    text = (
        templates()
        .get_template("digest.html")
        .render(
            digest=told,
            figures=key_figures(told["whole"]),
            charts=charts(told, link),
            families=families(told["whole"]),
            sides=side_rows(told),
        )
    )
    return Markup(text)  # noqa: S704


def _statuses(state: Mapping[str, Any] | None) -> dict[str, int]:
    if state is None:
        return {}
    errors = state["errors"] or 0
    return {"ok": state["made"] - errors, "error": errors}


def records(request: Request, site: Site) -> Shown:
    """Show a page of records."""
    from assay.web.pages import run_url  # noqa: PLC0415

    query = request.query_params
    found = site.run(request.path_params["run"])
    wanted = read_filter(query)
    after, before = query.get("after"), query.get("before")
    page = look.page(
        site.store,
        found.id,
        wanted,
        after=read_key(after) if after else None,
        before=read_key(before) if before else None,
        last=query.get("last") == "1",
    )
    chosen = [c for c in query.get("columns", "").split(",") if c in {*COLUMNS, *MORE}]
    names = chosen or _default_columns(found.settings, page.rows)
    keep = _filter_of(query)
    kept = site.digests.get(found, wait=False)
    given = {k: v for k, v in keep.items() if v}
    base = run_url(found.id, "record", **given) + ("&" if given else "?")
    return "records.html", {
        "run": found,
        "rows": table_rows(page.rows, names, base),
        "texts": TEXT,
        "columns": names,
        "every": [*COLUMNS, *MORE],
        "wanted": keep,
        "keep": {**keep, "columns": query.get("columns", "")},
        "filtered": any(keep.values()),
        "newer": write_key(page.rows[0]) if page.rows and page.before else None,
        "older": write_key(page.rows[-1]) if page.rows and page.after else None,
        "measured": kept.digest is not None,
        "current": kept.current,
        "total": (kept.digest or {}).get("whole", {}).get("records"),
        "statuses": ("ok", "error", "timeout", "budget"),
        "ranges": RANGES,
        "used_ranges": list(wanted.ranges) or ["latency_ms"],
        "categories": (kept.digest or {}).get("categories", []),
    }


def _default_columns(settings: Mapping[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """Leave out what is the same, or missing, on the whole page."""
    names = list(COLUMNS)
    for name, plural in (("subject", "subjects"), ("tier", "tiers")):
        if len(settings.get(plural, [])) == 1:
            names.remove(name)
    always = {"subject", "tier", "attempt", "input"}
    return [n for n in names if n in always or any(r.get(n) is not None for r in rows)]


def _filter_of(query: Mapping[str, str]) -> dict[str, str]:
    known = {*SAME, *FLAGS, "q", *(f"{n}_{end}" for n in RANGES for end in ("min", "max"))}
    return {name: query.get(name, "") for name in known}


def record(request: Request, site: Site) -> Shown:
    """Show one record in full."""
    query = request.query_params
    found = site.run(request.path_params["run"])
    place = read_key(query.get("key", ""))
    row = look.record(site.store, found.id, place)
    if row is None:
        raise NotFoundError("There is no such record in this run.")
    observer = checking.observer_of(found, site.store, place)
    measured = reading.measures(found, site.store, row, observer)
    checks = checking.checks(observer, row)
    keep, wanted = _filter_of(query), read_filter(query)
    around = {
        "next": look.page(site.store, found.id, wanted, after=place, limit=1).rows,
        "previous": look.page(site.store, found.id, wanted, before=place, limit=1).rows,
    }
    tries = look.siblings(site.store, found.id, place[0])
    reply = row["response"] or ""
    return "record.html", {
        "run": found,
        "row": row,
        "key": write_key(row),
        "measures": measured,
        "keep": keep,
        **{name: write_key(rows[0]) if rows else None for name, rows in around.items()},
        "turns": reading.turns(row["messages"]),
        "reply": reading.found_in(reply, measured["answer"], checking.spans(checks)),
        "rendered": reading.markdown(reply) if query.get("view") == "markdown" else None,
        "cut": [n for n in PARTS if row.get(n) and len(str(row[n])) > reading.SHOWN],
        "rule": reading.rule_in_words(found.settings),
        "steps": reading.steps(measured["cot"]),
        "calls": reading.calls(row),
        "work": reading.work(row),
        "judgments": [checking.judgment(j) for j in look.judgments(site.store, found.id, place)],
        "checks": checks,
        "remarks": look.remarks(site.store, found.id, place),
        "tries": [{**t, "key": write_key(t)} for t in tries],
        "verdicts": VERDICTS,
    }


def raw(request: Request, site: Site) -> str:
    """Give one text of a record, whole."""
    query = request.query_params
    found = site.run(request.path_params["run"])
    row = look.record(site.store, found.id, read_key(query.get("key", "")))
    part = query.get("part", "response")
    if row is None or part not in PARTS:
        raise NotFoundError("There is no such text.")
    return str(row[part] or "")


def report(request: Request, site: Site) -> str:
    """Write the report of a run."""
    from assay.report.html import Report, html  # noqa: PLC0415

    found = site.run(request.path_params["run"])
    kept = site.digests.get(found)
    if kept.digest is None:
        raise UsageError(kept.problem or "The metrics of this run are still being computed.")
    facts = run_facts(found, kept.digest["statuses"], kept.digest["spent"])
    return html(Report(found.suite, kept.digest, [facts], found.id))


def compare(request: Request, site: Site) -> Shown:
    """Show sides next to each other, and the tasks that changed between two of them."""
    query = request.query_params
    everything = site.store.runs()
    names = list(dict.fromkeys(query.getlist("run")))[:8]
    chosen = [r for name in names for r in everything if r.id == name]
    values: dict[str, Any] = {"runs": everything[:200], "chosen": [r.id for r in chosen]}
    if not chosen:
        return "compare.html", {**values, "table": None}
    table = pairs.table(site, chosen)
    return "compare.html", {
        **values,
        "table": table,
        "charts": charts(table.digest) if table.digest else [],
        "families": side_rows(table.digest) if table.digest else [],
        **pairs.pair(site, table, query.get("a"), query.get("b")),
    }


def compare_task(request: Request, site: Site) -> Shown:
    """Show the replies of two sides to one task, with their difference marked."""
    query = request.query_params
    a, b = (pairs.Side.read(query.get(n, "")) for n in "ab")
    return "compare_task.html", pairs.replies(site, a, b, query.get("task", ""))


def gates(request: Request, site: Site) -> Shown:
    """Show the verdicts of policies on a run."""
    from assay.web import gating  # noqa: PLC0415

    return "gates.html", gating.values(request, site)


def new(request: Request, site: Site) -> Shown:
    """Show what can be run."""
    from assay.web.api import providers  # noqa: PLC0415

    known = site.suites.known(site.store.runs())
    return "new.html", {
        "suites": known,
        "chosen": request.query_params.get("suite", known[0].id if known else ""),
        "providers": providers(),
    }


def docs(request: Request, site: Site) -> Shown:  # noqa: ARG001
    """Show the API, made from its own description."""
    told = request.app.openapi()
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in told["paths"].items():
        for method, one in methods.items():
            fields = [
                {**p, "type": _kind(p["schema"]), "text": p.get("description", "")}
                for p in one.get("parameters", [])
            ]
            body: dict[str, Any] = one.get("requestBody", {}).get("content", {})
            shape: dict[str, Any] = next((held["schema"] for held in body.values()), {})
            entry = {"path": path, "method": method.upper(), "summary": one["summary"]}
            entry |= {"text": one.get("description", ""), "fields": fields}
            entry |= {"body": _body(told, shape), "codes": sorted(one["responses"])}
            groups.setdefault(one["tags"][0], []).append(entry)
    return "docs.html", {"groups": groups, "told": told["info"]}


def _kind(schema: Mapping[str, Any]) -> str:
    kinds = [schema.get("type", "")] + [s.get("type", "") for s in schema.get("anyOf", [])]
    return " or ".join(k for k in kinds if k)


def _body(told: Mapping[str, Any], schema: Mapping[str, Any]) -> list[dict[str, str]]:
    name = schema.get("$ref", "").rpartition("/")[2]
    if not name:
        return [{"name": "(the file itself)", "type": "bytes"}] if schema else []
    properties = told["components"]["schemas"][name]["properties"]
    return [{"name": n, "type": _kind(p)} for n, p in properties.items()]
