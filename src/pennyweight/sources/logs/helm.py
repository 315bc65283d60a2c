"""HELM: the folder of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.sources.json_array import JsonArray, loads
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_tally import Expectation
from pennyweight.sources.log_values import (
    count,
    items,
    known,
    mapping,
    number,
    targets,
    text_of,
    verdict,
)
from pennyweight.sources.peek import Peek

_SPEC, _STATE, _PER, _STATS = (
    "run_spec.json",
    "scenario_state.json",
    "per_instance_stats.json",
    "stats.json",
)
_HEADLINES = ("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match")
_LARGEST = 256 << 20
Key = tuple[Any, Any, Any]
"""An instance, a trial, and a perturbation."""


def recognise(peek: Peek) -> bool:
    """Whether a file is one of the files of a run."""
    return (
        peek.has("adapter_spec", "scenario_spec")
        or peek.has("adapter_spec", "request_states")
        or peek.has("instance_id", "train_trial_index", "stats")
        or (peek.has("name", "count", "sum_squared") and peek.inside(0, "name", "name") is not None)
    )


def home(path: Path) -> Path:
    """Return the folder of the run."""
    return path.parent


def read(log: Log) -> Iterator[Row]:
    """Yield one record a request, joined with its statistics."""
    folder = log.path if log.path.is_dir() else log.path.parent
    if not (folder / _STATE).is_file():
        raise InputError([f"{folder}: {_STATE} is missing, which holds the replies."])
    spec = _loaded(folder / _SPEC)
    stats = _per_instance(folder / _PER)
    if not stats:
        log.note(f"{_PER} is missing: the run failed before it was scored.")
    scorer = _scorer(stats, log)
    adapter = mapping(spec.get("adapter_spec"))
    head = {
        "run": spec.get("name") or folder.name,
        "suite": str(spec.get("name") or folder.name).partition(":")[0],
        "subject": adapter.get("model_deployment") or adapter.get("model"),
    }
    splits = set()
    for place, text in enumerate(JsonArray(folder / _STATE, "request_states"), 1):
        state = loads(text)
        if not isinstance(state, dict) or "instance" not in state:
            yield {PROBLEM: f"request {place}: not JSON, or no request."}
            continue
        splits.add(mapping(state["instance"]).get("split"))
        yield {**head, **_row(state, stats, scorer)}
    if len(splits) == 1 and scorer:
        _expect(folder / _STATS, scorer, splits.pop(), log)


def _loaded(path: Path) -> Mapping[str, Any]:
    if not path.is_file() or path.stat().st_size > _LARGEST:
        return {}
    return mapping(loads(path.read_bytes()))


def _per_instance(path: Path) -> dict[Key, dict[str, float | None]]:
    """Return the statistics of each request by name."""
    found: dict[Key, dict[str, float | None]] = {}
    for text in JsonArray(path) if path.is_file() else ():
        one = mapping(loads(text))
        key = one.get("instance_id"), one.get("train_trial_index"), _perturbed(one)
        values = found.setdefault(key, {})
        for stat in map(mapping, items(one.get("stats"))):
            name = mapping(stat.get("name")).get("name")
            if isinstance(name, str) and stat.get("count"):
                values[name] = number(stat.get("mean"))
    return found


def _perturbed(value: Mapping[str, Any]) -> Any:
    return mapping(value.get("perturbation")).get("name")


def _scorer(stats: Mapping[Key, Mapping[str, Any]], log: Log) -> str | None:
    names = dict.fromkeys(name for values in stats.values() for name in values)
    chosen = log.options.scorer
    if chosen is not None and chosen not in names:
        hint = f"The run has {', '.join(names)}."
        raise UsageError(f"--scorer: {unknown('Statistic', chosen, names, hint)}")
    return chosen or next((name for name in _HEADLINES if name in names), None)


def _row(state: Mapping[str, Any], stats: Mapping[Key, Row], scorer: str | None) -> Row:
    instance, result = mapping(state["instance"]), mapping(state.get("result"))
    request = mapping(state.get("request"))
    trial = count(state.get("train_trial_index")) or 0
    values = mapping(stats.get((instance.get("id"), trial, _perturbed(instance))))
    completion = mapping(next(iter(items(result.get("completions"))), None))
    text, letters = completion.get("text"), mapping(state.get("output_mapping"))
    seconds = number(result.get("request_time"))
    row: Row = {
        "tier": _perturbed(instance),
        "task_id": instance.get("id"),
        "attempt": trial + 1,
        "split": instance.get("split"),
        "input": text_of(mapping(instance.get("input")).get("text")) or request.get("prompt"),
        "target": targets(_references(instance)),
        "response": text,
        "answer": letters.get(str(text).strip()) if letters else None,
        "prompt_tokens": known(values.get("num_prompt_tokens")),
        "completion_tokens": known(values.get("num_output_tokens")),
        "latency_ms": None if seconds is None else seconds * 1000,
        "truncated": mapping(completion.get("finish_reason")).get("reason") == "length",
    }
    if result.get("success") is False:
        return {**row, "status": "error", "error": result.get("error") or "The request failed."}
    return {**row, "status": "ok", **(verdict(values.get(scorer)) if scorer else {})}


def _references(instance: Mapping[str, Any]) -> list[Any]:
    return [
        mapping(one.get("output")).get("text")
        for one in map(mapping, items(instance.get("references")))
        if "correct" in items(one.get("tags"))
    ]


def _expect(path: Path, scorer: str, split: Any, log: Log) -> None:
    """Compare with the statistic of the split itself, not with those on perturbed requests."""
    found = loads(path.read_bytes()) if path.is_file() and path.stat().st_size < _LARGEST else None
    for stat in map(mapping, items(found)):
        name = mapping(stat.get("name"))
        if (name.get("name"), name.get("split")) == (scorer, split) and "perturbation" not in name:
            if (mean := number(stat.get("mean"))) is not None:
                log.expect(Expectation(f"{scorer} of {split}", mean, lambda t: t.of().mean))
            return


FORMAT = LogFormat(
    "helm",
    "HELM",
    recognise,
    read,
    home,
    scores=True,
    lost="log-probabilities, further completions, statistics beyond the one that decides",
)
