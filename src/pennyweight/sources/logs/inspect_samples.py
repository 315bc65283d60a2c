"""Samples of Inspect AI as records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pennyweight.errors import UsageError, unknown
from pennyweight.record import BY_NAME
from pennyweight.sources.log_format import Log, Row
from pennyweight.sources.log_tally import Expectation
from pennyweight.sources.log_values import (
    check,
    count,
    items,
    mapping,
    message,
    number,
    outside,
    reasoning_of,
    targets,
    text_of,
    verdict,
)

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_TIME_LIMITS = {"time", "working"}
_CUT = {"max_tokens", "model_length"}
_ATTACHED = "attachment://"
_JUDGED = "model_graded"
_OURS = "pennyweight"
_METADATA = "metadata."
_KNOWN = {"run", "subject", "task_id", "attempt", "status", "passed", "tool"}
"""Columns that an export of ours never puts into metadata."""
_SHORT = 200
_PARTS = (
    ("cached_tokens", "input_tokens_cache_read"),
    ("cache_write_tokens", "input_tokens_cache_write"),
    ("reasoning_tokens", "reasoning_tokens"),
)
"""Columns of tokens that are part of others, and their names in the log."""


@dataclass(frozen=True, slots=True)
class Header:
    """What the samples of a log have in common."""

    run: str
    suite: str
    subject: str
    scorer: str | None
    """The name of the score that decides; None if the first of each sample does."""
    described: bool = True
    """Whether any column of the metadata is wanted."""

    @classmethod
    def of(cls, head: Mapping[str, Any], log: Log) -> Header:
        """Read the header, and note what the tool itself reports."""
        about, results = mapping(head.get("eval")), mapping(head.get("results"))
        reported = [one for one in items(results.get("scores")) if isinstance(one, dict)]
        names = [str(one["name"]) for one in reported if "name" in one]
        scorer = log.options.scorer or mapping(results.get("headline")).get("score")
        if scorer is None and names:
            scorer = names[0]
        if head.get("version") not in {None, 2}:
            log.note(f"version {head['version']} of the log is not known; it is read as version 2.")
        status = head.get("status")
        if status != "success":
            log.note(f"the eval did not finish (status {status or 'unknown'}).")
        elif count(results.get("total_samples")) is not None:
            total = float(results["total_samples"])
            log.expect(Expectation("samples", total, lambda tally: tally.of().records))
        _expect(log, [one for one in reported if one.get("name") == _last(scorer)])
        fallback = log.path.name
        return cls(
            str(about.get("run_id") or about.get("eval_id") or fallback),
            str(about.get("task") or ""),
            str(about.get("model") or ""),
            scorer,
            log.wanted is None or any(one.startswith(_METADATA) for one in log.wanted),
        )


def _expect(log: Log, scores: Sequence[Mapping[str, Any]]) -> None:
    """Have the score that decides compared, or say that only reductions are reported."""
    plain = [one for one in scores if one.get("reducer") in {None, "mean"}]
    for score in plain or scores:
        name, value = _reported(score)
        if value is None or not 0 <= value <= 1:
            continue
        if plain:
            what = f"{name} of {score['name']}"
            log.expect(Expectation(what, value, lambda tally: tally.of().mean_of_tasks))
            return
        reducer = score.get("reducer")
        log.note(
            f"Inspect AI reports {name} {value:.6g} of {score['name']}: the epochs of each sample "
            f"reduced by {reducer}. The records here are single epochs, which pass_rate averages."
        )


def _reported(score: Mapping[str, Any]) -> tuple[str, float | None]:
    metrics = mapping(score.get("metrics"))
    for name in ("accuracy", "mean"):
        if name in metrics:
            return name, number(mapping(metrics[name]).get("value"))
    return "", None


def row_of(sample: Mapping[str, Any], header: Header, log: Log) -> Row:
    """Return the record of one sample."""
    attached = mapping(sample.get("attachments"))
    output = mapping(sample.get("output"))
    choice = mapping(next(iter(items(output.get("choices"))), None))
    said = mapping(choice.get("message")).get("content")
    completion = output.get("completion")
    response = _resolved(text_of(said) if completion is None else completion, attached)
    row: Row = {
        "run": header.run,
        "suite": header.suite,
        "subject": header.subject,
        "task_id": str(sample["id"]),
        "attempt": count(sample.get("epoch")) or 1,
        "input": _resolved(_input(sample.get("input")), attached),
        "target": targets(sample.get("target")),
        "response": response,
        "reasoning": reasoning_of(said),
        "latency_ms": _times(output.get("time"), 1000),
        "duration_seconds": number(sample.get("total_time")),
        "start_time": sample.get("started_at"),
        "end_time": sample.get("completed_at"),
        "truncated": choice.get("stop_reason") in _CUT,
        **_usage(mapping(sample.get("model_usage")), header.subject),
        **_status(sample),
    }
    row |= _scores(mapping(sample.get("scores")), header, log, response)
    _described(row, sample, header, log)
    row |= _ours(sample)
    if log.wants("logprobs"):
        row["logprobs"] = _logprobs(choice)
    if log.wants("messages", "tool_calls"):
        messages = [_message(m, attached) for m in items(sample.get("messages"))]
        row["messages"] = messages
        row["tool_calls"] = [c for m in messages for c in m.get("tool_calls", ())] or None
    return row


def _described(row: Row, sample: Mapping[str, Any], header: Header, log: Log) -> None:
    """Add the metadata and the choices of a sample."""
    about = mapping(sample.get("metadata"))
    row["category"], row["capability"] = about.get("category"), about.get("capability")
    if header.described:
        for key, value in about.items():
            if key != _OURS and log.wants(f"{_METADATA}{key}"):
                row[f"{_METADATA}{key}"] = value
    if log.wants("choices") and sample.get("choices"):
        row["choices"] = sample["choices"]


def _scores(scores: Mapping[str, Any], header: Header, log: Log, response: str | None) -> Row:
    """Return the verdict, the answer and all scores."""
    values = dict(_values(scores))
    if not values:
        return {}
    chosen = _chosen(values, header.scorer, named=log.options.scorer is not None)
    row: Row = {}
    if chosen is not None:
        score, value = values[chosen]
        graded = grade(value)
        answer = score.get("answer")
        row["answer"] = answer if answer != response or _is_short(answer) else None
        if graded is None:
            row["undecided"] = [chosen]
        else:
            row |= {**verdict(graded), "score": graded, **_ours(score)}
            if not 0 <= graded <= 1:
                log.note(outside(chosen))
    judged = [grade(value) for name, (_, value) in values.items() if name.startswith(_JUDGED)]
    if valid := [one for one in judged if one is not None and 0 <= one <= 1]:
        row["judge_scores"] = valid
    if log.wants("scores"):
        row["scores"] = {name: value for name, (_, value) in values.items()}
    if log.wants("checks"):
        row["checks"] = [
            check(name, _holds(value), score.get("explanation"), grade(value))
            for name, (score, value) in values.items()
        ]
    return row


def _ours(value: Mapping[str, Any]) -> Row:
    """Return the columns that an export of ours put into the metadata of a sample or a score."""
    about = mapping(mapping(value.get("metadata")).get(_OURS))
    if not about:
        return {}
    return {name: one for name, one in about.items() if name in BY_NAME and name not in _KNOWN}


def _values(scores: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Mapping[str, Any], Any]]]:
    """Yield every score by its name; each key of a mapping is a score of its own."""
    for name, score in scores.items():
        about = mapping(score)
        value = about.get("value")
        if isinstance(value, dict):
            for key, one in value.items():
                yield f"{name}/{key}", (about, one)
        else:
            yield name, (about, value)


def _chosen(values: Mapping[str, Any], scorer: str | None, *, named: bool) -> str | None:
    """Return the score that decides."""
    if scorer is None:
        return next(iter(values))
    if scorer in values:
        return scorer
    for name in values:
        if name.endswith(f"/{scorer}") or (not named and name.startswith(f"{scorer}/")):
            return name
    if named:
        short = {name.rpartition("/")[2] for name in values}
        hint = f"The log has {', '.join(values)}."
        raise UsageError(f"--scorer: {unknown('Score', scorer, {*values, *short}, hint)}")
    return None


def grade(value: Any) -> float | None:
    """Return a score as a number, as Inspect's own `value_to_float` does; None if it has none.

    >>> grade("C"), grade("P"), grade("no"), grade(0.25), grade("NaN"), grade([1])
    (1.0, 0.5, 0.0, 0.25, None, None)
    """
    if isinstance(value, str):
        known = _GRADES.get(value, _WORDS.get(value.lower()))
        return number(value) if known is None else known
    return number(value)


def _is_short(answer: Any) -> bool:
    """Whether an answer that is the whole reply is no chain of thought."""
    return isinstance(answer, str) and "\n" not in answer.strip() and len(answer) <= _SHORT


def _holds(value: Any) -> bool | None:
    graded = grade(value)
    return None if graded is None or not 0 <= graded <= 1 else graded >= 1


def _usage(usage: Mapping[str, Any], subject: str) -> Row:
    """Return the tokens and the cost; `input_tokens` holds the cache in old logs only."""
    own = mapping(usage.get(subject))
    total, output = count(own.get("total_tokens")), count(own.get("output_tokens"))
    row: Row = {
        "prompt_tokens": total - output if total and output is not None else None,
        "completion_tokens": output,
    }
    for column, theirs in _PARTS:
        if theirs in own:
            row[column] = count(own[theirs])
    if (cost := number(own.get("total_cost"))) is not None:
        row["cost_usd"] = cost
    if len(usage) > (subject in usage):
        others = (mapping(one).get("total_cost") for n, one in usage.items() if n != subject)
        costs = [cost for cost in map(number, others) if cost is not None]
        row["judge_cost_usd"] = sum(costs) if costs else None
    return row


def _status(sample: Mapping[str, Any]) -> Row:
    if not (sample.get("error") or sample.get("invalidation") or sample.get("limit")):
        return {"status": "ok"}
    error, limit = mapping(sample.get("error")), mapping(sample.get("limit"))
    if error:
        return {"status": "error", "error": str(error.get("message") or "error")}
    if invalid := sample.get("invalidation"):
        reason = mapping(invalid).get("reason")
        return {"status": "error", "error": f"invalidated: {reason or 'no reason is given'}"}
    if limit:
        kind = str(limit.get("type"))
        status = "timeout" if kind in _TIME_LIMITS else "budget"
        return {"status": status, "error_kind": f"{kind}_limit"}
    return {"status": "ok"}


def _input(value: Any) -> str | None:
    """Return the text of the input; of messages, those of the user."""
    if not isinstance(value, list):
        return text_of(value)
    asked = [mapping(one) for one in value]
    texts = [text_of(one.get("content")) for one in asked if one.get("role") == "user"]
    return "\n\n".join(text for text in texts if text) or None


def _times(value: Any, factor: float) -> float | None:
    read = number(value)
    return None if read is None else read * factor


def _logprobs(choice: Mapping[str, Any]) -> list[list[Any]] | None:
    tokens = items(mapping(choice.get("logprobs")).get("content"))
    return [[one.get("token"), one.get("logprob")] for one in map(mapping, tokens)] or None


def _message(value: Any, attached: Mapping[str, Any]) -> Row:
    one = mapping(value)
    calls = [
        {
            "id": call.get("id"),
            "name": str(call.get("function") or ""),
            "arguments": call.get("arguments"),
        }
        for call in map(mapping, items(one.get("tool_calls")))
    ]
    content = one.get("content")
    return message(
        one.get("role"),
        _resolved(text_of(content), attached),
        reasoning=reasoning_of(content),
        name=one.get("function"),
        tool_call_id=one.get("tool_call_id"),
        tool_calls=calls,
        error=mapping(one.get("error")).get("message"),
    )


def _last(name: str | None) -> str | None:
    return name if name is None else name.rpartition("/")[2]


def _resolved(text: Any, attached: Mapping[str, Any]) -> Any:
    """Return the text that an attachment stands for."""
    if isinstance(text, str) and text.startswith(_ATTACHED):
        return attached.get(text.removeprefix(_ATTACHED), text)
    return text
