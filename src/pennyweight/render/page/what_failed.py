"""What failed most often: checks, items of the rubric, limits, categories and errors.

Each leads to exactly the records that are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pennyweight.render.charts.svg import Link

MAX_ROWS = 6
LIMITS = {"timeout": "out of time", "budget": "out of budget"}
"""The statuses of attempts that a limit ended."""
PARTS = {"check": "Checks that fail most", "rubric": "Items of the rubric that fail most"}


@dataclass(frozen=True, slots=True)
class FailureRow:
    """Something that failed: how often, of how many, and the records."""

    name: str
    failed: int
    of: int | None
    href: str | None

    @property
    def share(self) -> float | None:
        """The share that failed."""
        return self.failed / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class FailureTable:
    """One kind of failures, the most frequent first."""

    title: str
    name: str
    """What a row is."""
    rows: tuple[FailureRow, ...]


def what_failed(digest: Mapping[str, Any], link: Link) -> tuple[FailureTable, ...]:
    """Return the tables of what failed most; those with nothing to say are left out."""
    tables = (
        *(_parts(digest, kind, link) for kind in PARTS),
        _limits(digest, link),
        _categories(digest, link),
        _kinds(digest, link),
        _errors(digest, link),
    )
    return tuple(table for table in tables if table.rows)


def _parts(digest: Mapping[str, Any], kind: str, link: Link) -> FailureTable:
    rows = [
        FailureRow(one["name"], one["failed"], one["of"], link({"failed": f"{kind}:{one['name']}"}))
        for one in digest.get("failing", ())
        if one["kind"] == kind
    ]
    return FailureTable(PARTS[kind], "check" if kind == "check" else "item", _most(rows))


def _limits(digest: Mapping[str, Any], link: Link) -> FailureTable:
    found = digest.get("statuses", {})
    rows = [
        FailureRow(words, found.get(status, 0), sum(found.values()), link({"status": status}))
        for status, words in LIMITS.items()
    ]
    return FailureTable("Attempts ended by a limit", "limit", _most(rows))


def _kinds(digest: Mapping[str, Any], link: Link) -> FailureTable:
    found = digest.get("error_kinds", {})
    rows = [
        FailureRow(kind, number, None, link({"status": "error", "error_kind": kind}))
        for kind, number in found.items()
    ]
    return FailureTable("Kinds of errors", "kind", _most(rows) if len(rows) > 1 else ())


def _categories(digest: Mapping[str, Any], link: Link) -> FailureTable:
    title = "Categories with the most failures"
    found = digest["charts"]["categories"]
    if found is None or found["metric"] not in {"accuracy", "pass_rate"}:
        return FailureTable(title, "category", ())
    flag = "correct" if found["metric"] == "accuracy" else "passed"
    rows = [
        FailureRow(
            row["name"],
            round(row["n"] * (1 - row["value"])),
            row["n"],
            link({"category": row["name"], flag: "no"}),
        )
        for row in found["rows"]
    ]
    return FailureTable(title, "category", _most(rows))


def _errors(digest: Mapping[str, Any], link: Link) -> FailureTable:
    rows = [
        FailureRow(
            one["error"] or "no message",
            one["n"],
            None,
            link({"status": "error", "error": one["error"]}) if one["error"] else None,
        )
        for one in digest["failures"]
    ]
    return FailureTable("Most frequent errors", "error", _most(rows) if len(rows) > 1 else ())


def _most(rows: list[FailureRow]) -> tuple[FailureRow, ...]:
    return tuple(sorted((r for r in rows if r.failed), key=lambda r: -r.failed)[:MAX_ROWS])
