"""The values of each page's template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from pennyweight.api.pages import records as api_records
from pennyweight.api.pages.records import queries
from pennyweight.api.pages.run_list import StoredRun, state_mark
from pennyweight.api.pages.side_by_side import digest_sides
from pennyweight.api.runs import INTERRUPTED
from pennyweight.api.suites import ANSWER_RULES
from pennyweight.errors import NotFoundError, UsageError
from pennyweight.render import record as record_texts
from pennyweight.render.charts.catalogue import charts
from pennyweight.render.repeats import repeat_words
from pennyweight.render.view import families, key_figures, narrowed_to, run_facts, side_rows
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
from pennyweight.web.assets import rendered
from pennyweight.web.comparison import chart_links
from pennyweight.web.record_rows import TEXT, table_rows
from pennyweight.web.rest import providers
from pennyweight.web.site import Shown, Site

COLUMNS = (
    *("subject", "tier", "attempt", "category", "input", "answer", "target", "prob_correct"),
    *("cot_tokens", "total_tokens", "latency_ms", "cost_usd"),
)
MORE = ("capability", "response", "step_count", "self_correcting", "prompt_tokens",
        "completion_tokens", "impl_rate", "scenario_score", "violations", "finish")  # fmt: skip
FILTERS = (
    *queries.TEXT_FILTERS,
    *queries.FLAGS,
    "q",
    *(f"{n}_in" for n in queries.LIST_FILTERS),
    *(f"{n}_{end}" for n in queries.RANGES for end in ("min", "max")),
)
PARTS = ("input", "messages", "response", "reasoning", "target", "error", "tool_calls", "work")
UNFINISHED = ("running", "stopped", "failed", INTERRUPTED)
"""Statuses of a run that may continue; its progress is shown."""


def run(request: Request, site: Site) -> Shown:
    """Show one run: its metrics in families, its charts, its sides."""
    now = site.state(request.path_params["run"])
    found, cached = now.run, site.digests.get(now.run, state=now)
    digest = cached.digest
    statuses = digest["statuses"] if digest and cached.current else None
    state, status = None, site.status(found)
    if statuses is None or status != "done":
        state = site.progress(site.state(found.id))  # a digest may just have been made
    live = state is not None and (state.here or status in UNFINISHED)
    spent = digest["spent"] if digest else {}
    errors = state.errors or 0 if state else 0
    counted = statuses or ({"ok": state.made - errors, "error": errors} if state else {})
    remarks = api_records.remarks(site.store, found.id) if now.newest_remark else []
    values: dict[str, Any] = {
        "run": found,
        "status": status,
        "live": live,
        "cached": cached,
        "shown": state.shown if state else "",
        "facts": run_facts(replace(found, status=status), counted, spent, live=live),
        "narrowed": narrowed_to(found),
        "state": state,
        "remarks": remarks,
        "tags": next((r.tags for r in remarks if r.tags is not None), ()),
        "digest": digest,
    }
    if digest:
        values["drawn"] = site.drawn(digest, lambda: _drawn(digest, found.id))
    return "run.html", values


def _drawn(digest: dict[str, Any], run: str) -> Markup:
    """Render a digest."""
    link = chart_links([run], digest_sides(run, digest))
    values = {
        "digest": digest,
        "failed": link({"status": "error"}),
        "figures": key_figures(digest["whole"]),
        "charts": charts(digest, link),
        "families": families(digest["whole"]),
        "sides": side_rows(digest),
        "repeats": repeat_words(digest),
    }
    return rendered("digest.html", values)


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
    form, _ = _form(FilterForm(found.id, _sides(found), tuple(keep.items()), COLUMNS, columns))
    values = {"run": found, "form": form, "problem": problem, "filtered": False, "total": None}
    return "records.html", values


def _records(request: Request, site: Site) -> Shown:
    query = dict(request.query_params)
    now = site.state(request.path_params["run"])
    found, cached = now.run, site.digests.get(now.run, wait=False, state=now)
    wanted, asked = read_filter(query), read_sort(query)
    sort = asked if cached.digest is not None else None
    after, before = query.get("after"), query.get("before")
    chosen = [c for c in query.get("columns", "").split(",") if c in {*COLUMNS, *MORE}]
    page = queries.page(
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
    filled = (found.id, _sides(found), tuple(keep.items()), tuple(names), query.get("columns", ""))
    digest = cached.digest or {}
    coverage = digest.get("charts", {}).get("coverage") or {}
    names_in = (tuple(digest.get("categories", ())), tuple(coverage.get("capabilities", ())))
    form, head = _form(FilterForm(*filled, *names_in, asked, sort))
    total = digest["whole"]["records"] if digest and not any(keep.values()) else None
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
        "measured": cached.digest is not None,
        "shown": state_mark(now.digest_stamp) if cached.digest is not None else "",
        "current": cached.current,
        "total": total,
    }


def _sides(run: StoredRun) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((f"{column}s", tuple(names)) for column, names in run.sides.items())


@dataclass(frozen=True, slots=True)
class FilterForm:
    """What the filter and the head of the table show. Equal forms are rendered once."""

    run: str
    names: tuple[tuple[str, tuple[str, ...]], ...]
    """The subjects and the tiers of the run."""
    wanted: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    chosen: str
    """The columns as a person chose them."""
    categories: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    asked: queries.Sort | None = None
    sort: queries.Sort | None = None


@lru_cache(64)
def _form(form: FilterForm) -> tuple[Markup, Markup]:
    """Render the filter and the table's head, which are the same on every page."""
    given, chosen = dict(form.wanted), {"columns": form.chosen}
    used = [n for n in queries.RANGES if given[f"{n}_min"] or given[f"{n}_max"]]
    unused = [n for n in ("latency_ms", *queries.RANGES) if n not in used]
    values = {
        **{field.name: getattr(form, field.name) for field in fields(form)},
        "names": dict(form.names),
        "wanted": given,
        "filtered": any(given.values()),
        "every": [*COLUMNS, *MORE],
        "statuses": api_records.STATUSES,
        "ranges": queries.RANGES,
        "used_ranges": [*used, *unused[:1]],
        "answers": listed_texts(given["answer_in"]),
        "rest": {n: v for n, v in given.items() if v and n != "answer_in"} | chosen,
        "sorts": queries.SORTS,
        "texts": TEXT,
        "plain": {n: v for n, v in given.items() if v} | chosen,
    }
    return rendered("records_form.html", values), rendered("records_head.html", values)


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
    siblings = queries.siblings(site.store, run.id, key.task_id)
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
        "calls": [] if detail.steps else record_texts.tool_calls(row),
        "steps": detail.steps,
        "work": record_texts.agent_output(row),
        "judgments": detail.judgments,
        "scores": detail.scores,
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
    cached = site.digests.get(found)
    if cached.digest is None:
        raise UsageError(cached.problem or "The metrics of this run are still being computed.")
    facts = run_facts(found, cached.digest["statuses"], cached.digest["spent"])
    name = "".join(c for c in found.id if c.isascii() and (c.isalnum() or c in "-_"))[:80]
    return HTMLResponse(
        html(Report(found.suite, cached.digest, [facts], found.id, narrowed=narrowed_to(found))),
        headers={"content-disposition": f'attachment; filename="pennyweight-{name or "run"}.html"'},
    )


def gates(request: Request, site: Site) -> Shown:
    """Show the verdicts of policies on a run."""
    from pennyweight.web import gates as gating  # noqa: PLC0415

    return "gates.html", gating.values(request, site)


def new(request: Request, site: Site) -> Shown:
    """Show the suites that can be run."""
    runs, damaged = site.store.all_runs()
    known = site.suites.known(runs)
    return "new.html", {
        "damaged": damaged,
        "suites": known,
        "chosen": request.query_params.get("suite", ""),
        "answers": ANSWER_RULES,
        "providers": providers(),
    }
