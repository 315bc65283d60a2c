"""The declaration of a suite: every key with its kind of value and its meaning."""

from __future__ import annotations

from typing import Any

from pennyweight.schema.kinds import (
    AnyOf,
    Anything,
    Deferred,
    Flag,
    Kind,
    ListOf,
    MapOf,
    Null,
    Number,
    OneOf,
    ParsedBy,
    Text,
    Verbatim,
)
from pennyweight.schema.structs import Field, Struct, with_defaults
from pennyweight.suite import scenarios
from pennyweight.suite.agents import COMMAND, COMMAND_ONLY, FILES, SOLUTION, WORK
from pennyweight.suite.resources import RESOURCES
from pennyweight.suite.rubric import PROTOCOL, RUBRIC
from pennyweight.suite.values import Judging, Limits, Price
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.matching import MatchRule

MAX_INTEGER = 2**63 - 1
"""The largest whole number that a store can hold."""
_NAME = Text("a name", one_line=True)
_WORDS = Text("text (a template)")
_OPTIONAL = AnyOf((Null(), _WORDS))
_FILE = Text("a file's name", one_line=True)

_TOOLS = ListOf(MapOf(Anything(), "a mapping (name, description, parameters)"), "a list of tools")


def _texts(kind: Kind) -> ListOf:
    return ListOf(kind, "text or a list of texts", lone=True)


_PLAIN_SETTINGS = (
    Field("temperature", Number(0), "The sampling temperature."),
    Field("top_p", Number(0, 1), "Nucleus sampling: the share of probability to sample from."),
    Field("top_k", Number(0, whole=True), "How many of the likeliest tokens to sample from."),
    Field("min_p", Number(0, 1), "The lowest probability to sample, relative to the likeliest."),
    Field("max_tokens", Number(1, whole=True), "The maximum number of tokens of a response."),
    Field("stop", _texts(_WORDS), "Text at which a response ends."),
    Field("frequency_penalty", Number(), "Penalty for tokens by how often they have appeared."),
    Field("presence_penalty", Number(), "Penalty for tokens that have appeared at all."),
    Field("reasoning_effort", _NAME, "The reasoning effort of the model, such as low."),
    Field("response_format", Anything(), "The format of the response, such as a JSON schema."),
    Field("tools", _TOOLS, "Tools that the model may call."),
    Field("stream", Flag(), "Whether to have replies streamed, which gives `ttft_ms`."),
)

_OTHER_SETTINGS = (
    Field("stop", _texts(Text(strict=True)), "Text at which a response ends."),
    Field("seed", Number(-MAX_INTEGER, MAX_INTEGER, whole=True), "The random seed."),
    Field("logprobs", Flag(), "Whether to request the log-probabilities of tokens."),
    Field("schema", MapOf(Anything()), "A JSON schema that the output must satisfy."),
    Field(
        "thinking",
        AnyOf((Number(0, whole=True), Text("a level such as low", strict=True, one_line=True))),
        "The thinking budget: a number of tokens, or a level such as low.",
    ),
)

_CHECKED = {f.name: f for f in (*_PLAIN_SETTINGS, *_OTHER_SETTINGS)}

_LENGTHS = ("max_output_tokens", "max_completion_tokens", "max_new_tokens", "num_predict")
_SETTING_HINTS = {
    **dict.fromkeys(_LENGTHS, "max_tokens"),
    **dict.fromkeys(("stop_sequences", "stop_words"), "stop"),
    **dict.fromkeys(("random_seed", "rng_seed"), "seed"),
    **dict.fromkeys(("json_schema", "response_schema", "output_schema"), "schema"),
    **dict.fromkeys(("thinking_budget", "thinking_level", "budget_tokens"), "thinking"),
}
"""Settings as other tools and providers call them."""
_SERVERS_OWN = frozenset({"min_tokens", "top_a", "top_n"})
"""Settings of some servers whose names are close to ours."""

