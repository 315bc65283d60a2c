"""Whether the result of an agent's work holds: commands that are run before and after it.

A `verify` command states what the task asks for: it must succeed afterwards, no matter how it ended
before. A `keep` command protects what existed: it counts only if it succeeded before, so that an
agent is not blamed for what was already broken.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pennyweight.agent.process import ProcessResult
from pennyweight.suite.values import Workspace

MAX_OUTPUT_CHARACTERS = 4_000
"""The characters of a command's output that are kept."""


@dataclass(frozen=True, slots=True)
class WorkspaceCheck:
    """A command that is run before and after an agent."""

    kind: Literal["verify", "keep"]
    words: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The command as the suite has it."""
        if self.words[:2] == ("sh", "-c"):
            return self.words[2]
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class WorkspaceCheckResult:
    """The result of a check, with the end of its output. Many attempts may share it."""

    exit_code: int
    why: Literal["exit", "timeout", "disk"]
    text: str
    """All of the output that was read."""

    @classmethod
    def of(cls, ended: ProcessResult) -> WorkspaceCheckResult:
        """Make it from the result of a process."""
        return cls(ended.exit_code, ended.why, ended.stdout.text + ended.stderr.text)

    @property
    def output(self) -> str:
        """The end of the output, which is kept."""
        return self.text[-MAX_OUTPUT_CHARACTERS:]

    @property
    def good(self) -> bool:
        """Whether the command succeeded."""
        return self.why == "exit" and self.exit_code == 0


def checks_of(work: Workspace) -> list[WorkspaceCheck]:
    """List the checks of a task in the order in which they run."""
    verify = [WorkspaceCheck("verify", words) for words in work.verify]
    return verify + [WorkspaceCheck("keep", words) for words in work.keep]


def verdict(
    checks: Sequence[WorkspaceCheck],
    before: Sequence[WorkspaceCheckResult],
    after: Sequence[WorkspaceCheckResult],
    exit_code: int,
) -> bool | None:
    """Return whether an attempt passed; None if only the answer can tell."""
    pairs = list(zip(checks, before, after, strict=True))
    if not all(holds(*pair) for pair in pairs):
        return False
    if any(check.kind == "verify" for check in checks):
        return True
    return False if exit_code else None


def holds(check: WorkspaceCheck, before: WorkspaceCheckResult, after: WorkspaceCheckResult) -> bool:
    """Whether a check allows the attempt to pass."""
    return after.good or (check.kind == "keep" and not before.good)


def as_plain(
    checks: Sequence[WorkspaceCheck],
    before: Sequence[WorkspaceCheckResult],
    after: Sequence[WorkspaceCheckResult],
) -> list[dict[str, Any]]:
    """Return the results as plain data."""
    return [
        {
            "check": check.kind,
            "command": check.shown,
            "before": first.exit_code,
            "after": last.exit_code,
            "ended": last.why,
            "holds": holds(check, first, last),
            "output": last.output,
        }
        for check, first, last in zip(checks, before, after, strict=True)
    ]
