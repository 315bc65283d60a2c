"""promptfoo: results as JSON, YAML or JSONL."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.sources.json_array import JsonArray, loads
from pennyweight.sources.json_lines import json_lines
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_tally import Expectation, LogTally
from pennyweight.sources.log_values import check, count, items, known, mapping, number, verdict
from pennyweight.sources.peek import Peek
from pennyweight.text.exam import digest

MAX_YAML = 64 << 20
"""The largest YAML file that is read: it has to be loaded as a whole, and slowly."""
_MAX_VALUES = 5_000_000
"""The most values of a YAML file, aliases written out."""
_ASSERTION, _BROKEN = 1, 2
_ORDER = (".json", ".yaml", ".yml", ".jsonl")
"""Of several forms of the same results, the first is read: JSONL has no summary."""
_CUT = {"length", "max_tokens"}


def recognise(peek: Peek) -> bool:
    """Whether a file is an export: one object with all results, or one result a line."""
    if peek.has("promptIdx", "testIdx", "success"):
        return True
    results = peek.inside("results")
    if isinstance(results, dict) and "version" in results:
        return "evalId" in peek.keys or not results.keys().isdisjoint({"prompts", "table", "stats"})
    below = f"\n{peek.text}"
    return "\nevalId:" in below and "\nresults:" in below


def recognise_form(peek: Peek) -> bool:
    """Whether a file is an export for people: a table, a page or XML."""
    if peek.text.startswith("<"):
        page = peek.text.lower()
        is_page = page.startswith("<!doctype") and "promptfoo" in page
        return is_page or page.startswith("<promptfoo>")
    return {"Status", "Score", "Grader Reason"} <= set(peek.columns)


def home(path: Path) -> Path:
    """Return the path without its ending: exports that differ only in it have the same results."""
    return path.with_suffix("")


def read(log: Log) -> Iterator[Row]:
    """Yield the results of the best form of each export."""
    forms = sorted(log.files, key=lambda p: (p.with_suffix(""), _ORDER.index(_ending(p)), p))
    path = forms[0]
    if others := [other.name for other in forms[1:]]:
        log.note(f"not read: {', '.join(others)}, the same results as {path.name}.")
    found, about = _results(path)
    scored = False
    for place, result in found:
        if not isinstance(result, dict) or "success" not in result:
            yield {PROBLEM: f"{place}: not JSON, or no result."}
            continue
        row = _row(result, str(about.get("run") or path.stem), log)
        scored = scored or "passed" in row or "score" in row
        yield row
    _report(mapping(about.get("rest")), log, scored=scored)


def _ending(path: Path) -> str:
    return path.suffix.lower() if path.suffix.lower() in _ORDER else _ORDER[-1]


def _results(path: Path) -> tuple[Iterator[tuple[str, Any]], dict[str, Any]]:
    """Return the results with their places, and a mapping that has `rest` once they were read."""
    about: dict[str, Any] = {}
    peek = Peek.of(path)
    if peek.has("promptIdx"):
        return ((f"line {n}", value) for n, value in json_lines(path)), about
    if not peek.has("results"):
        return _yaml(path, about), about
    return _json(path, about), about


def _json(path: Path, about: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    array = JsonArray(path, "results", "results")
    for number_, text in enumerate(array, 1):
        about.setdefault("run", array.head.get("evalId"))
        yield f"result {number_}", loads(text)
    about["rest"] = array.rest


def _yaml(path: Path, about: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    import yaml  # noqa: PLC0415

    if path.stat().st_size > MAX_YAML:
        limit = f"YAML of more than {MAX_YAML >> 20} MB is not read"
        raise InputError([f"{path}: {limit}; export the results as JSON."])
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        whole = yaml.load(path.read_bytes(), loader)  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError([f"{path}: not YAML that can be read: {reason}."]) from error
    if _expanded(whole, {}) > _MAX_VALUES:
        raise InputError([f"{path}: its aliases stand for too much; export the results as JSON."])
    whole = mapping(whole)
    results = mapping(whole.get("results"))
    about |= {"run": whole.get("evalId"), "rest": whole}
    for number_, result in enumerate(items(results.get("results")), 1):
        yield f"result {number_}", result


def _expanded(value: Any, known: dict[int, float]) -> float:
    """Count the values with every alias written out; infinite if one contains itself."""
    if not isinstance(value, dict | list):
        return 1 + len(value) / 100 if isinstance(value, str) else 1
    if id(value) not in known:
        known[id(value)] = math.inf
        inside = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_expanded(one, known) for one in inside)
    return known[id(value)]


def _row(result: Mapping[str, Any], run: str, log: Log) -> Row:
    provider, prompt = mapping(result.get("provider")), mapping(result.get("prompt"))
    case, response = mapping(result.get("testCase")), mapping(result.get("response"))
    usage = mapping(result.get("tokenUsage") or response.get("tokenUsage"))
    about = mapping(case.get("metadata"))
    row: Row = {
        "run": run,
        "subject": provider.get("label") or provider.get("id") or result.get("provider"),
        "tier": prompt.get("label"),
        "task_id": _task(case, result),
        "input": prompt.get("raw"),
        "response": response.get("output"),
        "prompt_tokens": known(usage.get("prompt")),
        "completion_tokens": known(usage.get("completion")),
        "cost_usd": known(result.get("cost")),
        "latency_ms": number(result.get("latencyMs")),
        "truncated": response.get("finishReason") in _CUT,
        "category": about.get("category"),
        "description": case.get("description"),
        **_status(result),
    }
    if log.wants("task_digest"):
        row["task_digest"] = digest({"case": _case(case, result)})
    if row["status"] == "ok":
        row |= _verdict(result, log)
    for key, value in about.items():
        if log.wants(f"metadata.{key}"):
            row[f"metadata.{key}"] = value
    return row


def _status(result: Mapping[str, Any]) -> Row:
    """Return the status. `error` also holds why an assertion failed, which is no error."""
    reason = result.get("failureReason")
    if reason is None:
        broken = bool(result.get("error")) and not result.get("gradingResult")
    else:
        broken = reason == _BROKEN
    return {"status": "error", "error": result.get("error")} if broken else {"status": "ok"}


def _verdict(result: Mapping[str, Any], log: Log) -> Row:
    graded = mapping(result.get("gradingResult"))
    parts = [mapping(one) for one in items(graded.get("componentResults"))]
    named = {**mapping(result.get("namedScores"))}
    row = verdict(result.get("score"), result.get("success"))
    row["score"] = result.get("score")
    if (scorer := log.options.scorer) is not None:
        row = _named(scorer, named, parts)
    if log.wants("scores"):
        row["scores"] = named or None
    if log.wants("checks"):
        row["checks"] = [
            check(_name(part), part.get("pass"), part.get("reason"), part.get("score"))
            for part in parts
        ] or None
    return row


def _named(scorer: str, named: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> Row:
    """Return the verdict of one metric, or of one type of assertion."""
    if scorer in named:
        return verdict(named[scorer]) | {"score": named[scorer]}
    mine = [part for part in parts if scorer in {_name(part), _type(part)}]
    if not mine:
        return {}  # this test has no such assertion
    score = min((number(part.get("score")) or 0.0 for part in mine), default=None)
    return verdict(score, all(part.get("pass") is True for part in mine))


def _type(part: Mapping[str, Any]) -> str:
    return str(mapping(part.get("assertion")).get("type") or "assertion")


def _name(part: Mapping[str, Any]) -> str:
    return str(mapping(part.get("assertion")).get("metric") or _type(part))


def _case(case: Mapping[str, Any], result: Mapping[str, Any]) -> list[Any]:
    """Return what is the same for all prompts and providers: the variables and the assertions."""
    return [case.get("vars") or result.get("vars"), case.get("assert")]


def _task(case: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Return a hash of the test: each repetition of it has an index of its own."""
    what = [case.get("description"), *_case(case, result)]
    text = orjson.dumps(what, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)
    return hashlib.blake2b(text, digest_size=6).hexdigest()


