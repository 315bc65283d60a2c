"""OpenAI's chat format, which most servers use: a request to JSON, JSON to a reply.

In addition to OpenAI's own fields it reads those of others: `reasoning_content` (DeepSeek, Qwen,
GLM, llama.cpp), `reasoning` (OpenRouter, vLLM, Ollama), thinking parts (Mistral), `<think>` tags in
the text, DeepSeek's `prompt_cache_hit_tokens`, and xAI's separate count of reasoning tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Any

from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError, from_status, malformed, read_error, total
from pennyweight.models.json_values import (
    PIECE,
    compact,
    count,
    known,
    logprob,
    object_of,
    split_thinking,
    text_of,
    word,
)
from pennyweight.models.model import Message, Reply, Request, ToolCall, Usage

IGNORES: frozenset[str] = frozenset()

_TRUNCATED = {"length", "max_tokens", "model_length", "max_output_tokens"}
_REFUSED = {"content_filter", "refusal"}
_EXCUSED = _TRUNCATED | _REFUSED
_TEXTS = ("content", "refusal", "reasoning", "reasoning_content")
"""The texts of a message, which a stream brings in pieces."""
_OTHER_CONTENT = ("tool_calls", "function_call", "refusal", "reasoning", "reasoning_content")
"""A message with one of these may lack content."""


_CHAT = (
    *("prompt_tokens", "completion_tokens"),
    *("prompt_tokens_details", "completion_tokens_details"),
)
_RESPONSES = ("input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details")
"""The names of counts, and of their parts, in both formats."""


def headers(key: str | None) -> dict[str, str]:
    """Return the authentication headers."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def encode(model: str, request: Request, limit: str = "max_tokens") -> tuple[str, dict[str, Any]]:
    """Return the path and body of a request. `limit` is the server's name for the output limit."""
    wanted = request.settings
    tools = [{"type": "function", "function": dict(t.get("function", t))} for t in wanted.tools]
    body = {
        "model": model,
        "messages": [_message(m) for m in request.messages],
        "temperature": wanted.temperature,
        "top_p": wanted.top_p,
        limit: wanted.max_tokens,
        "stop": list(wanted.stop) or None,
        "seed": wanted.seed,
        "logprobs": wanted.logprobs or None,
        "top_logprobs": 1 if wanted.logprobs else None,
        "tools": tools or None,
        "response_format": None if wanted.schema is None else _format(wanted.schema),
        "reasoning_effort": None if wanted.thinking is None else effort(wanted.thinking),
    }
    return "/chat/completions", {**known(body), **wanted.extra}


