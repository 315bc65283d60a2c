"""The JSON schemas of the output of `score`, `compare` and `audit`, made from the catalogue."""

from __future__ import annotations

from typing import Any

from pennyweight.catalogue import METRICS
from pennyweight.scoring.scores import Statistics
from pennyweight.soundness.audit import PROBES

_ENDLESS = {"anyOf": [{"type": ["number", "null"]}, {"enum": ["Infinity", "-Infinity"]}]}
_COUNT = {"type": "integer", "minimum": 0}
_NUMBER = {"type": ["number", "null"]}
_NAME = {"type": ["string", "null"]}

Fields = dict[str, tuple[dict[str, Any], str]]
"""The type and the meaning of each field."""


_ERRORS = {
    "enum": ["exclude", "failures"],
    "description": "What errors count as: they are left out, or have failed.",
}


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
        "tasks": {**_COUNT, "description": "The tasks of the records that are not errors."},
        "metrics": {"type": "object", "properties": metrics},
        "intervals": {"type": "object", "additionalProperties": interval},
        "skipped": {
            "type": "object",
            "additionalProperties": _COUNT,
            "description": "Records that lack a value the metric needs.",
        },
        "skewed": {
            "type": "object",
            "additionalProperties": {"const": True},
            "description": "Metrics that a few tasks decide: their intervals may be too narrow.",
        },
        "statistics": {"type": "object", "additionalProperties": statistics},
        "repeats": _repeats(),
        "pooled": {
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 2},
            "description": "How many subjects, tiers, data sets or tools are averaged over.",
        },
    }


def _repeats() -> dict[str, Any]:
    """Describe the repeated attempts of a group."""
    number = {"type": ["number", "null"]}
    parts = {
        "task": ({"type": "number"}, "The variance between tasks."),
        "attempt": ({"type": "number"}, "The variance between the attempts at a task."),
        "judge": (number, "The variance between the judges of an attempt, if there are several."),
        "icc": (number, "The intraclass correlation: the share of `task` in the sum."),
        "icc_interval": (
            {"type": ["array", "null"], "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
            "The confidence interval of `icc`.",
        ),
        "from_repeats": (
            number,
            "The share of the variance of the mean that endless attempts would remove.",
        ),
        "advice": (
            {"enum": ["tasks", "both", "either", None]},
            "What makes the mean more certain: only more tasks, both, or either.",
        ),
    }
    split = {name: {**kind, "description": text} for name, (kind, text) in parts.items()}
    properties = {
        "k": {**_COUNT, "description": "The k of pass_at_k and the other metrics."},
        "tasks": {**_COUNT, "description": "The tasks that were tried."},
        "attempts": {
            "type": "array",
            "items": _COUNT,
            "minItems": 2,
            "maxItems": 2,
            "description": "The fewest and the most attempts at a task.",
        },
        "variance": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": split,
                "required": list(split),
            },
            "description": "For each value, where its variance comes from.",
        },
    }
    return {
        "type": ["object", "null"],
        "properties": properties,
        "required": list(properties),
        "description": "Repeated attempts; null if no task was tried several times.",
    }


def scores_schema() -> dict[str, Any]:
    """Describe the scores of groups of records."""
    named = {
        "type": "object",
        "description": "The values of the columns that the records are grouped by.",
    }
    group = {"group": named, **_group()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pennyweight scores",
        "type": "object",
        "properties": {
            "groups": {
                "type": "array",
                "items": {"type": "object", "properties": group, "required": list(group)},
            },
            "errors": _ERRORS,
            "weight": {
                "enum": ["records", "tasks"],
                "description": "What weighs the same in a mean: each record or each task.",
            },
            "estimand": {
                "enum": ["tasks-like-these", "these-tasks"],
                "description": "What the intervals are about: the mean over tasks like these "
                "(generalised accuracy), or over these tasks alone (benchmark accuracy).",
            },
            "people": {
                "type": "array",
                "items": _people(),
                "description": "What people's verdicts say about the metrics of each run that "
                "has any; left out if none has, or with --where.",
            },
        },
        "required": ["groups"],
    }


