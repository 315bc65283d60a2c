"""The REST API: everything that the pages can do."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from dataclasses import asdict, fields
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from pennyweight.api.models import provider_keys
from pennyweight.api.pages import records as api_records
from pennyweight.api.pages.digest_cache import CachedDigest
from pennyweight.api.pages.records import queries
from pennyweight.api.pages.run_list import RunRow
from pennyweight.api.pages.task_grid import grid_answer
from pennyweight.api.runs import delete_run, label_run
from pennyweight.api.suites import MAX_DATA_BYTES, MAX_SUITE_BYTES, SuiteChoice
from pennyweight.errors import UsageError
from pennyweight.render.catalogue import metric_facts
from pennyweight.web import forms
from pennyweight.web.addresses import read_filter, read_key, read_place, read_sort, write_place
from pennyweight.web.site import RunProgress, Site

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": forms.ErrorAnswer, "description": "The request is not valid."},
    401: {"model": forms.ErrorAnswer, "description": "A token is required."},
    403: {"model": forms.ErrorAnswer, "description": "Not allowed."},
    404: {"model": forms.ErrorAnswer, "description": "Not found."},
    413: {"model": forms.ErrorAnswer, "description": "Too large."},
}
MAX_KEY = 2_000
"""Two keys, escaped, fit into the 64 kB of an address."""
api = APIRouter(prefix="/api", responses=ERRORS)
RunId = Annotated[str, Path(description="A run's id.")]
_SEARCHED = (
    'Words to search for, all of them; "a phrase" is whole words in a row, begin* a beginning.'
)
KeyText = Annotated[
    str, Query(description='A record: ["task", "subject", "tier", attempt]', max_length=MAX_KEY)
]
BEAT_SECONDS = 1.0


async def site_of(request: Request) -> Site:
    """Return the parts of the server."""
    site: Site = request.app.state.site
    return site


Here = Annotated[Site, Depends(site_of)]


@api.get("/session", summary="Rights of this client", tags=["session"])
def session(site: Here, request: Request) -> forms.SessionAnswer:
    """Return the right, and the value that changes must send as X-Pennyweight-Csrf."""
    return forms.SessionAnswer(right=request.scope["state"]["right"], csrf=site.access.csrf)


@api.get("/runs", summary="List runs", tags=["runs"])
def runs(site: Here) -> forms.RunsAnswer:
    """List all runs, the newest first."""
    listing = site.listing()
    found = [_listed(row) for row in listing.runs()]
    damaged = [forms.DamagedAnswer(id=d.id, problem=d.problem) for d in listing.damaged]
    return forms.RunsAnswer(runs=found, waiting=site.digests.waiting, damaged=damaged)


def _listed(row: RunRow) -> forms.RunAnswer:
    worst = asdict(row.worst) if row.worst else {}
    return forms.RunAnswer(**{f.name: getattr(row, f.name) for f in fields(row)}, **worst)


@api.get("/runs/{run}", summary="Progress of a run", tags=["runs"])
def progress(site: Here, run: RunId) -> RunProgress:
    """Return the status of a run and how many attempts are done."""
    return site.progress(site.state(run))


@api.get("/runs/{run}/digest", summary="Metrics of a run", tags=["runs"])
def digest(site: Here, run: RunId) -> CachedDigest:
    """Return metrics with intervals, by side, and the data of each chart."""
    return site.digests.get(site.run(run))


@api.get("/runs/{run}/grid", summary="Tasks by sides", tags=["runs"])
def grid(
    site: Here,
    run: RunId,
    by: Annotated[str, Query(description="`subject`, `tier`, or both.", max_length=400)] = "",
    rows: Annotated[str, Query(description="The order of tasks.", max_length=40)] = "difficulty",
    only: Annotated[str, Query(description="`differs`, `wrong` or `flaky`.", max_length=40)] = "",
    start: Annotated[int, Query(alias="from", ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> forms.GridAnswer:
    """Return a part of the grid: the mean result of each side's attempts at each task."""
    digest = site.digests.get(site.run(run)).digest
    chosen = {"rows": rows, "only": only, "from": str(start)}
    return forms.GridAnswer(**grid_answer(site.store, run, digest, by, chosen, limit))


