"""What agents print, as their programs document it: what is not said is null, never 0."""

import json

import pytest

from pennyweight.agent.readers import read
from pennyweight.models.model import Usage

CLAUDE = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "duration_ms": 2191,
    "num_turns": 3,
    "result": "Done.",
    "session_id": "s",
    "total_cost_usd": 0.088202,
    "usage": {
        "input_tokens": 4,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 1000,
        "output_tokens": 60,
    },
}
ASSISTANT = {"type": "assistant", "message": {"content": [{"type": "text", "text": "Nearly."}]}}


def lines(*events):
    return "".join(json.dumps(event) + "\n" for event in events)


@pytest.mark.parametrize(
    "output",
    [
        json.dumps(CLAUDE),
        json.dumps(CLAUDE, indent=2),
        json.dumps([ASSISTANT, CLAUDE]),
        lines({"type": "system", "subtype": "init"}, ASSISTANT, CLAUDE),
        "a warning of the shell\n" + lines(CLAUDE),
        "a warning\n" + json.dumps(CLAUDE, indent=2),
    ],
    ids=["json", "indented", "array", "stream", "noise", "noise before indented"],
)
def test_claude_code(output):
    printed = read("claude-code", output)
    assert printed.text == "Done."
    assert printed.usage == Usage(1104, 60, 1000, cache_write_tokens=100)
    assert printed.cost_usd == 0.088202
    assert printed.status == "ok"


def test_claude_code_counts_every_model():
    per_model = {
        "small": {
            "inputTokens": 10,
            "outputTokens": 5,
            "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0,
        },
        "large": {
            "inputTokens": 4,
            "outputTokens": 60,
            "cacheReadInputTokens": 1000,
            "cacheCreationInputTokens": 100,
        },
    }
    printed = read("claude-code", json.dumps({**CLAUDE, "modelUsage": per_model}))
    assert printed.usage == Usage(1114, 65, 1000, cache_write_tokens=100)
    assert printed.model == "large"


@pytest.mark.parametrize("why", ["error_max_turns", "error_max_budget_usd"])
def test_claude_code_that_ran_out(why):
    said = {k: v for k, v in CLAUDE.items() if k != "result"} | {"subtype": why, "is_error": True}
    printed = read("claude-code", lines(ASSISTANT, said))
    assert (printed.status, printed.text) == ("budget", "Nearly.")
    assert printed.cost_usd == 0.088202


def test_codex():
    output = lines(
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "0", "type": "reasoning", "text": "Hm."}},
        {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "First."}},
        {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 2}},
        {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "Done."}},
        {
            "type": "turn.completed",
            "usage": {
                "input_tokens": 24763,
                "cached_input_tokens": 24448,
                "output_tokens": 122,
                "reasoning_output_tokens": 64,
            },
        },
    )
    printed = read("codex", output)
    assert printed.text == "Done."
    assert printed.usage == Usage(24763, 122, 24448, 64)
    assert printed.cost_usd is None


GEMINI = {
    "response": "Done.",
    "stats": {
        "models": {
            "gemini-2.5-pro": {
                "api": {"totalRequests": 2},
                "tokens": {
                    "prompt": 24939,
                    "candidates": 20,
                    "total": 25113,
                    "cached": 21263,
                    "thoughts": 154,
                    "tool": 0,
                },
            },
            "gemini-2.5-flash": {
                "tokens": {
                    "prompt": 100,
                    "candidates": 10,
                    "total": 115,
                    "cached": 0,
                    "thoughts": 2,
                    "tool": 3,
                }
            },
        },
        "tools": {"totalCalls": 1},
    },
}


@pytest.mark.parametrize("noise", ["", "Loaded cached credentials.\n"])
def test_gemini(noise):
    printed = read("gemini", noise + json.dumps(GEMINI, indent=2))
    assert printed.text == "Done."
    assert printed.usage == Usage(25042, 186, 21263, 156)
    assert printed.usage.prompt_tokens + printed.usage.completion_tokens == 25113 + 115
    assert printed.model == "gemini-2.5-pro"


def test_gemini_as_a_stream():
    output = lines(
        {"type": "init", "session_id": "s", "model": "gemini-2.5-pro"},
        {"type": "message", "role": "user", "content": "Do it."},
        {"type": "message", "role": "assistant", "content": "Do", "delta": True},
        {"type": "message", "role": "assistant", "content": "ne.", "delta": True},
        {
            "type": "result",
            "status": "success",
            "stats": {
                "total_tokens": 25113,
                "input_tokens": 24939,
                "output_tokens": 20,
                "cached": 21263,
            },
        },
    )
    printed = read("gemini", output)
    assert printed.text == "Done."
    assert printed.usage == Usage(24939, 174, 21263)