def _report(rest: Mapping[str, Any], log: Log, *, scored: bool) -> None:
    """Compare with the summary, and tell of a scorer that no result has."""
    results = mapping(rest.get("results"))
    if results.get("version") not in {None, 2, 3}:
        log.note(f"version {results['version']} of the export is not known; it is read as 3.")
    if log.options.scorer is not None:
        if not scored:
            names = {
                n
                for p in items(results.get("prompts"))
                for n in mapping(mapping(mapping(p).get("metrics")).get("namedScores"))
            }
            hint = f"The log has {', '.join(sorted(names)) or 'no named scores'}."
            raise UsageError(f"--scorer: {unknown('Score', log.options.scorer, names, hint)}")
        return
    stats = mapping(results.get("stats"))
    if rest and not stats:
        log.note("the export has no summary; it may be cut off.")
    for name, ours in (("successes", "passed"), ("failures", "failed"), ("errors", "errors")):
        value = count(stats.get(name))
        if value is not None:
            log.expect(Expectation(name, value, partial(_counted, ours)))


def _counted(name: str, tally: LogTally) -> float:
    return float(getattr(tally.of(), name))


FORMAT = LogFormat(
    "promptfoo",
    "promptfoo",
    recognise,
    read,
    home,
    scores=True,
    counts_errors=True,
    lost="the providers' configuration, traces, media, red-team plugins' own fields",
)
FORM = LogFormat(
    "promptfoo",
    "promptfoo, in a form for people",
    recognise_form,
    home=home,
    refusal="Export the results as JSON: promptfoo export eval EVAL_ID -o results.json.",
)
