"""The JSON schemas of the output of `score` and `compare`, generated from the catalogue."""

from __future__ import annotations

from typing import Any

from pennyweight.catalogue import METRICS
from pennyweight.scoring.scores import Statistics

_ENDLESS = {"anyOf": [{"type": ["number", "null"]}, {"enum": ["Infinity", "-Infinity"]}]}
_COUNT = {"type": "integer", "minimum": 0}


def _group() -> dict[str, Any]:
    """Describe the scores of some records."""
    metrics = {
        m.name: {
            "description": m.summary,
            **({"type": ["string", "null"]} if m.range is None and not m.better else _ENDLESS),
        }
        for m in METRICS.values()
    }
    ends = {"anyOf": [_ENDLESS, {"type": "string"}]}
    interval = {
        "anyOf": [{"type": "null"}, {"type": "array", "items": ends, "minItems": 2, "maxItems": 2}]
    }
    statistics = {
        "type": ["object", "null"],
        "properties": dict.fromkeys(Statistics.__dataclass_fields__, _ENDLESS),
        "required": list(Statistics.__dataclass_fields__),
    }
    return {
        "records": {**_COUNT, "description": "All records, errors included."},
        "errors": {**_COUNT, "description": "Attempts that could not be made."},
        "metrics": {"type": "object", "properties": metrics},
        "intervals": {"type": "object", "additionalProperties": interval},
        "skipped": {
            "type": "object",
            "additionalProperties": _COUNT,
            "description": "Records that lack what a metric needs.",
        },
        "statistics": {"type": "object", "additionalProperties": statistics},
    }


def scores_schema() -> dict[str, Any]:
    """Describe the scores of groups of records."""
    named = {"type": "object", "description": "The values of the columns grouped by."}
    group = {"group": named, **_group()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pennyweight scores",
        "type": "object",
        "properties": {
            "groups": {
                "type": "array",
                "items": {"type": "object", "properties": group, "required": list(group)},
            }
        },
        "required": ["groups"],
    }


_NUMBER = {"type": ["number", "null"]}
_NAME = {"type": ["string", "null"]}

_PAIR: dict[str, tuple[dict[str, Any], str]] = {
    "a": ({"type": "string"}, "The side compared with."),
    "b": ({"type": "string"}, "The side compared."),
    "metric": ({"type": "string"}, "What is compared: a metric, or a measure by its mean."),
    "difference": (_NUMBER, "The mean of b minus a over the tasks that both tried."),
    "interval": (
        {"type": ["array", "null"], "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        "Its interval, clustered by task; null for one task, or if nothing varied.",
    ),
    "p": (
        _NUMBER,
        "How probable such a difference is between sides that are equal on average over tasks, "
        "however they differ task by task.",
    ),
    "p_adjusted": (_NUMBER, "The same by Holm's method, over all comparisons of the report."),
    "method": (_NAME, "The test."),
    "tasks": (_COUNT, "Tasks that both sides tried."),
    "only_a": (_COUNT, "Tasks that only a tried; they stay out."),
    "only_b": (_COUNT, "Tasks that only b tried; they stay out."),
    "mean_a": (_NUMBER, "The mean of a over the common tasks, each counting once."),
    "mean_b": (_NUMBER, "The mean of b over them."),
    "cliffs_delta": (_NUMBER, "How much oftener a task of b is above one of a than below."),
    "detectable": (
        _NUMBER,
        "The smallest difference seen with 80 % power after the correction for all comparisons; "
        "null if none is, or nothing varied.",
    ),
    "tasks_for_5_points": (
        {"type": ["integer", "null"]},
        "How many tasks show a difference of 0.05 with 80 % power after the same correction.",
    ),
}

_STEP: dict[str, tuple[dict[str, Any], str]] = {
    "from": ({"type": "string"}, "The cheaper side."),
    "to": ({"type": "string"}, "The next dearer side that passes more often."),
    "cost_difference": (_NUMBER, "How much more an attempt costs, each over its own tasks."),
    "pass_rate_difference": (_NUMBER, "How much oftener it passes, each over its own tasks."),
    "cost_of_further_pass": ({"type": "number"}, "One by the other."),
}

_DOMINATED: dict[str, tuple[dict[str, Any], str]] = {
    "name": ({"type": "string"}, "A side that is no step on the way."),
    "by": ({"type": "string"}, "One that costs no more and passes no less often."),
}


def comparison_schema() -> dict[str, Any]:
    """Describe a comparison of sides."""
    letter = {**_NAME, "description": "The grade of the median composite score."}
    side = {
        "name": {"type": "string"},
        **_group(),
        "grade": letter,
        "tier_uplift": {**_NUMBER, "description": "Median composite over the baseline's, less 1."},
        "composite_difference": {**_NUMBER, "description": "The same as a plain difference."},
    }
    best = {"name": _NAME, "cost_of_pass": _ENDLESS}
    own = "each side over its own tasks"
    across = {
        "pass_rate_variance": {
            **_NUMBER,
            "description": f"Variance of the sides' median results, {own}.",
        },
        "cost_variance": {**_NUMBER, "description": f"Variance of their median costs, {own}."},
        "cost_delta": {
            **_NUMBER,
            "description": f"From the smallest median cost to the largest, {own}.",
        },
        "frontier": {
            "anyOf": [{"type": "null"}, _object(best)],
            "description": f"The cheapest pass, {own}.",
        },
        "marginal": _list(_told(_STEP)),
        "dominated": _list(_told(_DOMINATED)),
    }
    whole = {
        "baseline": {"type": "string"},
        "by": {"type": "array", "items": {"type": "string"}},
        "confidence": {"type": "number"},
        "sides": _list(side),
        "across": {
            **_object(across),
            "description": "What holds over all sides, each over its own tasks; 'pairs' has what "
            "holds on the tasks that two sides both tried.",
        },
        "comparisons": {**_COUNT, "description": "How many tests Holm's method corrects for."},
        "pairs": _list(_told(_PAIR)),
        "words": {"type": "array", "items": {"type": "string"}},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pennyweight comparison",
        **_object(whole),
    }


def _told(fields: dict[str, tuple[dict[str, Any], str]]) -> dict[str, Any]:
    return {name: {**kind, "description": text} for name, (kind, text) in fields.items()}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": _object(properties)}