def _people() -> dict[str, Any]:
    """Describe people's verdicts on a run, and the metrics as they correct them."""
    ends = {"type": ["array", "null"], "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    agreement: Fields = {
        "records": (_COUNT, "Records with a verdict of both."),
        "share": (_NUMBER, "The share of records on which they agree."),
        "interval": (ends, "The confidence interval of `share`."),
        "kappa": (_NUMBER, "Cohen's kappa; null where only one value occurs."),
        "kappa_interval": (ends, "The confidence interval of `kappa`."),
    }
    corrected: Fields = {
        "value": (_NUMBER, "The metric as people would have decided it (prediction-powered)."),
        "interval": (ends, "The confidence interval of `value`."),
        "judged": (_NUMBER, "The metric without correction."),
        "records": (_COUNT, "Records with an automatic verdict."),
        "labelled": (_COUNT, "Those of them that people labelled, drawn at random."),
        "to_halve": (
            {"type": ["integer", "null"]},
            "How many more labels would halve the interval; null if none would.",
        ),
    }
    side: Fields = {
        "side": ({"type": "string"}, "The subject and the tier, where there are several."),
        "share": (_object(_described(corrected)), "The corrected metric."),
    }
    metric: Fields = {
        "metric": ({"type": "string"}, "The metric."),
        "agreement": (
            _object(_described(agreement)),
            "How automatic verdicts agree with people's.",
        ),
        "sides": (_list(_described(side)), "Empty without random labels."),
    }
    whole: Fields = {
        "run": ({"type": "string"}, "The run."),
        "people": ({"type": "array", "items": {"type": "string"}}, "Who labelled records."),
        "labelled": (_COUNT, "Records that people call right or wrong, by majority."),
        "undecided": (_COUNT, "Records about which people are unsure or divided."),
        "drawn": (_COUNT, "Records among the labelled that a queue drew at random."),
        "metrics": (_list(_described(metric)), "A metric each."),
        "confidence": (_NUMBER, "The confidence level of the intervals."),
    }
    return _object(_described(whole))


