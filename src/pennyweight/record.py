"""The record: every column an attempt leaves behind, its type and its meaning.

This is the one contract between all parts. The loader, the checks on input, the JSON schema and
the reference page are made from `COLUMNS`.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

Type = Literal["string", "integer", "number", "boolean", "strings", "numbers", "time"]

STATUSES = ("ok", "error", "timeout", "budget")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the record."""

    name: str
    type: Type
    meaning: str
    aliases: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()


def _text(name: str, meaning: str, *aliases: str, choices: tuple[str, ...] = ()) -> Column:
    return Column(name, "string", meaning, aliases, choices=choices)


def _count(name: str, meaning: str, *aliases: str, minimum: float = 0) -> Column:
    return Column(name, "integer", meaning, aliases, minimum)


def _number(name: str, meaning: str, *aliases: str, maximum: float | None = None) -> Column:
    return Column(name, "number", meaning, aliases, 0, maximum)


COLUMNS: tuple[Column, ...] = (
    _text("task_id", "Which task this was.", "id", "task", "question_id", "example_id", "doc_id"),
    _text("subject", "What was measured: a model or an agent with its settings.", "model", "agent"),
    _text("tier", "The configuration of the subject, such as T0 or T1."),
    _count(
        "attempt",
        "Which try at this task it was, counting from 1.",
        *("run_number", "trial", "repeat"),
        minimum=1,
    ),
    _text("run", "The run that the record belongs to.", "run_id"),
    _text(
        "status",
        "How the attempt ended: `ok`; `error` (the model could not be reached or the harness "
        "broke: left out of every quality metric); `timeout` or `budget` (an agent ran out of it: "
        "not passed). Missing means `ok`, or `error` when `error` has text.",
        choices=STATUSES,
    ),
    _text("error", "What went wrong, for a record with status `error`.", "error_message"),
    Column("truncated", "boolean", "Whether the response was cut at the token limit."),
    _text("input", "The task as it was put.", "question", "prompt"),
    _text(
        "response",
        "The whole reply, in which the final answer and the chain of thought are found.",
        *("output", "completion"),
    ),
    _text("reasoning", "What the provider gave as reasoning, apart from the reply."),
    _text("logprobs", "The reply's tokens with their log-probabilities, as a JSON list of pairs."),
    _text(
        "target",
        "The right answer.",
        *("expected_answer", "ground_truth", "gold", "reference", "label"),
    ),
    _text(
        "answer",
        "The final answer that was given; missing when none could be found in the response.",
        *("prediction", "predicted", "model_answer", "final_answer"),
    ),
    _text(
        "cot",
        "The chain of thought.",
        *("chain_of_thought", "reasoning_content", "thinking", "rationale"),
    ),
    _number(
        "prob_correct",
        "How probable the subject said it was that its answer is right.",
        *("confidence", "probability"),
        maximum=1,
    ),
    _count("prompt_tokens", "Tokens that went in, from the provider's usage.", "input_tokens"),
    _count("completion_tokens", "Tokens that came out.", "output_tokens"),
    _number("latency_ms", "Milliseconds that the successful call took.", "latency"),
    Column(
        "correct",
        "boolean",
        "Whether the answer is right; used only where there is no target to compare with.",
        ("is_correct",),
    ),
    Column("passed", "boolean", "Whether the attempt passed, where that was decided.", ("pass",)),
    _number(
        "impl_rate",
        "How much of what was required is there: the judge's weighted score.",
        *("weighted_score", "judge_score"),
        maximum=1,
    ),
    Column(
        "judge_passed",
        "boolean",
        "Whether the judges let it pass; decides where neither `passed` nor a scenario does.",
    ),
    Column(
        "judge_scores",
        "numbers",
        "The score of each judge whose judgment is valid. Empty where judges were to be asked and "
        "none gave a valid one: then nothing else decides in their place.",
        minimum=0,
        maximum=1,
    ),
    _number("judge_cost_usd", "What judging the attempt cost; never part of `cost_usd`."),
    _number("cost_usd", "What the attempt cost in US dollars.", "cost", "total_cost_usd"),
    _number("input_price", "US dollars for a million tokens in."),
    _number("output_price", "US dollars for a million tokens out."),
    _number("duration_seconds", "Seconds from start to completion.", "duration"),
    Column("start_time", "time", "When it began (Unix seconds or ISO 8601).", ("started_at",)),
    Column("end_time", "time", "When it ended (Unix seconds or ISO 8601).", ("ended_at",)),
    _text("category", "The kind of scenario: happy_path, edge_case, adversarial, …"),
    _text("capability", "What the scenario exercises."),
    _count("expected", "How many behaviours were expected.", "expected_count"),
    _count("observed", "How many of them were observed.", "observed_count"),
    _count("violations", "How many must-nots were violated.", "violation_count"),
    Column("expected_behaviors", "strings", "The expected behaviours, instead of their count."),
    Column("observed_behaviors", "strings", "The observed behaviours, instead of their count."),
    Column("violated", "strings", "The violated must-nots, instead of their count."),
    Column(
        "undecided",
        "strings",
        "The behaviours and checks about which nothing could be decided: a check broke, a value is "
        "missing, nobody has said yet. An attempt with one of them has not passed.",
    ),
    _number("pass_score", "The scenario score from which it passes; 1 if missing.", maximum=1),
    _number("weight", "How much the task counts; 1 if missing."),
    Column("required", "boolean", "Whether the task must pass for a release to pass."),
    _text("checks", "Every check's verdict with its evidence, as JSON."),
)

BY_NAME: dict[str, Column] = {column.name: column for column in COLUMNS}

EXPORTED = frozenset(
    {
        "cached_tokens",
        "ended",
        "error_kind",
        "extra",
        "fingerprint",
        "finish",
        "messages",
        "model",
        "price_source",
        "reasoning_tokens",
        "refused",
        "seed",
        "started",
        "tool_calls",
        "tries",
        "wait_ms",
        "work",
    }
)
"""What an export of a run has beside these: it serves no metric, and nobody has to be told so."""

KEY = ("run", "subject", "tier", "task_id", "attempt")
"""The columns that tell attempts apart: no two records may agree in all of them."""

_JSON_TYPES: dict[Type, dict[str, Any]] = {
    "string": {"type": ["string", "number", "boolean", "null"]},
    "integer": {"type": ["integer", "null"]},
    "number": {"type": ["number", "null"]},
    "boolean": {"type": ["boolean", "null"]},
    "strings": {"type": ["array", "null"], "items": {"type": "string"}},
    "numbers": {"type": ["array", "null"], "items": {"type": "number"}},
    "time": {"type": ["number", "string", "null"]},
}


def json_schema() -> dict[str, Any]:
    """Describe one record as a JSON schema; other columns are allowed and kept."""
    properties: dict[str, Any] = {}
    for column in COLUMNS:
        field = {"description": column.meaning, **deepcopy(_JSON_TYPES[column.type])}
        limits = {"minimum": column.minimum, "maximum": column.maximum}
        place = field["items"] if column.type == "numbers" else field
        place |= {name: limit for name, limit in limits.items() if limit is not None}
        if column.choices:
            field = {"description": column.meaning, "enum": [*column.choices, None]}
        properties[column.name] = field
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pennyweight record",
        "description": "The row that one attempt leaves behind.",
        "type": "object",
        "properties": properties,
        "additionalProperties": True,
    }
