"""Harbor: the trials of a job, with their trajectories (ATIF)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pennyweight.sources.json_array import loads
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_tally import Expectation
from pennyweight.sources.log_values import (
    count,
    first,
    items,
    mapping,
    message,
    number,
    text_of,
    verdict,
)
from pennyweight.sources.peek import Peek

_LARGEST = 512 << 20
_LIMITS = ("LengthExceeded", "WindowExceeded", "OutputTokenExceeded")
_ROLES = {"agent": "assistant"}
_TEXTS = ("input", "response", "reasoning", "messages", "tool_calls")
_IN_TRIALS = {
    "prompt_tokens": "n_input_tokens",
    "cached_tokens": "n_cache_tokens",
    "completion_tokens": "n_output_tokens",
    "cost_usd": "cost_usd",
}
"""What was used, and its names in trials. Steps and trajectories have other names."""
_IN_STEPS = {name: name for name in _IN_TRIALS}
_IN_TOTALS = {name: f"total_{name}" for name in _IN_TRIALS}


def recognise(peek: Peek) -> bool:
    """Whether a file is a trial, a job, or a trajectory (ATIF)."""
    trajectory = peek.inside("schema_version")
    return (
        peek.has("task_name", "trial_name", "agent_info")
        or peek.has("n_total_trials", "stats", "started_at")
        or (isinstance(trajectory, str) and trajectory.startswith("ATIF-v"))
    )


def home(path: Path) -> Path:
    """Return the folder of the job, else of the trial, else the file."""
    above = [one for one in path.parents[:3] if (one / "result.json").is_file()]
    return above[-1] if above else path


def read(log: Log) -> Iterator[Row]:
    """Yield the trials in the order in which they began; a trajectory alone has no verdict."""
    kinds: dict[str, list[tuple[Path, Mapping[str, Any]]]] = {"trial": [], "job": [], "steps": []}
    for path in log.files:
        kind = _kind(path)
        if kind == "steps" and log.path.is_dir():
            continue  # read with its trial
        whole = _loaded(path)
        if whole is None:
            yield {PROBLEM: f"{path.parent.name}/{path.name}: not JSON, or too large."}
        else:
            kinds[kind].append((path, whole))
    for path, trial in sorted(kinds["trial"], key=lambda one: str(one[1].get("started_at"))):
        yield _trial(path, trial, log)
    log.check_scorer()
    for path, steps in kinds["steps"]:
        yield {"run": path.stem, "task_id": path.stem, "status": "ok", **_steps(steps, log)}
    for _, job in kinds["job"]:
        _expect(job, log)


def _kind(path: Path) -> str:
    peek = Peek.of(path)
    return "trial" if peek.has("trial_name") else "job" if peek.has("n_total_trials") else "steps"


def _loaded(path: Path) -> Mapping[str, Any] | None:
    found = loads(path.read_bytes()) if path.stat().st_size < _LARGEST else None
    return found if isinstance(found, dict) else None


def _trial(path: Path, trial: Mapping[str, Any], log: Log) -> Row:
    agent = mapping(trial.get("agent_info"))
    model = mapping(agent.get("model_info")).get("name")
    row: Row = {
        "run": mapping(trial.get("config")).get("job_id") or log.path.name,
        "subject": f"{agent.get('name')}/{model}" if model else agent.get("name"),
        "suite": trial.get("source"),
        "task_id": trial.get("task_name"),
        "trial": trial.get("trial_name"),
        "start_time": trial.get("started_at"),
        "end_time": trial.get("finished_at"),
    }
    used = {name: value for name, value in _used(trial).items() if value is not None}
    trajectory = path.parent / "agent" / "trajectory.json"
    if log.wants(*_TEXTS, *(_IN_TRIALS.keys() - used.keys())):
        steps = _loaded(trajectory) if trajectory.is_file() else None
        found = _steps(steps or {}, log)
        row |= {name: found.get(name) for name in (*_TEXTS, *_IN_TRIALS)}
    return {**row, **used, **_ended(trial, log)}


def _ended(trial: Mapping[str, Any], log: Log) -> Row:
    """Return status and verdict. What broke in the agent is its failure, all else an error."""
    rewards = mapping(mapping(trial.get("verifier_result")).get("rewards"))
    log.offer(rewards)
    scorer = log.options.scorer or ("reward" if "reward" in rewards else next(iter(rewards), ""))
    decided = verdict(rewards.get(scorer))
    if len(rewards) > 1:
        decided["scores"] = dict(rewards)
    failure = mapping(trial.get("exception_info"))
    kind = str(failure.get("exception_type") or "")
    if not kind:
        return {"status": "ok", **decided}
    why = {"error": failure.get("exception_message") or kind}
    if kind == "AgentTimeoutError":
        return {"status": "timeout", **decided, **why}
    if kind.endswith(_LIMITS) or any(f"{limit}Error" in kind for limit in _LIMITS):
        return {"status": "budget", **decided, **why}
    if kind == "NonZeroAgentExitCodeError":
        return {"status": "ok", **(decided or {"passed": False})}
    return {"status": "error", **why}


def _used(trial: Mapping[str, Any]) -> Row:
    """Return tokens and cost; those of a trial with several steps are added up."""
    steps = [mapping(mapping(one).get("agent_result")) for one in items(trial.get("step_results"))]
    whole = mapping(trial.get("agent_result"))
    told = any(whole.get(name) is not None for name in _IN_TRIALS.values())
    return _sums([whole] if told else steps, _IN_TRIALS)


def _sums(parts: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Row:
    """Add up what each part used; what no part tells is missing."""
    sums: Row = {}
    for column, name in names.items():
        told = [value for value in (number(one.get(name)) for one in parts) if value is not None]
        sums[column] = number(sum(told)) if told else None
    return {n: value if n == "cost_usd" else count(value) for n, value in sums.items()}


def _steps(trajectory: Mapping[str, Any], log: Log) -> Row:
    """Return what a trajectory tells: messages, tool calls, thoughts, times, tokens and cost."""
    steps = [mapping(one) for one in items(trajectory.get("steps"))]
    agent = mapping(trajectory.get("agent"))
    said = [(one.get("source"), text_of(one.get("message"))) for one in steps]
    thoughts = [str(one["reasoning_content"]) for one in steps if one.get("reasoning_content")]
    times = [one["timestamp"] for one in steps if isinstance(one.get("timestamp"), str)]
    row: Row = {
        "subject": agent.get("model_name") or agent.get("name"),
        "start_time": next(iter(times), None),
        "end_time": next(reversed(times), None),
        "input": first(text for source, text in said if source == "user"),
        "response": first(text for source, text in reversed(said) if source == "agent" and text),
        "reasoning": "\n".join(thoughts) or None,
        **_totals(mapping(trajectory.get("final_metrics")), steps),
    }
    if log.wants("tool_calls"):
        row["tool_calls"] = [call for one in steps for call in _calls(one)] or None
    if log.wants("messages"):
        row["messages"] = [message for one in steps for message in _messages(one)] or None
    return row


def _totals(whole: Mapping[str, Any], steps: Iterable[Mapping[str, Any]]) -> Row:
    """Return what a trajectory used: its own totals, else the sums of its steps."""
    own = _sums([whole], _IN_TOTALS)
    fresh = [one for one in steps if one.get("is_copied_context") is not True]
    sums = _sums([mapping(one.get("metrics")) for one in fresh], _IN_STEPS)
    return {name: sums[name] if own[name] is None else own[name] for name in sums}


def _calls(step: Mapping[str, Any]) -> list[Row]:
    return [
        {"name": call.get("function_name"), "arguments": call.get("arguments")}
        | ({"id": call["tool_call_id"]} if call.get("tool_call_id") else {})
        for call in map(mapping, items(step.get("tool_calls")))
    ]


def _messages(step: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the message of a step, with its thought, time, tokens and cost, and its results."""
    source = str(step.get("source") or "")
    used = _sums([mapping(step.get("metrics"))], _IN_STEPS)
    yield message(
        _ROLES.get(source, source),
        step.get("message"),
        reasoning=step.get("reasoning_content"),
        tool_calls=_calls(step),
        timestamp=step.get("timestamp"),
        tokens=(used["prompt_tokens"] or 0) + (used["completion_tokens"] or 0),
        cost_usd=used["cost_usd"],
    )
    for result in map(mapping, items(mapping(step.get("observation")).get("results"))):
        yield message("tool", result.get("content"), tool_call_id=result.get("source_call_id"))


def _expect(job: Mapping[str, Any], log: Log) -> None:
    evals = mapping(mapping(job.get("stats")).get("evals"))
    if len(evals) != 1 or log.options.scorer is not None:
        return
    metrics = items(mapping(next(iter(evals.values()))).get("metrics"))
    mean = number(mapping(next(iter(metrics), None)).get("mean"))
    if mean is not None:
        log.expect(Expectation("mean", mean, lambda tally: tally.of().mean_with_errors))


FORMAT = LogFormat(
    "harbor",
    "Harbor",
    recognise,
    read,
    home,
    scores=True,
    counts_errors=True,
    lost="images in messages, logs of environments and verifiers, token ids of rollouts",
)