OPTIONS = Struct(
    "settings",
    (
        *(Field(f.name, Verbatim(f.kind), f.meaning) for f in _CHECKED.values()),
        Field("extra", MapOf(Anything()), "Further fields of the request body, sent as they are."),
    ),
    _SETTING_HINTS,
    open=True,
    guarded="To send it as it is, write it under 'extra'.",
    others=_SERVERS_OWN,
)
"""Model settings: known ones are checked, all others are sent as they are."""

SETTINGS = (
    *_PLAIN_SETTINGS,
    Field("settings", OPTIONS, "Further settings, sent to the model as they are."),
)
"""Model settings of a subject or a tier."""

TASK = Struct(
    "a task",
    (
        Field("id", _NAME, "The unique id of the task; its number in the list if missing.").also(
            "task_id", "question_id", "example_id", "doc_id"
        ),
        Field(
            "input",
            AnyOf((Text(), ListOf(Anything()), MapOf(Anything()))),
            "The question: text, a list of messages, or a query with its context.",
        ).also("question", "prompt", "query", "problem", "instruction"),
        Field("target", Anything(), "The right answer.").also(
            *("answer", "expected_answer", "gold", "label", "ground_truth", "reference"),
            *("expected_output", "expected", "ideal", "correct_answer", "expected_outcome"),
            *("expected_result", "expected_response", "right_answer", "gold_answer"),
            *("golden_answer", "answer_key", "answer_idx", "answer_index", "correct_option"),
            *("correct_choice", "correct_letter", "correct_index", "correct"),
        ),
        Field("context", Anything(), "The context of the question.").also("passage", "document"),
        Field("category", _NAME, "The category of the task, such as happy_path or adversarial."),
        Field("capability", _NAME, "The capability that the task tests."),
        Field("name", Text(), "A title for people.").also("title"),
        *scenarios.FIELDS,
        Field("pass_score", Number(0, 1, loose=True), "The lowest score that passes."),
        Field("weight", Number(0, loose=True), "The weight of the task.", default=1),
        Field("required", Flag(loose=True), "Whether the task must pass.", default=False),
        *WORK,
        FILES,
        SOLUTION,
    ),
    {},
    open=True,
)

EXAMPLE = Struct(
    "an example",
    (
        Field("input", Text(), "The question.").also(*TASK.fields[1].aliases),
        Field("output", Text(), "The correct response, in full.").also(
            "response", "completion", "assistant", "target", *TASK.fields[2].aliases
        ),
        Field("context", Anything(), "The context of the question."),
    ),
    {},
    open=True,
)

MESSAGE = Struct(
    "a message",
    (
        Field("role", OneOf(("system", "user", "assistant")), "The speaker.", required=True),
        Field("content", _WORDS, "The text of the message; a template.", required=True),
    ),
    {"text": "content", "message": "content"},
)

_MESSAGES = AnyOf((Null(), ListOf(MESSAGE, some=True)))

_TEXTS = (
    Field("system", _OPTIONAL, "The system text; a template."),
    Field(
        "prompt",
        _OPTIONAL,
        "The template of the user message. It may use input, context, examples and every other "
        "column of a task, but never the target.",
    ),
    Field(
        "examples",
        AnyOf((Null(), _FILE, Deferred(ListOf(EXAMPLE)))),
        "Worked examples, shown as earlier turns: a file or a list. A prompt that uses "
        "{{ examples }} shows them itself.",
    ),
    Field("messages", _MESSAGES, "The messages of a conversation, instead of a prompt."),
)

_SUBJECT_HINTS = {
    **dict.fromkeys(("api_key", "key", "api_key_env"), "key_env"),
    **dict.fromkeys(("url", "api_base", "endpoint"), "base_url"),
    **dict.fromkeys(("id", "label"), "name"),
    **_SETTING_HINTS,
}

