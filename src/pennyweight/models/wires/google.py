"""Google's Gemini format: a request to JSON, JSON to a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pennyweight.models.failure import CallError, from_status, malformed, read_error, total
from pennyweight.models.json_values import (
    PIECE,
    add,
    compact,
    count,
    known,
    logprob,
    object_of,
    text_of,
    word,
)
from pennyweight.models.model import Message, Reply, Request, Settings, ToolCall, Usage

IGNORES: frozenset[str] = frozenset()

GUESSED_OUTPUT = 4096
"""Assumed maximum length of an answer, if only its thinking has a limit."""

_TRUNCATED = {"MAX_TOKENS", "CONTINUATION"}
_REFUSED = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"}

_COUNTS = ("prompt", "candidates", "thoughts", "toolUsePrompt", "total", "cachedContent")


def headers(key: str | None) -> dict[str, str]:
    """Return the authentication headers. The key never goes into the URL, which ends up in logs."""
    return {"x-goog-api-key": key} if key else {}


def encode(model: str, request: Request) -> tuple[str, dict[str, Any]]:
    """Return the path and body of a request."""
    wanted = request.settings
    tools = [_tool(t) for t in wanted.tools]
    body = {
        "contents": _contents(request.messages),
        "systemInstruction": {"parts": [{"text": request.system}]} if request.system else None,
        "generationConfig": _config(wanted) or None,
        "tools": [{"functionDeclarations": tools}] if tools else None,
    }
    return f"/models/{quote(model)}:generateContent", {**known(body), **wanted.extra}


def streamed(path: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the path and body of a request for a stream."""
    return path.replace(":generateContent", ":streamGenerateContent?alt=sse"), body


def most_output(body: Mapping[str, Any]) -> int | None:
    """Return the maximum number of output tokens of a request; None if it sets no limit.

    The format's limit includes thinking. If only thinking is limited, a length is assumed for the
    answer.
    """
    config = body.get("generationConfig") or {}
    limit = count(config.get("maxOutputTokens"))
    if limit is None:
        budget = count((config.get("thinkingConfig") or {}).get("thinkingBudget"))
        limit = GUESSED_OUTPUT + budget if budget else None
    return limit and limit * (count(config.get("candidateCount")) or 1)


def _config(wanted: Settings) -> dict[str, Any]:
    config: dict[str, Any] = {
        "temperature": wanted.temperature,
        "topP": wanted.top_p,
        "maxOutputTokens": wanted.max_tokens,
        "stopSequences": list(wanted.stop) or None,
        "seed": wanted.seed,
        "responseLogprobs": wanted.logprobs or None,
        "thinkingConfig": _thinking(wanted.thinking),
    }
    if wanted.schema is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = dict(wanted.schema)
    return known(config)


def _thinking(wanted: int | str | None) -> dict[str, Any] | None:
    if wanted is None:
        return None
    if isinstance(wanted, str):
        return {"thinkingLevel": wanted, "includeThoughts": True}
    return {"thinkingBudget": wanted, "includeThoughts": wanted != 0}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    plain = tool.get("function", tool)
    declared = {"name": plain["name"], "description": plain.get("description", "")}
    if plain.get("parameters"):
        declared["parametersJsonSchema"] = plain["parameters"]
    return declared


