"""A command as a model: a request in, work in a workspace, a reply out."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Literal

from pennyweight.agent import diff, readers, sandbox
from pennyweight.agent import verification as verify
from pennyweight.agent.folders import Cell
from pennyweight.agent.process import GRACE, ProcessLimits, ProcessResult, run
from pennyweight.agent.prompt import settings_of, words_of
from pennyweight.agent.scratch import Scratch
from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError
from pennyweight.models.keys import redact_environment, redact_reply
from pennyweight.models.model import Model, Reply, Request
from pennyweight.models.server import cores
from pennyweight.suite.values import Agent, Workspace

CHECK_OUTPUT = 64_000
_STATUS: dict[str, Literal["timeout", "budget"]] = {"timeout": "timeout", "disk": "budget"}


class CommandAgent(Model):
    """An agent that is a command. Each call is one attempt in a fresh workspace."""

    ignores = frozenset({"logprobs"})

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
        self.agent = agent
        self._scratch: Scratch | None = None
        self._opening = asyncio.Lock()
        self._open = AsyncExitStack()
        self._address: str | None = None
        self._before: dict[str, asyncio.Task[list[verify.WorkspaceCheckResult]]] = {}

    def __repr__(self) -> str:
        return f"CommandAgent({self.name})"

    async def call(self, request: Request) -> Reply:
        """Make one attempt."""
        agent = self.agent
        scratch = await self._start()
        work = request.work or Workspace()
        checks = verify.checks_of(work)
        before = await self._checked_before(scratch, work, checks)
        cell = await asyncio.to_thread(scratch.cell, work)
        try:
            ended = await self._run(cell, request)
            printed = readers.read(agent.output, ended.stdout.text, ended.stderr.text)
            if ended.why == "exit" and printed.failed:
                raise self._told(printed.failed)
            made = await asyncio.to_thread(diff.compare, cell.begun, cell.snapshot, cell.work)
            if checks and ended.why == "exit":
                await asyncio.to_thread(cell.renew_home)
            after = await self._checked(cell, work, checks) if ended.why == "exit" else []
        finally:
            await asyncio.shield(asyncio.to_thread(cell.remove))
        if ended.why != "exit":
            return self._reply(ended, printed, made, [], passed=False)
        passed = verify.verdict(checks, before, after, ended.exit_code)
        return self._reply(ended, printed, made, verify.as_plain(checks, before, after), passed)

    def _told(self, wrong: CallError) -> CallError:
        """Remove keys from an error."""
        wrong.message = redact_environment(wrong.message, self.agent.env)
        wrong.args = (wrong.message,)
        return wrong

    def _reply(
        self,
        ended: ProcessResult,
        printed: readers.Printed,
        made: diff.Diff,
        checked: list[dict[str, Any]],
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
            "diff": made.text,
            "files": {"added": made.added, "changed": made.changed, "removed": made.removed},
            "checks": checked,
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

    async def _start(self) -> Scratch:
        async with self._opening:
            if self._scratch is None:
                self._scratch = await asyncio.to_thread(_scratch)
            if self.agent.serves and self._address is None:
                from pennyweight.models.local import serving  # noqa: PLC0415

                name = self.agent.serves.removeprefix("local/")
                self._address = await self._open.enter_async_context(serving(name))
        return self._scratch

    async def _run(self, cell: Cell, request: Request) -> ProcessResult:
        agent = self.agent
        note = cell.home / ".prompt.md"
        inside = f"{sandbox.place_of(agent, cell).home}/{note.name}"
        words, prompt = words_of(agent, request, inside)
        if agent.prompt != "argument":
            note.write_text(prompt, encoding="utf-8", errors="replace")
        environment = self._environment(cell, settings_of(request))
        ended = await run(
            sandbox.wrapped(agent, self._found(words), cell, tuple(environment)),
            folder=cell.work,
            environment=environment,
            limits=self._limits(agent.caps.output_kb * 1000),
            given=note if agent.prompt == "stdin" else None,
            watch=lambda watcher: cell.too_much(agent.caps, watcher),
            status=sandbox.status_of(agent),
        )
        if wrong := await asyncio.to_thread(sandbox.failure, agent, cell, ended):
            raise self._told(CallError("workspace", wrong))
        return ended

    def _found(self, words: Sequence[str]) -> list[str]:
        """Return a command with its full path, so that the one that was found is run."""
        if self.agent.sandbox == "container" or "/" in words[0]:
            return list(words)
        found = sandbox.find_command(words[0])
        if found is None:
            raise CallError("not_found", f"The command {words[0]!r} is not installed.")
        return [found, *words[1:]]

    def _limits(self, output: int) -> ProcessLimits:
        return ProcessLimits(self.agent.timeout, output, self.agent.caps.disk_mb * 1_000_000, GRACE)

    def _system(self, cell: Cell) -> dict[str, str]:
        place, path = sandbox.place_of(self.agent, cell), sandbox.path_of(self.agent)
        return {"PATH": path, "HOME": place.home, "TMPDIR": place.tmp, "LANG": "C.UTF-8"}

    def _environment(self, cell: Cell, settings: Mapping[str, Any]) -> dict[str, str]:
        """Return the environment of a command: a few system variables and those the suite names."""
        found = self._system(cell)
        if settings:
            found["PENNYWEIGHT_SETTINGS"] = json.dumps(settings, default=str)
        if self._address:
            found["OPENAI_BASE_URL"] = f"{self._address}/v1"
            found["OPENAI_API_KEY"] = "local"
        return found | {n: os.environ[n] for n in self.agent.env if n in os.environ}

    async def _checked_before(
        self, scratch: Scratch, work: Workspace, checks: Sequence[verify.WorkspaceCheck]
    ) -> list[verify.WorkspaceCheckResult]:
        """Run the checks in a workspace that no agent has seen, once for all attempts from it.

        If that fails, the next attempt tries again.
        """
        if not checks:
            return []
        key = json.dumps([work.task, work.target, work.identity()])
        if key not in self._before:
            task = asyncio.create_task(self._fresh(scratch, work, checks))
            self._before[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(self._before[key])

    def _forget(self, key: str, done: asyncio.Task[list[verify.WorkspaceCheckResult]]) -> None:
        if done.cancelled() or done.exception():
            self._before.pop(key, None)

    async def _fresh(
        self, scratch: Scratch, work: Workspace, checks: Sequence[verify.WorkspaceCheck]
    ) -> list[verify.WorkspaceCheckResult]:
        cell = await asyncio.to_thread(scratch.cell, work)
        try:
            return await self._checked(cell, work, checks)
        finally:
            await asyncio.to_thread(cell.remove)

    async def _checked(
        self, cell: Cell, work: Workspace, checks: Sequence[verify.WorkspaceCheck]
    ) -> list[verify.WorkspaceCheckResult]:
        await asyncio.to_thread(cell.lay, work.verify_files)
        target = {} if work.target is None else {"PENNYWEIGHT_TARGET": work.target}
        environment = {**self._system(cell), "PENNYWEIGHT_TASK": work.task, **target}

        async def once(words: tuple[str, ...]) -> verify.WorkspaceCheckResult:
            return await self._check(cell, words, environment)

        return await verify.run_all(checks, once)

    async def _check(
        self, cell: Cell, words: tuple[str, ...], environment: Mapping[str, str]
    ) -> verify.WorkspaceCheckResult:
        """Run a check. A check that is a missing file of the workspace has failed."""
        agent = self.agent
        try:
            ended = await run(
                sandbox.wrapped(agent, self._found(words), cell, tuple(environment)),
                folder=cell.work,
                environment=environment,
                limits=self._limits(CHECK_OUTPUT),
                watch=lambda watcher: cell.too_much(agent.caps, watcher),
                status=sandbox.status_of(agent),
            )
        except CallError as wrong:
            if agent.sandbox == "none" and "/" in words[0] and not words[0].startswith("/"):
                return verify.WorkspaceCheckResult(127, "exit", wrong.message)
            raise
        said = await asyncio.to_thread(sandbox.failure, agent, cell, ended)
        if said and not sandbox.own_fault(agent, words[0], ended):
            raise self._told(CallError("workspace", f"A check could not be run. {said}"))
        return verify.WorkspaceCheckResult.of(ended)

    async def close(self) -> None:
        """Remove the workspaces and stop the served model."""
        under_way = list(self._before.values())
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        self._before.clear()
        scratch, self._scratch = self._scratch, None
        if scratch is not None:
            await asyncio.to_thread(scratch.close)
        self._address = None
        await self._open.aclose()


def _scratch() -> Scratch:
    try:
        return Scratch()
    except OSError as error:
        raise CallError(
            "workspace", f"The folder for workspaces cannot be created: {error}."
        ) from error
