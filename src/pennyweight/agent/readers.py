"""Readers of what agents print: the final text, tokens and cost.

Each reader follows the documentation of its program. A missing value is None, never 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from pennyweight.models.failure import CallError, Kind, shorten
from pennyweight.models.json_values import add, count, object_of
from pennyweight.models.model import Usage
from pennyweight.record import MAX_NUMBER
from pennyweight.text.scanning import at_path, json_path


@dataclass(frozen=True, slots=True)
class AgentOutput:
    """What an agent reported about its attempt."""

    text: str
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    model: str | None = None
    status: Literal["ok", "budget"] = "ok"
    failed: CallError | None = None
    """Why the agent could not work: a service was down, refused access or was not paid."""


def read(how: str | Mapping[str, str], output: str, errors: str = "") -> AgentOutput:
    """Read an output with a named reader, or by JSON paths; `errors` is standard error."""
    if isinstance(how, Mapping):
        return _by_paths(how, output)
    if how == "gemini":
        return _gemini(output, errors)
    return _READERS[how](output)


_FULL = re.compile(
    r"prompt is too long|context (window|length)|context_length|output token maximum"
    r"|exceeds the maximum number of tokens",
    re.IGNORECASE,
)
"""The agent filled the model's context: a result of its work, like running out of turns."""

_SIGNS: tuple[tuple[Kind, str], ...] = (
    ("quota", r"credit balance|insufficient_(quota|balance)|billing|usage limit|payment|\b402\b"),
    ("quota", r"TerminalQuotaError|quota.*(per day|daily)|hit your limit"),
    ("rate_limit", r"\b429\b|rate.?limit|too many requests|resource.?exhausted|quota"),
    ("auth", r"\b40[13]\b|api.?key|/login|log ?in\b|unauthori[sz]ed|authenticat|forbidden"),
    ("auth", r"permission.?denied|oauth|credentials|FatalAuth"),
    ("content_filter", r"usage policy|content.?(filter|policy)|prohibited"),
    ("not_found", r"\b404\b|not_found_error|model.*(not found|does not exist|not supported)"),
    ("server", r"\b5\d\d\b|overloaded|internal.?server|server.?error|unavailable|high demand"),
    ("timeout", r"timed? ?out|timeout|deadline"),
    (
        "connection",
        r"connect|network|fetch failed|socket|ECONN|ENOTFOUND|EAI_AGAIN|stream (error|d)",
    ),
)


def kind_of(message: str) -> Kind | None:
    """Return the kind of failure that a message is about; None if the agent filled its context.

    A message without any of the known signs is a fault that a retry does not fix.
    """
    if _FULL.search(message):
        return None
    found = (kind for kind, signs in _SIGNS if re.search(signs, message, re.IGNORECASE))
    return next(found, "function")


def with_failure(printed: AgentOutput, message: str) -> AgentOutput:
    """Add the failure that an agent reports; if it filled its context, that is its result."""
    kind = kind_of(message)
    if kind is None:
        return replace(printed, status="budget")
    reason = shorten(message) or "it does not say why"
    usage = None if printed.usage == Usage() else printed.usage
    failed = CallError(kind, f"The agent reports: {reason}", usage=usage, reported=True)
    return replace(printed, failed=failed)


def _claude_code(output: str) -> AgentOutput:
    """Read `claude -p --output-format json` or `stream-json`: the last object of type result.

    `modelUsage` counts every model that was used; `usage` only the main one.
    """
    events = _events(output)
    result = next((e for e in reversed(events) if e.get("type") == "result"), None)
    if result is None:
        return AgentOutput(_last_words(events) or output.strip())
    text = result.get("result")
    per_model = object_of(result.get("modelUsage"))
    used = [u for u in per_model.values() if isinstance(u, dict)]
    if used and all(count(u.get("inputTokens")) is not None for u in used):
        usage = _sum(_claude_usage(u, _CAMEL) for u in used)
    else:
        usage = _claude_usage(object_of(result.get("usage")), _SNAKE)
    written = {n: count(object_of(u).get("outputTokens")) or 0 for n, u in per_model.items()}
    most = max(written, key=lambda name: written[name], default=None)
    said = text if isinstance(text, str) else _last_words(events)
    printed = AgentOutput(said, usage, _money(result.get("total_cost_usd")), most)
    kind = str(result.get("subtype", ""))
    if kind in {"error_max_turns", "error_max_budget_usd"}:
        return replace(printed, status="budget")
    if kind == "error_during_execution" or (result.get("is_error") is True and kind in _API):
        errors = result.get("errors")
        reasons = errors if isinstance(errors, list) else [text]
        return with_failure(printed, "; ".join(str(reason) for reason in reasons if reason))
    return printed


_API = ("success", "")
"""With `is_error`, the last message comes from the API; other kinds are the agent's own."""


_CODEX = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_output_tokens")
_SNAKE = (
    *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    "output_tokens",
)
_CAMEL = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")


def _claude_usage(said: Mapping[str, Any], names: tuple[str, ...]) -> Usage:
    """Include cached tokens, which Claude counts separately."""
    fresh, written, cached, out = (count(said.get(name)) for name in names)
    prompt = None if fresh is None else add(fresh, written, cached)
    return Usage(prompt, out, cached, cache_write_tokens=written)


def _last_words(events: list[dict[str, Any]]) -> str:
    for event in reversed(events):
        content = object_of(event.get("message")).get("content")
        if event.get("type") == "assistant" and isinstance(content, list):
            said = [p.get("text") for p in content if isinstance(p, dict)]
            text = "".join(t for t in said if isinstance(t, str))
            if text:
                return text
    return ""


