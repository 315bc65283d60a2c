"""How a run grades its records, where that is not part of their tasks, as a digest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pennyweight.text.exam import digest


def grading_digest(settings: Mapping[str, Any]) -> str | None:
    """Return the digest of how a run grades; what an earlier Pennyweight did not store is left out.

    The names of rubrics and judges do not matter. Of settings that are damaged nothing is known.
    """
    try:
        return _digest(settings) if "answer" in settings else None
    except (AttributeError, KeyError, TypeError):
        return None


def _digest(settings: Mapping[str, Any]) -> str | None:
    judge, grading = settings.get("judge"), settings.get("grading")
    parts: dict[str, Any] = {
        "answer": settings["answer"],
        "match": settings.get("match"),
        "confidence": settings.get("confidence") or "none",
        "rubric": "none",
    }
    how: list[Any] = []
    if judge:
        parts["rubric"] = {name: one for name, one in judge["rubric"].items() if name != "name"}
        how = [judge.get("consensus"), judge.get("disagreement")]
    if grading is None:
        parts["judge_names"] = (
            [sorted(judge["judges"]), sorted(judge["more"]), how] if judge else []
        )
        return digest(parts, version="")
    named = [judge["models"], judge["more_models"]] if judge and "models" in judge else []
    parts["scorers"] = sorted(grading["scorers"].items())
    parts["judges"] = [*named, *how, grading["asked"]]
    return digest(parts)