_LANE = Field("lane", OneOf(("live", "batch")), "Live calls, or batches: cheaper, but slow.")

_NAMED = (
    Field("name", _NAME, "The name in records; the model if missing."),
    Field(
        "base_url",
        ListOf(_NAME, lone=True, some=True),
        "The address of an OpenAI-compatible server, or several with the same model; dns+http://…",
    ),
    Field("key_env", _NAME, "The environment variable with the API key."),
    Field("resources", RESOURCES, "What a worker needs of a cluster's node, with run --on ray."),
    Field(
        "priced_as",
        _NAME,
        "The model whose published price it has, as provider/name: for gateways and own addresses.",
    ),
    Field("limits", Struct("own limits", (_LANE,), {}), "The lane of this model alone."),
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
            "The model, as provider/name. For a command: the model that it uses, for prices; a "
            "local/… model is served to it.",
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
        Field("extends", _NAME, "The tier whose texts, files and settings are inherited."),
        *_TEXTS,
        FILES,
        *SETTINGS,
    ),
    {"base": "extends", "inherits": "extends", "system_prompt": "system", "few_shot": "examples"}
    | _SETTING_HINTS,
)

MAX_CONCURRENCY = 1000
"""More concurrent calls do not increase the throughput."""
_COUNT = Number(1, whole=True)
_CALLS = AnyOf((OneOf(("auto",)), Number(1, MAX_CONCURRENCY, whole=True)))
LIMITS = Struct(
    "limits",
    with_defaults(
        Limits,
        Field("concurrency", _CALLS, "The number of concurrent calls; auto adapts it as it runs."),
        Field("usd", Number(0, above=True), "The cost limit of a run in US dollars."),
        Field("tokens", _COUNT, "The token limit of a run."),
        Field("seconds", Number(0, above=True), "The time limit of a run in seconds."),
        Field("timeout", Number(0, above=True), "The seconds that one call may take."),
        Field("requests_per_minute", _COUNT, "The most requests that an account gets a minute."),
        Field("tokens_per_minute", _COUNT, "The same in tokens, of input and output."),
        _LANE,
    ),
    {"cost": "usd", "budget": "usd", "time": "seconds", "max_connections": "concurrency"}
    | {"rpm": "requests_per_minute", "tpm": "tokens_per_minute"},
)

_PRICE = Number(0, 1e12)
PRICE = Struct(
    "a price",
    with_defaults(
        Price,
        Field("input", _PRICE, "US dollars per million input tokens.", required=True),
        Field("output", _PRICE, "US dollars per million output tokens.", required=True),
        Field("cached_input", _PRICE, "The same for input from the cache. Default: `input`."),
        Field("cache_write", _PRICE, "The same for input put into the cache. Default: `input`."),
        Field("source", _NAME, "The source of the price, stored in records."),
        Field("date", _NAME, "The date of the price, stored in records."),
    ),
    {
        "prompt": "input",
        "completion": "output",
        "in": "input",
        "out": "output",
        **dict.fromkeys(("cached", "cache_read", "input_cached"), "cached_input"),
        **dict.fromkeys(("cache_creation", "write"), "cache_write"),
    },
)

PRICES = MapOf(PRICE, "a mapping of models to prices")

DATA = Struct(
    "tasks",
    (
        Field("from", _FILE, "A file of tasks, or hf:owner/name.", required=True),
        Field("columns", MapOf(_NAME), "The column of each field of a task, as field: column."),
        Field(
            "make",
            MapOf(_WORDS),
            "Columns that are made from the others, as name: template. The result for choices is "
            "read as a list.",
        ),
        Field("limit", Number(1, whole=True), "The number of tasks to use, from the first."),
        Field("split", _NAME, "The split of a dataset; test, validation or train if missing."),
        Field("config", _NAME, "The configuration of a dataset."),
    ),
    {"file": "from", "path": "from", "dataset": "from", "name": "config", "map": "columns"},
)

