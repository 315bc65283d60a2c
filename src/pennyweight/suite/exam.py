"""The digests of a suite: of its tasks, and of how it grades them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pennyweight.checks.behaviour import Behaviour
from pennyweight.schema.user_code import code_mark, load_function, suite_folder
from pennyweight.suite.templates import variables_of
from pennyweight.suite.values import LoadedSuite, Task, Workspace, judge_identities
from pennyweight.text.exam import SHARED, digest, offered
from pennyweight.text.safe import storable


@dataclass
class TaskDigests:
    """The digests of a suite's tasks.

    Part of a task is what the suite gives to all tiers: its workspace, its verification and its
    tools. What a tier or a subject adds to them is what is compared. The same is true of prompts,
    so that of the task's own columns those count that some prompt shows.
    """

    suite: LoadedSuite
    _known: dict[str, str | None] = field(default_factory=dict)

    def of(self, task: Task) -> str | None:
        """Return the digest of a task."""
        if task.id not in self._known:
            with suite_folder(Path(self.suite.path).parent):
                self._known[task.id] = digest(dict(self._parts(task)))
        return self._known[task.id]

    @cached_property
    def _shown(self) -> frozenset[str]:
        """The columns that prompts show."""
        texts = [
            text
            for tier in self.suite.tiers
            for text in (tier.system or "", tier.prompt, *(turn.content for turn in tier.messages))
        ]
        return frozenset().union(*(variables_of(text) for text in dict.fromkeys(texts) if text))

    def _parts(self, task: Task) -> Iterator[tuple[str, Any]]:
        yield "input", storable(task.input)
        if task.before or task.turns:
            earlier = [[turn.role, turn.content] for turn in task.before]
            yield "turns", [earlier, [json.loads(line) for line in task.turns]]
        yield "context", task.context
        for name, value in task.extra.items():
            if name == "choices":
                yield name, offered(value)
            elif name in self._shown:
                yield f"{SHARED}{name.replace(' ', '_')}", value
        yield "tools", self.suite.settings.get("tools")
        yield from _work_parts(self.suite.work, task.work)
        yield "target", storable(task.target)
        if scenario := task.scenario:
            if scenario.behaves:
                roles = (scenario.expected, scenario.must_not)
                yield "behaviors", [sorted(map(_written, one)) for one in roles]
            if scenario.checks:
                yield "checks", ["", *sorted(map(_written, scenario.checks))]
        yield "pass_score", task.pass_score


def _work_parts(suite: Workspace | None, task: Workspace | None) -> Iterator[tuple[str, Any]]:
    """Yield what an agent finds in its workspace, and how its work is verified."""
    if suite is None:
        return
    mark, files, verify, _, hidden, *rules = suite.joined(task).identity()
    if mark or files:
        yield "files", [mark, files]
    if verify:
        yield "verify", [verify, hidden, rules]


def _written(behaviour: Behaviour) -> str:
    """Write what decides a behaviour, without its name: the check, its values and user's code."""
    code = ""
    if not behaviour.problem and behaviour.check.by == "code":
        with suppress(Exception):  # of the user's module; it is reported where it is called
            code = code_mark(_function_of(behaviour))
    return json.dumps([behaviour.key, behaviour.value, behaviour.of, code], sort_keys=True)


def _function_of(behaviour: Behaviour) -> Callable[..., Any]:
    named = behaviour.check.read(behaviour.value).get("function")
    return load_function(named) if named else behaviour.check.function


def grading_settings(suite: LoadedSuite) -> Mapping[str, Any]:
    """Return what a run stores of how its suite grades, beside its rules and its rubric."""
    asked = [scorer for scorer in suite.scorers if scorer.question]
    sentences = any(
        b.check.by == "judge" for t in suite.tasks if t.scenario for _, b in t.scenario.leaves()
    )
    judges = suite.judge.judges if suite.judge and (asked or sentences) else ()
    return {
        "scorers": {scorer.name: scorer.mark for scorer in suite.scorers},
        "asked": judge_identities(*judges),
    }
