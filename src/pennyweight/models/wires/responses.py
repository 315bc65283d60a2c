"""OpenAI's responses format: a request to JSON, JSON to a reply.

It is the format in which OpenAI's models report what they thought. Nothing is kept at the provider:
every request has the whole conversation and `store: false`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pennyweight.models.failure import CallError, from_status, malformed, total
from pennyweight.models.json_values import (
    PIECE,
    compact,
    count,
    known,
    logprob,
    object_of,
    text_of,
    word,
)
from pennyweight.models.model import Message, Reply, Request, ToolCall
from pennyweight.models.wires.openai import effort, error, headers, spent

__all__ = ["decode", "encode", "error", "headers", "most_output", "streamed", "streamed_body"]

IGNORES = frozenset({"seed", "stop"})
"""The settings that the format does not have."""

_ENDED = {"completed", "incomplete"}
_CODES = {"rate_limit_exceeded": 429, "server_error": 500, "vector_store_timeout": 504}
"""HTTP statuses of the errors that pass by themselves; the others are about the request."""


def encode(model: str, request: Request) -> tuple[str, dict[str, Any]]:
    """Return the path and body of a request."""
    wanted = request.settings
    body = {
        "model": model,
        "input": [item for message in request.messages for item in _items(message)],
        "store": False,
        "temperature": wanted.temperature,
        "top_p": wanted.top_p,
        "max_output_tokens": wanted.max_tokens,
        "include": ["message.output_text.logprobs"] if wanted.logprobs else None,
        "top_logprobs": 1 if wanted.logprobs else None,
        "tools": [_tool(t) for t in wanted.tools] or None,
        "text": None if wanted.schema is None else {"format": _format(wanted.schema)},
        "reasoning": None if wanted.thinking is None else _reasoning(wanted.thinking),
    }
    return "/responses", {**known(body), **wanted.extra}


def streamed(path: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the path and body of a request for a stream."""
    return path, {**body, "stream": True}


def most_output(body: Mapping[str, Any]) -> int | None:
    """Return the maximum number of output tokens of a request, including thinking."""
    return count(body.get("max_output_tokens"))


def _items(message: Message) -> Iterator[dict[str, Any]]:
    """Yield a message as items: calls of tools and their results stand beside the texts."""
    if message.role == "tool":
        result = {"call_id": message.tool_call_id or "", "output": message.content}
        yield {"type": "function_call_output", **result}
        return
    if message.content or not message.tool_calls:
        yield {"role": message.role, "content": message.content}
    for call in message.tool_calls:
        made = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        yield {"type": "function_call", **made}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool. Unlike the chat format, this one is strict about schemas by default."""
    return {"type": "function", "strict": False, "parameters": None, **tool.get("function", tool)}


def _format(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "name": "output", "strict": True, "schema": dict(schema)}


def _reasoning(thinking: int | str) -> dict[str, Any]:
    """Return the effort; where there is some, ask for a summary of the thoughts too."""
    level = effort(thinking)
    return {"effort": level} if level == "none" else {"effort": level, "summary": "auto"}


@total(spent)
def decode(body: Any, latency_ms: float | None = None) -> Reply:
    """Read a reply."""
    if body.get("error"):
        raise _reported(body["error"])
    status, items = word(body.get("status")), body["output"]
    if status not in _ENDED:
        raise malformed(f"its status is {status!r}, not completed or incomplete.")
    if not items and status == "completed":
        raise malformed("it has no output.")
    parts = [p for i in items if i["type"] == "message" for p in i["content"]]
    thoughts = [thought for i in items if i["type"] == "reasoning" for thought in _thoughts(i)]
    refusal = "".join(text_of(p["refusal"]) for p in parts if p["type"] == "refusal")
    texts = [p for p in parts if p["type"] == "output_text"]
    why = word(object_of(body.get("incomplete_details")).get("reason"))
    return Reply(
        text="".join(text_of(p["text"]) for p in texts) or refusal,
        reasoning="\n\n".join(thoughts) or None,
        tool_calls=tuple(_call(i) for i in items if i["type"] == "function_call"),
        usage=spent(body),
        truncated=why == "max_output_tokens",
        refused=bool(refusal) or why == "content_filter",
        finish=why or status,
        logprobs=_logprobs(texts),
        model=word(body.get("model")),
        latency_ms=latency_ms,
    )


def _thoughts(item: Mapping[str, Any]) -> list[str]:
    """Return the thoughts of an item: in full where a server shows them, else their summary."""
    shown = item.get("content") or item.get("summary") or ()
    return [text for part in shown if (text := text_of(part["text"]))]


def _call(item: Mapping[str, Any]) -> ToolCall:
    arguments = item["arguments"]
    written = text_of(arguments) if isinstance(arguments, str) else compact(arguments or {})
    return ToolCall(text_of(item.get("call_id")), text_of(item["name"]), written)


def _logprobs(texts: list[Any]) -> tuple[tuple[str, float], ...] | None:
    tokens = [token for part in texts for token in part.get("logprobs") or ()]
    return tuple((text_of(t["token"]), logprob(t["logprob"])) for t in tokens) or None


class StreamedResponse:
    """The events of a streamed reply. The last one has the whole reply, as without streaming."""

    def __init__(self) -> None:
        self._whole: dict[str, Any] = {}
        self.complete = False

    def add(self, event: Any) -> tuple[bool, int]:
        """Add an event."""
        kind = event["type"]
        if kind == "error":
            raise _reported(event.get("error") or event)
        if kind in {"response.completed", "response.incomplete", "response.failed"}:
            self._whole, self.complete = dict(event["response"]), True
        elif kind.endswith(".delta"):
            piece = event.get("delta")
            return bool(piece), len(piece) + PIECE if isinstance(piece, str) else PIECE
        return False, 0

    def body(self) -> dict[str, Any]:
        """Return the body as it would have come without streaming."""
        return self._whole


streamed_body = StreamedResponse


def _reported(error: Any) -> CallError:
    """Return the error of a response that failed after it had begun."""
    code = str(object_of(error).get("code") or "")
    detail = str(object_of(error).get("message") or error)
    return from_status(_CODES.get(code, 400), {}, detail, code)
