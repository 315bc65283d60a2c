"""`verify` must tell an agent that does nothing from one that does what the solution says.

Both are commands in the sandbox of the suite's agent, so they take the way of every attempt. Each
is tried several times, since a command that decides by luck decides nothing.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from pennyweight.agent.command import CommandAgent
from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError
from pennyweight.models.model import Message, Reply, Request
from pennyweight.models.server import cores
from pennyweight.soundness.findings import (
    JUDGED,
    NO_SOLUTION,
    PASSES_BEFORE,
    Findings,
    Progress,
    cut,
    quoted,
)
from pennyweight.soundness.trial import Trial, TrialResult, tried
from pennyweight.suite.plan import Attempt, conversation, work_of
from pennyweight.suite.values import Agent, LoadedSuite, Solution, Subject, Task, Tier, Workspace

MAX_SHOWN = 300
"""Characters of a command's output that a flaw shows."""
TRIES = 3
"""How often each is tried."""
_END = "PENNYWEIGHT_END_OF_SOLUTION"
_APPLY = """\
if command -v git > /dev/null; then
  GIT_CEILING_DIRECTORIES=$(dirname "$PWD") git apply --whitespace=nowarn "$HOME/solution.patch"
else
  patch -p1 --batch < "$HOME/solution.patch"
fi"""
"""Applies a patch. The ceiling hides a repository in which the workspace may be."""


@dataclass(frozen=True, slots=True)
class WorkspaceTrial:
    """What became of one task in one workspace of a tier."""

    task: Task
    tier: str
    untouched: tuple[Reply, ...] = ()
    solved: tuple[Reply, ...] = ()
    problem: str = ""
    """Why it could not be tried."""
    may_pass: bool = False
    """Whether the suite allows that the commands pass where nothing was done."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A workspace to try, in the sandbox of an agent."""

    task: Task
    tier: Tier
    subject: Subject
    agent: Agent
    work: Workspace


def workspace_trials(
    suite: LoadedSuite, tasks: Sequence[Task], progress: Progress | None = None
) -> list[WorkspaceTrial]:
    """Try every workspace of some tasks that a command verifies."""
    places = list(_places(suite, tasks))
    return asyncio.run(_tried(places, progress or (lambda _, __: None))) if places else []


def examine_workspaces(
    suite: LoadedSuite,
    tasks: Sequence[Task],
    found: Findings,
    progress: Progress | None = None,
) -> None:
    """Name the tasks whose commands cannot tell whether an agent has done its work."""
    several: dict[str, list[WorkspaceTrial]] = defaultdict(list)
    for trial in workspace_trials(suite, tasks, progress):
        several[trial.task.id].append(trial)
    for task in tasks:
        for trial in several[task.id]:
            _decide(suite, trial, found)


def _decide(suite: LoadedSuite, trial: WorkspaceTrial, found: Findings) -> None:
    task = trial.task
    where = f" in tier {trial.tier}" if len(suite.tiers) > 1 else ""
    if trial.problem:
        found.wrong("verify", [task], f"it cannot be verified{where}: {trial.problem}")
        return
    passing = next((r for r in _counted(suite, task, trial.untouched) if r.passed), None)
    if passing is not None and trial.may_pass:
        found.leave("verify", PASSES_BEFORE, task)
    elif passing is not None:
        found.wrong("verify", [task], f"verify passes where nothing was done{where}")
    else:
        found.well("verify", task)
    _solved(suite, trial, found, where)
    check = unsteady(trial.untouched) or unsteady(trial.solved)
    if check:
        why = f"{check['command']!r} ends differently in equal workspaces{where}"
        found.wrong("stable", [task], why, check["output"])
    else:
        found.well("stable", task)


def _solved(suite: LoadedSuite, trial: WorkspaceTrial, found: Findings, where: str) -> None:
    """Decide whether the solution passes."""
    task = trial.task
    if not trial.solved:
        found.leave("gold", NO_SOLUTION, task)
        return
    broken = next((r for r in trial.solved if (r.work or {}).get("exit_code")), None)
    if broken is not None:
        said = str((broken.work or {}).get("stderr") or "")
        found.wrong("gold", [task], f"its solution cannot be applied{where}: {cut(said)}", said)
        return
    for result, reply in zip(_counted(suite, task, trial.solved), trial.solved, strict=True):
        if result.passed:
            continue
        check = failing(reply)
        if check is not None:
            end = cut(check["output"][-MAX_SHOWN:])
            why = f"{check['command']!r} fails: {end}" if end else f"{check['command']!r} fails"
        else:
            names = result.names("must_not", holds=True) or result.names(
                "expected", "check", holds=False
            )
            why = f"these fail: {quoted(names)}" if names else f"it ended as {reply.status}"
        if result.passed is None:
            found.leave("gold", JUDGED, task)
        else:
            found.wrong("gold", [task], f"its solution does not pass{where}: {why}")
        return
    found.well("gold", task)


def _counted(suite: LoadedSuite, task: Task, replies: Sequence[Reply]) -> list[TrialResult]:
    """Score what agents did, with the behaviours and checks of the task."""
    trials = [
        Trial(task, "verify", reply.text, given=reply.passed, work=json.dumps(reply.work))
        for reply in replies
    ]
    return tried(suite, trials, runs_code=True)


