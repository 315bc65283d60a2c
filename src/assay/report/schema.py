"""The JSON schema of what `assay score --format json` prints, made from the catalogue."""

from __future__ import annotations

from typing import Any

from assay.catalogue import METRICS
from assay.stats.describe import Statistics

_ENDLESS = {"anyOf": [{"type": ["number", "null"]}, {"enum": ["Infinity", "-Infinity"]}]}
_COUNT = {"type": "integer", "minimum": 0}


def scores_schema() -> dict[str, Any]:
    """Describe the scores of groups of records."""
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
    group = {
        "group": {"type": "object", "description": "The values of the columns grouped by."},
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
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Assay scores",
        "type": "object",
        "properties": {
            "groups": {
                "type": "array",
                "items": {"type": "object", "properties": group, "required": list(group)},
            }
        },
        "required": ["groups"],
    }
