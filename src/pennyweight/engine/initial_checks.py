"""The checks of agents, run before the first attempt where no agent has worked.

Each must start there, and `verify` must fail. Otherwise no attempt can tell anything about an
agent, so the run does not begin.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from pennyweight.engine.tally import Tally
from pennyweight.errors import InputError
from pennyweight.models.failure import CallError
from pennyweight.models.model import Message, Request, Settings
from pennyweight.models.server import cores
from pennyweight.suite.plan import Attempt, conversation, work_of
from pennyweight.suite.values import LoadedSuite

if TYPE_CHECKING:
    from pennyweight.agent.check_faults import CheckFault
    from pennyweight.agent.command import CommandAgent


@dataclass(frozen=True, slots=True)
class InitialCheck:
    """The checks of one task in one workspace and sandbox, which many attempts share."""

    agent: CommandAgent
    request: Request
    task: str
    commands: tuple[object, ...]


@dataclass(slots=True)
class InitialChecks:
    """The checks that were not found sound before."""

    suite: LoadedSuite
    todo: list[InitialCheck]
    tally: Tally

    @classmethod
    def of(cls, suite: LoadedSuite, attempts: Iterable[Attempt]) -> InitialChecks:
        """List the checks of attempts; those that differ in nothing but the subject are one."""
        from pennyweight.agent.command import CommandAgent  # noqa: PLC0415

        agents: dict[str, CommandAgent] = {}
        todo: dict[str, InitialCheck] = {}
        for attempt in attempts:
            work, agent = work_of(attempt), attempt.subject.agent
            if agent is None or work is None or not (work.verify or work.keep):
                continue
            place = json.dumps(asdict(replace(agent, command=("",), env=(), output="text")))
            model = agents.setdefault(place, CommandAgent(attempt.subject.name, agent))
            key = json.dumps([place, work.task, work.target, work.identity()])
            if key not in todo:
                turns = conversation(attempt.tier, attempt.task)
                messages = tuple(Message(turn["role"], turn["content"]) for turn in turns)
                request = Request(messages, Settings(), work=work)
                commands = (place, work.verify, work.keep)
                todo[key] = InitialCheck(model, request, attempt.task.id, commands)
        fresh = [check for check in todo.values() if not check.agent.knows(check.request)]
        return cls(suite, fresh, Tally(len(fresh)))

    def examine(self, watch: Callable[[Tally], None]) -> None:
        """Run them; raise InputError with every mistake that they show."""
        problems = asyncio.run(self._problems(watch))
        if problems:
            raise InputError(problems, hint="Nothing was called.")

    async def _problems(self, watch: Callable[[Tally], None]) -> list[str]:
        """Run one task of each command first: what is wrong with it, is wrong with all."""
        first = {check.commands: check for check in reversed(self.todo)}
        rest = [check for check in self.todo if first[check.commands] is not check]
        places = asyncio.Semaphore(cores())

        async def looked(check: InitialCheck) -> list[CheckFault] | CallError:
            async with places:
                try:
                    return await check.agent.initial_faults(check.request)
                except CallError as error:
                    return error
                finally:
                    self.tally.done += 1
                    watch(self.tally)

        watch(self.tally)
        try:
            for wave in ([*reversed(first.values())], rest):
                found = await asyncio.gather(*map(looked, wave))
                if problems := self._told(zip(wave, found, strict=True)):
                    return problems
        finally:
            for agent in {id(check.agent): check.agent for check in self.todo}.values():
                await agent.close()
        return []

    def _told(
        self, found: Iterable[tuple[InitialCheck, list[CheckFault] | CallError]]
    ) -> list[str]:
        """Put the mistakes into words; the same mistake of several tasks is one."""
        from pennyweight.agent.check_faults import (  # noqa: PLC0415
            advice_of,
            output_tail,
            reason_of,
        )

        tasks: dict[tuple[str, str], tuple[list[str], str]] = {}
        for check, faults in found:
            if isinstance(faults, CallError):
                problem = f"'verify' cannot be run before the first agent: {faults}"
                tasks.setdefault((problem, ""), ([], ""))[0].append(check.task)
                continue
            for fault in faults:
                words = f"{fault.check.kind}: {fault.check.shown}"
                reason = f"'{words}' cannot tell whether an agent has done its work, because"
                key = f"{reason} {reason_of(fault)}.", advice_of(fault)
                tasks.setdefault(key, ([], output_tail(fault)))[0].append(check.task)
        return [
            "\n".join(filter(None, (f"{self.suite.path}, {_named(names)}: {what}", tail, todo)))
            for (what, todo), (names, tail) in tasks.items()
        ]


def _named(tasks: list[str]) -> str:
    first, *others = dict.fromkeys(tasks)
    return f"task {first!r}{f' and {len(others):,} more' if others else ''}"
