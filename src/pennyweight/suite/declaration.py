"""The declaration of a suite: every key, what may stand there, and what it means.

Checks, their messages and the JSON schema for editors are all made from these tables.
"""

from __future__ import annotations

from typing import Any

from pennyweight.schema.kinds import (
    AnyOf,
    Anything,
    Deferred,
    Flag,
    ListOf,
    MapOf,
    Null,
    Number,
    OneOf,
    ParsedBy,
    Text,
    Verbatim,
)
from pennyweight.schema.structs import Field, Struct
from pennyweight.suite import scenarios
from pennyweight.suite.agent_declaration import COMMAND, COMMAND_ONLY, FILES, WORK
from pennyweight.suite.rubric import RUBRIC
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.matching import MatchRule

LONG = 2**63 - 1
"""The largest whole number that a store keeps."""
_NAME = Text("a name", one_line=True)
_WORDS = Text("text (a template)")
_OPTIONAL = AnyOf((Null(), _WORDS))
_FILE = Text("a file's name", one_line=True)

_TOOLS = ListOf(MapOf(Anything(), "a mapping (name, description, parameters)"), "a list of tools")

_PLAIN_SETTINGS = (
    Field("temperature", Number(0), "How freely the model chooses its words."),
    Field("top_p", Number(0, 1), "The share of probability that is sampled from."),
    Field("top_k", Number(0, whole=True), "How many tokens are sampled from."),
    Field("min_p", Number(0, 1), "The least probability, as a part of the best token's."),
    Field("max_tokens", Number(1, whole=True), "The most tokens a response may have."),
    Field("stop", ListOf(_WORDS, "text or a list of texts", lone=True), "Where a response ends."),
    Field("frequency_penalty", Number(), "Makes tokens that came often come less."),
    Field("presence_penalty", Number(), "Makes tokens that came at all come less."),
    Field("reasoning_effort", _NAME, "How hard a reasoning model should think."),
    Field("response_format", Anything(), "The form of the response, such as a JSON schema."),
    Field("tools", _TOOLS, "Tools that the model may call."),
)

_TEXT = Text(strict=True)

_OTHER_SETTINGS = (
    Field("stop", ListOf(_TEXT, "text or a list of texts", lone=True), "Where a response ends."),
    Field("seed", Number(-LONG, LONG, whole=True), "Makes what can be repeated repeatable."),
    Field("logprobs", Flag(), "Whether the log-probabilities of tokens are asked for."),
    Field("schema", MapOf(Anything()), "A JSON schema that the output must satisfy."),
    Field(
        "thinking",
        AnyOf((Number(0, whole=True), Text("a level such as low", strict=True, one_line=True))),
        "How much the model may think: a budget in tokens, or a level such as low.",
    ),
)

_CHECKED = {f.name: f for f in (*_PLAIN_SETTINGS, *_OTHER_SETTINGS)}

OPTIONS = Struct(
    "settings",
    (
        *(Field(f.name, Verbatim(f.kind), f.meaning) for f in _CHECKED.values()),
        Field("extra", MapOf(Anything()), "What goes into the request's body as it is."),
    ),
    {},
    open=True,
)
"""Settings by any name: those that are known are checked, all others go as they are."""

SETTINGS = (
    *_PLAIN_SETTINGS,
    Field("settings", OPTIONS, "Any other settings, sent to the model as they are."),
)
"""Settings of a model, allowed in a subject and in a tier."""

TASK = Struct(
    "a task",
    (
        Field("id", _NAME, "What tells tasks apart; its number in the list if missing.").also(
            "task_id", "question_id", "example_id", "doc_id"
        ),
        Field(
            "input",
            AnyOf((Text(), ListOf(Anything()), MapOf(Anything()))),
            "What is asked: text, a list of messages, or a query with its context.",
        ).also("question", "prompt", "query", "problem", "instruction"),
        Field("target", Anything(), "The right answer.").also(
            "answer",
            "expected_answer",
            "gold",
            "label",
            "ground_truth",
            "reference",
            "expected_output",
            "expected",
            "ideal",
            "correct_answer",
        ),
        Field("context", Anything(), "What the question is about.").also("passage", "document"),
        Field("category", _NAME, "The kind of task, such as happy_path or adversarial."),
        Field("capability", _NAME, "What the task exercises."),
        Field("name", Text(), "A title for people.").also("title"),
        *scenarios.FIELDS,
        Field("pass_score", Number(0, 1, loose=True), "The score from which the task passes."),
        Field("weight", Number(0, loose=True), "How much the task counts.", default=1),
        Field("required", Flag(loose=True), "Whether the task must pass.", default=False),
        *WORK,
        FILES,
    ),
    {},
    open=True,
)

