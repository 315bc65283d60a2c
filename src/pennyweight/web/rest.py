"""The REST API: everything the page can do."""

from __future__ import annotations

import asyncio
import json
import math
import os
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from pennyweight.api import records as api_records
from pennyweight.api.remarks import remark_on_record, remark_on_run
from pennyweight.api.suites import MAX_DATA_BYTES, MAX_SUITE_BYTES, SuiteChoice
from pennyweight.errors import UsageError
from pennyweight.models.providers import PROVIDERS
from pennyweight.web import forms
from pennyweight.web.addresses import (
    read_filter,
    read_key,
    read_place,
    read_sort,
    write_place,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pennyweight.api.run_list import RunRow
    from pennyweight.web.site import Site

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": forms.ErrorAnswer, "description": "What was given makes no sense."},
    401: {"model": forms.ErrorAnswer, "description": "A token is needed."},
    403: {"model": forms.ErrorAnswer, "description": "Not allowed."},
    404: {"model": forms.ErrorAnswer, "description": "There is no such thing."},
    413: {"model": forms.ErrorAnswer, "description": "Too large."},
}
LONGEST = 2_000
"""Characters of a key: two of them, escaped, fit into the 64 kB that an address may have."""
api = APIRouter(prefix="/api", responses=ERRORS)
RunId = Annotated[str, Path(description="A run's id.", max_length=200)]
KeyText = Annotated[
    str, Query(description='A record: ["task", "subject", "tier", attempt]', max_length=LONGEST)
]
BEAT = 1.0


def site_of(request: Request) -> Site:
    """Give the parts of the server."""
    site: Site = request.app.state.site
    return site


@api.get("/session", summary="What this client may do", tags=["session"])
def session(request: Request) -> forms.SessionAnswer:
    """Tell the right, and the text that changes must send as X-Pennyweight-Csrf."""
    right = request.scope["state"]["right"]
    return forms.SessionAnswer(right=right, csrf=site_of(request).access.csrf)


@api.get("/runs", summary="All runs", tags=["runs"])
def runs(request: Request) -> forms.RunsAnswer:
    """List the runs, the newest first."""
    site = site_of(request)
    found = [_listed(row) for row in site.listing().runs()]
    return forms.RunsAnswer(runs=found, waiting=site.digests.waiting)


def _listed(row: RunRow) -> forms.RunAnswer:
    worst = (
        asdict(row.worst) if row.worst else dict.fromkeys(("verdict", "policy", "side", "decided"))
    )
    return forms.RunAnswer(**asdict(row), **worst)


@api.get("/runs/{run}", summary="How far a run is", tags=["runs"])
def progress(request: Request, run: RunId) -> forms.ProgressAnswer:
    """Tell a run's status and how many of its attempts are made."""
    site = site_of(request)
    return forms.ProgressAnswer(**site.progress(site.state(run)))


@api.get("/runs/{run}/digest", summary="The scores of a run", tags=["runs"])
def digest(request: Request, run: RunId) -> forms.DigestAnswer:
    """Give metrics with intervals, by side, and the numbers behind each chart."""
    site = site_of(request)
    kept = site.digests.get(site.run(run))
    return forms.DigestAnswer(current=kept.current, problem=kept.problem, digest=kept.digest)


FILTER = (
    "Other parameters filter: status, subject, tier, category, capability, task_id, answer (equal);"
    " correct, passed, truncated, self_correcting (yes or no); any measure's range as NAME_min and"
    " NAME_max (the high end not included)."
)


@api.get("/runs/{run}/records", summary="Records, a page at a time", tags=["records"],
         description=f"List records in the order of their keys, or sorted by a column: then those "
         f"that are measured, those without a value last. {FILTER}")  # fmt: skip
