"""A scenario: what is expected of an attempt, what must not be, and what was observed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pennyweight.checks.behaviour import Behaviour, stored_behaviour

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pennyweight.checks.attempt import AttemptView
    from pennyweight.checks.declaration import CheckResult

ROLES = ("expected", "must_not", "check")


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a task is checked for."""

    expected: tuple[Behaviour, ...] = ()
    must_not: tuple[Behaviour, ...] = ()
    checks: tuple[Behaviour, ...] = ()
    """Everything else that must hold; it does not count in the score."""
    pass_score: float | None = None
    name: str | None = None
    weight: float = 1.0
    required: bool = False

    @property
    def behaves(self) -> bool:
        """Whether it has behaviours; a task may also have other checks alone."""
        return bool(self.expected or self.must_not)

    def all(self) -> Iterator[tuple[str, Behaviour]]:
        """Give every behaviour with its role."""
        for role, several in zip(ROLES, (self.expected, self.must_not, self.checks), strict=True):
            for one in several:
                yield role, one

    def plain(self) -> dict[str, Any]:
        """Give it as plain data, as a store keeps it."""
        return {
            "expected": [one.plain() for one in self.expected],
            "must_not": [one.plain() for one in self.must_not],
            "checks": [one.plain() for one in self.checks],
            "pass_score": self.pass_score,
            "name": self.name,
            "weight": self.weight,
            "required": self.required,
        }

    @classmethod
    def of(cls, text: str) -> Scenario:
        """Read one that was kept."""
        given = json.loads(text)
        values: dict[str, Any] = {
            k: tuple(map(stored_behaviour, v)) if isinstance(v, list) else v
            for k, v in given.items()
        }
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Observation:
    """What was observed of one attempt."""

    scenario: Scenario
    verdicts: tuple[tuple[str, Behaviour, CheckResult], ...]

    def names(self, role: str, *, holds: bool | None) -> list[str]:
        """Name the behaviours of a role with this verdict."""
        return [b.name for r, b, v in self.verdicts if r == role and v.holds is holds]

    @property
    def observed(self) -> list[str]:
        """The expected behaviours that were seen."""
        return self.names("expected", holds=True)

    @property
    def violated(self) -> list[str]:
        """The must-nots that were seen."""
        return self.names("must_not", holds=True)

    @property
    def failed(self) -> list[str]:
        """The other checks that do not hold."""
        return self.names("check", holds=False)

    @property
    def undecided(self) -> list[str]:
        """Whatever could not be decided: a check that broke, a value or a verdict missing."""
        return [b.name for _, b, v in self.verdicts if v.holds is None]

    def passed(self, given: bool | None, *, answered: bool) -> bool | None:
        """Decide whether the attempt passed; None if that is not known, or not for checks to say.

        `given` is what was found otherwise, as by an agent's verification. `answered` says that
        there is also a right answer, which decides where nothing but other checks is asked for.
        """
        if given is False or self.violated or self.failed or not self._can_reach():
            return False
        if self.undecided or (answered and not self.scenario.behaves and given is None):
            return None
        return True

    def _can_reach(self) -> bool:
        expected = self.scenario.expected
        if not expected:
            return True
        wanted = 1.0 if self.scenario.pass_score is None else self.scenario.pass_score
        best = len(expected) - len(self.names("expected", holds=False))
        return best / len(expected) >= wanted

    def plain(self) -> list[dict[str, Any]]:
        """Give every verdict with its evidence."""
        return [
            {
                "role": role,
                "name": behaviour.name,
                "check": behaviour.key,
                "holds": verdict.holds,
                "why": verdict.why,
                **({"error": True} if verdict.error else {}),
                "evidence": [one.plain() for one in verdict.evidence],
            }
            for role, behaviour, verdict in self.verdicts
        ]


def observe(
    scenario: Scenario, attempt: AttemptView, given: Mapping[str, CheckResult]
) -> Observation:
    """Look at one attempt. No check can end it: one that breaks has decided nothing."""
    found = (
        (role, one, one.verdict(attempt, given, forbidden=role == "must_not"))
        for role, one in scenario.all()
    )
    return Observation(scenario, tuple(found))
