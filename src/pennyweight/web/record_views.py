"""The pages of records: the list, one record in full, one of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from pennyweight.api.pages import records as api_records
from pennyweight.api.pages.attempt_matrix import attempt_matrix
from pennyweight.api.pages.record_table import KINDS, record_table
from pennyweight.api.pages.record_view import PARTS, RecordLinks, cut_parts, record_view
from pennyweight.api.pages.records import queries
from pennyweight.api.pages.run_list import StoredRun, state_mark
from pennyweight.api.pages.task_attempts import task_attempts
from pennyweight.errors import NotFoundError, UsageError
from pennyweight.render.page.record_rows import TEXT, table_rows
from pennyweight.render.transcript import trajectory
from pennyweight.render.transcript.code import new_page
from pennyweight.web.addresses import (
    PAGE_SIZE,
    file_name,
    first_number,
    listed_texts,
    read_filter,
    read_key,
    read_place,
    read_sort,
    run_url,
    whole_number,
    write_key,
    write_place,
)
from pennyweight.web.assets import rendered
from pennyweight.web.record_rows import record_hrefs
from pennyweight.web.site import Shown, Site
from pennyweight.web.task_view import attempt_url

COLUMNS = (
    *("person_verdict", "error_kind"),
    *("subject", "tier", "attempt", "category", "input", "answer", "target", "prob_correct"),
    *("cot_tokens", "total_tokens", "latency_ms", "cost_usd"),
)
MORE = ("capability", "response", "step_count", "self_correcting", "prompt_tokens",
        "completion_tokens", "impl_rate", "scenario_score", "violations", "finish")  # fmt: skip
FILTERS = (
    *queries.TEXT_FILTERS,
    *queries.OWN_FILTERS,
    queries.FAILED,
    *queries.FLAGS,
    "q",
    "person",
    *(f"{n}_in" for n in queries.LIST_FILTERS),
    *(f"{n}_{end}" for n in queries.RANGES for end in ("min", "max")),
)


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
    names_in = (
        tuple(digest.get("categories", ())),
        tuple(coverage.get("capabilities", ())),
        tuple(digest.get("filter_kinds", ())),
    )
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
        "rows": table_rows(held, names, record_hrefs(held, base), opens=True),
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
    error_kinds: tuple[str, ...] = ()
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
        "listed": [
            (n, listed_texts(given[f"{n}_in"])) for n in queries.LIST_FILTERS if given[f"{n}_in"]
        ],
        "without": lambda name: {n: v for n, v in given.items() if v and n != name} | chosen,
        "sorts": queries.SORTS,
        "people": queries.PEOPLE,
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
    state = site.state(request.path_params["run"])
    run, key = state.run, read_key(state.run.id, query.get("key", ""))
    decided = site.digests.get(run, state=state).digest is not None  # the results of attempts
    detail = api_records.detail(site.store, run, key)
    wanted, sort = read_filter(query), read_sort(query)
    around = api_records.neighbours(site.store, key, wanted, sort)
    raw = query.get("view") == "raw"
    keep = _filter_of(query) | {n: query.get(n, "") for n in ("sort", "order")}
    written, found = write_key(detail.row), task_attempts(site.store, key, texts=False)
    attempts = None
    if found:
        attempts = attempt_matrix(found, key, lambda at: attempt_url(at, "record", **keep))
    return "record.html", {
        "run": run,
        "v": record_view(detail, attempts, raw=raw, fetched=True),
        "leads": RecordLinks(
            key=written,
            task=run_url(run.id, "task", key=written),
            raw=run_url(run.id, "record", key=written, view="" if raw else "raw", **keep),
            steps=run_url(run.id, "step"),
            texts={n: run_url(run.id, "raw", key=written, part=n) for n in cut_parts(detail.row)},
        ),
        "keep": keep,
        "decided": decided,
        "previous": write_key(around.previous) if around.previous else None,
        "next": write_key(around.next) if around.next else None,
        "verdicts": api_records.VERDICTS,
    }


def step(request: Request, site: Site) -> Shown:
    """Show one step of a record in full, or several (`to`) with at most some length each."""
    run = site.run(request.path_params["run"])
    key = read_key(run.id, request.query_params.get("key", ""))
    row = api_records.row(site.store, key)
    steps, asked = trajectory.trajectory(row), request.query_params.get("n", "")
    number = whole_number(asked)
    if not 1 <= number <= len(steps):
        raise NotFoundError("There is no such step in this record.")
    new_page()
    last = max(number, whole_number(request.query_params.get("to", "")))
    return "record_step.html", {
        "run": run,
        "row": row,
        "key": write_key(row),
        "steps": trajectory.some_steps(steps, number, last),
        "count": len(steps),
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


def table(request: Request) -> Response:
    """Answer with the records that match a filter as a file, in full."""
    site, kind = request.app.state.site, request.path_params["kind"]
    if kind not in KINDS:
        raise NotFoundError(f"Records can be downloaded as {', '.join(KINDS)}.")
    run = site.run(request.path_params["run"])
    wanted = read_filter(request.query_params)
    if wanted.measured:
        site.digests.get(run)  # the measures are stored with it
    parts = record_table(site.store, run.id, wanted, kind)
    named = {"content-disposition": f'attachment; filename="{file_name(run.id)}-records.{kind}"'}
    return StreamingResponse(parts, media_type=KINDS[kind], headers=named)