FILTER = (
    "Other parameters filter: status, subject, tier, category, capability, task_id and answer are"
    " compared for equality; result, correct, passed, truncated and self_correcting are yes, no or"
    " known; NAME_min and NAME_max give the range of a measure (NAME_max is excluded); error_kind"
    " is compared too; person is right, wrong, unsure, any, none or differs: what people said."
)


@api.get("/runs/{run}/records", summary="List records", tags=["records"],
         description=f"List records, one page at a time, in the order of their keys or sorted by a "
         f"column: then only measured records, those without a value last. {FILTER}")  # fmt: skip
def records(
    site: Here,
    request: Request,
    run: RunId,
    q: Annotated[str, Query(description=_SEARCHED, max_length=500)] = "",
    after: Annotated[
        str, Query(description="Only records after this place.", max_length=MAX_KEY)
    ] = "",
    before: Annotated[
        str, Query(description="Only records before this place.", max_length=MAX_KEY)
    ] = "",
    last: Annotated[bool, Query(description="Return the last page.")] = False,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    sort: Annotated[str, Query(description="Column to sort by.", max_length=40)] = "",
    order: Annotated[str, Query(description="`up` or `down`.", max_length=10)] = "up",
) -> forms.RecordsAnswer:
    """List records in the order of their keys, or sorted by a measure."""
    by = read_sort({"sort": sort, "order": order})
    found = queries.page(
        site.store,
        site.run(run).id,
        read_filter({**request.query_params, "q": q}),
        after=read_place(after, by) if after else None,
        before=read_place(before, by) if before else None,
        last=last,
        limit=limit,
        sort=by,
    )
    rows = found.rows
    return forms.RecordsAnswer(
        records=[_plain(row) for row in rows],
        after=write_place(rows[-1], by) if rows and found.after else None,
        before=write_place(rows[0], by) if rows and found.before else None,
    )


@api.get("/runs/{run}/count", summary="Count records", tags=["records"],
         description=f"Count the records that match a filter, up to 10,000. {FILTER}")  # fmt: skip
def count(
    site: Here,
    request: Request,
    run: RunId,
    q: Annotated[str, Query(description=_SEARCHED, max_length=500)] = "",
) -> api_records.RecordCount:
    """Count records."""
    wanted = read_filter({**request.query_params, "q": q})
    return api_records.count(site.store, site.run(run).id, wanted)


@api.get("/runs/{run}/record", summary="Get a record", tags=["records"])
def record(site: Here, run: RunId, key: KeyText) -> forms.RecordAnswer:
    """Return a record with its measures, checks, judgments and remarks."""
    stored = site.run(run)
    place = read_key(stored.id, key)
    detail = api_records.detail(site.store, stored, place)
    return forms.RecordAnswer(
        record=_plain(detail.row),
        measures=_plain(detail.measures),
        checks=[asdict(check) for check in detail.checks],
        judgments=[_plain(judgment.row) for judgment in detail.judgments],
        scores=[asdict(score) for score in detail.scores],
        remarks=[{**place._asdict(), **asdict(remark)} for remark in detail.remarks],
    )


@api.post("/runs/{run}/record/remarks", summary="Remark on a record", status_code=201,
          tags=["records"])  # fmt: skip
def remark(site: Here, run: RunId, form: forms.RemarkForm) -> forms.RecordAnswer:
    """Store a person's verdict or note, with name and time."""
    place = read_key(site.run(run).id, form.key)
    api_records.remark_on_record(
        site.store, place, who=form.who, verdict=form.verdict, note=form.note, draw=form.draw
    )
    return record(site, run, form.key)