def _codex(output: str) -> AgentOutput:
    """Read `codex exec --json`: the last message, and the usage of the last turn.

    That usage counts from the start of the thread, so it includes earlier turns. An error followed
    by a completed turn was overcome.
    """
    text: str | None = None
    usage = Usage()
    wrong: str | None = None
    for event in _events(output):
        item = object_of(event.get("item"))
        kind = item.get("type", item.get("item_type"))
        if event.get("type") == "item.completed" and kind in {"agent_message", "assistant_message"}:
            said = item.get("text")
            text = said if isinstance(said, str) else text
        elif event.get("type") in {"turn.failed", "error"}:
            wrong = _message(event.get("error", event)) or wrong or ""
        elif event.get("type") == "turn.completed":
            wrong = None
            said = object_of(event.get("usage"))
            usage = Usage(*(count(said.get(name)) for name in _CODEX))
    printed = AgentOutput(output.strip() if text is None else text, usage)
    return printed if wrong is None else with_failure(printed, wrong)


def _gemini(output: str, errors: str = "") -> AgentOutput:
    """Read `gemini --output-format json` or `stream-json`.

    If it ends with an error, it may print that as JSON to standard error.
    """
    events = _events(output)
    found = [e for e in events if "stats" in e or "response" in e]
    result = found[-1] if found else {}
    stats = object_of(result.get("stats"))
    models = object_of(stats.get("models"))
    tokens = [object_of(object_of(m).get("tokens")) for m in models.values()]
    if tokens:
        usage = _sum(map(_gemini_usage, tokens))
    else:
        prompt, whole = count(stats.get("input_tokens")), count(stats.get("total_tokens"))
        out = count(stats.get("output_tokens"))
        if prompt is not None and whole is not None and whole >= prompt:
            out = whole - prompt  # its output_tokens leave out the reasoning
        usage = Usage(prompt, out, count(stats.get("cached")))
    said = result.get("response")
    if not isinstance(said, str):
        parts = [e.get("content") for e in events if e.get("role") == "assistant"]
        said = "".join(p for p in parts if isinstance(p, str)) or ("" if events else output.strip())
    named = next((e.get("model") for e in events if e.get("type") == "init"), None)
    named = named if isinstance(named, str) else next(iter(models), None)
    printed = AgentOutput(said, usage, None, named)
    final = [e for e in events if isinstance(e.get("error"), dict)]
    if not final and not result:
        final = [e for e in _events(errors) if isinstance(e.get("error"), dict)]
    if not final:
        return printed
    error = final[-1]["error"]
    kind, code = str(error.get("type", "")), error.get("code")
    if kind == "FatalTurnLimitedError" or code == _TURNS:
        return replace(printed, status="budget")
    if kind in {"FatalToolExecutionError", "FatalCancellationError"}:
        return printed
    return with_failure(printed, " ".join(str(p) for p in (code, kind, _message(error)) if p))


_TURNS = 53
"""The exit code of Gemini's CLI when it has used up its turns."""


def _message(error: Any) -> str:
    said = object_of(error).get("message", error)
    return said if isinstance(said, str) else ""


def _gemini_usage(tokens: Mapping[str, Any]) -> Usage:
    said = {n: count(tokens.get(n)) for n in ("prompt", "tool", "candidates", "thoughts", "cached")}
    prompt = None if said["prompt"] is None else add(said["prompt"], said["tool"])
    out = None if said["candidates"] is None else add(said["candidates"], said["thoughts"])
    return Usage(prompt, out, said["cached"], said["thoughts"])


def _sum(all_: Iterator[Usage]) -> Usage:
    """Add usages; a count that one of them lacks is unknown."""
    found = list(all_)

    def total(name: str) -> int | None:
        values = [getattr(usage, name) for usage in found]
        return None if None in values or not values else sum(values)

    return Usage(**{one.name: total(one.name) for one in fields(Usage)})


def _by_paths(paths: Mapping[str, str], output: str) -> AgentOutput:
    documents = _documents(output)
    values = {name: _lookup(path, documents) for name, path in paths.items()}
    text = values.get("text")
    if text is None:
        text = output.strip() if "text" not in paths else ""
    model = values.get("model")
    return AgentOutput(
        text if isinstance(text, str) else json.dumps(text, ensure_ascii=False),
        Usage(**{f.name: count(values.get(f.name)) for f in fields(Usage)}),
        _money(values.get("cost_usd")),
        model if isinstance(model, str) else None,
    )


def _lookup(path: str, documents: list[Any]) -> Any:
    """Follow a path in the last document in which it leads to a value."""
    steps = json_path(path, whole=True)
    values = (at_path(document, steps) for document in reversed(documents))
    return next((value for value in values if value is not None), None)


def _events(output: str) -> list[dict[str, Any]]:
    found = []
    for document in _documents(output):
        found += document if isinstance(document, list) else [document]
    return [event for event in found if isinstance(event, dict)]


def _documents(output: str) -> list[Any]:
    """Find the JSON in an output: all of it, its lines, or from a line that starts it."""
    whole = _json(output)
    if whole is not None:
        return [whole]
    lines = output.splitlines()
    found = [v for v in map(_json, lines) if isinstance(v, dict | list)]
    if found:
        return found
    for number, line in enumerate(lines[:1000]):
        if line.startswith(("{", "[")):
            rest = _json("\n".join(lines[number:]))
            if rest is not None:
                return [rest]
    return []


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _money(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MAX_NUMBER else None


_READERS: dict[str, Callable[[str], AgentOutput]] = {
    "text": lambda output: AgentOutput(output.strip()),
    "claude-code": _claude_code,
    "codex": _codex,
}