_JUDGES = ListOf(AnyOf((MODEL, _NAME)), "a model or a list of models", lone=True, some=True)

JUDGE = Struct(
    "judge",
    with_defaults(
        Judging,
        Field("models", _JUDGES, "The judges: one model or several."),
        Field(
            "rubric",
            AnyOf((_FILE, Deferred(AnyOf((RUBRIC, PROTOCOL))))),
            "The rubric: a file, the rubric itself, or default. If missing, the default rubric is "
            "used, unless the judge is only asked about sentences of scenarios.",
        ),
        Field(
            "consensus",
            OneOf(("mean", "confidence")),
            "How scores are combined: their mean, or weighted by the confidence of the judges.",
        ),
        Field(
            "disagreement", Number(0, 1), "The range of scores above which more judges are asked."
        ),
        Field("more", _JUDGES, "Further judges, asked if the others disagree."),
        Field("pass_mark", Number(0, 1), "The lowest score that passes, instead of the rubric's."),
        Field("model", AnyOf((SUBJECT, _NAME)), "The same as models, for a single judge."),
    ),
    {
        **dict.fromkeys(("judges", "name"), "models"),
        **dict.fromkeys(("pass_score", "threshold"), "pass_mark"),
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
    "evaluators": "scorers", "scores": "scorers", "graders": "scorers",
}  # fmt: skip

SUITE = Struct(
    "a suite",
    (
        Field("suite", _NAME, "The suite's name.", required=True),
        Field(
            "tasks",
            AnyOf((_FILE, Deferred(ListOf(AnyOf((TASK, Text("text"))), "a list of tasks")), DATA)),
            "The tasks: a list, a file (JSONL, JSON, YAML, CSV, Parquet), or hf:owner/name.",
            required=True,
        ),
        *_TEXTS,
        Field(
            "answer",
            ParsedBy(AnswerRule.parse, AnswerRule.json_schema()),
            "How the final answer is extracted from a response.",
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
            "The source of the probability that an answer is correct, if it is needed.",
        ),
        Field(
            "subjects",
            ListOf(AnyOf((SUBJECT, _NAME)), "a list of models", some=True),
            "The models and agents that are measured.",
            required=True,
        ),
        Field("tiers", MapOf(AnyOf((Null(), TIER))), "Configurations to compare (default: T0)."),
        *WORK,
        Field("settings", OPTIONS, "Model settings for all subjects and tiers."),
        Field("runs", Number(1, whole=True), "The number of attempts at each task.", default=1),
        Field("seed", Number(0, MAX_INTEGER, whole=True), "The random seed."),
        Field("limits", LIMITS, "The limits of a run."),
        Field("prices", PRICES, "Prices by model or subject; they override the built-in ones."),
        Field("judge", AnyOf((JUDGE, _NAME)), "The judges of attempts that no check can decide."),
        Field(
            "scorers",
            ListOf(AnyOf((_NAME, MapOf(Anything()))), "a list of scorers", lone=True),
            "The scorers of attempts: a file of your own, such as scorers.py, or the name of a "
            "scorer, alone or as name: {setting: value}. With prompt or criteria, "
            "the judge is asked.",
        ),
        Field(
            "partial",
            ListOf(Text(), "a list of texts"),
            "What could not be carried over from the suite of another tool that it was made from. "
            "Every run says so.",
        ),
    ),
    _SUITE_HINTS,
    elsewhere={
        **dict.fromkeys((f.name for f in _PLAIN_SETTINGS), "under 'settings', for all subjects"),
        **dict.fromkeys(("base_url", "key_env"), "to a subject"),
        **dict.fromkeys(("concurrency", "usd", "timeout"), "under 'limits'"),
    },
)


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a suite, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pennyweight suite",
        "description": "Tasks, subjects and tiers to measure.",
        **SUITE.schema(),
        "$defs": scenarios.DEFINITIONS,
    }
