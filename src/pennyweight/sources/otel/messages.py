"""What was said in a call to a model: six dialects, one kind of message.

| dialect | messages |
|---|---|
| GenAI conventions from 1.37, OpenLLMetry from 0.62 | `gen_ai.input.messages` with parts |
| the same, content as an event | `gen_ai.client.inference.operation.details` |
| GenAI conventions up to 1.36 | events `gen_ai.user.message`, `gen_ai.choice`, … |
| OpenLLMetry before | `gen_ai.prompt.0.content`, `gen_ai.completion.0.content`, … |
| OpenInference | `llm.input_messages.0.message.content`, … |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pennyweight.sources.json_array import loads
from pennyweight.sources.log_values import first, items, mapping, message, text_of
from pennyweight.sources.otel.spans import Span, SpanEvent

Turn = dict[str, Any]
"""One message as records store it."""

_DETAILS = "gen_ai.client.inference.operation.details"
_CHOICE = "gen_ai.choice"
_ROLES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_FLAT = (("gen_ai.prompt", "gen_ai.completion"), ("llm.input_messages", "llm.output_messages"))
_MOST = 10_000
"""The most messages, or tool calls, that the number in an attribute's name may announce."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The messages that went into a call, and those that came back."""

    asked: tuple[Turn, ...] = ()
    said: tuple[Turn, ...] = ()
    finish: str | None = None

    @property
    def question(self) -> str | None:
        """The last message of the user."""
        users = (one["content"] for one in reversed(self.asked) if one["role"] == "user")
        return next((text for text in users if text), None)

    @property
    def reply(self) -> str | None:
        """The text that came back."""
        return "\n".join(one["content"] for one in self.said if one["content"]) or None

    @property
    def reasoning(self) -> str | None:
        """The reasoning that came back."""
        found = (one.get("reasoning") for one in self.said)
        return "\n".join(text for text in found if text) or None


def exchange(span: Span, events: Iterable[SpanEvent] = ()) -> Exchange:
    """Read the messages of a span, or of the log events that belong to it."""
    all_events = [*span.events, *events]
    details = [one for one in all_events if one.name == _DETAILS]
    for found in (span.attributes, *(mapping(e.body) or e.attributes for e in details)):
        made = _with_parts(found) or _flattened(found)
        if made is not None:
            return made
    for one in details:  # a body of its own kind beside the attributes
        if (made := _with_parts(one.attributes)) is not None:
            return made
    return _from_events(all_events, _finish(span.attributes))


def _with_parts(found: Mapping[str, Any]) -> Exchange | None:
    asked, said = (parsed(found.get(f"gen_ai.{way}.messages")) for way in ("input", "output"))
    if not isinstance(asked, list) and not isinstance(said, list):
        return None
    system = parsed(found.get("gen_ai.system_instructions"))
    before = [{"role": "system", "parts": system}] if isinstance(system, list) else []
    finish = first(mapping(one).get("finish_reason") for one in items(said))
    return Exchange(
        tuple(_turns([*before, *items(asked)], "user")),
        tuple(_turns(items(said), "assistant")),
        _finish(found) or finish,
    )


def _flattened(found: Mapping[str, Any]) -> Exchange | None:
    for ask, say in _FLAT:
        asked, said = nested(found, ask), nested(found, say)
        if asked or said:
            finish = first(mapping(one).get("finish_reason") for one in said)
            return Exchange(
                tuple(_turns(asked, "user")),
                tuple(_turns(said, "assistant")),
                _finish(found) or finish or _finish_inside(found.get("output.value")),
            )
    return None


def _finish_inside(reply: Any) -> Any:
    """Return why a model stopped from its whole reply, where OpenInference has it alone."""
    choices = items(mapping(parsed(reply)).get("choices"))
    return mapping(choices[-1]).get("finish_reason") if choices else None


def _from_events(events: Iterable[SpanEvent], finish: str | None) -> Exchange:
    asked: list[Turn] = []
    said: list[Turn] = []
    for one in events:
        content = parsed(one.attributes.get("gen_ai.event.content"))
        body = mapping(one.body) or mapping(content) or one.attributes
        if one.name == _CHOICE:
            told = parsed(body.get("message"))
            said += _turns([told if isinstance(told, dict) else body], "assistant")
            finish = finish or body.get("finish_reason")
        elif role := _ROLES.get(one.name):
            asked += _turns([{"role": role, **body}], role)
    return Exchange(tuple(asked), tuple(said), finish)


