"""OTLP protobuf, decoded into the values that OTLP JSON has, and encoded from them.

Only the messages of traces and logs are known (opentelemetry-proto 1, whose field numbers are
stable); other fields are skipped, as protobuf wants it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

TRACES, LOGS, ANSWER = "TracesData", "LogsData", "Answer"
_DEEPEST = 100
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_ID_BYTES = 16

_FIELDS: dict[str, dict[int, tuple[str, str]]] = {
    TRACES: {1: ("resourceSpans", "[ResourceSpans]")},
    LOGS: {1: ("resourceLogs", "[ResourceLogs]")},
    "ResourceSpans": {1: ("resource", "Resource"), 2: ("scopeSpans", "[ScopeSpans]")},
    "ResourceLogs": {1: ("resource", "Resource"), 2: ("scopeLogs", "[ScopeLogs]")},
    "Resource": {1: ("attributes", "[KeyValue]")},
    "ScopeSpans": {1: ("scope", "Scope"), 2: ("spans", "[Span]")},
    "ScopeLogs": {1: ("scope", "Scope"), 2: ("logRecords", "[LogRecord]")},
    "Scope": {1: ("name", "text"), 2: ("version", "text")},
    "Span": {
        1: ("traceId", "id"),
        2: ("spanId", "id"),
        4: ("parentSpanId", "id"),
        5: ("name", "text"),
        6: ("kind", "int"),
        7: ("startTimeUnixNano", "fixed"),
        8: ("endTimeUnixNano", "fixed"),
        9: ("attributes", "[KeyValue]"),
        11: ("events", "[Event]"),
        15: ("status", "Status"),
    },
    "Event": {1: ("timeUnixNano", "fixed"), 2: ("name", "text"), 3: ("attributes", "[KeyValue]")},
    "Status": {2: ("message", "text"), 3: ("code", "int")},
    "LogRecord": {
        1: ("timeUnixNano", "fixed"),
        2: ("severityNumber", "int"),
        5: ("body", "AnyValue"),
        6: ("attributes", "[KeyValue]"),
        9: ("traceId", "id"),
        10: ("spanId", "id"),
        11: ("observedTimeUnixNano", "fixed"),
        12: ("eventName", "text"),
    },
    "KeyValue": {1: ("key", "text"), 2: ("value", "AnyValue")},
    "AnyValue": {
        1: ("stringValue", "text"),
        2: ("boolValue", "bool"),
        3: ("intValue", "int"),
        4: ("doubleValue", "double"),
        5: ("arrayValue", "ArrayValue"),
        6: ("kvlistValue", "KeyValueList"),
        7: ("bytesValue", "id"),
    },
    "ArrayValue": {1: ("values", "[AnyValue]")},
    "KeyValueList": {1: ("values", "[KeyValue]")},
    ANSWER: {1: ("partialSuccess", "Partial")},
    "Partial": {1: ("rejected", "int"), 2: ("errorMessage", "text")},
}
_NUMBERS = {
    kind: {name: (number, type_) for number, (name, type_) in fields.items()}
    for kind, fields in _FIELDS.items()
}
_WIRE = {"text": _BYTES, "id": _BYTES, "fixed": _FIXED64, "double": _FIXED64, "int": _VARINT}
_WIRE["bool"] = _VARINT


def decode(data: bytes, kind: str) -> dict[str, Any]:
    """Decode a request of traces or logs; ValueError if it is none.

    >>> decode(bytes.fromhex("0a0c12 0a 12 08 2a06 63616c6c6572".replace(" ", "")), TRACES)
    {'resourceSpans': [{'scopeSpans': [{'spans': [{'name': 'caller'}]}]}]}
    """
    return _message(memoryview(data), kind, 0)


def encode(value: Mapping[str, Any], kind: str) -> bytes:
    """Encode a request of traces or logs.

    >>> made = {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "call", "kind": 3}]}]}]}
    >>> decode(encode(made, TRACES), TRACES) == made
    True
    """
    parts = bytearray()
    for name, one in value.items():
        number, type_ = _NUMBERS[kind][name]
        inner = type_.strip("[]")
        for each in one if type_ != inner else [one]:
            parts += _written((number << 3) | _WIRE.get(inner, _BYTES))
            data = encode(each, inner) if inner in _FIELDS else _scalar_bytes(each, inner)
            parts += data if inner in _WIRE and _WIRE[inner] != _BYTES else _sized(data)
    return bytes(parts)


def _scalar_bytes(value: Any, type_: str) -> bytes:
    match type_:
        case "text":
            return str(value).encode("utf-8", "replace")
        case "id":
            return bytes.fromhex(value)
        case "double":
            return struct.pack("<d", value)
        case "fixed":
            return int(value).to_bytes(8, "little")
    return _written(int(value) & ((1 << 64) - 1))


def _sized(data: bytes) -> bytes:
    return _written(len(data)) + data


def _written(number: int) -> bytes:
    """Return a number as a varint."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def kind_of(head: bytes) -> str | None:
    """Tell whether the beginning of a message is one of traces or of logs; None for neither."""
    record = memoryview(head)
    for number in (1, 2, 2):  # a resource's spans, a scope's, the first span
        found = next((v for n, _, v in _some(record) if n == number), None)
        if not isinstance(found, memoryview):
            return None
        record = found
    seen = [(number, wire, value) for number, wire, value in _some(record)]
    sizes = {n: len(value) for n, wire, value in seen if isinstance(value, memoryview)}
    wires = {(n, wire) for n, wire, _ in seen}
    if sizes.get(1) == _ID_BYTES and sizes.get(2) == _ID_BYTES // 2 and (7, _FIXED64) in wires:
        return TRACES
    timed = (1, _FIXED64) in wires or (11, _FIXED64) in wires
    traced = sizes.get(9) == _ID_BYTES and sizes.get(10) == _ID_BYTES // 2
    return LOGS if 1 not in sizes and (traced or (timed and 9 not in sizes)) else None


