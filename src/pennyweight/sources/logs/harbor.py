"""Harbor: the trials of a job, with their trajectories (ATIF)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pennyweight.sources.json_array import loads
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_tally import Expectation
from pennyweight.sources.log_values import count, first, items, mapping, number, text_of, verdict
from pennyweight.sources.peek import Peek

_LARGEST = 512 << 20
_LIMITS = ("LengthExceeded", "WindowExceeded", "OutputTokenExceeded")
_ROLES = {"agent": "assistant"}


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
        **_used(trial),
    }
    trajectory = path.parent / "agent" / "trajectory.json"
    if log.wants("input", "response", "reasoning", "messages", "tool_calls"):
        steps = _loaded(trajectory) if trajectory.is_file() else None
        row |= {
            name: value
            for name, value in _steps(steps or {}, log).items()
            if name in {"input", "response", "reasoning", "messages", "tool_calls"}
        }
    return {**row, **_ended(trial, log)}


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
    names = ("n_input_tokens", "n_cache_tokens", "n_output_tokens", "cost_usd")
    parts = [whole] if any(whole.get(name) is not None for name in names) else steps
    sums = {}
    for name in names:
        found = [value for value in (number(one.get(name)) for one in parts) if value is not None]
        sums[name] = sum(found) if found else None
    return {
        "prompt_tokens": count(sums["n_input_tokens"]),
        "cached_tokens": count(sums["n_cache_tokens"]),
        "completion_tokens": count(sums["n_output_tokens"]),
        "cost_usd": sums["cost_usd"],
    }


def _steps(trajectory: Mapping[str, Any], log: Log) -> Row:
    """Return what a trajectory tells: messages, tool calls, thoughts, and tokens."""
    steps = [mapping(one) for one in items(trajectory.get("steps"))]
    agent, whole = mapping(trajectory.get("agent")), mapping(trajectory.get("final_metrics"))
    said = [(one.get("source"), text_of(one.get("message"))) for one in steps]
    thoughts = [str(one["reasoning_content"]) for one in steps if one.get("reasoning_content")]
    row: Row = {
        "subject": agent.get("model_name") or agent.get("name"),
        "input": first(text for source, text in said if source == "user"),
        "response": first(text for source, text in reversed(said) if source == "agent" and text),
        "reasoning": "\n".join(thoughts) or None,
        "prompt_tokens": count(whole.get("total_prompt_tokens")),
        "cached_tokens": count(whole.get("total_cached_tokens")),
        "completion_tokens": count(whole.get("total_completion_tokens")),
        "cost_usd": number(whole.get("total_cost_usd")),
    }
    if log.wants("tool_calls"):
        row["tool_calls"] = [call for one in steps for call in _calls(one)] or None
    if log.wants("messages"):
        row["messages"] = [message for one in steps for message in _messages(one)] or None
    return row


def _calls(step: Mapping[str, Any]) -> list[Row]:
    return [
        {"name": call.get("function_name"), "arguments": call.get("arguments")}
        for call in map(mapping, items(step.get("tool_calls")))
    ]


def _messages(step: Mapping[str, Any]) -> Iterator[Row]:
    source = str(step.get("source") or "")
    said: Row = {"role": _ROLES.get(source, source), "content": text_of(step.get("message")) or ""}
    yield said | ({"tool_calls": calls} if (calls := _calls(step)) else {})
    for result in map(mapping, items(mapping(step.get("observation")).get("results"))):
        yield {"role": "tool", "content": text_of(result.get("content")) or ""}


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
