"""All attempts at one task: a matrix to move in, and the distinct replies side by side."""

from __future__ import annotations

from starlette.requests import Request

from pennyweight.api.pages.records import AttemptKey
from pennyweight.api.pages.run_list import Store
from pennyweight.api.pages.task_attempts import first_attempt, task_attempts
from pennyweight.api.pages.task_page import task_view
from pennyweight.errors import NotFoundError
from pennyweight.web.addresses import is_storable, read_key, run_url, write_key
from pennyweight.web.site import Shown, Site


def _chosen(request: Request, store: Store, run: str) -> AttemptKey:
    """Return the attempt that an address names: a key, or a task with its subject and tier."""
    query = request.query_params
    if not query.get("task"):
        return read_key(run, query.get("key", ""))
    where = {name: query[name] for name in ("subject", "tier") if query.get(name)}
    if not all(map(is_storable, (query["task"], *where.values()))):
        raise NotFoundError("There is no record of this task in this run.")
    return first_attempt(store, run, query["task"], where)


def task(request: Request, site: Site) -> Shown:
    """Show all attempts at a task: which passed, and the distinct replies with differences."""
    state = site.state(request.path_params["run"])
    run, key = state.run, _chosen(request, site.store, state.run.id)
    decided = site.digests.get(run, state=state).digest is not None  # the results of attempts
    found = task_attempts(site.store, key)
    if found is None:
        raise NotFoundError("There is no record of this task in this run.")
    return "task.html", {
        "run": run,
        "decided": decided,
        "v": task_view(site.store, key, found, lambda at: attempt_url(at, "task")),
        "record_of": lambda at: attempt_url(at, "record"),
        "whole_of": lambda at: run_url(run.id, "raw", key=write_key(at._asdict()), part="response"),
    }


def attempt_url(key: AttemptKey, page: str, **keep: str) -> str:
    """Return the address of a page of an attempt, which may keep the filter of a list."""
    return run_url(key.run, page, key=write_key(key._asdict()), **keep)
