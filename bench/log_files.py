"""Logs of other tools, large ones, in the form that the tools write."""

from __future__ import annotations

import base64
import json
import random
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import zstandard

MODEL = "lab/model-1"
TIME = "2026-01-02T03:04:05.123456+00:00"
_ZSTANDARD, _VERSION = 93, 45
_BLOCK = 1 << 20


def inspect_eval(path: Path, samples: int, noise: int = 0) -> None:
    """Write an archive of samples of about 9 kB each, most of it events.

    `noise` adds an event with this many random bytes to each, which do not compress.
    """
    head, rng = _json(inspect_header(samples)), random.Random(7)
    rest = (
        (f"samples/sum-{n}_epoch_1.json", [_json(sample(n, 14, _noise(rng, noise)))])
        for n in range(samples)
    )
    _zip(path, [("_journal/start.json", [head]), ("header.json", [head])], rest)


def _noise(rng: random.Random, size: int) -> str:
    return base64.b64encode(rng.randbytes(size)).decode()


def inspect_large_sample(path: Path, size: int) -> None:
    """Write an archive with one sample of this many bytes, nearly all of them events."""
    first, last = _json(sample(0, 0)).split(b'"events":[]')
    event = _json(_event(0, "x" * 100_000)) + b","
    count = size // len(event)
    last_event = event.rstrip(b",")
    parts = (first + b'"events":[', *[event] * count, last_event + b"]" + last)
    head = _json(inspect_header(1))
    _zip(path, [("_journal/start.json", [head]), ("header.json", [head])],
         [("samples/sum-0_epoch_1.json", parts)])  # fmt: skip


def inspect_header(samples: int) -> dict[str, Any]:
    """Return the header of a finished eval in which every second sample is right."""
    accuracy = (samples + 1) // 2 / samples
    score = {"name": "match", "scorer": "match", "scored_samples": samples, "unscored_samples": 0}
    metrics = {"accuracy": {"name": "accuracy", "value": accuracy, "params": {}}}
    about = {
        "eval_id": "bench1", "run_id": "bench-run", "created": TIME, "task": "sums",
        "task_id": "sums1", "task_version": 0, "model": MODEL, "config": {"epochs": 1},
        "dataset": {"samples": samples, "sample_ids": [], "shuffled": False},
    }  # fmt: skip
    return {
        "version": 2, "status": "success", "eval": about,
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": samples, "completed_samples": samples,
            "scores": [{**score, "params": {}, "metrics": metrics}],
        },
        "stats": {"started_at": TIME, "completed_at": TIME, "model_usage": {}},
    }  # fmt: skip


def sample(n: int, events: int, noise: str = "") -> dict[str, Any]:
    """Return one sample as Inspect writes it."""
    asked, said = f"What is {n} + {n + 1}? Think step by step.", _reply(n)
    reply = {
        "id": f"a{n}",
        "content": said,
        "source": "generate",
        "role": "assistant",
        "model": "model-1",
    }
    usage = {"input_tokens": 20, "output_tokens": 30, "total_tokens": 50}
    return {
        "id": f"sum-{n}", "epoch": 1, "input": asked, "target": str(2 * n + 1),
        "messages": [
            {"id": f"s{n}", "content": "You are careful.", "role": "system"},
            {"id": f"u{n}", "content": asked, "source": "input", "role": "user"}, reply,
        ],
        "output": {
            "model": "model-1", "choices": [{"message": reply, "stop_reason": "stop"}],
            "completion": said, "usage": usage, "time": 0.5,
        },
        "scores": {"match": {
            "value": "IC"[n % 2 == 0], "answer": said, "explanation": said, "history": [],
        }},
        "metadata": {"category": "plus"}, "store": {},
        "events": [_event(k, said if k else noise + said) for k in range(events)],
        "model_usage": {MODEL: usage}, "role_usage": {}, "started_at": TIME, "completed_at": TIME,
        "total_time": 1.66, "working_time": 1.459, "uuid": f"uuid{n}", "error_retries": [],
        "attachments": {}, "events_data": {"messages": [], "calls": []}, "turn_count": 1,
    }  # fmt: skip


def _reply(n: int) -> str:
    steps = "First I look at the question.\nStep 1: take the parts.\nStep 2: put them together."
    return f"{steps}\nThe answer is {2 * n + 1 if n % 2 == 0 else n}"


