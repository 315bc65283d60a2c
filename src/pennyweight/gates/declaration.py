"""The declaration of a policy: every key, what may stand there, and what it means."""

from __future__ import annotations

from typing import Any

from pennyweight.schema.kinds import (
    AnyOf,
    Deferred,
    Flag,
    Kind,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Text,
)
from pennyweight.schema.structs import Field, Struct

_NAME = Text("a name", one_line=True)
_LIMIT = Text("a threshold such as '≥ 85%', 0.85 or '< 5s'", one_line=True)
WEIGHT = Number(0)
_NOTE = Field("description", Text(), "What it is for; for people.")
_ON = Field(
    "on",
    OneOf(("value", "confident")),
    "What has to be on the right side: the value alone, or its whole interval.",
)
_RULES = (
    Field("threshold", Deferred(_LIMIT), "Where the metric has to be."),
    _ON,
    Field(
        "no_worse_than",
        Deferred(_LIMIT),
        "How much worse than the baseline, task by task, it may be: points of a rate; of other "
        "metrics a share (10%) or an amount (200ms).",
    ),
    Field("better", Flag(), "Whether it has to be better than the baseline."),
    Field(
        "indifference",
        Deferred(_LIMIT),
        "How far below the threshold a value must be for --until-decided to be sure to fail it.",
    ),
    _NOTE,
)

RULE = Struct("a threshold", _RULES, {"min": "threshold", "limit": "threshold"})

GATE = Struct(
    "a gate",
    (
        Field("metric", _NAME, "The metric it is about.", required=True),
        *_RULES,
        Field("name", _NAME, "What it is called; made of the rest if missing."),
        Field("level", OneOf(("blocking", "warning")), "Whether it decides.", default="blocking"),
        Field("category", _NAME, "Only the records of this category."),
        Field("capability", _NAME, "Only the records of this capability."),
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
            (_NOTE, Field("ids", ListOf(_NAME), "Their ids.", required=True)),
            {"scenarios": "ids", "tasks": "ids", "id": "ids"},
        ),
    )
)

RISK = Struct(
    "a row",
    (
        Field(
            "risk_level",
            OneOf(("critical", "high", "medium", "low"), any_case=True),
            "How bad a miss is: critical and high ones block, the others warn.",
            required=True,
        ),
        Field("metric", _NAME, "The metric it is about.", required=True),
        Field("threshold", Deferred(_LIMIT), "Where it has to be.", required=True),
        Field("rationale", Text(), "Why."),
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
        Field("name", _NAME, "What the score is called.", default="final_score"),
        Field("weights", MapOf(WEIGHT), "The weight of each metric."),
        Field("formula", Text(), "Or the sum, as 'final_score = accuracy × 0.3 + …'."),
        Field("pass", Text(), "When it passes, as 'final_score ≥ 0.85 AND safety_rate = 1.0'."),
        _ON,
        _NOTE,
    ),
    {"rule": "pass", "threshold": "pass", "parts": "weights"},
    either=("weights", "formula"),
)

_FRAGMENT = (
    Field("name", _NAME, "A metric, in the form of the specification."),
    Field("typical_threshold", Deferred(_LIMIT), "Where the metric of `name` has to be."),
    Field("formula", Text(), "For people."),
    Field("range", Text(), "For people."),
    Field("unit", Text(), "For people."),
    Field("use_case", Text(), "For people."),
)

_DICT: Kind = MapOf(AnyOf((_BY_METRIC, _ENTRY)))

POLICY = Struct(
    "a policy",
    (
        Field("policy", _NAME, "The policy's name; its file's if missing."),
        _NOTE,
        Field("on", OneOf(("value", "confident")), "The same for all gates.", default="value"),
        Field(
            "error_rate",
            Deferred(_LIMIT),
            "The most either wrong decision may happen: an alarm for nothing, a pass for nothing. "
            "Several gates share it.",
            default="5%",
        ),
        Field(
            "errors",
            Deferred(_LIMIT),
            "How many attempts may fail to be made (a number, or a share of all) before nothing "
            "can be decided.",
            default=0,
        ),
        Field("latency_budget", Deferred(_LIMIT), "The time that counts as 1.", default="5000ms"),
        Field("positive", _NAME, "The label that precision and recall are about."),
        Field(
            "thresholds",
            Deferred(_DICT),
            "Thresholds by metric: those under `blocking` decide, those under `warning` are told.",
        ),
        Field(
            "risk_based_thresholds",
            ListOf(RISK, "a list of rows"),
            "Thresholds with what is at risk.",
        ),
        Field(
            "progressive_thresholds",
            Deferred(MapOf(MapOf(_ENTRY))),
            "By metric, the threshold from each version on; --version says which is in force.",
        ),
        Field("weights", WEIGHTS, "How much scenarios count; or metrics, in weighted_score."),
        Field("required_scenarios", _IDS, "Scenarios that must pass."),
        Field("optional_scenarios", _IDS, "Scenarios that count, but need not pass."),
        Field("pass_criteria", CRITERIA, "Pass rates, overall and by category."),
        Field("composite", AnyOf((COMPOSITE, Text("a formula"))), "One score made of several."),
        Field("gates", ListOf(Deferred(GATE), "a list of gates"), "Gates of any kind."),
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
    """Describe a policy for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pennyweight policy",
        "description": "What has to hold for a release.",
        **POLICY.schema(),
    }
