"""The values of each page's template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from pennyweight.api import records as api_records
from pennyweight.api.records import FLAGS, LIST_FILTERS, RANGES, SORTS, STATUSES, TEXT_FILTERS, Sort
from pennyweight.api.run_list import state_mark
from pennyweight.api.runs import INTERRUPTED
from pennyweight.api.side_by_side import digest_sides
from pennyweight.errors import NotFoundError, UsageError
from pennyweight.render import record as record_texts
from pennyweight.render.charts import charts
from pennyweight.render.view import families, key_figures, run_facts, side_rows
from pennyweight.web.addresses import (
    PAGE_SIZE,
    first_number,
    listed_texts,
    read_filter,
    read_key,
    read_place,
    read_sort,
    run_url,
    write_key,
    write_place,
)
from pennyweight.web.comparison import chart_links
from pennyweight.web.record_rows import TEXT, table_rows
from pennyweight.web.site import RunProgress, Site

Shown = tuple[str, dict[str, Any]]

COLUMNS = (
    *("subject", "tier", "attempt", "category", "input", "answer", "target", "prob_correct"),
    *("cot_tokens", "total_tokens", "latency_ms", "cost_usd"),
)
MORE = ("capability", "response", "step_count", "self_correcting", "prompt_tokens",
        "completion_tokens", "impl_rate", "scenario_score", "violations", "finish")  # fmt: skip
FILTERS = (
    *TEXT_FILTERS,
    *FLAGS,
    "q",
    *(f"{n}_in" for n in LIST_FILTERS),
    *(f"{n}_{end}" for n in RANGES for end in ("min", "max")),
)
PARTS = ("input", "messages", "response", "reasoning", "target", "error", "tool_calls", "work")
UNDER_WAY = ("running", "stopped", "failed", INTERRUPTED)
"""Statuses of a run that may continue; its progress is shown."""


def run(request: Request, site: Site) -> Shown:
    """Show one run: its metrics in families, its charts, its sides."""
    now = site.state(request.path_params["run"])
    found, kept = now.run, site.digests.get(now.run, state=now)
    told = kept.digest
    statuses = told["statuses"] if told and kept.current else None
    state, status = None, site.status(found)
    if statuses is None or status != "done":
        state = site.progress(site.state(found.id))  # a digest may just have been made
    live = state is not None and (state.here or status in UNDER_WAY)
    spent = told["spent"] if told else {}
    counted = statuses or _statuses(state)
    values: dict[str, Any] = {
        "run": found,
        "status": status,
        "live": live,
        "kept": kept,
        "shown": state.shown if state else "",
        "facts": run_facts(replace(found, status=status), counted, spent, live=live),
        "state": state,
        "remarks": (said := api_records.remarks(site.store, found.id) if now.said else []),
        "tags": next((r.tags for r in said if r.tags is not None), ()),
        "digest": told,
    }
    if told:
        values["drawn"] = site.drawn(told, lambda: _drawn(told, found.id))
    return "run.html", values


def _drawn(told: dict[str, Any], run: str) -> Markup:
    """Render a digest."""
    from pennyweight.web.pages import templates  # noqa: PLC0415

    link = chart_links([run], digest_sides(run, told))
    text = (
        templates()
        .get_template("digest.html")
        .render(
            digest=told,
            failed=link({"status": "error"}),
            figures=key_figures(told["whole"]),
            charts=charts(told, link),
            families=families(told["whole"]),
            sides=side_rows(told),
        )
    )
    return Markup(text)  # noqa: S704


def _statuses(state: RunProgress | None) -> dict[str, int]:
    if state is None:
        return {}
    errors = state.errors or 0
    return {"ok": state.made - errors, "error": errors}


def records(request: Request, site: Site) -> Shown:
    """Show a page of records; an invalid filter is shown again with its problem."""
    try:
        return _records(request, site)
    except NotFoundError:
        raise
    except UsageError as error:
        return _asked_again(request, site, str(error))


def _asked_again(request: Request, site: Site, problem: str) -> Shown:
    """Show the filter as it was filled in, and no records."""
    found, query = site.run(request.path_params["run"]), request.query_params
    keep, columns = _filter_of(query), query.get("columns", "")
    names = tuple((f"{n}s", tuple(names)) for n, names in found.sides.items())
    form, _ = _form(found.id, names, tuple(keep.items()), (), (), COLUMNS, columns, None, None)
    nothing = dict.fromkeys(("rows", "head", "sort", "asked", "newer", "older", "first", "total"))
    values = {"wanted": {}, "keep": {}, "filtered": False, "measured": True, "current": True}
    told = {"run": found, "form": form, "problem": problem}
    return "records.html", {**nothing, **values, **told}


def _records(request: Request, site: Site) -> Shown:
    query = dict(request.query_params)
    now = site.state(request.path_params["run"])
    found, kept = now.run, site.digests.get(now.run, wait=False, state=now)
    wanted, asked = read_filter(query), read_sort(query)
    sort = asked if kept.digest is not None else None
    after, before = query.get("after"), query.get("before")
    chosen = [c for c in query.get("columns", "").split(",") if c in {*COLUMNS, *MORE}]
    page = api_records.page(
        site.store,
        found.id,
        wanted,
        after=read_place(after, sort) if after else None,
        before=read_place(before, sort) if before else None,
        last=query.get("last") == "1",
        sort=sort,
        columns=frozenset(chosen or COLUMNS),
    )
    held = page.columns
    keep, many = _filter_of(query), len(held["task_id"])
    names = chosen or _default_columns(found.settings, held, keep)
    order = {"sort": sort.name, "order": "down" if sort.down else ""} if sort else {}
    given = {k: v for k, v in {**keep, **order}.items() if v}
    base = run_url(found.id, "record", **given) + ("&" if given else "?")
    form, head = _form(
        found.id,
        tuple((f"{n}s", tuple(names)) for n, names in found.sides.items()),
        tuple(keep.items()),
        _capabilities(kept.digest),
        tuple((kept.digest or {}).get("categories", [])),
        tuple(names),
        query.get("columns", ""),
        asked,
        sort,
    )
    total = (kept.digest or {}).get("whole", {}).get("records") if not any(keep.values()) else None
    total = many if not page.before and not page.after else total
    first = first_number(query, many, total, newer=page.before, older=page.after)
    return "records.html", {
        "run": found,
        "problem": "",
        "first": first,
        "many": many,
        "size": PAGE_SIZE,
        "rows": table_rows(held, names, base),
        "wanted": keep,
        "form": form,
        "head": head,
        "keep": {**given, "columns": query.get("columns", "")},
        "filtered": any(keep.values()),
        "sort": sort,
        "asked": asked,
        "newer": write_place(_at(held, 0), sort) if many and page.before else None,
        "older": write_place(_at(held, -1), sort) if many and page.after else None,
        "measured": kept.digest is not None,
        "shown": state_mark(now.kept) if kept.digest is not None else "",
        "current": kept.current,
        "total": total,
    }


@lru_cache(64)
def _form(
    run: str,
    names: tuple[tuple[str, tuple[str, ...]], ...],
    wanted: tuple[tuple[str, str], ...],
    capabilities: tuple[str, ...],
    categories: tuple[str, ...],
    columns: tuple[str, ...],
    chosen: str,
    asked: Sort | None,
    sort: Sort | None,
) -> tuple[Markup, Markup]:
    """Render the filter and the table's head, which are the same on every page."""
    from pennyweight.web.pages import templates  # noqa: PLC0415

    given = dict(wanted)
    used = [n for n in RANGES if given[f"{n}_min"] or given[f"{n}_max"]]
    values = {
        "run": run,
        "names": dict(names),
        "wanted": given,
        "filtered": any(given.values()),
        "categories": categories,
        "capabilities": capabilities,
        "columns": columns,
        "every": [*COLUMNS, *MORE],
        "chosen": chosen,
        "asked": asked,
        "statuses": STATUSES,
        "ranges": RANGES,
        "used_ranges": [*used, next((n for n in ("latency_ms", *RANGES) if n not in used), "")],
        "answers": listed_texts(given["answer_in"]),
        "rest": {n: v for n, v in given.items() if v and n != "answer_in"} | {"columns": chosen},
        "sort": sort,
        "sorts": SORTS,
        "texts": TEXT,
        "plain": {n: v for n, v in given.items() if v} | {"columns": chosen},
    }
    form, head = (
        templates().get_template(f"records_{part}.html").render(values) for part in ("form", "head")
    )
    return Markup(form), Markup(head)  # noqa: S704