_MISSING = {
    "type": "object",
    "properties": {
        "a": {**_COUNT, "description": "How many results a lacks."},
        "b": {**_COUNT, "description": "How many results b lacks."},
        "errors": {
            **_COUNT,
            "description": "How many of them ended in an error; the others have no verdict.",
        },
        "bounds": {
            "type": "array",
            "items": {"type": "number"},
            "minItems": 2,
            "maxItems": 2,
            "description": "The difference if each of them counts for a and against b, and if each "
            "counts against a and for b. A share or score counts as 0 or 1, another number as the "
            "least and the largest of both sides.",
        },
        "p": {
            "type": "number",
            "description": "The p-value of the observed direction, where they speak against it.",
        },
        "p_adjusted": {"type": "number", "description": "The same, corrected as p_adjusted."},
    },
    "required": ["a", "b", "errors", "bounds", "p", "p_adjusted"],
    "additionalProperties": False,
}
_PAIR: Fields = {
    "a": ({"type": "string"}, "The side that b is compared with."),
    "b": ({"type": "string"}, "The side that is compared."),
    "metric": ({"type": "string"}, "The metric that is compared, or the measure whose mean is."),
    "difference": (_NUMBER, "The mean of b minus the mean of a, over the tasks that both tried."),
    "interval": (
        {"type": ["array", "null"], "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        "The confidence interval of the difference, clustered by task; null for a single task, "
        "or if nothing varied.",
    ),
    "p": (
        _NUMBER,
        "The probability of a difference at least this large if the sides were equal on average "
        "over tasks, however they differ on single tasks.",
    ),
    "p_adjusted": (
        _NUMBER,
        "p of the primary metric, for all pairs of sides at once; of others, corrected by Holm's "
        "method for all of these.",
    ),
    "primary": (
        {"type": "boolean"},
        "Whether the metric is the primary question: interval and p_adjusted hold for all pairs.",
    ),
    "method": (_NAME, "The name of the statistical test."),
    "tasks": (_COUNT, "Tasks that both sides tried."),
    "only_a": (_COUNT, "Tasks that only a tried; they are left out."),
    "only_b": (_COUNT, "Tasks that only b tried; they are left out."),
    "mean_a": (_NUMBER, "The mean of a over the tasks that both tried, each counted once."),
    "mean_b": (_NUMBER, "The mean of b over the same tasks."),
    "cliffs_delta": (
        _NUMBER,
        "Cliff's delta: how much more often a task of b is above one of a than below it.",
    ),
    "detectable": (
        _NUMBER,
        "The smallest true difference found with 80 % power, after the correction for all "
        "comparisons; null if there is none, or if nothing varied.",
    ),
    "tasks_for_5_points": (
        {"type": ["integer", "null"]},
        "How many tasks it takes to find a difference of 0.05 with 80 % power, after the same "
        "correction.",
    ),
    "ratio": (
        _NUMBER,
        "mean_b / mean_a, the ratio of the means over the shared tasks; only for metrics that are "
        "declared as 0 or more without an upper bound (costs, tokens, times), null if a mean is 0.",
    ),
    "ratio_low": (
        _NUMBER,
        "The lower end of the confidence interval of the ratio. It is above 1 only if p is at most "
        "1 - confidence; null for a single task, or if nothing varied.",
    ),
    "ratio_high": (_NUMBER, "The upper end of the confidence interval of the ratio."),
    "long_tail": (
        {"type": "boolean"},
        "Whether there are few tasks for the long tail of one side: tasks that were not tried may "
        "double the ratio.",
    ),
    "missing": (
        {"anyOf": [{"type": "null"}, _MISSING]},
        "The results that the sides lack on these tasks, and what they could change; null if they "
        "lack none.",
    ),
    "errors_decide": (
        {"type": "boolean"},
        "Whether the difference is significant (p_adjusted) only as long as missing results are "
        "left out: then nothing is shown.",
    ),
}
_HELD: Fields = {
    "margin": ({"type": "number"}, "The margin, as a share or in the metric's unit."),
    "margin_of": (
        {"enum": ["difference", "ratio"]},
        "Whether the difference is held against ± margin, or the ratio of means against 1 ± it.",
    ),
    "margin_interval": (
        {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        "The interval of the difference or ratio at 1 - 2 * level, as equivalence tests use it.",
    ),
    "p_no_worse": (
        _NUMBER,
        "The one-sided test that b is no worse than a by more than the margin; null if the metric "
        "has no better direction.",
    ),
    "p_no_worse_adjusted": (_NUMBER, "p_no_worse, corrected by Holm's method."),
    "no_worse": ({"type": ["boolean", "null"]}, "Whether p_no_worse_adjusted is small enough."),
    "p_equivalent": (
        {"type": "number"},
        "The larger p of two one-sided tests (TOST) that a and b differ by less than the margin.",
    ),
    "p_equivalent_adjusted": ({"type": "number"}, "p_equivalent, corrected by Holm's method."),
    "equivalent": ({"type": "boolean"}, "Whether p_equivalent_adjusted is small enough."),
}
"""Only with --margin, and where something varied."""

_STEP: Fields = {
    "from": ({"type": "string"}, "The cheaper side."),
    "to": ({"type": "string"}, "The next more expensive side that passes more often."),
    "cost_difference": (_NUMBER, "How much more an attempt costs, each side over its own tasks."),
    "pass_rate_difference": (
        _NUMBER,
        "How much higher its pass rate is, each side over its own tasks.",
    ),
    "cost_of_further_pass": ({"type": "number"}, "cost_difference / pass_rate_difference."),
}

_RANK: Fields = {
    "name": ({"type": "string"}, "The side."),
    "rank": (_COUNT, "Its rank on the common tasks, 1 for the best."),
    "low": (_COUNT, "The best rank that the data leave open."),
    "high": (_COUNT, "The worst rank that the data leave open."),
    "frontier": (
        _NUMBER,
        "How often it is on the cost frontier when tasks are resampled; null without costs.",
    ),
}

_RANKING: Fields = {
    "metric": ({"type": "string"}, "The metric that the sides are ranked by."),
    "tasks": (_COUNT, "The number of tasks that all sides tried."),
    "groups": (
        {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        "Sides between which no difference is shown, best first; a side can be in several groups.",
    ),
}

_TASK: Fields = {
    "task": ({"type": "string"}, "The task."),
    "values": ({"type": "object"}, "The mean value of each side."),
    "mean": ({"type": "number"}, "The mean of the sides."),
    "difficulty": (_NUMBER, "Its difficulty in logits (Rasch); null with fewer than 8 sides."),
    "discrimination": (
        _NUMBER,
        "Its correlation with the other tasks over the sides; null with fewer than 3 sides.",
    ),
    "influence": (
        {"type": "number"},
        "How far it moves the difference between 'side' and the baseline.",
    ),
    "side": ({"type": "string"}, "The side that it moves most."),
}

_TASKS: Fields = {
    "metric": ({"type": "string"}, "The metric that the values are of."),
    "common": (_COUNT, "The number of tasks that all sides tried."),
    "solved_by_all": (_COUNT, "The number of tasks that every side solves in every attempt."),
    "solved_by_none": (_COUNT, "The number of tasks that no side solves."),
}

_DOMINATED: Fields = {
    "name": ({"type": "string"}, "A side that another one dominates."),
    "by": ({"type": "string"}, "A side that costs no more and passes at least as often."),
}


_OWN = "each side over its own tasks"

_SIDE: Fields = {
    "grade": (_NAME, "The grade of the median composite score."),
    "tier_uplift": (_NUMBER, "The median composite score relative to the baseline's, minus 1."),
    "composite_difference": (_NUMBER, "The median composite score minus the baseline's."),
    "mean_uplift": (
        _NUMBER,
        "The improvement of the mean composite score over the baseline, as a share.",
    ),
}

_ACROSS: Fields = {
    "pass_rate_variance": (_NUMBER, f"Variance of the sides' median results, {_OWN}."),
    "cost_variance": (_NUMBER, f"Variance of the sides' median costs, {_OWN}."),
    "cost_delta": (_NUMBER, f"The largest median cost minus the smallest, {_OWN}."),
}


_PARTS = {"type": "array", "items": {"type": "string"}}
_EXAM: Fields = {
    "tasks": (
        {**_COUNT, "type": ["integer", "null"]},
        "How many tasks several sides tried, by their names; null if none of them changed.",
    ),
    "changed": (_COUNT, "How many of these are not the same on all sides, and are left out."),
    "parts": (
        {"type": "object", "additionalProperties": _COUNT},
        "In how many of them each part differs, such as input, target or checks.",
    ),
    "examples": (
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"task": {"type": "string"}, "parts": _PARTS},
                "required": ["task", "parts"],
            },
        },
        "The first 1,000 of them, each with the parts that differ.",
    ),
    "prompts": (
        _COUNT,
        "On how many tasks only the inputs differ, where the sides are several prompts.",
    ),
    "known": (
        {"type": "object", "additionalProperties": {"enum": ["whole", "parts", "unknown"]}},
        "What each side says of its tasks.",
    ),
    "reruns": (_PARTS, "The commands that try the changed tasks again."),
}


