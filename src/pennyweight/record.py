"""The record: every column an attempt leaves behind, with its type and its meaning.

This is the contract between all parts. The loader, the checks on input, the JSON schema, the
reference page and the store's record table are built from these declarations.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Type = Literal["string", "integer", "number", "boolean", "strings", "numbers", "time"]

STATUSES = ("ok", "error", "timeout", "budget")
FAILED = "failed"
"""The status of an error that counts as a failure while records are scored."""
MAX_NUMBER = 1e30
"""The largest number in a record, so that no statistic overflows."""

TASK_PREFIX = "task_"
"""What goes before the name of a task's column that is another one in records: `task_subject`."""

VERSION = 1
"""The version of the record. New columns keep it; a column that changes or goes raises it."""


class AttemptKey(NamedTuple):
    """What identifies an attempt. No two records share all five values."""

    run: str
    subject: str
    tier: str
    task_id: str
    attempt: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> AttemptKey:
        """Return the key of a record."""
        return cls(row["run"], row["subject"], row["tier"], row["task_id"], row["attempt"])


KEY = AttemptKey._fields
"""The key columns, in the one order that code, joins and groups use."""
KEY_IN_RUN = KEY[1:]
"""The key columns that identify an attempt among those of its run."""


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
    origin: Literal["input", "both", "run"] = "input"
    """Where the column occurs: `input`, in sources only; `run`, in runs and their exports only."""
    nullable: bool = True
    """Whether a stored record may lack it."""
    bits: Literal[32, 64] = 64
    """The width of an integer in the store."""


def _text(name: str, meaning: str, *aliases: str, **more: Any) -> Column:
    return Column(name, "string", meaning, aliases, **more)


def _count(name: str, meaning: str, *aliases: str, minimum: float = 0, **more: Any) -> Column:
    return Column(name, "integer", meaning, aliases, minimum, **more)


def _number(name: str, meaning: str, *aliases: str, **more: Any) -> Column:
    return Column(name, "number", meaning, aliases, 0, **more)


_STORED: dict[str, Any] = {"origin": "both"}
_KEY: dict[str, Any] = {"origin": "both", "nullable": False}
_RUN: dict[str, Any] = {"origin": "run"}

