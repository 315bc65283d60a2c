"""Spans and events, from OTLP requests and from what the console exporters print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pennyweight.sources.log_values import items, mapping

_ERRORS = {2, "2", "STATUS_CODE_ERROR", "ERROR", "StatusCode.ERROR"}


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event of a span, or a log event that may belong to one."""

    name: str
    attributes: Mapping[str, Any]
    body: Any = None
    trace: str = ""
    span: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """One step of a trace."""

    trace: str
    id: str
    parent: str
    name: str
    start: int | None
    """Unix nanoseconds."""
    end: int | None
    attributes: Mapping[str, Any]
    events: tuple[SpanEvent, ...] = ()
    error: str | None = None
    """What went wrong, if the span's status is an error."""
    service: str | None = None

    def get(self, *names: str) -> Any:
        """Return the first of these attributes that is there."""
        for name in names:
            if (value := self.attributes.get(name)) is not None:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Raw:
    """A span or an event that is not looked at yet."""

    value: Mapping[str, Any]
    is_span: bool
    trace: str
    """The id of its trace; empty if it has none."""
    service: str | None = None
    """The name of the program that sent it."""

    def read(self) -> Span | SpanEvent:
        """Return the span or the event."""
        return _span(self) if self.is_span else _event(self)


def raws(value: Any) -> Iterator[Raw]:
    """Yield the spans and events of one OTLP request, or of one object of a console exporter."""
    one = mapping(value)
    for group, scopes, name in (
        ("resourceSpans", "scopeSpans", "spans"),
        ("resourceLogs", "scopeLogs", "logRecords"),
    ):
        for part in map(mapping, items(one.get(group))):
            service = _service(part.get("resource"))
            for scope in map(mapping, items(part.get(scopes))):
                for record in map(mapping, items(scope.get(name))):
                    yield Raw(record, name == "spans", _trace(record), service)
    if "context" in one:
        yield Raw(one, True, _trace(one), _service(one.get("resource")))
    elif "body" in one and "trace_id" in one:
        yield Raw(one, False, _trace(one), _service(one.get("resource")))


def _trace(value: Mapping[str, Any]) -> str:
    own = value.get("traceId", value.get("trace_id"))
    return id_of(mapping(value.get("context")).get("trace_id") if own is None else own)


def _service(resource: Any) -> str | None:
    found = attributes(mapping(resource).get("attributes")).get("service.name")
    return None if found is None else str(found)


def _span(raw: Raw) -> Span:
    one = raw.value
    context, status = mapping(one.get("context")), mapping(one.get("status"))
    events = tuple(
        SpanEvent(str(event.get("name") or ""), attributes(event.get("attributes")))
        for event in map(mapping, items(one.get("events")))
    )
    found = attributes(one.get("attributes"))
    failed = status.get("code", status.get("status_code")) in _ERRORS
    reason = status.get("message") or status.get("description")
    return Span(
        raw.trace,
        id_of(one.get("spanId", context.get("span_id"))),
        id_of(one.get("parentSpanId", one.get("parent_id"))),
        str(one.get("name") or ""),
        _time(one.get("startTimeUnixNano", one.get("start_time"))),
        _time(one.get("endTimeUnixNano", one.get("end_time"))),
        found,
        events,
        str(reason or _exception(events) or found.get("error.type") or "error") if failed else None,
        raw.service,
    )


def _exception(events: tuple[SpanEvent, ...]) -> Any:
    found = (one.attributes for one in events if one.name == "exception")
    about = next(found, {})
    return about.get("exception.message") or about.get("exception.type")


def _event(raw: Raw) -> SpanEvent:
    one = raw.value
    found = attributes(one.get("attributes"))
    name = one.get("eventName") or one.get("event_name") or found.get("event.name")
    span = id_of(one.get("spanId", one.get("span_id")))
    body = one.get("body")
    read = any_value(body) if isinstance(body, dict) and "trace_id" not in one else body
    return SpanEvent(str(name or ""), found, read, raw.trace, span)


def attributes(value: Any) -> dict[str, Any]:
    """Return attributes as a mapping; OTLP has a list of keys and values.

    >>> attributes([{"key": "n", "value": {"intValue": "7"}}]), attributes({"n": 7})
    ({'n': 7}, {'n': 7})
    """
    if isinstance(value, dict):
        return value
    found = {}
    for one in items(value):
        pair = mapping(one)
        inner = pair.get("value")
        text = inner.get("stringValue") if type(inner) is dict and len(inner) == 1 else None
        found[str(pair.get("key"))] = any_value(inner) if text is None else text
    return found


def any_value(value: Any) -> Any:
    """Return the value of an attribute.

    >>> any_value({"arrayValue": {"values": [{"stringValue": "a"}, {"doubleValue": 0.5}]}})
    ['a', 0.5]
    """
    kind, inner = next(iter(mapping(value).items()), ("", None))
    match kind:
        case "arrayValue":
            return [any_value(one) for one in items(mapping(inner).get("values"))]
        case "kvlistValue":
            return attributes(mapping(inner).get("values"))
        case "intValue":
            return _whole(inner)
        case "doubleValue" if isinstance(inner, str):
            return None  # NaN and infinities
    return inner


def _whole(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def id_of(value: Any) -> str:
    """Return an id in one spelling; an id of zeros is none."""
    text = str(value or "").lower().removeprefix("0x")
    return text if text.strip("0") else ""


def _time(value: Any) -> int | None:
    """Return Unix nanoseconds; the console exporter writes ISO 8601."""
    if not isinstance(value, str) or value.isdigit():
        return _whole(value) or None
    try:
        return round(datetime.fromisoformat(value).timestamp() * 1_000_000) * 1000
    except ValueError:
        return None