def test_json_paths():
    how = {
        "text": "$.answer.text",
        "prompt_tokens": "$.usage[0].in",
        "completion_tokens": "usage[-1]['out']",
        "cost_usd": "$.cost",
        "model": "$.model",
    }
    output = "log\n" + lines(
        {"cost": 0.1, "model": "m"},
        {"answer": {"text": "4"}, "usage": [{"in": 3}, {"out": 5}], "cost": 0.25},
    )
    printed = read(how, output)
    assert printed.text == "4"
    assert printed.usage == Usage(3, 5)
    assert printed.cost_usd == 0.25
    assert printed.model == "m"


WRONG = ["", "no JSON", "{", "[]", "null", "{}", '{"type": "result", "usage": 3}', "[" * 100_000]


@pytest.mark.parametrize("output", WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("how", ["text", "claude-code", "codex", "gemini", {"cost_usd": "$.a"}])
def test_what_is_not_said_is_null(how, output):
    printed = read(how, output)
    assert printed.usage == Usage()
    assert printed.cost_usd is None


@pytest.mark.parametrize("value", [True, "12", -1, float("nan"), float("inf"), [1], {"a": 1}])
def test_what_is_no_number_is_null(value):
    output = json.dumps({"n": value})
    printed = read({"prompt_tokens": "$.n", "cost_usd": "$.n"}, output)
    assert printed.usage.prompt_tokens is None
    assert printed.cost_usd is None


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Invalid API key · Please run /login", "auth"),
        ('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}', "server"),
        ("API Error: 429 rate_limit_error", "rate_limit"),
        ("API Error: 500 Internal server error", "server"),
        ("Credit balance is too low", "quota"),
        ("API Error: Connection error.", "connection"),
        ("API Error: Request timed out.", "timeout"),
        ("Something else", "function"),
    ],
)
def test_claude_code_whose_api_failed(said, kind):
    printed = read("claude-code", json.dumps({**CLAUDE, "is_error": True, "result": said}))
    assert printed.failed.kind == kind
    assert said in str(printed.failed)
    assert printed.failed.retryable is (kind in {"server", "rate_limit", "connection", "timeout"})
    during = {**CLAUDE, "subtype": "error_during_execution", "errors": [said]}
    del during["result"]
    assert read("claude-code", json.dumps(during)).failed.kind == kind


def test_claude_code_that_filled_its_context_has_a_result():
    said = {**CLAUDE, "is_error": True, "result": "Prompt is too long"}
    printed = read("claude-code", json.dumps(said))
    assert (printed.failed, printed.status) == (None, "budget")


def test_codex_that_failed():
    begun = {"type": "thread.started", "thread_id": "t"}
    error = {"type": "error", "message": "exceeded retry limit, last status: 429"}
    failed = {"type": "turn.failed", "error": {"message": "401 Unauthorized"}}
    assert read("codex", lines(begun, error)).failed.kind == "rate_limit"
    assert read("codex", lines(begun, error, failed)).failed.kind == "auth"
    bare = {"type": "turn.failed"}
    assert read("codex", lines(begun, bare)).failed.kind == "function"


def test_codex_that_overcame_an_error_has_a_result():
    output = lines(
        {"type": "error", "message": "Reconnecting... 1/5"},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "Done."}},
        {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 2}},
    )
    printed = read("codex", output)
    assert (printed.failed, printed.text) == (None, "Done.")


QUOTA = {"error": {"type": "ApiError", "message": "quota exceeded", "code": 429}}


@pytest.mark.parametrize(
    ("output", "errors"),
    [
        (json.dumps(QUOTA), ""),
        ("", "Loaded cached credentials.\n" + json.dumps(QUOTA, indent=2)),
        (lines({"type": "init"}, {"type": "result", "status": "error", **QUOTA, "stats": {}}), ""),
    ],
    ids=["json", "standard error", "stream"],
)
def test_gemini_that_failed(output, errors):
    failed = read("gemini", output, errors).failed
    assert failed.kind == "rate_limit"
    assert failed.retryable


def test_gemini_that_ran_out_of_turns_has_a_result():
    error = {"type": "FatalTurnLimitedError", "message": "Reached max turns", "code": 53}
    printed = read("gemini", "", json.dumps({"error": error}))
    assert (printed.failed, printed.status) == (None, "budget")


def test_what_an_agent_prints_beside_its_result_is_no_failure():
    assert read("gemini", json.dumps(GEMINI), json.dumps(QUOTA)).failed is None
