"""A command as a model: a request in, work in a workspace, a reply out."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pennyweight.agent import answer_files, readers, sandbox
from pennyweight.agent import verification as verify
from pennyweight.agent.cgroups import Groups
from pennyweight.agent.check_cache import CheckCache
from pennyweight.agent.check_faults import (
    SHOWN_BY_STAND_INS,
    Assignment,
    CheckFault,
    FaultKind,
    advice_of,
    is_solved,
    reason_of,
    stand_ins,
)
from pennyweight.agent.check_faults import faults as check_faults
from pennyweight.agent.diff import Diff
from pennyweight.agent.folders import AttemptFolders, RunFolder
from pennyweight.agent.process import ProcessLimits, ProcessResult, run
from pennyweight.agent.prompt import settings_of, words_of
from pennyweight.agent.supervisor import THREADS
from pennyweight.agent.user_tools import UserTools
from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError
from pennyweight.models.keys import redact_environment, redact_reply
from pennyweight.models.model import Model, Reply, Request
from pennyweight.models.server import cores
from pennyweight.suite.values import Agent, Workspace

CHECK_OUTPUT = 64_000
MODULE_DEPTH = 3
"""How often stand-ins are added for modules that the agent has to write."""
_STATUS: dict[str, Literal["timeout", "budget"]] = {"timeout": "timeout", "disk": "budget"}


@dataclass(frozen=True, slots=True)
class InitialResults:
    """What the checks say where no agent has worked."""

    results: Sequence[verify.WorkspaceCheckResult] = ()
    workspace: Path | None = None
    """The initial state of the workspace; None if the results were found sound in an earlier run.
    """


class CommandAgent(Model):
    """An agent that is a command. Each call is one attempt in a fresh workspace."""

    ignores = frozenset({"logprobs", "stream"})

    def __init__(self, name: str, agent: Agent) -> None:
        sandbox.check(agent)
        for variable in agent.env:
            if variable not in os.environ:
                raise UsageError(
                    f"{name} needs the environment variable {variable}; it is not set."
                )
        self.name = name
        self.account = f"command:{name}"
        self.limit = cores()
        self.agent, self.tools = agent, UserTools.of(agent)
        self._run_folder: RunFolder | None = None
        self._opening = asyncio.Lock()
        self._open = AsyncExitStack()
        self._address: str | None = None
        self._reported: dict[tuple[str, int], str] = {}
        """The failure that the agent reported in an earlier try of an attempt."""
        self._before: dict[str, asyncio.Task[InitialResults]] = {}
        self._cache = CheckCache(agent, self.tools)

    def __repr__(self) -> str:
        return f"CommandAgent({self.name})"

    async def call(self, request: Request) -> Reply:
        """Make one attempt."""
        agent = self.agent
        run_folder = await self._start()
        work = request.work or Workspace()
        checks = verify.checks_of(work)
        initial = await self._checked_before(run_folder, work, checks)
        if faults := self._faults(request, checks, initial.results, initial.workspace):
            raise self._without_keys(CallError("verify", _told(faults[0]), sent=False))
        before = initial.results
        folders = await self._folders(run_folder, work)
        try:
            ended = await self._run(folders, request)
            printed = readers.read(agent.output, ended.stdout.text, ended.stderr.text)
            if ended.why == "exit" and printed.failed:
                self._reported[request.label, request.attempt] = printed.failed.recorded_kind
                raise self._without_keys(printed.failed)
            changes = await asyncio.to_thread(folders.changes)
            limit = {"disk_limit": "enforced" if folders.disk else "polled"}
            if ended.why != "exit":
                return self._reply(ended, printed, changes, {**limit, "checks": []}, passed=False)
            after, left_out = await self._verified(run_folder, folders, work, checks)
            fault = await self._fault_after(run_folder, request, checks, after, folders.initial)
        finally:
            await asyncio.shield(asyncio.to_thread(folders.remove))
        passed = verify.verdict(checks, before, after, ended.exit_code)
        checked: dict[str, Any] = {**limit, "checks": verify.as_plain(checks, before, after)}
        checked |= {"left_out": answer_files.as_plain(left_out)} if left_out else {}
        reply = self._reply(ended, printed, changes, checked, passed)
        if fault and reply.status == "ok":
            problem = redact_environment(_told(fault), self.agent.env)
            return replace(reply, status="error", error=problem, passed=None, reported="verify")
        return replace(reply, reported=self._reported.get((request.label, request.attempt)))

    def _without_keys(self, error: CallError) -> CallError:
        return error.redacted(lambda text: redact_environment(text, self.agent.env))

    def _reply(
        self,
        ended: ProcessResult,
        printed: readers.AgentOutput,
        changes: Diff,
        checked: Mapping[str, Any],
        passed: bool | None,
    ) -> Reply:
        status = _STATUS.get(ended.why, printed.status)
        work = {
            "exit_code": ended.exit_code,
            "ended": ended.detail or ended.why,
            "seconds": round(ended.seconds, 3),
            "sandbox": sandbox.described(self.agent),
            "stdout": ended.stdout.text,
            "stderr": ended.stderr.text,
            "stdout_bytes": ended.stdout.total,
            "stderr_bytes": ended.stderr.total,
            "left_processes": ended.left,
            "diff": changes.text,
            "files": {n: getattr(changes, n) for n in ("added", "changed", "removed")},
            **checked,
        }
        return Reply(
            redact_environment(printed.text, self.agent.env),
            usage=printed.usage,
            model=printed.model,
            latency_ms=ended.seconds * 1000,
            status=status,
            passed=False if status != "ok" else passed,
            cost_usd=printed.cost_usd,
            work=redact_reply(work, self.agent.env),
        )

    async def _start(self) -> RunFolder:
        async with self._opening:
            if self._run_folder is None:
                try:
                    self._run_folder = await asyncio.to_thread(RunFolder)
                except OSError as error:
                    problem = f"The folder for workspaces cannot be created: {error}."
                    raise CallError("workspace", problem) from error
            if self.agent.serves and self._address is None:
                from pennyweight.models.local import serving  # noqa: PLC0415

                name = self.agent.serves.removeprefix("local/")
                self._address = await self._open.enter_async_context(serving(name))
        return self._run_folder

    async def _folders(self, run_folder: RunFolder, work: Workspace) -> AttemptFolders:
        caps = self.agent.caps if sandbox.can_limit_disk(self.agent) else None
        return await asyncio.to_thread(run_folder.attempt, work, caps)

    async def _run(self, folders: AttemptFolders, request: Request) -> ProcessResult:
        agent = self.agent
        note = folders.home / ".prompt.md"
        inside = f"{sandbox.home_and_tmp(agent, folders)[0]}/{note.name}"
        words, prompt = words_of(agent, request, inside)
        if agent.prompt != "argument":
            note.write_text(prompt, encoding="utf-8", errors="replace")
        environment = self._environment(folders, settings_of(request))
        stdin = note if agent.prompt == "stdin" else None
        ended = await self._execute(
            words, folders, environment, agent.caps.output_kb * 1000, stdin=stdin
        )
        if problem := await asyncio.to_thread(sandbox.failure, agent, folders, ended):
            raise self._without_keys(CallError("workspace", problem))
        return ended

    async def _execute(
        self,
        words: Sequence[str],
        folders: AttemptFolders,
        environment: Mapping[str, str],
        output: int,
        stdin: Path | None = None,
        tools: UserTools | None = None,
    ) -> ProcessResult:
        """Run a command in its sandbox; `output` is the number of bytes kept of each output."""
        agent, caps = self.agent, self.agent.caps
        if tools:
            agent = replace(agent, read=(*agent.read, *tools.read))
        groups = self._groups(folders)
        return await run(
            sandbox.wrapped(agent, self._with_full_path(words, tools), folders, tuple(environment)),
            folder=folders.work,
            environment=environment,
            limits=ProcessLimits(
                agent.timeout,
                output,
                max(caps.disk_mb, caps.memory_mb if folders.disk else 0) * 1_000_000,
                caps.memory_mb * 1_000_000,
                caps.processes,
                caps.cpu_seconds,
            ),
            stdin=stdin,
            watch=lambda watcher: folders.exceeded(caps, watcher),
            status=sandbox.status_of(agent),
            files=sandbox.files_of(agent, folders),
            disk=folders.disk.holder if folders.disk else 0,
            groups=groups,
        )

    def _groups(self, folders: AttemptFolders) -> tuple[str, str] | None:
        """Create the cgroup of a command. The disk in memory of an attempt counts there too."""
        groups = Groups.found() if self.agent.sandbox != "container" else None
        if groups is None:
            return None
        caps = self.agent.caps
        memory = (caps.memory_mb + (caps.disk_mb if folders.disk else 0)) * 1_000_000
        name = "-".join(("pennyweight", *folders.root.parts[-2:]))
        made = groups.create(name, memory, caps.processes * THREADS)
        return (str(made), str(groups.own)) if made else None

    def _with_full_path(self, words: Sequence[str], tools: UserTools | None) -> list[str]:
        """Return a command with its full path, so that the one that was found is run."""
        if self.agent.sandbox == "container" or "/" in words[0]:
            return list(words)
        found = shutil.which(words[0], path=tools.path) if tools else None
        found = found or sandbox.find_command(words[0])
        if found is None:
            raise CallError("not_found", f"The command {words[0]!r} is not installed.")
        return [found, *words[1:]]

    def _system(self, folders: AttemptFolders) -> dict[str, str]:
        home, tmp = sandbox.home_and_tmp(self.agent, folders)
        path = sandbox.path_of(self.agent)
        return {"PATH": path, "HOME": home, "TMPDIR": tmp, "LANG": "C.UTF-8"}

    def _environment(self, folders: AttemptFolders, settings: Mapping[str, Any]) -> dict[str, str]:
        """Return the environment of a command: a few system variables and those the suite names."""
        variables = self._system(folders)
        if settings:
            variables["PENNYWEIGHT_SETTINGS"] = json.dumps(settings, default=str)
        if self._address:
            variables |= {"OPENAI_BASE_URL": f"{self._address}/v1", "OPENAI_API_KEY": "local"}
        return variables | {n: os.environ[n] for n in self.agent.env if n in os.environ}

    def knows(self, request: Request) -> bool:
        """Whether the checks of a request were found sound before, or there are none."""
        work = request.work or Workspace()
        return not verify.checks_of(work) or self._cache.load(work) is not None

    async def initial_faults(self, request: Request) -> list[CheckFault]:
        """Run the checks of a request where no agent has worked.

        Return those that cannot do their work there, or have nothing left to ask for.
        """
        run_folder, work = await self._start(), request.work or Workspace()
        checks = verify.checks_of(work)
        initial = await self._checked_before(run_folder, work, checks)
        faults = self._faults(request, checks, initial.results, initial.workspace)
        faults = faults or await self._hidden_faults(run_folder, request, checks, initial)
        if not faults and work.verify_before != "any" and is_solved(checks, initial.results):
            first = next(check for check in checks if check.kind == "verify")
            return [CheckFault(first, FaultKind.SOLVED)]
        if not faults and initial.workspace and work.verify_before != "any":
            self._cache.save(work, initial.results)
        return faults

    async def _hidden_faults(
        self,
        run_folder: RunFolder,
        request: Request,
        checks: Sequence[verify.WorkspaceCheck],
        initial: InitialResults,
    ) -> list[CheckFault]:
        """Return what keeps checks from their work once the modules exist that are asked for."""
        work = request.work or Workspace()
        if initial.workspace is None or work.verify_before == "any":
            return []
        assignment = self._assignment(request, initial.workspace)
        results = initial.results
        added: dict[str, bytes] = {}
        for _ in range(MODULE_DEPTH):
            files = stand_ins(results, assignment)
            if not files:
                break
            added |= files
            assignment = assignment.with_files(added)
            results = (await self._fresh(run_folder, assignment.work, checks)).results
        if not added:
            return []
        faults = check_faults(checks, results, assignment)
        return [fault for fault in faults if fault.kind in SHOWN_BY_STAND_INS]

    def _assignment(self, request: Request, initial: Path) -> Assignment:
        prompt = "\n".join(message.content for message in request.messages)
        return Assignment(request.work or Workspace(), initial, prompt, self.tools.packages)

    def _faults(
        self,
        request: Request,
        checks: Sequence[verify.WorkspaceCheck],
        results: Sequence[verify.WorkspaceCheckResult],
        initial: Path | None,
    ) -> list[CheckFault]:
        """List the checks that could not do their work, unless the suite allows that."""
        work = request.work or Workspace()
        if initial is None or work.verify_before == "any":
            return []
        return check_faults(checks, results, self._assignment(request, initial))

    async def _fault_after(
        self,
        run_folder: RunFolder,
        request: Request,
        checks: Sequence[verify.WorkspaceCheck],
        after: Sequence[verify.WorkspaceCheckResult],
        initial: Path,
    ) -> CheckFault | None:
        """Return the check that broke while the agent worked, if it was not the agent's doing.

        An agent can make a check end in any way. So the check has to break in a workspace that no
        agent has seen, too.
        """
        work = request.work or Workspace()
        if not self._faults(request, checks, after, initial):
            return None
        fresh = await self._fresh(run_folder, work, checks)
        return next(iter(self._faults(request, checks, fresh.results, fresh.workspace)), None)

    async def _checked_before(
        self, run_folder: RunFolder, work: Workspace, checks: Sequence[verify.WorkspaceCheck]
    ) -> InitialResults:
        """Run the checks in a workspace that no agent has seen, once for all attempts from it.

        If that fails, the next attempt tries again. What was sound in an earlier run is not run
        again.
        """
        if not checks:
            return InitialResults()
        if results := self._cache.load(work):
            return InitialResults(results)
        key = json.dumps([work.task, work.target, work.identity()])
        if key not in self._before:
            task = asyncio.create_task(self._fresh(run_folder, work, checks))
            self._before[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(self._before[key])

    def _forget(self, key: str, done: asyncio.Task[InitialResults]) -> None:
        if done.cancelled() or done.exception():
            self._before.pop(key, None)

    async def _fresh(
        self, run_folder: RunFolder, work: Workspace, checks: Sequence[verify.WorkspaceCheck]
    ) -> InitialResults:
        folders = await self._folders(run_folder, work)
        try:
            return InitialResults(await self._checked(folders, work, checks), folders.initial)
        finally:
            await asyncio.to_thread(folders.remove)

    async def _verified(
        self,
        run_folder: RunFolder,
        folders: AttemptFolders,
        work: Workspace,
        checks: Sequence[verify.WorkspaceCheck],
    ) -> tuple[list[verify.WorkspaceCheckResult], list[answer_files.LeftOut]]:
        """Run the checks after the agent; also return its changes that did not reach them."""
        if not checks:
            return [], []
        if work.verify_in == "workspace":
            await asyncio.to_thread(folders.renew_home)
            return await self._checked(folders, work, checks), []
        fresh = await self._folders(run_folder, work)
        try:
            rules = answer_files.AnswerRules(
                folders.initial, folders.work, work, self.tools.packages
            )
            left_out = await asyncio.to_thread(
                answer_files.apply_answer, rules, folders.snapshot, fresh.work
            )
            return await self._checked(fresh, work, checks), left_out
        finally:
            await asyncio.shield(asyncio.to_thread(fresh.remove))

    async def _checked(
        self, folders: AttemptFolders, work: Workspace, checks: Sequence[verify.WorkspaceCheck]
    ) -> list[verify.WorkspaceCheckResult]:
        await asyncio.to_thread(folders.place_files, work.verify_files)
        target = {} if work.target is None else {"PENNYWEIGHT_TARGET": work.target}
        tools = {**dict(self.tools.variables), "PATH": self.tools.path}
        environment = {**self._system(folders), **tools, "PENNYWEIGHT_TASK": work.task, **target}
        return [await self._check(folders, check.words, environment) for check in checks]

    async def _check(
        self, folders: AttemptFolders, words: tuple[str, ...], environment: Mapping[str, str]
    ) -> verify.WorkspaceCheckResult:
        """Run a check. A check that is a missing file of the workspace has failed."""
        agent = self.agent
        try:
            ended = await self._execute(words, folders, environment, CHECK_OUTPUT, tools=self.tools)
        except CallError as error:
            if agent.sandbox == "none" and "/" in words[0] and not words[0].startswith("/"):
                return verify.WorkspaceCheckResult(127, "exit", str(error))
            raise
        problem = await asyncio.to_thread(sandbox.failure, agent, folders, ended)
        if problem and sandbox.own_fault(agent, words[0], ended):
            return verify.WorkspaceCheckResult(127, "exit", problem)
        if problem:
            problem = f"A check could not be run. {problem}"
            raise self._without_keys(CallError("workspace", problem))
        return verify.WorkspaceCheckResult.of(ended)

    async def close(self) -> None:
        """Remove the workspaces and stop the served model."""
        pending = list(self._before.values())
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        self._before.clear()
        run_folder, self._run_folder = self._run_folder, None
        if run_folder is not None:
            await asyncio.to_thread(run_folder.close)
        self._address = None
        await self._open.aclose()


def _told(fault: CheckFault) -> str:
    what = f"{fault.check.kind}: {fault.check.shown}"
    return f"'{what}' cannot do its work: {reason_of(fault)}. {advice_of(fault)}"