@api.post("/runs/{run}/remarks", summary="Tag or annotate a run", status_code=201,
          tags=["runs"])  # fmt: skip
def tag(site: Here, run: RunId, form: forms.TagForm) -> forms.RunAnswer:
    """Replace, add or remove tags of a run, or store a note about it."""
    found = site.run(run)
    api_records.remark_on_run(site.store, found.id, **form.model_dump())
    return _listed(site.row(found.id))


@api.post("/runs/{run}/label", summary="Rename or archive a run", status_code=201,
          tags=["runs"])  # fmt: skip
def label(site: Here, run: RunId, form: forms.LabelForm) -> forms.RunAnswer:
    """Give a run a title, or archive it: the list of runs leaves archived runs out."""
    found = site.run(run)
    label_run(found.id, title=form.title, archived=form.archived, store=site.store)
    return _listed(site.row(found.id))


@api.delete("/runs/{run}", summary="Delete a run", tags=["runs"])
def delete(site: Here, run: RunId) -> forms.StartedAnswer:
    """Delete a run with all its records. This cannot be undone."""
    found = site.run(run)
    delete_run(found.id, site.store)
    return forms.StartedAnswer(run=found.id)


@api.post("/runs/{run}/verdict", summary="Save a verdict", status_code=201,
          tags=["runs"])  # fmt: skip
def verdict(site: Here, run: RunId, form: forms.VerdictForm) -> forms.RunAnswer:
    """Decide a policy on a side of a run, and save the verdict with the run."""
    from pennyweight.web import gates as gating  # noqa: PLC0415

    found = site.run(run)
    where = {"subject": form.subject, "tier": form.tier}
    gating.save(site, found, form.policy, where, form.baseline or "")
    return _listed(site.row(found.id))


@api.get("/suites", summary="List suites", tags=["new runs"])
def suites(site: Here) -> list[forms.SuiteAnswer]:
    """List the suites in the folders of this server, and uploads."""
    return [
        forms.SuiteAnswer(id=s.id, name=s.name, uploaded=s.uploaded)
        for s in site.suites.known(site.store.runs())
    ]


@api.get("/providers", summary="List providers", tags=["new runs"])
def providers() -> list[forms.ProviderAnswer]:
    """List the providers, and whether their key is set in the server's environment."""
    return [
        forms.ProviderAnswer(
            name=p.name, key_env=p.key_env or "", ready=not p.key_env or p.key_is_set
        )
        for p in provider_keys()
    ]


@api.post("/plan", summary="Plan a run", tags=["new runs"])
def plan(site: Here, form: forms.RunForm) -> forms.PlanAnswer:
    """Plan a run: attempts, tokens, cost, an example prompt. No model is called.

    Whatever would prevent the run is an error here too. A read-only token suffices.
    """
    preview = site.suites.preview(_choice(form), site.store.runs(), plan=True)
    return forms.PlanAnswer(**preview.plan or {})


@api.post("/runs", summary="Start a run", status_code=201, tags=["new runs"])
def start(site: Here, form: forms.RunForm) -> forms.StartedAnswer:
    """Start a run in a separate process; it continues when the page is closed."""
    preview = site.suites.preview(_choice(form), site.store.runs())
    return forms.StartedAnswer(run=site.jobs.start(preview.path, preview.text, preview.options))


def _choice(form: forms.RunForm) -> SuiteChoice:
    sides = tuple(form.subjects), tuple(form.tiers)
    return SuiteChoice(form.suite, *sides, form.limit, form.runs, form.usd)


@api.post("/runs/{run}/stop", summary="Stop a run", status_code=202, tags=["new runs"])
def stop(site: Here, run: RunId) -> forms.StartedAnswer:
    """Stop a run that a server started. Calls in progress are finished and stored."""
    site.stop(site.run(run))
    return forms.StartedAnswer(run=run)