def _capabilities(digest: Mapping[str, Any] | None) -> tuple[str, ...]:
    """List the capabilities in a digest."""
    seen = ((digest or {}).get("charts") or {}).get("coverage") or {}
    return tuple(seen.get("capabilities", ()))


def _at(held: Mapping[str, Sequence[Any]], index: int) -> dict[str, Any]:
    return {name: values[index] for name, values in held.items()}


def _default_columns(
    settings: Mapping[str, Any], held: Mapping[str, Sequence[Any]], wanted: Mapping[str, str]
) -> list[str]:
    """Leave out columns that are constant or empty on this page, unless they are filtered by."""
    names = list(COLUMNS)
    for name, plural in (("subject", "subjects"), ("tier", "tiers")):
        if len(settings.get(plural, [])) == 1:
            names.remove(name)
    ends = ("", "_in", "_min", "_max")
    asked = {n for n in names if any(wanted.get(f"{n}{end}") for end in ends)}
    always = {"subject", "tier", "attempt", "input"} | asked
    return [n for n in names if n in always or any(v is not None for v in held[n])]


def _filter_of(query: Mapping[str, str]) -> dict[str, str]:
    return {name: query.get(name, "") for name in FILTERS}


def record(request: Request, site: Site) -> Shown:
    """Show one record in full."""
    query = request.query_params
    run = site.run(request.path_params["run"])
    key = read_key(run.id, query.get("key", ""))
    detail = api_records.detail(site.store, run, key)
    row, reply = detail.row, detail.row["response"] or ""
    wanted, sort = read_filter(query), read_sort(query)
    around = api_records.neighbours(site.store, key, wanted, sort)
    siblings = api_records.siblings(site.store, run.id, key.task_id)
    shown_characters = record_texts.MAX_SHOWN_CHARACTERS
    answer = detail.measures["answer"]
    return "record.html", {
        "run": run,
        "row": row,
        "key": write_key(row),
        "measures": detail.measures,
        "keep": _filter_of(query) | {n: query.get(n, "") for n in ("sort", "order")},
        "previous": write_key(around.previous) if around.previous else None,
        "next": write_key(around.next) if around.next else None,
        "turns": record_texts.prompt_turns(row["messages"]),
        "reply": record_texts.marked_reply(reply, answer, detail.rule, detail.evidence_spans),
        "folded": record_texts.folded,
        "rendered": record_texts.markdown(reply) if query.get("view") == "markdown" else None,
        "cut": [n for n in PARTS if row.get(n) and len(str(row[n])) > shown_characters],
        "rule": record_texts.rule_in_words(detail.rule),
        "thought": record_texts.thought_lines(record_texts.shown_thought(detail.measures, reply)),
        "calls": record_texts.tool_calls(row),
        "work": record_texts.agent_output(row),
        "judgments": detail.judgments,
        "checks": detail.checks,
        "remarks": detail.remarks,
        "siblings": [{**t, "key": write_key(t)} for t in siblings],
        "verdicts": api_records.VERDICTS,
    }


