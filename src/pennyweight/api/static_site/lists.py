"""Lists of records as pages of a site: all of a run, of a side, or of what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pennyweight.api.static_site.places import list_name, page_file, record_file
from pennyweight.record import AttemptKey
from pennyweight.render.page.record_rows import table_rows
from pennyweight.render.static_site import page_text
from pennyweight.store import queries
from pennyweight.store.store import Store, StoredRun

ROWS = 200
"""Records on a page of a list."""
COLUMNS = (
    *("person_verdict", "error_kind", "subject", "tier", "attempt", "category", "input"),
    *("answer", "target", "total_tokens", "latency_ms", "cost_usd"),
)
ALWAYS = frozenset(("attempt", "input"))
"""Columns that are shown even if they are empty."""
FLAGS = {"yes": True, "no": False}
SIDE = {"subject", "tier"}


@dataclass(frozen=True, slots=True)
class RecordLists:
    """The lists that the pages of a run link to; each is written once."""

    known: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)

    def link(self, wanted: Mapping[str, Any], title: str = "") -> str:
        """Return the first page of a list, which will be written."""
        name = list_name(wanted)
        said = title or ", ".join(str(value) for value in wanted.values())
        self.known.setdefault(name, (said, dict(wanted)))
        return page_file(name, 1)

    def side(self, wanted: Mapping[str, Any]) -> str | None:
        """Return the list of a side; other marks of charts have no list."""
        own = {n: v for n, v in wanted.items() if n in SIDE or v not in ("known", (0, None))}
        return self.link(own) if own and set(own) <= SIDE else None


def filter_of(wanted: Mapping[str, Any]) -> queries.Filter:
    """Return the filter of a list, from the words of an address."""
    flags = {n: FLAGS[v] for n, v in wanted.items() if n in queries.FLAGS}
    rest = {n: str(v) for n, v in wanted.items() if n not in queries.FLAGS and n != "q"}
    return queries.Filter(rest, flags, text=str(wanted.get("q", "")))


def list_pages(
    store: Store, run: StoredRun, name: str, title: str, wanted: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield the pages of a list, in the order of the tasks."""
    chosen, after, number, start = filter_of(wanted), None, 1, 1
    while True:
        page = queries.page(
            store, run.id, chosen, after=after, limit=ROWS, columns=frozenset(COLUMNS)
        )
        held = page.columns
        many = len(held["task_id"])
        hrefs = [f"r/{record_file(key)}" for key in _keys(run.id, held)]
        names = [n for n in COLUMNS if n in ALWAYS or any(v is not None for v in held[n])]
        values = {
            "run": run,
            "title": title,
            "columns": names,
            "rows": table_rows(held, names, hrefs),
            "first": start,
            "last": start + many - 1,
            "previous": page_file(name, number - 1) if number > 1 else "",
            "next": page_file(name, number + 1) if page.after else "",
        }
        yield page_file(name, number), page_text("site_records.html", "../../", values)
        if not page.after:
            return
        after = tuple(held[n][-1] for n in queries.ORDER)
        number, start = number + 1, start + many


def _keys(run: str, held: Mapping[str, Any]) -> Iterator[AttemptKey]:
    names = ("subject", "tier", "task_id", "attempt")
    return (AttemptKey(run, *one) for one in zip(*(held[n] for n in names), strict=True))