@api.post("/runs/{run}/resume", summary="Resume a run", status_code=202, tags=["new runs"],
          responses={409: {"model": forms.UntrustedAnswer, "description": "Not trusted yet."}},
          )  # fmt: skip
def resume(
    site: Here,
    run: RunId,
    trust: Annotated[str, Query(description="The value of a 409 answer.", max_length=64)] = "",
) -> forms.StartedAnswer:
    """Make the attempts of a run that are missing or failed.

    Where the suite exists only in the store and would run commands or functions, read files, or
    send keys elsewhere, the answer is 409 and lists all of that. Send its `trust` to allow it.
    """
    return forms.StartedAnswer(run=site.jobs.resume(site.run(run).id, trust))


@api.post("/uploads", summary="Upload a suite or a data set", status_code=201, tags=["new runs"],
          openapi_extra={"requestBody": {"required": True, "content": {
              "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}},
          )  # fmt: skip
async def upload(
    site: Here,
    request: Request,
    kind: Annotated[str, Query(description="suite, jsonl, json, csv or parquet", max_length=20)],
    name: Annotated[str, Query(max_length=80)] = "",
    subject: Annotated[list[str] | None, Query(max_length=20)] = None,
    prompt: Annotated[str, Query(max_length=2 * MAX_KEY)] = "",
    answer: Annotated[str, Query(max_length=200)] = "",
) -> forms.UploadAnswer:
    """Upload a suite, or a data set for which `subject`, `prompt` and `answer` define a suite."""
    size = 0
    most, what = (MAX_SUITE_BYTES, "suite") if kind == "suite" else (MAX_DATA_BYTES, "data set")
    with site.suites.incoming() as file:
        async for part in request.stream():
            size += len(part)
            if size > MAX_DATA_BYTES:
                break
            if size <= most:
                file.write(part)
        if size > most:  # answered after everything is sent: some clients read no earlier answer
            raise HTTPException(413, f"An uploaded {what} may have at most {most:,} bytes.")
        if not size:
            raise UsageError("The upload is empty.")
        if kind == "suite":
            suite = await run_in_threadpool(site.suites.add_suite, file)
        else:
            given = {"name": name, "prompt": prompt, "answer": answer}
            add = partial(site.suites.add_data, file, f".{kind}", subjects=subject or [], **given)
            suite = await run_in_threadpool(add)
    return forms.UploadAnswer(suite=suite)


@api.get("/runs/{run}/events", summary="Stream progress", tags=["runs"],
         response_class=StreamingResponse,
         responses={200: {"content": {"text/event-stream": {}}}})  # fmt: skip
async def events(
    site: Here,
    request: Request,
    run: RunId,
    once: Annotated[bool, Query(description="Send one event only.")] = False,
) -> StreamingResponse:
    """Send the progress of a run each second until it ends, as server-sent events."""
    found = await run_in_threadpool(site.run, run)

    async def stream() -> AsyncIterator[str]:
        last = ""
        while True:
            now = await run_in_threadpool(lambda: site.progress(site.state(found.id)))
            text = json.dumps({n: v for n, v in asdict(now).items() if n != "took"})
            yield f"data: {text}\n\n" if text != last else ": \n\n"
            last = text
            over = now.status != "running" and not now.here and not now.digest
            if once or over or await request.is_disconnected():
                return
            await asyncio.sleep(max(BEAT_SECONDS, 10 * now.took))

    return StreamingResponse(stream(), media_type="text/event-stream")


@api.get("/metrics", summary="List metrics", tags=["catalogue"])
def metrics() -> dict[str, dict[str, Any]]:
    """Return the meaning, formula, range and specification of each metric."""
    return metric_facts()


def _plain(row: Any) -> dict[str, Any]:
    """Return a row as strict JSON: no NaN, no Infinity literal."""
    return {k: _value(v) for k, v in dict(row).items()}


def _value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