def raw(request: Request) -> Response:
    """Answer with one text of a record in full."""
    site, query = request.app.state.site, request.query_params
    part = query.get("part", "response")
    if part not in PARTS:
        raise NotFoundError(f"There is no text {part[:40]!r}; the texts are {', '.join(PARTS)}.")
    key = read_key(site.run(request.path_params["run"]).id, query.get("key", ""))
    text = str(api_records.row(site.store, key)[part] or "")
    return PlainTextResponse(text.encode("utf-8", "replace"))


def report(request: Request) -> Response:
    """Answer with the report of a run, to be downloaded."""
    from pennyweight.render.report import Report, html  # noqa: PLC0415

    site: Site = request.app.state.site
    found = site.run(request.path_params["run"])
    kept = site.digests.get(found)
    if kept.digest is None:
        raise UsageError(kept.problem or "The metrics of this run are still being computed.")
    facts = run_facts(found, kept.digest["statuses"], kept.digest["spent"])
    name = "".join(c for c in found.id if c.isascii() and (c.isalnum() or c in "-_"))[:80]
    return HTMLResponse(
        html(Report(found.suite, kept.digest, [facts], found.id)),
        headers={"content-disposition": f'attachment; filename="pennyweight-{name or "run"}.html"'},
    )


def gates(request: Request, site: Site) -> Shown:
    """Show the verdicts of policies on a run."""
    from pennyweight.web import gates as gating  # noqa: PLC0415

    return "gates.html", gating.values(request, site)


def new(request: Request, site: Site) -> Shown:
    """Show the suites that can be run."""
    from pennyweight.api.suites import ANSWER_RULES  # noqa: PLC0415
    from pennyweight.web.rest import providers  # noqa: PLC0415

    known = site.suites.known(site.store.runs())
    return "new.html", {
        "suites": known,
        "chosen": request.query_params.get("suite", ""),
        "answers": ANSWER_RULES,
        "providers": providers(),
    }