def comparison_schema() -> dict[str, Any]:
    """Describe a comparison of sides."""
    side = {"name": {"type": "string"}, **_group(), **_described(_SIDE)}
    best = {"name": _NAME, "cost_of_pass": _ENDLESS}
    across = {
        **_described(_ACROSS),
        "frontier": {
            "anyOf": [{"type": "null"}, _object(best)],
            "description": f"The side with the cheapest pass, {_OWN}.",
        },
        "marginal": _list(_described(_STEP)),
        "dominated": _list(_described(_DOMINATED)),
    }
    ranking = {**_described(_RANKING), "sides": _list(_described(_RANK))}
    tasks = {**_described(_TASKS), "most_influential": _list(_described(_TASK))}
    whole = {
        "baseline": {"type": "string"},
        "by": {"type": "array", "items": {"type": "string"}},
        "confidence": {"type": "number"},
        "errors": _ERRORS,
        "sides": _list(side),
        "across": {
            **_object(across),
            "description": f"Figures over all sides, {_OWN}. 'pairs' has the figures over the "
            "tasks that two sides both tried.",
        },
        "comparisons": {**_COUNT, "description": "How many tests Holm's method corrects for."},
        "pairs": _list(_described(_PAIR), _described(_HELD)),
        "ranking": {
            "anyOf": [{"type": "null"}, _object(ranking)],
            "description": "The ranks of three or more sides.",
        },
        "tasks": {
            "anyOf": [{"type": "null"}, _object(tasks)],
            "description": "What the tasks that all sides tried contribute, the ten that move "
            "the differences most; 'compare --tasks' lists all.",
        },
        "exam": {
            "anyOf": [{"type": "null"}, _object(_described(_EXAM))],
            "description": "How far the sides took the same exam. Tasks that changed are left out "
            "of everything else.",
        },
        "words": {"type": "array", "items": {"type": "string"}},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pennyweight comparison",
        **_object(whole),
    }