def _contents(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Return the conversation. A tool result names the function, not the call."""
    names = {c.id: c.name for m in messages for c in m.tool_calls}
    contents: list[dict[str, Any]] = []
    before = ""
    for message in messages:
        if message.role == "system":
            continue
        parts = _parts(message, names)
        if message.role == before == "tool":
            contents[-1]["parts"] += parts
        else:
            role = "model" if message.role == "assistant" else "user"
            contents.append({"role": role, "parts": parts})
        before = message.role
    return contents


def _parts(message: Message, names: Mapping[str, str]) -> list[dict[str, Any]]:
    if message.role == "tool":
        name = message.name or names.get(message.tool_call_id or "", "")
        return [{"functionResponse": {"name": name, "response": {"result": message.content}}}]
    texts = [{"text": message.content}] if message.content or not message.tool_calls else []
    calls = [
        {"functionCall": {"name": c.name, "args": c.parsed() or {}}} for c in message.tool_calls
    ]
    return [*texts, *calls]


def spent(body: Any) -> Usage:
    """Read the usage of a reply. Thinking counts as output, as it is billed."""
    usage = object_of(body.get("usageMetadata"))
    prompt, visible, thoughts, tools, everything, cached = (
        count(usage.get(f"{name}TokenCount")) for name in _COUNTS
    )
    whole = None if prompt is None else add(prompt, tools)
    completion = add(visible, thoughts)
    if visible is None and whole is not None and everything is not None and everything >= whole:
        completion = everything - whole  # a count of 0 is left out of the JSON
    return Usage(whole, completion, cached, thoughts)


@total(spent)
def decode(body: Any, latency_ms: float | None = None) -> Reply:
    """Read a reply."""
    usage = spent(body)
    model = word(body.get("modelVersion"))
    candidates = body.get("candidates")
    if not candidates:
        return _blocked(body, usage, model, latency_ms)
    candidate = candidates[0]
    parts = (candidate.get("content") or {}).get("parts") or []
    finish = word(candidate.get("finishReason"))
    if not parts and finish is None:
        raise malformed("its first candidate has no content and no reason for it.")
    texts = [(bool(p.get("thought")), text_of(p["text"])) for p in parts if "text" in p]
    return Reply(
        text="".join(text for thought, text in texts if not thought),
        reasoning="".join(text for thought, text in texts if thought) or None,
        tool_calls=tuple(
            ToolCall(text_of(c.get("id")), text_of(c["name"]), compact(c.get("args") or {}))
            for c in (p["functionCall"] for p in parts if "functionCall" in p)
        ),
        usage=usage,
        truncated=finish in _TRUNCATED,
        refused=finish in _REFUSED,
        finish=finish,
        logprobs=_logprobs(candidate.get("logprobsResult")),
        model=model,
        latency_ms=latency_ms,
    )


class StreamedContent:
    """The events of a streamed reply, put together; only the first candidate is kept."""

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._parts: list[dict[str, Any]] = []
        self._chosen: list[Any] = []
        self.complete = False

    def add(self, event: Any) -> tuple[bool, int]:
        """Add an event, which has the format of a reply."""
        if event.get("error"):
            raise _error(502, {}, object_of(event["error"]), "")
        self._top |= {n: event[n] for n in ("modelVersion", "promptFeedback") if event.get(n)}
        self._usage |= object_of(event.get("usageMetadata"))
        blocked = object_of(self._top.get("promptFeedback")).get("blockReason")
        candidate: dict[str, Any] = next(
            (c for c in event.get("candidates") or () if not c.get("index")), {}
        )
        self._candidate |= {n: candidate[n] for n in ("finishReason",) if candidate.get(n)}
        self.complete = bool(blocked) or bool(self._candidate)
        parts = (candidate.get("content") or {}).get("parts") or []
        self._parts += parts
        chosen = (candidate.get("logprobsResult") or {}).get("chosenCandidates") or []
        self._chosen += chosen
        kept = sum(len(compact(one)) + 4 * PIECE for one in (*parts, *chosen))
        return any(part.get("text") or "functionCall" in part for part in parts), kept

    def body(self) -> dict[str, Any]:
        """Return the body as it would have come without streaming."""
        usage = {"usageMetadata": self._usage} if self._usage else {}
        if not self._candidate and not self._parts:
            return {**self._top, **usage}
        candidate = {**self._candidate, "content": {"parts": self._parts}}
        if self._chosen:
            candidate["logprobsResult"] = {"chosenCandidates": self._chosen}
        return {**self._top, **usage, "candidates": [candidate]}


streamed_body = StreamedContent


def _blocked(
    body: Mapping[str, Any], usage: Usage, model: str | None, latency_ms: float | None
) -> Reply:
    """Return the reply to a prompt that was blocked by the filter, which has no candidates."""
    if body.get("error"):
        raise _error(502, {}, body["error"], "")
    reason = (body.get("promptFeedback") or {}).get("blockReason")
    if not reason:
        raise malformed("it has no candidates.")
    return Reply(
        "", usage=usage, refused=True, finish=word(reason), model=model, latency_ms=latency_ms
    )


def _logprobs(result: Any) -> tuple[tuple[str, float], ...] | None:
    chosen = (result or {}).get("chosenCandidates")
    if not chosen:
        return None
    return tuple((text_of(c.get("token")), logprob(c["logProbability"])) for c in chosen)


def error(status: int, headers: Mapping[str, str], body: bytes) -> CallError:
    """Read an error."""
    return _error(status, headers, *read_error(body))


def _error(
    status: int, headers: Mapping[str, str], error: Mapping[str, Any], detail: str
) -> CallError:
    listed = error.get("details")
    details = [d for d in listed if isinstance(d, dict)] if isinstance(listed, list) else []
    reasons = " ".join(str(d["reason"]) for d in details if "reason" in d)
    code = f"{error.get('status') or ''} {reasons}"
    return from_status(status, headers, str(error.get("message") or detail), code, _delay(details))


def _delay(details: list[dict[str, Any]]) -> float | None:
    """Read the time to wait, which this format puts in the body: `"retryDelay": "37s"`."""
    for detail in details:
        text = str(detail.get("retryDelay", "")).removesuffix("s")
        if text.isascii() and text.replace(".", "", 1).isdigit():
            return float(text)
    return None