def _event(n: int, text: str) -> dict[str, Any]:
    change = {
        "op": "add",
        "path": f"/messages/{n}",
        "value": {"content": text, "role": "assistant"},
    }
    return {
        "uuid": f"event{n}", "span_id": f"span{n}", "timestamp": TIME, "working_start": 0.25,
        "event": "state", "changes": [change, {"op": "replace", "path": "/output/completion",
                                               "value": text, "replaced": ""}],
    }  # fmt: skip


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


Member = tuple[str, Iterable[bytes]]


def _zip(path: Path, first: Iterable[Member], rest: Iterable[Member]) -> None:
    """Write an archive with Zstandard, member by member, as Inspect does since 2026."""
    with path.open("wb") as file:
        directory = [*(_added(file, *one) for one in first), *(_added(file, *one) for one in rest)]
        start = file.tell()
        for entry in directory:
            file.write(entry)
        size, count = file.tell() - start, len(directory)
        file.write(_end(start, size, count))


def _added(file: IO[bytes], name: str, parts: Iterable[bytes]) -> bytes:
    """Write one member and return its entry in the directory."""
    at, crc, size = file.tell(), 0, 0
    named = name.encode()
    file.write(b"\0" * (30 + len(named)))
    compress = zstandard.ZstdCompressor().compressobj()
    for part in parts:
        crc, size = zlib.crc32(part, crc), size + len(part)
        file.write(compress.compress(part))
    file.write(compress.flush())
    end = file.tell()
    packed = end - at - 30 - len(named)
    common = struct.pack(
        "<HHHHHIIIHH", _VERSION, 0, _ZSTANDARD, 0, 33, crc, packed, size, len(named), 0
    )
    file.seek(at)
    file.write(b"PK\3\4" + common + named)
    file.seek(end)
    return (
        b"PK\1\2"
        + struct.pack("<H", _VERSION)
        + common
        + struct.pack("<HHHII", 0, 0, 0, 0, at)
        + named
    )


def _end(start: int, size: int, count: int) -> bytes:
    """Return the end of an archive, with the long form that more than 65,535 members need."""
    long = struct.pack("<QHHIIQQQQ", 44, _VERSION, _VERSION, 0, 0, count, count, size, start)
    short = struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    locator = struct.pack("<IQI", 0, start + size, 1)
    return b"PK\6\6" + long + b"PK\6\7" + locator + b"PK\5\6" + short


def otel_traces(path: Path, traces: int) -> None:
    """Write OTLP JSON with one agent, two calls and one tool in each trace."""
    with path.open("wb") as file:
        for n in range(traces):
            scope = {"scopeSpans": [{"spans": list(_spans(n))}]}
            named = {"attributes": [_attribute("service.name", "shop")]}
            file.write(_json({"resourceSpans": [{"resource": named, **scope}]}) + b"\n")


def _spans(n: int) -> Iterator[dict[str, Any]]:
    asked = {"role": "user", "parts": [{"type": "text", "content": f"What is {n} + {n + 1}?"}]}
    call = {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": n, "b": n + 1}}
    chosen = {"role": "assistant", "parts": [call], "finish_reason": "tool_calls"}
    given = {"type": "tool_call_response", "id": "c1", "response": str(2 * n + 1)}
    back = {"role": "tool", "parts": [given]}
    said = {"role": "assistant", "parts": [{"type": "text", "content": _reply(n)}]}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("chat", _said([asked], [chosen])),
        ("execute_tool", {"gen_ai.tool.name": "add", "gen_ai.tool.call.arguments": f"[{n}]"}),
        ("chat", _said([asked, chosen, back], [said])),
    ]
    for k, (kind, more) in enumerate(steps, 2):
        yield _span(n, k, {"gen_ai.operation.name": kind, **more}, parent=1)
    agent = {"gen_ai.agent.name": "adder", "gen_ai.conversation.id": f"sum-{n}"}
    result = {"gen_ai.evaluation.name": "right", "gen_ai.evaluation.score.value": float(n % 2 == 0)}
    event = {"name": "gen_ai.evaluation.result", "attributes": _attributes(result)}
    yield _span(n, 1, {"gen_ai.operation.name": "invoke_agent", **agent}, events=[event])