def _described(fields: Fields) -> dict[str, Any]:
    return {name: {**kind, "description": text} for name, (kind, text) in fields.items()}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(properties: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    item = _object(properties)
    item["properties"] = properties | (optional or {})
    return {"type": "array", "items": item}


def audit_schema() -> dict[str, Any]:
    """Describe what `pennyweight audit --format json` prints."""
    text = {"type": "string"}
    probe = {"enum": list(PROBES)}
    flaw = {
        "probe": probe,
        "tasks": {"type": "array", "items": text, "description": "None if it is the suite's."},
        "why": text,
        "reply": {**_NAME, "description": "The reply that was tried."},
        "answer": {**_NAME, "description": "The answer that was found in it."},
    }
    unchecked = {"why": text, "tasks": _COUNT}
    result = {
        "name": probe,
        "asks": text,
        "checked": {**_COUNT, "description": "The tasks that it was tried on."},
        "failed": _COUNT,
        "unchecked": {"type": "array", "items": _closed(unchecked)},
    }
    share = {"type": "number", "minimum": 0, "maximum": 1}
    chance = {"rate": share, "chance": share, "tasks": _COUNT, "targets": _COUNT}
    judging = {"calls": _COUNT, "usd": _NUMBER}
    states = {name: {"enum": ["ok", "fails"]} for name in PROBES}
    properties = {
        "suite": text,
        "path": text,
        "sound": {"type": "boolean", "description": "Whether no flaw was found."},
        "tasks": _COUNT,
        "audited": _COUNT,
        "flaws": {"type": "array", "items": _closed(flaw)},
        "probes": {"type": "array", "items": _closed(result)},
        "chance": {"anyOf": [{"type": "null"}, _closed({**chance, "of_targets": _COUNT})]},
        "judging": {"anyOf": [{"type": "null"}, _closed(judging)]},
        "results": {
            "type": "array",
            "items": {"type": "object", "properties": {"task": text, **states}},
        },
        "words": {"type": "array", "items": text},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pennyweight audit",
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name != "words"],
    }


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    """Describe a mapping that always has these keys."""
    return {"type": "object", "properties": properties, "required": list(properties)}
