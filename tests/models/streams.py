"""Saved responses as a server streams them: the events of each format, a few characters each."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from models.hostile import Behaviour

SIZE = 3


def cut(text: str) -> list[str]:
    return [text[i : i + SIZE] for i in range(0, len(text), SIZE)]


def openai_events(body: dict[str, Any]) -> Iterator[Any]:
    if "error" in body:
        yield body
        return
    whole, usage = body["choices"][0], body.get("usage")
    message = whole["message"]
    top = {n: body[n] for n in ("id", "model", "created") if n in body}
    top |= {"object": "chat.completion.chunk", "created": body.get("created", 1)}

    def chunk(delta: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
        return top | {
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}],
            "usage": None,
        }

    has_text = message.get("content") is not None
    yield chunk({"role": "assistant", **({"content": ""} if has_text else {})})
    for name in ("reasoning_content", "reasoning", "refusal", "content"):
        value = message.get(name)
        for piece in cut(value) if isinstance(value, str) else [[p] for p in value or ()]:
            yield chunk({name: piece})
    for token in (whole.get("logprobs") or {}).get("content") or ():
        yield chunk({}, logprobs={"content": [token]})
    for number, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        begin = {**call, "index": number, "function": {**function, "arguments": ""}}
        yield chunk({"tool_calls": [begin]})
        for piece in cut(function["arguments"]):
            yield chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield chunk({}, whole["finish_reason"])
    if usage:
        yield top | {"choices": [], "usage": usage}
    yield "[DONE]"


def anthropic_events(body: dict[str, Any]) -> Iterator[Any]:
    usage = body["usage"]
    begun = {n: v for n, v in usage.items() if n != "output_tokens_details"} | {"output_tokens": 1}
    start = body | {"content": [], "stop_reason": None, "usage": begun}
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for number, block in enumerate(body["content"]):
        kind = block["type"]
        name = {"text": "text", "thinking": "thinking"}.get(kind)
        empty = {name: ""} if name else {"input": {}} if kind == "tool_use" else {}
        yield _block("start", number, content_block={**block, **empty})
        if name:
            for piece in cut(block[name]):
                yield _block("delta", number, delta={"type": f"{name}_delta", name: piece})
        elif kind == "tool_use":
            for piece in ["", *cut(json.dumps(block["input"]))]:
                delta = {"type": "input_json_delta", "partial_json": piece}
                yield _block("delta", number, delta=delta)
        yield _block("stop", number)
    ended = {n: body[n] for n in ("stop_reason", "stop_sequence")}
    said = {n: usage[n] for n in ("output_tokens", "output_tokens_details") if n in usage}
    yield {"type": "message_delta", "delta": ended, "usage": said}
    yield {"type": "message_stop"}


def _block(what: str, number: int, **more: Any) -> dict[str, Any]:
    return {"type": f"content_block_{what}", "index": number, **more}


def google_events(body: dict[str, Any]) -> Iterator[Any]:
    candidates = body.get("candidates")
    if not candidates:
        yield body
        return
    candidate = candidates[0]
    for part in (candidate.get("content") or {}).get("parts") or ():
        for piece in cut(part["text"]) if "text" in part else [None]:
            shown = part if piece is None else {**part, "text": piece}
            content = {"parts": [shown], "role": "model"}
            usage = {"promptTokenCount": body["usageMetadata"]["promptTokenCount"]}
            yield {"candidates": [{"content": content, "index": 0}], "usageMetadata": usage}
    yield body | {"candidates": [{n: v for n, v in candidate.items() if n != "content"}]}


def responses_events(body: dict[str, Any]) -> Iterator[Any]:
    """Yield the deltas of each item between its start and end, and the whole reply at last."""
    begun = body | {"output": [], "status": "in_progress", "usage": None, "error": None}
    yield {"type": "response.created", "response": begun}
    for number, item in enumerate(body["output"]):
        at = {"output_index": number, "item_id": item["id"]}
        empty = {"content": [], "summary": [], "arguments": ""}
        opened = item | {name: empty[name] for name in empty if name in item}
        yield {"type": "response.output_item.added", **at, "item": opened}
        for kind, text, place in _texts(item):
            if "content_index" in place:
                part = {"type": kind, "refusal" if kind == "refusal" else "text": ""}
                part |= {"annotations": [], "logprobs": []} if kind == "output_text" else {}
                yield {"type": "response.content_part.added", **at, **place, "part": part}
            for piece in cut(text):
                delta = {"delta": piece, "logprobs": []}
                yield {"type": f"response.{kind}.delta", **at, **place, **delta}
        yield {"type": "response.output_item.done", **at, "item": item}
    yield {"type": f"response.{body['status']}", "response": body}


def _texts(item: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, int]]]:
    if item["type"] == "function_call":
        yield "function_call_arguments", item["arguments"], {}
    for number, part in enumerate(item.get("summary", ())):
        yield "reasoning_summary_text", part["text"], {"summary_index": number}
    for number, part in enumerate(item.get("content", ())):
        text = part.get("text") or part["refusal"]
        yield part["type"], text, {"content_index": number}


EVENTS = {
    "openai": openai_events,
    "openai-responses": responses_events,
    "anthropic": anthropic_events,
    "google": google_events,
}


def written(events: Iterator[Any], end: bytes = b"\n") -> list[bytes]:
    """Write events as servers do, with a comment first and the name of the event if it has one."""
    parts = [b": hello" + end + end]
    for event in events:
        named = event.get("type") if isinstance(event, dict) else None
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        name = b"event: " + named.encode() + end if isinstance(named, str) else b""
        parts.append(name + b"data: " + text.encode() + end + end)
    return parts


def streaming(parts: list[bytes], *, pause: float = 0.0, cut_off: bool = False) -> Behaviour:
    """Send each part as a chunk, all but the first after `pause` seconds; perhaps without end."""

    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
        for number, part in enumerate(parts):
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0 if number else pause)
        if not cut_off:
            writer.write(b"0\r\n\r\n")
        await writer.drain()

    return say