def _some(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Yield the fields of a message that may be cut off, the last of them as far as it goes."""
    try:
        yield from _fields(data, cut=True)
    except ValueError:
        return


def _message(data: memoryview, kind: str, depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        raise ValueError("values are nested too deeply")
    fields, made = _FIELDS[kind], dict[str, Any]()
    for number, wire, value in _fields(data):
        name, type_ = fields.get(number, ("", ""))
        if not name or wire != _WIRE.get(type_, _BYTES):
            continue
        if type_.startswith("["):
            made.setdefault(name, []).append(_message(value, type_[1:-1], depth + 1))
        elif type_ in _FIELDS:
            made[name] = _message(value, type_, depth + 1)
        else:
            made[name] = _scalar(value, type_)
    return made


def _scalar(value: Any, type_: str) -> Any:
    match type_:
        case "text":
            return bytes(value).decode("utf-8", "replace")
        case "id":
            return bytes(value).hex()
        case "double":
            return struct.unpack("<d", struct.pack("<Q", value))[0]
        case "bool":
            return bool(value)
        case "int":
            return value - (1 << 64) if value >> 63 else value
    return value


def _fields(data: memoryview, *, cut: bool = False) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and value of each field."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, wire = tag >> 3, tag & 7
        if not number:
            raise ValueError("a field has no number")
        if wire == _VARINT:
            value, place = _varint(data, place)
            yield number, wire, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(wire)
        if wire == _BYTES:
            size, place = _varint(data, place)
        if size is None:
            raise ValueError(f"wire type {wire} is not known")
        part = data[place : place + size]
        if len(part) < size and not (cut and wire == _BYTES):
            raise ValueError("the message is cut off")
        yield number, wire, part if wire == _BYTES else int.from_bytes(part, "little")
        place += size


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value & ((1 << 64) - 1), place
        shift += 7
    raise ValueError("a number is cut off")