EXAMPLE = Struct(
    "an example",
    (
        Field("input", Text(), "What was asked.").also(*TASK.fields[1].aliases),
        Field("output", Text(), "The whole response that was right.").also(
            "response", "completion", "assistant", "target", *TASK.fields[2].aliases
        ),
        Field("context", Anything(), "What the question was about."),
    ),
    {},
    open=True,
)

MESSAGE = Struct(
    "a message",
    (
        Field("role", OneOf(("system", "user", "assistant")), "Who speaks.", required=True),
        Field("content", _WORDS, "What is said; a template.", required=True),
    ),
    {"text": "content", "message": "content"},
)

_TEXTS = (
    Field("system", _OPTIONAL, "The system text; a template."),
    Field(
        "prompt",
        _OPTIONAL,
        "The template of the user's turn; it may use input, context, examples and every other "
        "column of a task, never the target.",
    ),
    Field(
        "examples",
        AnyOf((Null(), _FILE, Deferred(ListOf(EXAMPLE)))),
        "Tasks already done, shown as earlier turns: a file or a list. A prompt that uses "
        "{{ examples }} shows them itself.",
    ),
    Field(
        "messages",
        AnyOf((Null(), ListOf(MESSAGE, some=True))),
        "The turns of a conversation, in place of a prompt.",
    ),
)

_SUBJECT_HINTS = {
    "api_key": "key_env",
    "key": "key_env",
    "api_key_env": "key_env",
    "url": "base_url",
    "api_base": "base_url",
    "endpoint": "base_url",
    "id": "name",
    "label": "name",
    "max_output_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
}

_NAMED = (
    Field("name", _NAME, "What it is called in records; the model if missing."),
    Field("base_url", _NAME, "The address of a server that speaks OpenAI's format."),
    Field("key_env", _NAME, "The environment variable that holds the key."),
    *SETTINGS,
)

MODEL = Struct(
    "a model",
    (Field("model", _NAME, "The model, as provider/name.", required=True), *_NAMED),
    _SUBJECT_HINTS,
)

SUBJECT = Struct(
    "a subject",
    (
        Field(
            "model",
            _NAME,
            "The model, as provider/name. Of a command: the model behind it, for prices; a "
            "local/… one is served to it.",
        ),
        *COMMAND,
        *_NAMED,
    ),
    {
        **_SUBJECT_HINTS,
        **dict.fromkeys(("cmd", "run", "agent", "exec"), "command"),
        **{n: f"{n}, in the suite or a task" for n in ("workspace", "verify", "keep", "files")},
    },
    either=("model", "command"),
    only_with=COMMAND_ONLY,
)

TIER = Struct(
    "a tier",
    (
        Field("extends", _NAME, "The tier whose texts, files and settings it takes over."),
        *_TEXTS,
        FILES,
        *SETTINGS,
    ),
    {"base": "extends", "inherits": "extends", "system_prompt": "system", "few_shot": "examples"},
)

MOST_AT_ONCE = 1000
"""More calls at the same time keep no core busier."""

LIMITS = Struct(
    "limits",
    (
        Field(
            "concurrency",
            AnyOf((OneOf(("auto",)), Number(1, MOST_AT_ONCE, whole=True))),
            "Calls at the same time; auto finds the level by itself.",
            default="auto",
        ),
        Field("usd", Number(0, above=True), "The most US dollars a run may cost."),
        Field("tokens", Number(1, whole=True), "The most tokens a run may use."),
        Field("seconds", Number(0, above=True), "The most seconds a run may take."),
        Field("timeout", Number(0, above=True), "The most seconds one call may take.", default=120),
    ),
    {"cost": "usd", "budget": "usd", "time": "seconds", "max_connections": "concurrency"},
)

PRICE = Struct(
    "a price",
    (
        Field("input", Number(0), "US dollars for a million tokens in.", required=True),
        Field("output", Number(0), "US dollars for a million tokens out.", required=True),
        Field("source", _NAME, "Where the price was found; records keep it."),
        Field("date", _NAME, "The day on which it held; records keep it."),
    ),
    {"prompt": "input", "completion": "output", "in": "input", "out": "output"},
)

PRICES = MapOf(PRICE, "a mapping of models to prices")