_DECLARED: tuple[Column, ...] = (
    _text("run", "The run that the record belongs to.", "run_id", **_KEY),
    _text(
        "subject",
        "What was measured: a model or an agent with its settings.",
        *("model", "agent"),
        **_KEY,
    ),
    _text("tier", "The configuration of the subject, such as T0 or T1.", **_KEY),
    _text(
        "task_id",
        "The id of the task.",
        *("id", "task", "question_id", "example_id", "doc_id"),
        **_KEY,
    ),
    _count(
        "attempt",
        "The number of the attempt at this task. Runs count from 1; other files may count from 0.",
        *("run_number", "trial", "repeat"),
        bits=32,
        **_KEY,
    ),
    _text("fingerprint", "A hash of everything that was sent.", nullable=False, **_RUN),
    _text(
        "status",
        "How the attempt ended: `ok`; `error` (the model could not be reached or the harness "
        "failed: excluded from every quality metric); `timeout` or `budget` (an agent exceeded a "
        "limit: not passed). Missing means `ok`, or `error` if `error` has text.",
        choices=STATUSES,
        **_KEY,
    ),
    _text(
        "error", "The error message of a record with status `error`.", "error_message", **_STORED
    ),
    _text(
        "error_kind",
        "The kind of the error. It begins with `reported_` if only the output of an agent says so; "
        "then it is also set if a retry succeeded.",
        **_STORED,
    ),
    _text("model", "The model that replied, as the provider names it.", **_RUN),
    _text("input", "The task's input.", "question", "prompt", **_STORED),
    _text("messages", "The messages that were sent, as JSON.", **_RUN),
    _text(
        "target",
        "The correct answer. `expected` names it too, if no observed behaviours are given.",
        *("expected_answer", "ground_truth", "gold", "reference", "label"),
        *("expected_output", "ideal", "correct_answer", "expected"),
        *("expected_outcome", "expected_result", "expected_response"),
        **_STORED,
    ),
    _text("category", "The kind of scenario: happy_path, edge_case, adversarial, …", **_STORED),
    _text("capability", "The capability that the scenario exercises.", **_STORED),
    _text(
        "response",
        "The complete reply, from which the final answer and the chain of thought are extracted.",
        *("output", "completion"),
        **_STORED,
    ),
    _text("reasoning", "The reasoning that the provider returned apart from the reply.", **_STORED),
    _text("tool_calls", "The tool calls in the reply, as JSON.", **_RUN),
    _text(
        "logprobs",
        "The tokens of the reply with their log-probabilities, as a JSON list of pairs.",
        **_STORED,
    ),
    _text(
        "answer",
        "The final answer; missing if none could be extracted from the response.",
        *("prediction", "predicted", "model_answer", "final_answer"),
    ),
    _text(
        "cot",
        "The chain of thought.",
        *("chain_of_thought", "reasoning_content", "thinking", "rationale"),
    ),
    _number(
        "prob_correct",
        "The probability that the subject assigned to its answer being correct.",
        *("confidence", "probability"),
        maximum=1,
    ),
    _number(
        "stated_confidence", "The confidence that the response states, from 0 to 1.", maximum=1
    ),
    _number(
        "logprob_confidence", "The probability of the answer's tokens, from 0 to 1.", maximum=1
    ),
    _text("finish", "Why the model stopped, as the provider reports it.", **_RUN),
    Column("truncated", "boolean", "Whether the response was cut at the token limit.", **_STORED),
    Column("refused", "boolean", "Whether the provider reports a refusal.", **_RUN),
    Column("seed", "integer", "The seed that was sent.", **_RUN),
    _count("prompt_tokens", "Input tokens, from the provider's usage.", "input_tokens", **_STORED),
    _count("completion_tokens", "Output tokens.", "output_tokens", **_STORED),
    _count(
        "cached_tokens",
        "The input tokens that came from the provider's cache, a part of `prompt_tokens`.",
        "cache_read_tokens",
        **_STORED,
    ),
    _count(
        "reasoning_tokens",
        "The output tokens that were spent on reasoning, a part of `completion_tokens`.",
        **_STORED,
    ),
    _number("latency_ms", "Duration of the successful call in milliseconds.", "latency", **_STORED),
    _number("wait_ms", "Milliseconds spent waiting for a free slot and between retries.", **_RUN),
    _count("tries", "The number of calls, retries included.", bits=32, **_RUN),
    Column(
        "correct",
        "boolean",
        "Whether the answer is correct; used if there is no target, or `matched_by` is set.",
        ("is_correct",),
    ),
    _text(
        "tool",
        "The tool whose log the record comes from: its `passed` and `correct` stand, also where "
        "there is a target, a timeout or a limit.",
    ),
    _text(
        "matched_by",
        "How the run that was exported compared answers with targets, if loosely; `verify` if a "
        "command checked the work instead.",
    ),
    _number(
        "impl_rate",
        "The share of the requirements that are met: the judges' weighted score.",
        *("weighted_score", "judge_score", "judgment.summary.weighted_score"),
        maximum=1,
    ),
    Column(
        "judge_passed",
        "boolean",
        "Whether the judges passed the attempt; decides if neither `passed` nor a scenario does.",
    ),
    Column(
        "judge_scores",
        "numbers",
        "The score of each judge whose judgment is valid. Empty if judges were asked and none gave "
        "a valid judgment: then nothing else decides in their place.",
        minimum=0,
        maximum=1,
    ),
    Column(
        "person_right",
        "boolean",
        "Whether people call the record right, by majority. Only for records that were drawn at "
        "random to be labelled, since they stand for the others.",
    ),
    _number("judge_cost_usd", "The cost of judging the attempt; never part of `cost_usd`."),
    _number(
        "cost_usd", "The cost of the attempt in US dollars.", "cost", "total_cost_usd", **_STORED
    ),
    _number("input_price", "US dollars per million input tokens.", **_STORED),
    _number("output_price", "US dollars per million output tokens.", **_STORED),
    _number("duration_seconds", "Seconds from start to completion.", "duration", **_STORED),
    _number("started", "When the attempt started, in Unix seconds.", **_RUN),
    _number("ended", "When the attempt ended, in Unix seconds.", **_RUN),
    Column("start_time", "time", "When it started (Unix seconds or ISO 8601).", ("started_at",)),
    Column("end_time", "time", "When it ended (Unix seconds or ISO 8601).", ("ended_at",)),
    _count("expected", "The number of expected behaviours.", "expected_count"),
    _count("observed", "The number of expected behaviours that were observed.", "observed_count"),
    _count("violations", "The number of violated must-nots.", "violation_count"),
    Column("expected_behaviors", "strings", "The expected behaviours, instead of their count."),
    Column(
        "observed_behaviors",
        "strings",
        "The observed behaviours, instead of their count.",
        ("behaviors", "behaviours"),
    ),
    Column(
        "violated",
        "strings",
        "The violated must-nots, instead of their count. A list under `violations`, or under "
        "`must_not` beside observed behaviours, is read as this.",
        ("violations",),
    ),
    _number(
        "behavior_score",
        "The share of the expected behaviours that were observed, if they were not counted here.",
        maximum=1,
    ),
    Column(
        "undecided",
        "strings",
        "The behaviours and checks that could not be decided: a check failed to run, a value is "
        "missing, or a judge or reviewer has not answered. An attempt with an undecided one has "
        "not passed.",
    ),
    _number(
        "pass_score", "The lowest scenario score that passes; 1 if missing.", maximum=1, **_STORED
    ),
    _text("extra", "Further columns of the task, as JSON.", **_RUN),
    Column(
        "passed",
        "boolean",
        "Whether the attempt passed, if that was decided.",
        ("pass",),
        **_STORED,
    ),
    _text("work", "What an agent changed in its workspace, as JSON.", **_RUN),
    _text("price_source", "Where the prices come from.", **_RUN),
    _count(
        "cache_write_tokens",
        "The input tokens that were written to the provider's cache, a part of `prompt_tokens`.",
        **_STORED,
    ),
    _number(
        "cached_input_price",
        "US dollars per million input tokens from the cache; `input_price` if missing.",
        **_STORED,
    ),
    _number(
        "cache_write_price",
        "US dollars per million input tokens put into the cache; `input_price` if missing.",
        **_STORED,
    ),
    _number(
        "ttft_ms",
        "Milliseconds until the first output of a streamed reply came, thinking included.",
        *("time_to_first_token_ms", "first_token_ms"),
        **_STORED,
    ),
    _number("weight", "The weight of the task; 1 if missing."),
    Column("required", "boolean", "Whether the task must pass for a release to pass."),
    _number("temperature", "The sampling temperature that was sent.", **_STORED),
    _text("lane", "How it was called: `live`, or in a provider's `batch`.", **_STORED),
    _text(
        "context",
        "What the answer must rest on: a text, or a JSON list of passages that [1], [2] … cite.",
    ),
    _text("choices", "The choices that the task offers, as a JSON list."),
    _text("checks", "Every check's verdict with its evidence, as JSON."),
    _text("scores", "The scores that scorers gave the record, by name, as JSON."),
    _text(
        "task_digest",
        "What was asked and how it is decided: a short hash of each part of the task.",
        **_STORED,
    ),
    _text(
        "grading_digest",
        "How the record is graded, where that is not part of its task: a short hash of each rule, "
        "of the scorers, the rubric and the judges.",
    ),
)

