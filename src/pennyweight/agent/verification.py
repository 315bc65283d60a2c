"""Whether what an agent left behind holds: checks run before it and after it.

A `verify` check says what the task asks for: it must succeed afterwards, whatever it did before.
A `keep` check guards what was there: it counts only where it succeeded before, so that what was
broken already is not blamed on the agent.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pennyweight.agent.process import Ended
    from pennyweight.suite.values import Workspace

SHOWN = 4_000
"""Characters kept of what a check printed."""


@dataclass(frozen=True, slots=True)
class Check:
    """One command that is run before and after an agent."""

    kind: Literal["verify", "keep"]
    words: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The command as a person wrote it."""
        if self.words[:2] == ("sh", "-c"):
            return self.words[2]
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found. The rest of what it printed is not kept: many attempts share it."""

    exit_code: int
    why: Literal["exit", "timeout", "disk"]
    output: str

    @classmethod
    def of(cls, ended: Ended) -> Outcome:
        """Keep of a check what matters."""
        said = ended.stdout.text + ended.stderr.text
        return cls(ended.exit_code, ended.why, said[-SHOWN:])

    @property
    def good(self) -> bool:
        """Whether it succeeded."""
        return self.why == "exit" and self.exit_code == 0


def checks_of(work: Workspace) -> list[Check]:
    """List the checks of a task in the order in which they run."""
    kept = [Check("keep", words) for words in work.keep]
    return [*(Check("verify", words) for words in work.verify), *kept]


async def run_all(
    checks: Sequence[Check], run: Callable[[tuple[str, ...]], Awaitable[Outcome]]
) -> list[Outcome]:
    """Run checks one after the other: they share a workspace."""
    return [await run(check.words) for check in checks]


def verdict(
    checks: Sequence[Check], before: Sequence[Outcome], after: Sequence[Outcome], exit_code: int
) -> bool | None:
    """Decide whether an attempt passed; None where only the answer can tell."""
    pairs = list(zip(checks, before, after, strict=True))
    if not all(holds(*pair) for pair in pairs):
        return False
    if any(check.kind == "verify" for check in checks):
        return True
    return False if exit_code else None


def holds(check: Check, before: Outcome, after: Outcome) -> bool:
    """Whether a check has nothing against the attempt."""
    return after.good or (check.kind == "keep" and not before.good)


def told(
    checks: Sequence[Check], before: Sequence[Outcome], after: Sequence[Outcome]
) -> list[dict[str, Any]]:
    """Write down what the checks found."""
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