DATA = Struct(
    "tasks",
    (
        Field("from", _FILE, "A file of tasks, or hf:owner/name.", required=True),
        Field("columns", MapOf(_NAME), "Where a task's fields are found: field: their column."),
        Field("limit", Number(1, whole=True), "How many tasks are taken, from the first."),
        Field("split", _NAME, "Which split of a data set; test, validation or train if missing."),
        Field("config", _NAME, "Which configuration of a data set."),
    ),
    {"file": "from", "path": "from", "dataset": "from", "name": "config", "map": "columns"},
)

_JUDGES = ListOf(AnyOf((MODEL, _NAME)), "a model or a list of models", lone=True, some=True)

JUDGE = Struct(
    "judge",
    (
        Field("models", _JUDGES, "Who judges: one model or several."),
        Field(
            "rubric",
            AnyOf((_FILE, Deferred(RUBRIC))),
            "What is judged: a file, the rubric itself, or default. If missing: the default "
            "rubric, but nothing where the judge is there for sentences of scenarios.",
        ),
        Field(
            "consensus",
            OneOf(("mean", "confidence")),
            "How several scores become one: their mean, or weighted by the judges' confidence.",
            default="mean",
        ),
        Field(
            "disagreement",
            Number(0, 1),
            "The range of scores beyond which more judges are asked.",
            default=0.3,
        ),
        Field("more", _JUDGES, "Who is asked too where the judges disagree."),
        Field("pass_mark", Number(0, 1), "The score from which it passes, over the rubric's own."),
        Field("model", AnyOf((SUBJECT, _NAME)), "The same as models, for one."),
    ),
    {
        "judges": "models",
        "name": "models",
        "pass_score": "pass_mark",
        "threshold": "pass_mark",
        "fallback": "more",
    },
)

_SUITE_HINTS = {
    "name": "suite", "scenarios": "tasks", "dataset": "tasks",
    "data": "tasks", "tests": "tasks", "models": "subjects",
    "model": "subjects", "providers": "subjects", "prompts": "prompt", "template": "prompt",
    "system_prompt": "system", "few_shot": "examples", "epochs": "runs", "repeats": "runs",
    "repeat": "runs", "n": "runs", "trials": "runs", "extract": "answer", "scorer": "match",
    "budget": "limits", "variants": "tiers", "configurations": "tiers", "conditions": "tiers",
    "judges": "judge", "rubric": "judge", "grader": "judge",
}  # fmt: skip

SUITE = Struct(
    "a suite",
    (
        Field("suite", _NAME, "The suite's name.", required=True),
        Field(
            "tasks",
            AnyOf((_FILE, Deferred(ListOf(AnyOf((TASK, Text("text"))), "a list of tasks")), DATA)),
            "The tasks: a list, a file (JSONL, JSON, CSV, Parquet), or hf:owner/name.",
            required=True,
        ),
        *_TEXTS,
        Field(
            "answer",
            ParsedBy(AnswerRule.parse, AnswerRule.json_schema()),
            "How the final answer is found in a response.",
            default="marker",
        ),
        Field(
            "match",
            ParsedBy(MatchRule.parse, MatchRule.json_schema()),
            "How an answer is compared with its target.",
            default="exact",
        ),
        Field(
            "confidence",
            OneOf(("stated", "logprobs")),
            "Where the probability of being right comes from, if it is wanted.",
        ),
        Field(
            "subjects",
            ListOf(AnyOf((SUBJECT, _NAME)), "a list of models", some=True),
            "What is measured.",
            required=True,
        ),
        Field(
            "tiers",
            MapOf(AnyOf((Null(), TIER))),
            "Configurations to compare; T0 alone if missing.",
        ),
        *WORK,
        Field("settings", OPTIONS, "Settings of the model for all subjects and tiers."),
        Field("runs", Number(1, whole=True), "How often each task is tried.", default=1),
        Field("seed", Number(0, LONG, whole=True), "Makes what can be repeated repeatable."),
        Field("limits", LIMITS, "What a run may use."),
        Field("prices", PRICES, "Prices by model or subject, before the built-in ones."),
        Field("judge", AnyOf((JUDGE, _NAME)), "Who judges the attempts, where no check can tell."),
    ),
    _SUITE_HINTS,
)


def json_schema() -> dict[str, Any]:
    """Describe a suite for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pennyweight suite",
        "description": "Tasks, subjects and tiers to measure.",
        **SUITE.schema(),
        "$defs": scenarios.DEFINITIONS,
    }
