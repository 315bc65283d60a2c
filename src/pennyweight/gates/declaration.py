"""The declaration of a policy: every key with its kind of value and its meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pennyweight.schema.kinds import AnyOf, Deferred, Flag, Kind, ListOf, MapOf, Number, OneOf, Text
from pennyweight.schema.structs import Field, Struct

_NAME = Text("a name", one_line=True)
_LIMIT = Text("a threshold such as '≥ 85%', 0.85 or '< 5s'", one_line=True)
WEIGHT = Number(0)
_NOTE = Field("description", Text(), "A description for readers.")
_BASIS = OneOf(("value", "confident"))
_ON = Field("on", _BASIS, "Whether the value or its whole interval must meet the threshold.")
_RULES = (
    Field("threshold", Deferred(_LIMIT), "The threshold of the metric."),
    _ON,
    Field(
        "no_worse_than",
        Deferred(_LIMIT),
        "How much worse than the baseline it may be, compared task by task: points for a rate; "
        "for other metrics a share (10%) or an amount (200ms).",
    ),
    Field("better", Flag(), "Whether it must be better than the baseline."),
    Field(
        "k",
        Number(1, whole=True),
        "The k of pass_at_k and other metrics of repeated attempts; by default the number of "
        "attempts that every task has.",
    ),
    Field("n", Number(1, whole=True), "The n of k_of_n; by default as for k."),
    Field("tau", Number(0, 1), "The share of k attempts that g_pass_at_k is about (default: 0.5)."),
    Field(
        "indifference",
        Deferred(_LIMIT),
        "How far below the threshold a value must be for --until-decided to be sure to fail it.",
    ),
    _NOTE,
)

_LEVEL = OneOf(("blocking", "warning"))
RULE = Struct("a threshold", _RULES, {"min": "threshold", "limit": "threshold"})

GATE = Struct(
    "a gate",
    (
        Field("metric", _NAME, "The metric.", required=True),
        *_RULES,
        Field("name", _NAME, "The name of the gate; derived from the other keys if missing."),
        Field("level", _LEVEL, "Whether the gate blocks or only warns.", default="blocking"),
        Field("category", _NAME, "Use only the records of this category."),
        Field("capability", _NAME, "Use only the records of this capability."),
    ),
    {"value": "threshold", "min": "threshold", "limit": "threshold", "where": "category"},
)

_ENTRY = AnyOf((RULE, _LIMIT))
_BY_METRIC = MapOf(_ENTRY)
_IDS = AnyOf(
    (
        ListOf(_NAME, "a list of scenarios"),
        Struct(
            "scenarios",
            (_NOTE, Field("ids", ListOf(_NAME), "The ids of the scenarios.", required=True)),
            {"scenarios": "ids", "tasks": "ids", "id": "ids"},
        ),
    )
)

_RISKS = OneOf(("critical", "high", "medium", "low"), any_case=True)
RISK = Struct(
    "a row",
    (
        Field("risk_level", _RISKS, "Critical and high block, medium and low warn.", required=True),
        Field("metric", _NAME, "The metric.", required=True),
        Field("threshold", Deferred(_LIMIT), "The threshold of the metric.", required=True),
        Field("rationale", Text(), "The reason for the threshold."),
        _ON,
    ),
    {"risk": "risk_level", "level": "risk_level", "reason": "rationale"},
)

CRITERIA = Struct(
    "pass_criteria",
    (
        Field("overall", Deferred(_ENTRY), "The pass rate of all scenarios."),
        Field("by_category", Deferred(_BY_METRIC), "The pass rate of each category."),
        Field("by_capability", Deferred(_BY_METRIC), "The pass rate of each capability."),
        _NOTE,
    ),
    {"category": "by_category", "capability": "by_capability", "all": "overall"},
)

WEIGHTS = Struct(
    "weights",
    (
        Field("by_category", MapOf(WEIGHT), "The weight of each category's scenarios."),
        Field("by_capability", MapOf(WEIGHT), "The weight of each capability's scenarios."),
        _NOTE,
    ),
    {"category": "by_category", "categories": "by_category", "capability": "by_capability"},
    open=True,
)

COMPOSITE = Struct(
    "composite",
    (
        Field("name", _NAME, "The name of the score.", default="final_score"),
        Field("weights", MapOf(WEIGHT), "The weight of each metric."),
        Field("formula", Text(), "Instead of weights, such as 'final_score = accuracy × 0.3 + …'."),
        Field("pass", Text(), "Conditions, such as 'final_score ≥ 0.85 AND safety_rate = 1.0'."),
        _ON,
        _NOTE,
    ),
    {"rule": "pass", "threshold": "pass", "parts": "weights"},
    either=("weights", "formula"),
)

_COMPOSITE = AnyOf((COMPOSITE, Text("a formula")))
_FRAGMENT = (
    Field("name", _NAME, "The name of a metric, in the form of the specification."),
    Field("typical_threshold", Deferred(_LIMIT), "The threshold of the metric in `name`."),
    *(Field(n, Text(), "For readers only.") for n in ("formula", "range", "unit", "use_case")),
)

_DICT: Kind = MapOf(AnyOf((_BY_METRIC, _ENTRY)))
POLICY = Struct(
    "a policy",
    (
        Field("policy", _NAME, "The name of the policy; that of its file if missing."),
        _NOTE,
        replace(_ON, default="value"),
        Field(
            "error_rate",
            Deferred(_LIMIT),
            "The highest probability of a wrong decision, either way. All gates share it.",
            default="5%",
        ),
        Field(
            "errors",
            Deferred(_LIMIT),
            "How many attempts may fail with an error (a number, or a share of all) before the "
            "verdict is inconclusive.",
            default=0,
        ),
        Field(
            "latency_budget",
            Deferred(_LIMIT),
            "The latency that counts as 1 in normalized_latency.",
            default="5000ms",
        ),
        Field("positive", _NAME, "The positive label of precision and recall."),
        Field(
            "thresholds",
            Deferred(_DICT),
            "Thresholds by metric: those under `blocking` decide, those under `warning` only warn.",
        ),
        Field(
            "risk_based_thresholds", ListOf(RISK, "a list of rows"), "Thresholds with a risk level."
        ),
        Field(
            "progressive_thresholds",
            Deferred(AnyOf((MapOf(MapOf(_ENTRY)), ListOf(MapOf(_ENTRY), "a list of rows")))),
            "For each metric, the threshold from each version on, or rows of a version and its "
            "thresholds; --version selects the version.",
        ),
        Field("weights", WEIGHTS, "The weights of scenarios, or of the metrics in weighted_score."),
        Field("required_scenarios", _IDS, "Scenarios that must pass."),
        Field("optional_scenarios", _IDS, "Scenarios that count but do not have to pass."),
        Field("pass_criteria", CRITERIA, "Pass rates, overall and by category."),
        Field("composite", _COMPOSITE, "A score that combines several metrics."),
        Field("gates", ListOf(Deferred(GATE), "a list of gates"), "A list of gates."),
        *_FRAGMENT,
    ),
    {
        "blocking": "thresholds.blocking",
        "warning": "thresholds.warning",
        "required": "required_scenarios",
        "optional": "optional_scenarios",
        "risk": "risk_based_thresholds",
        "progressive": "progressive_thresholds",
        "alpha": "error_rate",
        "confidence": "error_rate",
        "max_errors": "errors",
        "criteria": "pass_criteria",
    },
)


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a policy, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pennyweight policy",
        "description": "The conditions for a release.",
        **POLICY.schema(),
    }
