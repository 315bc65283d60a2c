"""The values of each page's template."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from pennyweight.api.suites import ANSWER_RULES
from pennyweight.errors import UsageError
from pennyweight.render.view import narrowed_to, run_facts
from pennyweight.web.addresses import file_name
from pennyweight.web.rest import providers
from pennyweight.web.site import Shown, Site


def report(request: Request) -> Response:
    """Answer with the report of a run, to be downloaded."""
    from pennyweight.render.report import Report, html  # noqa: PLC0415

    site: Site = request.app.state.site
    found = site.run(request.path_params["run"])
    cached = site.digests.get(found)
    if cached.digest is None:
        raise UsageError(cached.problem or "The metrics of this run are still being computed.")
    facts = run_facts(found, cached.digest["statuses"], cached.digest["spent"])
    return HTMLResponse(
        html(Report(found.suite, cached.digest, [facts], found.id, narrowed=narrowed_to(found))),
        headers={"content-disposition": f'attachment; filename="{file_name(found.id)}.html"'},
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