def _places(suite: LoadedSuite, tasks: Sequence[Task]) -> Iterator[_Place]:
    """Yield the workspaces that differ, each once."""
    seen: set[str] = set()
    for task in tasks:
        for subject in suite.subjects:
            for tier in suite.tiers:
                work = work_of(Attempt(task, subject, tier, 1))
                if subject.agent is None or work is None or not work.verify:
                    continue
                bare = replace(subject.agent, command=(), env=(), output="text", serves=None)
                key = json.dumps([task.id, work.identity(), asdict(bare)], sort_keys=True)
                if key not in seen:
                    seen.add(key)
                    yield _Place(task, tier, subject, subject.agent, work)


async def _tried(places: Sequence[_Place], progress: Progress) -> list[WorkspaceTrial]:
    free, done = asyncio.Semaphore(cores()), 0
    agents = _Agents()

    async def tried(place: _Place) -> WorkspaceTrial:
        nonlocal done
        async with free:
            found = await _trial(place, agents)
        done += 1
        progress(done, len(places))
        return found

    progress(0, len(places))
    try:
        return await asyncio.gather(*map(tried, places))
    finally:
        await agents.close()


async def _trial(place: _Place, agents: _Agents) -> WorkspaceTrial:
    task = place.task
    turns = conversation(place.tier, task)
    asked = tuple(Message(turn["role"], turn["content"]) for turn in turns)
    untouched: tuple[Reply, ...] = ()
    may_pass = place.work.verify_before == "any"
    try:
        idle = agents.of(place.subject.name, place.agent, "true")
        untouched = tuple([await idle.call(_request(asked, place, n)) for n in range(TRIES)])
        if task.solution is None or not task.solution.works:
            return WorkspaceTrial(task, place.tier.name, untouched, may_pass=may_pass)
        solver = agents.of(place.subject.name, place.agent, "sh")
        script = (Message("user", script_of(task.solution)),)
        solved = tuple([await solver.call(_request(script, place, n)) for n in range(TRIES)])
        return WorkspaceTrial(task, place.tier.name, untouched, solved, may_pass=may_pass)
    except (CallError, UsageError) as error:
        return WorkspaceTrial(task, place.tier.name, untouched, problem=str(error))


def _request(messages: tuple[Message, ...], place: _Place, number: int) -> Request:
    label = f"{place.tier.name}\0{place.task.id}"
    return Request(messages, attempt=number + 1, work=place.work, label=label)


@dataclass(slots=True)
class _Agents:
    """One agent for each program and sandbox."""

    known: dict[tuple[str, str], CommandAgent] = field(default_factory=dict)

    def of(self, name: str, agent: Agent, program: str) -> CommandAgent:
        """Return the agent that runs a program with its prompt as standard input."""
        key = name, program
        if key not in self.known:
            other = replace(
                agent, command=(program,), shell=False, prompt="stdin", output="text", serves=None
            )
            self.known[key] = CommandAgent(name, other)
        return self.known[key]

    async def close(self) -> None:
        """Remove their workspaces."""
        for agent in self.known.values():
            await agent.close()


def script_of(solution: Solution) -> str:
    r"""Write a shell script that does what a solution says.

    >>> script_of(Solution(commands=(("sh", "-c", "echo 4 > answer.txt"),)))
    "set -e\nsh -c 'echo 4 > answer.txt' </dev/null\n"
    """
    lines = ["set -e"]
    for name, held in solution.files.items():
        path = shlex.quote(name)
        folder = shlex.quote(str(PurePosixPath(name).parent))
        lines.append(f"mkdir -p -- {folder} && base64 -d > {path} <<'{_END}'")
        lines += [base64.encodebytes(held).decode().rstrip("\n"), _END]
        lines += [f"chmod +x -- {path}"] if held.startswith(b"#!") else []
    if solution.patch:
        patch = base64.encodebytes(solution.patch.encode("utf-8", "replace")).decode()
        lines.append(f"base64 -d > \"$HOME/solution.patch\" <<'{_END}'")
        lines += [patch.rstrip("\n"), _END]
        lines.append(_APPLY)
    lines += [f"{shlex.join(words)} </dev/null" for words in solution.commands]
    if solution.reply is not None:
        reply = base64.encodebytes(solution.reply.encode("utf-8", "replace")).decode()
        lines += [f"base64 -d <<'{_END}'", reply.rstrip("\n"), _END]
    return "\n".join(lines) + "\n"


def failing(reply: Reply) -> Mapping[str, Any] | None:
    """Return the first check that does not hold after an attempt."""
    checks = (reply.work or {}).get("checks", ())
    return next((check for check in checks if not check["holds"]), None)


def unsteady(replies: Sequence[Reply]) -> Mapping[str, Any] | None:
    """Return the first check that ends differently in equal workspaces."""
    tables = [(reply.work or {}).get("checks", ()) for reply in replies]
    for several in zip(*tables, strict=False):
        if len({check["after"] == 0 for check in several}) > 1:
            found: Mapping[str, Any] = several[0]
            return found
    return None
