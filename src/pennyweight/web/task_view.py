"""All attempts at one task: a matrix to move in, and the distinct replies side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from pennyweight.api.pages import records as api_records
from pennyweight.api.pages.records import AttemptKey
from pennyweight.api.pages.run_list import Store
from pennyweight.api.pages.task_attempts import (
    MAX_CHARACTERS,
    MAX_REPLIES,
    TaskAttempts,
    first_attempt,
    task_attempts,
)
from pennyweight.errors import NotFoundError
from pennyweight.render.transcript.code import new_page
from pennyweight.render.transcript.record import prompt_turns
from pennyweight.render.transcript.replies import reply_parts
from pennyweight.web.addresses import is_storable, read_key, run_url, write_key
from pennyweight.web.site import Shown, Site


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """An attempt in the matrix; `good` is None where nothing decides it."""

    href: str
    good: bool | None
    failed: bool
    current: bool
    reply: str
    """The letter of its reply, where replies are compared."""
    title: str
    keys: tuple[str, ...] = ()
    """The keys that lead to it."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Sides by attempts."""

    numbers: tuple[int, ...]
    rows: tuple[tuple[str, str, tuple[MatrixCell | None, ...]], ...]
    more: bool
    count: int


def matrix(store: Store, key: AttemptKey, page: str) -> Matrix | None:
    """Read the matrix of a task, whose cells lead to records or to replies side by side."""
    found = task_attempts(store, key, texts=False)
    return None if found is None else _matrix(found, key, page, {})


def _matrix(found: TaskAttempts, key: AttemptKey, page: str, letters: Mapping[str, str]) -> Matrix:
    order = [row for side in found.sides.values() for _, row in sorted(side.items())]
    at = write_key(key._asdict())
    keys = _moves([(write_key(row), _good(row)) for row in order], at)
    rows = tuple(
        (subject, tier, tuple(
            _cell(side[n], key.run, page, at, letters, keys) if n in side else None
            for n in found.numbers
        ))
        for (subject, tier), side in found.sides.items()
    )  # fmt: skip
    return Matrix(tuple(found.numbers), rows, found.more, len(order))


def _good(row: Mapping[str, Any]) -> bool | None:
    """Whether an attempt is right or passed; what failed is neither."""
    if row["status"] != "ok":
        return None
    result = row["correct"] if row["correct"] is not None else row["passed"]
    return None if result is None else bool(result)


def _moves(order: list[tuple[str, bool | None]], at: str) -> dict[str, tuple[str, ...]]:
    """Return the keys that lead to attempts from the current one, going round."""
    here = next((n for n, (key, _) in enumerate(order) if key == at), 0)
    onward = [order[(here + n) % len(order)] for n in range(1, len(order))]
    leads: dict[str, str] = {}
    if onward:
        leads |= {"j": onward[0][0], "k": onward[-1][0]}
    for name, wanted in (("r", True), ("w", False)):
        if to := next((key for key, good in onward if good is wanted), None):
            leads[name] = to
    found: dict[str, tuple[str, ...]] = {}
    for name, to in leads.items():
        found[to] = (*found.get(to, ()), name)
    return found


def _cell(
    row: Mapping[str, Any],
    run: str,
    page: str,
    at: str,
    letters: Mapping[str, str],
    keys: Mapping[str, tuple[str, ...]],
) -> MatrixCell:
    key, good, failed = write_key(row), _good(row), row["status"] != "ok"
    word = row["status"] if failed else {True: "right", False: "wrong", None: "not decided"}[good]
    where = f"{row['subject']}, {row['tier']}, attempt {row['attempt']}"
    letter = letters.get(key, "")
    title = f"{where}: {word}" + (f", reply {letter}" if letter else "")
    href = run_url(run, page, key=key)
    return MatrixCell(href, good, failed, key == at, letter, title, keys.get(key, ()))


def letter_of(number: int) -> str:
    """Return the name of a distinct reply.

    >>> letter_of(0), letter_of(27)
    ('A', '28')
    """
    return chr(ord("A") + number) if number < 26 else str(number + 1)


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
    run = site.run(request.path_params["run"])
    key = _chosen(request, site.store, run.id)
    site.digests.get(run)  # the results of attempts are stored with it
    found = task_attempts(site.store, key)
    if found is None:
        raise NotFoundError("There is no record of this task in this run.")
    row = api_records.row(site.store, key)
    letters = {
        write_key(one): letter_of(reply.number) for reply in found.replies for one in reply.attempts
    }
    new_page()
    return "task.html", {
        "run": run,
        "row": row,
        "key": write_key(row),
        "turns": prompt_turns(None, row["input"], raw=False),
        "found": found,
        "attempts": _matrix(found, key, "task", letters),
        "letter_of": letter_of,
        "reply_parts": reply_parts,
        "write_key": write_key,
        "max_characters": MAX_CHARACTERS,
        "max_replies": MAX_REPLIES,
    }
