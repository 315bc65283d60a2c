"""Pydantic Evals: a report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pennyweight.sources.json_array import JsonArray, loads
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_tally import Expectation
from pennyweight.sources.log_values import check, count, items, mapping, number, outside, verdict
from pennyweight.sources.peek import Peek

_REPEAT = re.compile(r"^(.*) \[(\d+)/\d+\]$", re.DOTALL)


def recognise(peek: Peek) -> bool:
    """Whether a file is a report."""
    case = peek.inside("cases", 0)
    whole = peek.has("cases", "failures", "analyses")
    return whole or (isinstance(case, dict) and {"inputs", "assertions", "scores"} <= case.keys())


def read(log: Log) -> Iterator[Row]:
    """Yield the cases, then those whose task failed."""
    for path in log.files:
        yield from _report(log, path)
    log.check_scorer()


def _report(log: Log, path: Path) -> Iterator[Row]:
    array = JsonArray(path, "cases")
    subject = scorer = None
    asserted: Counter[bool] = Counter()
    for place, text in enumerate(array, 1):
        case = loads(text)
        if not isinstance(case, dict) or "name" not in case:
            yield {PROBLEM: f"case {place}: not JSON, or no case."}
            continue
        if subject is None:
            subject, scorer = array.head.get("name"), log.options.scorer or _first_score(case)
        asserted.update(_held(case))
        yield {"run": path.stem, "subject": subject, **_row(case, scorer, log)}
    if asserted and scorer is None:
        share = asserted[True] / asserted.total()
        log.expect(Expectation("assertions that hold", share, lambda tally: tally.of().mean))
    rest = array.rest
    for failure in map(mapping, items(rest.get("failures"))):
        error = failure.get("error_message") or "The task failed."
        about = {"run": path.stem, "subject": rest.get("name"), **_about(failure)}
        yield {**about, "status": "error", "error": error}


def _about(case: Mapping[str, Any]) -> Row:
    name = str(case.get("name"))
    found = _REPEAT.match(name)
    more = mapping(case.get("metadata"))
    return {
        "task_id": case.get("source_case_name") or (found[1] if found else name),
        "attempt": int(found[2]) if found else None,
        "input": case.get("inputs"),
        "target": case.get("expected_output"),
        "category": more.get("category"),
        "capability": more.get("capability"),
    }


def _held(case: Mapping[str, Any]) -> list[bool]:
    """Return whether each assertion of a case holds."""
    return [mapping(one).get("value") is True for one in mapping(case.get("assertions")).values()]


def _first_score(case: Mapping[str, Any]) -> str | None:
    """Return the score that decides where the cases have no assertions."""
    return None if case.get("assertions") else next(iter(mapping(case.get("scores"))), None)


def _row(case: Mapping[str, Any], scorer: str | None, log: Log) -> Row:
    assertions, scores = mapping(case.get("assertions")), mapping(case.get("scores"))
    log.offer([*assertions, *scores])
    used = mapping(case.get("metrics"))
    row: Row = {
        **_about(case),
        "status": "ok",
        "response": case.get("output"),
        "prompt_tokens": count(used.get("input_tokens")),
        "completion_tokens": count(used.get("output_tokens")),
        "cost_usd": number(used.get("cost")),
        "duration_seconds": number(case.get("task_duration")),
        **_verdict(case, scorer, log),
    }
    if broken := items(case.get("evaluator_failures")):
        row["undecided"] = [str(mapping(one).get("name")) for one in broken]
    if log.wants("scores"):
        every = {**scores, **mapping(case.get("labels"))}
        row["scores"] = {name: mapping(one).get("value") for name, one in every.items()} or None
    if log.wants("checks"):
        row["checks"] = [
            check(name, mapping(one).get("value"), mapping(one).get("reason"))
            for name, one in assertions.items()
        ] or None
    return row


def _verdict(case: Mapping[str, Any], scorer: str | None, log: Log) -> Row:
    """Return whether all assertions hold and their share, or one score or assertion."""
    if scorer is None:
        held = _held(case)
        return verdict(sum(held) / len(held), all(held)) if held else {}
    found = mapping(case.get("assertions")).get(scorer) or mapping(case.get("scores")).get(scorer)
    value = mapping(found).get("value")
    if (read := number(value)) is not None and not 0 <= read <= 1:
        log.note(outside(scorer))
    return verdict(value, value)


FORMAT = LogFormat(
    "pydantic_evals",
    "Pydantic Evals",
    recognise,
    read,
    scores=True,
    lost="analyses, evaluators' arguments, span trees, attributes of the cases",
)
