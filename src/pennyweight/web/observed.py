"""What was checked in one record, and what judges said of it, for its page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pennyweight.store import queries as look

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from pennyweight.runs.observations import Observer
    from pennyweight.store.queries import Key
    from pennyweight.store.store import Run, Store

ROLES = {"expected": "expected", "must_not": "must not", "checks": "check"}
LARGE = 20_000
"""Attempts from which a judge's consensus is not joined to a single record."""


def observer_of(run: Run, store: Store, key: Key) -> Observer | None:
    """Make an observer that knows this one record, and reads nothing else of the run."""
    from pennyweight.checks.scenario import Scenario  # noqa: PLC0415
    from pennyweight.runs.observations import Observer  # noqa: PLC0415
    from pennyweight.store.verdicts import Given  # noqa: PLC0415
    from pennyweight.text.extraction import AnswerRule  # noqa: PLC0415

    text = look.scenario(store, run.id, key[0])
    if text is None:
        return None
    given = [Given(**one) for one in look.given(store, run.id, key)]
    task, subject, tier, attempt = key
    rule = AnswerRule.of(run.settings)
    return Observer({task: Scenario.of(text)}, {(subject, tier, task, attempt): given}, rule)


def judged(frame: pl.DataFrame, run: Run, store: Store) -> pl.DataFrame:
    """Join what the judges agreed on."""
    if "judge" not in run.settings or run.attempts > LARGE:
        return frame
    from pennyweight.runs.panel import Panel  # noqa: PLC0415

    panel = Panel.of(run, store)
    return frame if panel is None else panel.join(frame)


def checks(observer: Observer | None, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List every behaviour and check with its verdict, whether that is good, and the evidence."""
    seen = observer.look(row) if observer else None
    if seen is None:
        return []
    return [
        {
            "role": ROLES.get(role, role),
            "name": behaviour.name,
            "good": None if said.holds is None else said.holds is not (role == "must_not"),
            "why": said.why,
            "evidence": [one.plain() for one in said.evidence],
        }
        for role, behaviour, said in seen.verdicts
    ]


def spans(found: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Give the places in the reply on which checks rest."""
    return [
        (one["start"], one["end"])
        for check in found
        for one in check["evidence"]
        if one.get("of") == "response" and one.get("start") is not None
    ]


def points(settings: Mapping[str, Any]) -> dict[str, float]:
    """Give the most that each item of a run's rubric can be marked with."""
    rubric = (settings.get("judge") or {}).get("rubric") or {}
    items = [item for category in rubric.get("categories", ()) for item in category["items"]]
    return {str(item["id"]): item["points"] for item in items}


def judgment(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read a judgment with its items: a score and the evidence for each."""
    try:
        read = json.loads(row.get("items") or "{}")
    except ValueError:
        read = {}
    pairs = read.items() if isinstance(read, dict) else ()
    items = [{"name": str(name), **one} for name, one in pairs if isinstance(one, dict)]
    return {**row, "marks": items}
