"""The checks and items of the rubric that records failed: which, how often, of how many.

The commands that verify an agent's work are checks too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import polars as pl

from pennyweight.record import KEY_IN_RUN
from pennyweight.scoring.digest import FailingPart
from pennyweight.store.filters import failed_mark
from pennyweight.store.store import Store, StoredRun
from pennyweight.stored_runs.panel import Panel

MAX_PARTS = 50
MAX_NAME = 200
"""The characters of a command by which it is known."""
CHECK, RUBRIC = "check", "rubric"
Key = tuple[Any, ...]
"""The values of `KEY_IN_RUN`."""


class FailingParts:
    """Marks each record with the checks and items that it failed, and counts them."""

    def __init__(self, run: StoredRun, store: Store) -> None:
        self._tried: Counter[tuple[str, str]] = Counter()
        self._failed: Counter[tuple[str, str]] = Counter()
        self._apart: dict[Key, dict[tuple[str, str], bool]] = {}
        for kind, found in ((RUBRIC, _items(run, store)), (CHECK, _verified(run, store))):
            for key, parts in found:
                own = self._apart.setdefault(key, {})
                own |= {(kind, name): good for name, good in parts.items()}

    def add(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Replace the column `checks` by the column `failed`."""
        checked = "checks" in batch.columns and batch["checks"].null_count() < batch.height
        if not checked and not self._apart:
            return batch.drop("checks", strict=False)
        texts = batch["checks"] if "checks" in batch.columns else [None] * batch.height
        keys = batch.select(KEY_IN_RUN).iter_rows() if self._apart else iter([()] * batch.height)
        marks = [self._mark(text, key) for text, key in zip(texts, keys, strict=True)]
        failed = pl.Series("failed", marks, dtype=pl.String)
        return batch.drop("checks", strict=False).with_columns(failed)

    def _mark(self, text: str | None, key: Key) -> str | None:
        found = {(CHECK, name): good for name, good in _checks(text).items()}
        found |= self._apart.get(key, {})
        self._tried.update(list(found))
        failed = [part for part, good in found.items() if not good]
        self._failed.update(failed)
        return failed_mark(f"{kind}:{name}" for kind, name in failed) if failed else None

    def counted(self) -> list[FailingPart]:
        """Return the parts that failed, the most frequent first."""
        return [
            {"kind": kind, "name": name, "failed": number, "of": self._tried[kind, name]}
            for (kind, name), number in self._failed.most_common(MAX_PARTS)
        ]


def _checks(text: str | None) -> dict[str, bool]:
    """Return whether a record did well in each of its checks that were decided."""
    if not text:
        return {}
    listed: Any = None
    with suppress(ValueError, RecursionError):
        listed = json.loads(text)
    found: dict[str, bool] = {}
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and isinstance(one.get("holds"), bool):
            name, good = str(one.get("name")), one["holds"] is not (one.get("role") == "must_not")
            found[name] = found.get(name, True) and good
    return found


def _verified(run: StoredRun, store: Store) -> Iterator[tuple[Key, dict[str, bool]]]:
    """Yield whether the work of each attempt of an agent meets the commands that verify it."""
    if "command" not in run.text:  # every agent has one
        return
    for records in store.records(run.id, {*KEY_IN_RUN, "work"}):
        for *key, text in records.select(*KEY_IN_RUN, "work").drop_nulls("work").iter_rows():
            work: Any = None
            with suppress(ValueError, RecursionError):
                work = json.loads(text)
            listed = work.get("checks") if isinstance(work, dict) else None
            found: dict[str, bool] = {}
            for one in listed if isinstance(listed, list) else ():
                if isinstance(one, dict) and isinstance(one.get("holds"), bool):
                    command = " ".join(str(one.get("command")).split())
                    name = f"{one.get('check')}: {command}"[:MAX_NAME]
                    found[name] = found.get(name, True) and one["holds"]
            if found:
                yield tuple(key), found


def _items(run: StoredRun, store: Store) -> Iterator[tuple[Key, dict[str, bool]]]:
    """Yield whether each judged record reached the rubric's pass mark in each of its items."""
    panel = Panel.of(run, store, items=True) if run.settings.get("judge") else None
    if panel is None:
        return
    rubric: Mapping[str, Any] = panel.rules["rubric"]
    points = {
        str(item["id"]): item["points"]
        for category in rubric.get("categories", ())
        for item in category["items"]
    }
    for records in store.records(run.id, {*KEY_IN_RUN, "ended"}):
        judged = panel.current(records).filter(pl.col("status") == "ok")
        shares: dict[Key, dict[str, list[float]]] = {}
        for *key, text in judged.select(*KEY_IN_RUN, "items").iter_rows():
            given: Any = None
            with suppress(ValueError, RecursionError, TypeError):
                given = json.loads(text)
            for name, item in given.items() if isinstance(given, dict) else ():
                score = item.get("score") if isinstance(item, dict) else None
                if points.get(name) and isinstance(score, int | float):
                    own = shares.setdefault(tuple(key), {})
                    own.setdefault(name, []).append(score / points[name])
        for place, items in shares.items():
            yield place, {n: sum(v) / len(v) >= rubric["pass_mark"] for n, v in items.items()}
