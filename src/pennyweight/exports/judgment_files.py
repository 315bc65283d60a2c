"""Judgments as files in the shape of ProjectScylla's judge protocol: one `judgment.json` each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pennyweight.exports.values import dumped, file_name, iso, parsed

_ATTEMPT = ("tier", "subject", "task_id", "attempt")


def write_judgments(
    folder: Path, judgments: Iterable[Mapping[str, Any]], rubric: Mapping[str, Any]
) -> None:
    """Write `TIER_SUBJECT_TASK_ATTEMPT/judge_NN/judgment.json` for each judgment."""
    made: Counter[str] = Counter()
    for one in judgments:
        name = file_name(*(str(one[column]) for column in _ATTEMPT))
        made[name] += 1
        place = folder / name / f"judge_{made[name]:02}"
        place.mkdir(parents=True)
        (place / "judgment.json").write_bytes(dumped(_judgment(one, rubric)))


def _judgment(one: Mapping[str, Any], rubric: Mapping[str, Any]) -> dict[str, Any]:
    """Return a judgment; scores of items and categories are shares of their points."""
    given = parsed(one["items"])
    items = given if isinstance(given, dict) else {}
    sure = one["confidence"]
    requirements: dict[str, Any] = {}
    categories: dict[str, Any] = {}
    for category in rubric["categories"]:
        points = reached = 0.0
        for item in category["items"]:
            mark = items.get(item["id"])
            mark = mark if isinstance(mark, dict) else {}
            score = mark.get("score")
            counts = isinstance(score, int | float) and item["points"]
            share = score / item["points"] if counts else None
            requirements[item["id"]] = {
                "id": item["id"],
                "score": share,
                "confidence": sure,
                "notes": str(mark.get("evidence") or ""),
            }
            if share is not None and score is not None:
                points, reached = points + item["points"], reached + score
        categories[category["name"]] = {
            "name": category["name"],
            "score": reached / points if points else None,
            "confidence": sure,
            "weight": category["weight"],
            "notes": "",
        }
    return {
        "timestamp": iso(one["at"]),
        "judge_model": one["judge"],
        "is_valid": one["status"] == "ok",
        "score": one["score"],
        "requirements": requirements,
        "categories": categories,
        "summary": {
            "weighted_score": one["score"],
            "passed": one["passed"],
            "overall_confidence": sure,
        },
    }
