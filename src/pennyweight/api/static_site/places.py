"""The names of a site's files. They depend on what a page shows, so links stay valid."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from pennyweight.record import AttemptKey

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}")


def run_folder(run: str) -> str:
    """Return the folder of a run.

    >>> run_folder("20260101-120000-ab12"), run_folder("../etc")
    ('runs/20260101-120000-ab12', 'runs/run-b7d65a1c8ea981ad')
    """
    return f"runs/{run if _PLAIN.fullmatch(run) else f'run-{_mark(run)}'}"


def record_name(key: AttemptKey) -> str:
    """Return the name of a record, without an ending."""
    return _mark(*key[1:])


def record_file(key: AttemptKey) -> str:
    """Return the page of a record."""
    return f"{record_name(key)}.html"


def task_file(task: str) -> str:
    """Return the page of a task."""
    return f"{_mark(task)}.html"


def list_name(wanted: Mapping[str, Any]) -> str:
    """Return the name of a list of the records that match a filter."""
    return f"list-{_mark(sorted(wanted.items()))}" if wanted else "records"


def page_file(name: str, number: int) -> str:
    """Return a page of something that has several.

    >>> page_file("grid", 1), page_file("grid", 2)
    ('grid.html', 'grid-2.html')
    """
    return f"{name}.html" if number == 1 else f"{name}-{number}.html"


def _mark(*values: Any) -> str:
    written = json.dumps(values, ensure_ascii=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()[:16]
