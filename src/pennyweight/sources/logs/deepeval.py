"""DeepEval: a test run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pennyweight.sources.json_array import JsonArray, loads
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_tally import Expectation, LogTally
from pennyweight.sources.log_values import check, count, items, mapping, message, number, verdict
from pennyweight.sources.peek import Peek

_LATEST = "latest_test_run.json"


def recognise(peek: Peek) -> bool:
    """Whether a file is a test run."""
    run = peek.inside("testRunData") if peek.has("testRunData") else peek.inside()
    several = run.get("testCases") if isinstance(run, dict) else None
    if not isinstance(several, list):
        return False
    case = next(iter(several), None)
    return "testPassed" in run or (isinstance(case, dict) and "actualOutput" in case)


def home(path: Path) -> Path:
    """Return the file that keeps a run: the latest run is a copy of the newest one."""
    kept = sorted(path.parent.glob("test_run_*.json")) if path.name == _LATEST else ()
    return kept[-1] if kept else path


def read(log: Log) -> Iterator[Row]:
    """Yield the test cases."""
    for path in (log.path,) if log.path in log.files else log.files:
        yield from _run(log, path)
    log.check_scorer()


def _run(log: Log, path: Path) -> Iterator[Row]:
    keys = ("testRunData", "testCases") if Peek.of(path).has("testRunData") else ("testCases",)
    array = JsonArray(path, *keys)
    for place, text in enumerate(array, 1):
        case = loads(text)
        if not isinstance(case, dict):
            yield {PROBLEM: f"test case {place}: not JSON."}
            continue
        yield {"run": path.stem, **_row(case, log)}
    whole = array.rest
    summary = mapping(whole.get("testRunData", whole))
    for case in map(mapping, items(summary.get("conversationalTestCases"))):
        yield {"run": path.stem, **_row(case, log), **_conversation(case)}
    if log.options.scorer is None:
        for name, ours in (("testPassed", "passed"), ("testFailed", "failed")):
            if (value := count(summary.get(name))) is not None:
                log.expect(Expectation(name, value, partial(_counted, ours)))


def _counted(name: str, tally: LogTally) -> float:
    return float(getattr(tally.of(), name))


def _row(case: Mapping[str, Any], log: Log) -> Row:
    metrics = [mapping(one) for one in items(case.get("metricsData"))]
    log.offer(one.get("name") for one in metrics)
    seconds = number(case.get("completionTime"))
    row: Row = {
        "task_id": case.get("name") or case.get("order"),
        "status": "ok",
        "input": case.get("input"),
        "response": case.get("actualOutput"),
        "target": case.get("expectedOutput"),
        "context": case.get("retrievalContext") or case.get("context"),
        "cost_usd": number(case.get("tokenCost")),
        "judge_cost_usd": number(case.get("evaluationCost")),
        "latency_ms": None if seconds is None else seconds * 1000,
        **_verdict(case, metrics, log),
    }
    if tags := items(case.get("tags")):
        row["category"] = str(tags[0])
    if log.wants("scores"):
        row["scores"] = {str(one.get("name")): one.get("score") for one in metrics} or None
    if log.wants("checks"):
        row["checks"] = [
            check(
                m.get("name"), m.get("success"), m.get("error") or m.get("reason"), m.get("score")
            )
            for m in metrics
        ] or None
    if log.wants("tool_calls"):
        row["tool_calls"] = _calls(case) or None
    return row


def _calls(said: Mapping[str, Any]) -> list[Row]:
    """Return the tool calls of a test case, or of a turn."""
    calls = []
    for one in map(mapping, items(said.get("toolsCalled"))):
        made = {"name": one.get("name"), "arguments": one.get("inputParameters")}
        calls.append(made | ({} if one.get("output") is None else {"result": one["output"]}))
    return calls


def _conversation(case: Mapping[str, Any]) -> Row:
    """Return what a conversational test case has in place of one input and one output."""
    turns = [mapping(one) for one in items(case.get("turns"))]
    said = {who: [one for one in turns if one.get("role") == who] for who in ("user", "assistant")}
    calls = [call for one in turns for call in _calls(one)]
    return {
        "input": case.get("scenario") or _content(said["user"][:1]),
        "response": _content(said["assistant"][-1:]),
        "expected_outcome": case.get("expectedOutcome"),
        "messages": [
            message(one.get("role"), one.get("content"), tool_calls=_calls(one)) for one in turns
        ],
        "tool_calls": calls or None,
    }


def _content(turns: Sequence[Mapping[str, Any]]) -> Any:
    return turns[0].get("content") if turns else None


def _verdict(case: Mapping[str, Any], metrics: list[Mapping[str, Any]], log: Log) -> Row:
    """Return the verdict of the case, or of one metric; all metrics have to pass."""
    if (scorer := log.options.scorer) is not None:
        mine = next((one for one in metrics if one.get("name") == scorer), {})
        return verdict(mine.get("score"), mine.get("success"))
    judged = [number(one.get("score")) for one in metrics if one.get("evaluationModel")]
    row: Row = {"judge_scores": [s for s in judged if s is not None and 0 <= s <= 1] or None}
    if broken := [str(one.get("name")) for one in metrics if one.get("error")]:
        row["undecided"] = broken
    success = case.get("success")
    return {**row, "passed": success if isinstance(success, bool) else None}


FORMAT = LogFormat(
    "deepeval",
    "DeepEval",
    recognise,
    read,
    home,
    scores=True,
    lost="traces, hyperparameters, verbose logs of the metrics",
)