COLUMNS = tuple(column for column in _DECLARED if column.origin != "run")
"""The columns that measures and metrics can read from any source."""

STORED = tuple(column for column in _DECLARED if column.origin != "input")
"""The columns of the store's record table, in the table's order."""

PERSON, PERSON_NOTES = "person_verdict", "person_notes"
"""What people say about a record in an export: their verdict, and their notes with names."""

EXPORTED = frozenset(column.name for column in _DECLARED if column.origin == "run") | {
    PERSON,
    PERSON_NOTES,
}
"""The columns that only the export of a run has. No metric reads them."""

BY_NAME: dict[str, Column] = {column.name: column for column in COLUMNS}

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
        "version": VERSION,
        "description": "The row that one attempt leaves behind.",
        "type": "object",
        "properties": properties,
        "additionalProperties": True,
    }


Decider = Literal["error", "limit", "verify", "checks", "judge", "answer", "record"]
"""What decided a record; `record` is a verdict that it came with."""


def decided_by(row: Mapping[str, Any]) -> Decider | None:
    """Return what decided whether a record passed, by the order in which `passed` is filled.

    `row` has what is known of `status`, `work`, `checks`, `passed`, `judge_scores` (empty if judges
    were asked and none gave a valid judgment), `judge_passed` and `correct`.

    >>> decided_by({"status": "ok", "judge_scores": [1.0], "correct": False})
    'judge'
    >>> decided_by({"status": "ok", "correct": False})
    'answer'
    """
    if row.get("status") == "error":
        return "error"
    if row.get("status") in {"timeout", "budget"}:
        return "limit"
    if row.get("checks"):
        return "checks"
    if row.get("passed") is not None:
        return "verify" if '"check": "verify"' in (row.get("work") or "") else "record"
    if row.get("judge_scores") is not None or row.get("judge_passed") is not None:
        return "judge"
    return None if row.get("correct") is None else "answer"


VerdictWord = Literal["right", "wrong", "passed", "not passed", ""]


def verdict_word(row: Mapping[str, Any]) -> VerdictWord:
    """Return the verdict on a measured record in a word: `right` or `wrong` if its answer decided.

    `row` has the measures `correct`, `passed` and, where judges or scenarios score, `impl_rate`.
    Nothing is said while `passed` is open, as where no judgment is valid: then an answer does not
    replace it.

    >>> verdict_word({"correct": False, "passed": False})
    'wrong'
    >>> verdict_word({"correct": False, "passed": False, "impl_rate": 0.25})
    'not passed'
    """
    passed = row.get("passed")
    if passed is None:
        return ""
    if row.get("correct") == passed and row.get("impl_rate") is None:
        return "right" if passed else "wrong"
    return "passed" if passed else "not passed"