def streamed(path: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the path and body of a request for a stream; `stream_options: null` omits those."""
    asked = {"stream": True, "stream_options": {"include_usage": True}, **body}
    if asked["stream_options"] is None:
        del asked["stream_options"]
    return path, asked


def most_output(body: Mapping[str, Any]) -> int | None:
    """Return the maximum number of output tokens of a request; None if it sets no limit."""
    first, second = body.get("max_completion_tokens"), body.get("max_tokens")
    if first is None and second is None:
        return None
    highest = max(count(first) or 0, count(second) or 0)
    return highest * (count(body.get("n")) or 1) or None


def _message(message: Message) -> dict[str, Any]:
    if not (message.tool_calls or message.tool_call_id is not None or message.name is not None):
        return {"role": message.role, "content": message.content}
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
        for c in message.tool_calls
    ]
    more = {"tool_calls": calls or None, "tool_call_id": message.tool_call_id, "name": message.name}
    return {"role": message.role, "content": message.content, **known(more)}


def _format(schema: Mapping[str, Any]) -> dict[str, Any]:
    named = {"name": "output", "strict": True, "schema": dict(schema)}
    return {"type": "json_schema", "json_schema": named}


def effort(thinking: int | str) -> str:
    """Return the level of a thinking setting; 0 is `none`."""
    if isinstance(thinking, str):
        return thinking
    if thinking == 0:
        return "none"
    raise UsageError(
        f"thinking: {thinking} is a budget in tokens, but OpenAI's formats have only levels. Write "
        "one (minimal, low, medium, high, xhigh), or put the provider's own setting under 'extra'."
    )


def spent(body: Any) -> Usage:
    """Read the usage of a reply, by the names of the chat format or of the responses format."""
    usage = object_of(body.get("usage"))
    into, out, into_parts, out_parts = _CHAT if "prompt_tokens" in usage else _RESPONSES
    prompt, completion = count(usage.get(into)), count(usage.get(out))
    of_prompt, of_completion = object_of(usage.get(into_parts)), object_of(usage.get(out_parts))
    other = usage.get("prompt_cache_hit_tokens", usage.get("cached_tokens"))
    cached = count(of_prompt.get("cached_tokens", other))
    written = count(of_prompt.get("cache_write_tokens", usage.get("cache_creation_input_tokens")))
    reasoning = count(of_completion.get("reasoning_tokens", usage.get("reasoning_tokens")))
    if prompt is not None and completion is not None and reasoning:
        apart = prompt + completion + reasoning == count(usage.get("total_tokens"))
        completion += reasoning if apart else 0
    return Usage(prompt, completion, cached, reasoning, written)


@total(spent)
def decode(body: Any, latency_ms: float | None = None) -> Reply:
    """Read a reply."""
    choices = body.get("choices")
    if not choices:
        raise _reported(body["error"]) if body.get("error") else malformed("it has no choices.")
    choice = choices[0]
    if choice.get("finish_reason") == "error" or choice.get("error"):
        raise _reported(choice.get("error") or {})
    message, finish = choice["message"], word(choice.get("finish_reason"))
    text, reasoning = _content(message, excused=finish in _EXCUSED)
    refusal = message.get("refusal")
    return Reply(
        text=text or text_of(refusal),
        reasoning=reasoning,
        tool_calls=tuple(map(_call, message.get("tool_calls") or ())),
        usage=spent(body),
        truncated=finish in _TRUNCATED,
        refused=bool(refusal) or finish in _REFUSED,
        finish=finish,
        logprobs=_logprobs(choice.get("logprobs")),
        model=word(body.get("model")),
        latency_ms=latency_ms,
    )


class StreamedChat:
    """The chunks of a streamed reply, put together; only the first choice is kept."""

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._texts: dict[str, StringIO] = {}
        self._parts: list[Any] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._logprobs: list[dict[str, Any]] | None = None
        self.complete = False

    def add(self, event: Any) -> tuple[bool, int]:
        """Add a chunk."""
        if event.get("error"):
            raise _reported(event["error"])
        self._top |= {n: event[n] for n in ("model", "usage") if event.get(n)}
        choice = next((c for c in event.get("choices") or () if not c.get("index")), None)
        if choice is None:
            return False, 0
        if choice.get("finish_reason") == "error" or choice.get("error"):
            raise _reported(choice.get("error") or {})
        self._choice |= {n: choice[n] for n in ("finish_reason",) if choice.get(n)}
        self.complete = "finish_reason" in self._choice
        delta = choice.get("delta") or {}
        sizes = [self._more(n, delta[n]) for n in _TEXTS if delta.get(n) is not None]
        sizes += [self._call(call) for call in delta.get("tool_calls") or ()]
        for one in object_of(choice.get("logprobs")).get("content") or ():
            self._logprobs = self._logprobs or []
            self._logprobs.append({n: one[n] for n in ("token", "logprob")})
            sizes.append(len(one["token"]) + PIECE)
        return any(sizes), sum(sizes)

    def _more(self, name: str, piece: Any) -> int:
        """Add a piece of a text, or parts of a content, as Mistral's thinking has."""
        if name == "content" and (isinstance(piece, list) or self._parts):
            parts = piece if isinstance(piece, list) else [{"type": "text", "text": piece}]
            self._parts += parts
            return sum(len(compact(part)) + PIECE for part in parts)
        self._texts.setdefault(name, StringIO()).write(piece)
        return len(piece)

    def _call(self, piece: Mapping[str, Any]) -> int:
        """Add a piece of a tool call; some servers do not number the calls."""
        number, function = piece.get("index"), object_of(piece.get("function"))
        if number is None:
            number = len(self._calls) if piece.get("id") else max(0, len(self._calls) - 1)
        is_new = number not in self._calls
        call = self._calls.setdefault(number, {"id": None, "name": None, "arguments": StringIO()})
        call["id"] = call["id"] or piece.get("id")
        call["name"] = call["name"] or function.get("name")
        written = function.get("arguments") or ""
        written = written if isinstance(written, str) else compact(written)
        call["arguments"].write(written)
        return len(written) + (len(call["name"] or "") + 8 * PIECE if is_new else 0)

    def body(self) -> dict[str, Any]:
        """Return the body as it would have come without streaming."""
        if not (self._choice or self._texts or self._parts or self._calls):
            return {**self._top, "choices": []}
        calls = [
            {
                "id": call["id"],
                "function": {"name": call["name"], "arguments": call["arguments"].getvalue()},
            }
            for _, call in sorted(self._calls.items())
        ]
        message: dict[str, Any] = {name: text.getvalue() for name, text in self._texts.items()}
        if self._parts:
            first = message.get("content")
            message["content"] = [
                *([{"type": "text", "text": first}] if first else []),
                *self._parts,
            ]
        message |= {"tool_calls": calls} if calls else {}
        logprobs = {"content": self._logprobs} if self._logprobs else None
        choice = {**self._choice, "message": message, "logprobs": logprobs}
        return {**self._top, "choices": [choice]}


streamed_body = StreamedChat


def _reported(error: Any) -> CallError:
    """Return the error of a gateway, such as OpenRouter, that reports a failure with status 200."""
    detail = error if isinstance(error, dict) else {"message": str(error)}
    code = detail.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else 502
    return from_status(status, {}, str(detail.get("message", "")), str(code or ""))


def _content(message: Mapping[str, Any], *, excused: bool) -> tuple[str, str | None]:
    content = message.get("content")
    if content is None and not excused and not any(message.get(name) for name in _OTHER_CONTENT):
        raise KeyError("content")
    reasoning = text_of(message.get("reasoning_content") or message.get("reasoning")) or None
    if isinstance(content, list):
        parts = [_part(p) for p in content]
        thought = "".join(t for is_thought, t in parts if is_thought)
        return "".join(t for is_thought, t in parts if not is_thought), reasoning or thought or None
    text = text_of(content)
    if not reasoning:
        reasoning, text = split_thinking(text)
    return text, reasoning


def _part(part: Any) -> tuple[bool, str]:
    """Read one part of a content list: whether it is a thought, and its text."""
    if isinstance(part, str):
        return False, text_of(part)
    if part.get("type") == "thinking":
        inner = part.get("thinking")
        nested = "".join(_part(p)[1] for p in inner) if isinstance(inner, list) else text_of(inner)
        return True, nested
    return False, text_of(part.get("text") or part.get("refusal"))


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    arguments = function.get("arguments")
    written = text_of(arguments) if isinstance(arguments, str) else compact(arguments or {})
    return ToolCall(text_of(call.get("id")), text_of(function["name"]), written)


def _logprobs(value: Any) -> tuple[tuple[str, float], ...] | None:
    if not value:
        return None
    if value.get("content") is not None:
        return tuple((text_of(t["token"]), logprob(t["logprob"])) for t in value["content"])
    if value.get("tokens") is not None:
        pairs = zip(value["tokens"], value["token_logprobs"], strict=True)
        return tuple((text_of(t), logprob(p)) for t, p in pairs)
    return None


def error(status: int, headers: Mapping[str, str], body: bytes) -> CallError:
    """Read an error."""
    reported, detail = read_error(body)
    code = f"{reported.get('code') or ''} {reported.get('type') or ''}".strip()
    return from_status(status, headers, detail, code)