def records(
    request: Request,
    run: RunId,
    q: Annotated[str, Query(description="Text to find.", max_length=500)] = "",
    after: Annotated[str, Query(description="Those after this key.", max_length=LONGEST)] = "",
    before: Annotated[str, Query(description="Those before this key.", max_length=LONGEST)] = "",
    last: Annotated[bool, Query(description="The last page.")] = False,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    sort: Annotated[str, Query(description="A column to sort by.", max_length=40)] = "",
    order: Annotated[str, Query(description="up or down.", max_length=10)] = "up",
) -> forms.RecordsAnswer:
    """List records in the order of their keys, or sorted by a measure."""
    site = site_of(request)
    by = read_sort({"sort": sort, "order": order})
    found = api_records.page(
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


@api.get("/runs/{run}/count", summary="How many records a filter finds", tags=["records"],
         description=f"Count records, up to 10,000. {FILTER}")  # fmt: skip
def count(
    request: Request, run: RunId, q: Annotated[str, Query(max_length=500)] = ""
) -> forms.CountAnswer:
    """Count records."""
    site = site_of(request)
    wanted = read_filter({**request.query_params, "q": q})
    found = api_records.count(site.store, site.run(run).id, wanted)
    return forms.CountAnswer(count=found.count, more=found.more)


@api.get("/runs/{run}/record", summary="One record in full", tags=["records"])
def record(request: Request, run: RunId, key: KeyText) -> forms.RecordAnswer:
    """Give a record with its measures, its judgments and what people said about it."""
    site = site_of(request)
    stored = site.run(run)
    place = read_key(stored.id, key)
    detail = api_records.detail(site.store, stored, place)
    return forms.RecordAnswer(
        record=_plain(detail.row),
        measures=_plain(detail.measures),
        checks=[asdict(check) for check in detail.checks],
        judgments=[_plain(judgment.row) for judgment in detail.judgments],
        remarks=[{**place._asdict(), **asdict(remark)} for remark in detail.remarks],
    )


@api.post("/runs/{run}/record/remarks", summary="Say something about a record", status_code=201,
          tags=["records"])  # fmt: skip
def remark(request: Request, run: RunId, form: forms.RemarkForm) -> forms.RecordAnswer:
    """Keep a person's verdict and note, with who and when."""
    site = site_of(request)
    place = read_key(site.run(run).id, form.key)
    remark_on_record(site.store, place, who=form.who, verdict=form.verdict, note=form.note)
    return record(request, run, form.key)


@api.post("/runs/{run}/remarks", summary="Tag a run or note something", status_code=201,
          tags=["runs"])  # fmt: skip
def tag(request: Request, run: RunId, form: forms.TagForm) -> forms.RunAnswer:
    """Keep tags (all of them anew, or those that come and go) or a note of a run."""
    site = site_of(request)
    found = site.run(run)
    remark_on_run(site.store, found.id, **form.model_dump())
    return _listed(site.row(found.id))


@api.post("/runs/{run}/verdict", summary="Keep the verdict of a policy", status_code=201,
          tags=["runs"])  # fmt: skip
def verdict(request: Request, run: RunId, form: forms.VerdictForm) -> forms.RunAnswer:
    """Decide on a side of a run by a policy, and keep the verdict with the run."""
    from pennyweight.web import gates as gating  # noqa: PLC0415

    site = site_of(request)
    found = site.run(run)
    where = {"subject": form.subject, "tier": form.tier}
    gating.save(site, found, form.policy, where, form.baseline or "")
    return _listed(site.row(found.id))


@api.get("/suites", summary="Suites that can be run", tags=["new runs"])
def suites(request: Request) -> list[forms.SuiteAnswer]:
    """List the suites this server was shown, and uploads."""
    site = site_of(request)
    return [
        forms.SuiteAnswer(id=s.id, name=s.name, uploaded=s.uploaded)
        for s in site.suites.known(site.store.runs())
    ]


@api.get("/providers", summary="Which providers have a key", tags=["new runs"])
def providers() -> list[forms.ProviderAnswer]:
    """Tell which keys are in the server's environment; never a key itself."""
    return [
        forms.ProviderAnswer(
            name=p.name, key_env=p.key_env, ready=not p.key_env or bool(os.environ.get(p.key_env))
        )
        for p in PROVIDERS.values()
    ]


@api.post("/plan", summary="What a run would take", tags=["new runs"])
def plan(request: Request, form: forms.RunForm) -> forms.PlanAnswer:
    """Plan a run: attempts, tokens, cost, an example prompt. Nothing is called.

    What would keep the run from beginning is an error here too. Who may only look may ask.
    """
    site = site_of(request)
    preview = site.suites.preview(_choice(form), site.store.runs(), plan=True)
    return forms.PlanAnswer(**preview.plan or {})


@api.post("/runs", summary="Begin a run", status_code=201, tags=["new runs"])
def start(request: Request, form: forms.RunForm) -> forms.StartedAnswer:
    """Begin a run as a process of its own; it goes on when the page is closed."""
    site = site_of(request)
    preview = site.suites.preview(_choice(form), site.store.runs())
    return forms.StartedAnswer(run=site.jobs.start(preview.path, preview.text))


def _choice(form: forms.RunForm) -> SuiteChoice:
    return SuiteChoice(form.suite, tuple(form.subjects), tuple(form.tiers), form.runs, form.usd)


@api.post("/runs/{run}/stop", summary="Stop a run", status_code=202, tags=["new runs"])
def stop(request: Request, run: RunId) -> forms.StartedAnswer:
    """End a run that a page began in good order; what was answered is kept."""
    site = site_of(request)
    site.stop(site.run(run))
    return forms.StartedAnswer(run=run)


@api.post("/runs/{run}/resume", summary="Go on with a run", status_code=202, tags=["new runs"])
def resume(request: Request, run: RunId) -> forms.StartedAnswer:
    """Make the attempts of a run that are missing or failed."""
    site = site_of(request)
    return forms.StartedAnswer(run=site.jobs.resume(site.run(run).id))


@api.post("/uploads", summary="Upload a suite or a data set", status_code=201, tags=["new runs"],
          openapi_extra={"requestBody": {"required": True, "content": {
              "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}},
          )  # fmt: skip
async def upload(
    request: Request,
    kind: Annotated[str, Query(description="suite, jsonl, json, csv or parquet", max_length=20)],
    name: Annotated[str, Query(max_length=80)] = "",
    subject: Annotated[list[str] | None, Query(max_length=20)] = None,
    prompt: Annotated[str, Query(max_length=2 * LONGEST)] = "",
    answer: Annotated[str, Query(max_length=200)] = "",
) -> forms.UploadAnswer:
    """Keep what the body holds; of a data set, `subject`, `prompt` and `answer` make a suite."""
    site, size = site_of(request), 0
    most, what = (MAX_SUITE_BYTES, "suite") if kind == "suite" else (MAX_DATA_BYTES, "data set")
    with site.suites.incoming() as file:
        async for part in request.stream():
            size += len(part)
            if size > MAX_DATA_BYTES:
                break
            if size <= most:
                file.write(part)
        if size > most:  # said when all is sent, else some never hear it
            raise HTTPException(413, f"A {what} that is uploaded has at most {most:,} bytes.")
        if not size:
            raise UsageError("The upload is empty.")
        if kind == "suite":
            made = await run_in_threadpool(site.suites.add_suite, file)
        else:
            given = {"name": name, "prompt": prompt, "answer": answer}
            add = partial(site.suites.add_data, file, f".{kind}", subjects=subject or [], **given)
            made = await run_in_threadpool(add)
    return forms.UploadAnswer(suite=made)


@api.get("/runs/{run}/events", summary="Progress, as it happens", tags=["runs"],
         response_class=StreamingResponse,
         responses={200: {"content": {"text/event-stream": {}}}})  # fmt: skip
async def events(
    request: Request, run: RunId, once: Annotated[bool, Query(description="Only one.")] = False
) -> StreamingResponse:
    """Send how far a run is, each second, until it ends; a new request goes on from there."""
    site = site_of(request)
    found = await run_in_threadpool(site.run, run)

    async def stream() -> AsyncIterator[str]:
        last = ""
        while True:
            now = await run_in_threadpool(lambda: site.progress(site.state(found.id)))
            took = now.pop("took")
            text = json.dumps(now)
            yield f"data: {text}\n\n" if text != last else ": \n\n"
            last = text
            over = now["status"] != "running" and not now["here"] and not now["digest"]
            if once or over or await request.is_disconnected():
                return
            await asyncio.sleep(max(BEAT, 10 * took))

    return StreamingResponse(stream(), media_type="text/event-stream")


@api.get("/metrics", summary="What every number means", tags=["catalogue"])
def metrics() -> dict[str, dict[str, Any]]:
    """Give each metric's meaning, formula, range and place in a specification."""
    from pennyweight.catalogue import METRICS  # noqa: PLC0415
    from pennyweight.render.catalogue import facts  # noqa: PLC0415

    return {name: facts(metric) for name, metric in METRICS.items()}


def _plain(row: Any) -> dict[str, Any]:
    """Make values fit for strict JSON."""
    return {k: _value(v) for k, v in dict(row).items()}


def _value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if hasattr(value, "to_list"):
        return value.to_list()
    return value