def _finish(found: Mapping[str, Any]) -> str | None:
    reasons = found.get("gen_ai.response.finish_reasons")
    last = reasons[-1] if isinstance(reasons, list) and reasons else reasons
    return last if isinstance(last, str) else None


def nested(found: Mapping[str, Any], prefix: str) -> list[Any]:
    """Return what attributes with numbers in their names stand for.

    >>> nested({"p.0.role": "user", "p.1.calls.0.name": "add", "p.1.calls.0.id": "7"}, "p")
    [{'role': 'user'}, {'calls': [{'name': 'add', 'id': '7'}]}]
    """
    root: dict[str, Any] = {}
    start = f"{prefix}."
    for name in [one for one in found if one.startswith(start)]:
        value = found[name]
        *way, last = name[len(start) :].split(".")
        place = root
        for step in way:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                break
            place = inner
        else:
            place.setdefault(last, value)
    return items(_lists(root))


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    made = {key: _lists(one) for key, one in value.items()}
    numbers = [key for key in made if key.isdigit() and len(key) < 6 and int(key) < _MOST]
    return [made[key] for key in sorted(numbers, key=int)] if numbers else made


def parsed(value: Any) -> Any:
    """Return the value that a text holds as JSON; another value as it is."""
    if isinstance(value, str) and value[:1] in {"{", "["}:
        read = loads(value.encode("utf-8", "replace"))
        return value if read is None else read
    return value


def _turns(messages: Iterable[Any], role: str) -> Iterator[Turn]:
    for each in messages:
        one = mapping(each)
        one = mapping(one.get("message")) or one
        if isinstance(one.get("parts"), list):
            yield from _of_parts(one, role)
        elif one:
            yield _of_content(one, role)


def _of_parts(one: Mapping[str, Any], role: str) -> Iterator[Turn]:
    """Yield a message; the results of several tool calls are a message each."""
    texts: dict[str, list[str]] = {"text": [], "reasoning": []}
    calls, results = [], []
    for part in map(mapping, one["parts"]):
        kind = part.get("type")
        if kind == "tool_call":
            calls.append(call(part))
        elif kind == "tool_call_response":
            result = first((part.get("response"), part.get("result")))
            results.append(message("tool", as_text(result), tool_call_id=part.get("id")))
        elif kind in texts and isinstance(part.get("content"), str):
            texts[kind].append(part["content"])
    content, reasoning = "\n".join(texts["text"]), "\n".join(texts["reasoning"])
    if content or reasoning or calls or not results:
        who = one.get("role") or role
        yield message(who, content, reasoning=reasoning, tool_calls=calls, name=one.get("name"))
    yield from results


def _of_content(one: Mapping[str, Any], role: str) -> Turn:
    content = one.get("content")
    if isinstance(content, str) and content.startswith('[{"type"'):
        content = parsed(content)
    if content is None and isinstance(one.get("contents"), list):
        content = [mapping(mapping(c).get("message_content")) for c in one["contents"]]
    calls = parsed(one.get("tool_calls"))
    made = [mapping(c) for c in items(calls)]
    who = str(one.get("role") or role)
    return message(
        who,
        content if isinstance(content, list) else as_text(content),
        reasoning=text_of(one.get("reasoning_content") or one.get("reasoning")),
        tool_calls=[call(mapping(c.get("tool_call")) or c) for c in made],
        tool_call_id=one.get("tool_call_id") or (one.get("id") if who == "tool" else None),
        name=one.get("name"),
    )


def call(value: Mapping[str, Any]) -> Turn:
    """Return one tool call, its arguments as values."""
    function = mapping(value.get("function")) or value
    made = {"name": str(function.get("name") or ""), "arguments": parsed(function.get("arguments"))}
    return made | ({"id": value["id"]} if value.get("id") else {})


def as_text(value: Any) -> str | None:
    """Return a value as a text: as it is, or as JSON."""
    if value is None or isinstance(value, str):
        return value
    import orjson  # noqa: PLC0415

    return orjson.dumps(value, default=str).decode()