def _said(asked: list[Any], said: list[Any]) -> dict[str, Any]:
    return {
        "gen_ai.provider.name": "lab", "gen_ai.request.model": "model-1",
        "gen_ai.response.model": "model-1", "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 30, "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(said),
    }  # fmt: skip


def _span(n: int, k: int, about: dict[str, Any], parent: int = 0, **more: Any) -> dict[str, Any]:
    start = 1_790_000_000_000_000_000 + n * 1_000_000
    return {
        "traceId": f"{n + 1:032x}", "spanId": f"{k:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "", "name": "step", "kind": 1,
        "startTimeUnixNano": str(start + k), "endTimeUnixNano": str(start + 250_000_000),
        "attributes": _attributes(about), "status": {}, **more,
    }  # fmt: skip


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [_attribute(name, value) for name, value in values.items()]


def _attribute(name: str, value: Any) -> dict[str, Any]:
    kinds = {int: "intValue", float: "doubleValue", str: "stringValue"}
    return {"key": name, "value": {kinds[type(value)]: str(value) if type(value) is int else value}}


def pydantic_report(path: Path, cases: int) -> None:
    """Write a report of pydantic-evals."""
    source = {"name": "EqualsExpected", "arguments": None}
    about = {"name": "EqualsExpected", "reason": None, "source": source, "evaluator_version": None}
    made = [
        {
            "name": f"sum-{n}", "inputs": f"What is {n} + {n + 1}?", "metadata": {"size": n},
            "expected_output": str(2 * n + 1), "output": _reply(n),
            "metrics": {"requests": 1, "input_tokens": 20, "output_tokens": 30, "cost": 0.001},
            "attributes": {}, "scores": {}, "labels": {},
            "assertions": {"EqualsExpected": {**about, "value": n % 2 == 0}},
            "task_duration": 0.3, "total_duration": 0.5, "source_case_name": None,
            "trace_id": f"{n:032x}", "span_id": f"{n:016x}", "evaluator_failures": [],
        }
        for n in range(cases)
    ]  # fmt: skip
    report = {"name": "sums", "cases": made, "failures": [], "analyses": []}
    rest = {"report_evaluator_failures": [], "experiment_metadata": None}
    path.write_bytes(_json({**report, **rest, "trace_id": None, "span_id": None}))


def deepeval_run(path: Path, cases: int) -> None:
    """Write a test run of DeepEval."""
    about = {"name": "Exact Match", "threshold": 0.5, "strictMode": False, "reason": "compared"}
    made = [
        {
            "name": f"sum-{n}", "input": f"What is {n} + {n + 1}?", "actualOutput": _reply(n),
            "expectedOutput": str(2 * n + 1), "success": n % 2 == 0, "order": n,
            "metricsData": [{**about, "success": n % 2 == 0, "score": float(n % 2 == 0)}],
            "runDuration": 0.2, "tokenCost": 0.001, "completionTime": 0.2,
        }
        for n in range(cases)
    ]  # fmt: skip
    run = {
        "testCases": made, "conversationalTestCases": [], "metricsScores": [], "prompts": [],
        "testPassed": (cases + 1) // 2, "testFailed": cases // 2, "runDuration": 3.0,
    }  # fmt: skip
    path.write_bytes(_json(run))


def promptfoo_lines(path: Path, size: int) -> None:
    """Write results of promptfoo, 140 kB a line, until the file has this size."""
    text = "The kettle boils at once, and then it is quiet again. " * 1_000
    written = n = 0
    with path.open("wb") as file:
        while written < size:
            passed = n % 2 == 0
            grading = {"pass": passed, "score": float(passed), "reason": text}
            line = {
                "promptIdx": 0, "testIdx": n, "promptId": "p", "id": f"r{n}", "success": passed,
                "score": float(passed), "failureReason": 0 if passed else 1, "latencyMs": 250,
                "provider": {"id": MODEL}, "prompt": {"raw": f"Order {n}?", "label": "plain"},
                "vars": {"n": n}, "testCase": {"vars": {"n": n}}, "response": {"output": text},
                "gradingResult": {**grading, "componentResults": [grading]}, "namedScores": {},
            }  # fmt: skip
            written += file.write(_json(line) + b"\n")
            n += 1
