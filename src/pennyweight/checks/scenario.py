"""Scenarios: expected and forbidden behaviours, and what was observed of an attempt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import Behaviour, stored_behaviour
from pennyweight.checks.declaration import CheckResult

ROLES = ("expected", "must_not", "check")


@dataclass(frozen=True, slots=True)
class Scenario:
    """The behaviours and checks of a task."""

    expected: tuple[Behaviour, ...] = ()
    must_not: tuple[Behaviour, ...] = ()
    checks: tuple[Behaviour, ...] = ()
    """Further checks that must hold; they do not count in the score."""
    pass_score: float | None = None
    name: str | None = None
    weight: float = 1.0
    required: bool = False

    @property
    def behaves(self) -> bool:
        """Whether it has behaviours; a task may also have checks only."""
        return bool(self.expected or self.must_not)

    def all(self) -> Iterator[tuple[str, Behaviour]]:
        """Yield every behaviour with its role."""
        for role, several in zip(ROLES, (self.expected, self.must_not, self.checks), strict=True):
            for one in several:
                yield role, one

    def leaves(self) -> Iterator[tuple[str, Behaviour]]:
        """Yield every behaviour that decides one of its own, with the role of that one."""
        for role, one in self.all():
            for leaf in one.leaves():
                yield role, leaf

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, as a store holds it."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        behaviours = {k: [b.plain() for b in v] for k, v in values.items() if isinstance(v, tuple)}
        return {**values, **behaviours}

    @classmethod
    def of(cls, text: str) -> Scenario:
        """Read a stored scenario."""
        values: dict[str, Any] = json.loads(text)
        behaviours = {
            k: tuple(map(stored_behaviour, v)) for k, v in values.items() if isinstance(v, list)
        }
        return cls(**{**values, **behaviours})


@dataclass(frozen=True, slots=True)
class Observation:
    """The results of all checks of one attempt."""

    scenario: Scenario
    verdicts: tuple[tuple[str, Behaviour, CheckResult], ...]

    def names(self, role: str, *, holds: bool | None) -> list[str]:
        """Return the names of the behaviours of a role with this result."""
        return [b.name for r, b, v in self.verdicts if r == role and v.holds is holds]

    @property
    def observed(self) -> list[str]:
        """The expected behaviours that were observed."""
        return self.names("expected", holds=True)

    @property
    def violated(self) -> list[str]:
        """The forbidden behaviours that were observed."""
        return self.names("must_not", holds=True)

    @property
    def failed(self) -> list[str]:
        """The other checks that do not hold."""
        return self.names("check", holds=False)

    @property
    def undecided(self) -> list[str]:
        """The behaviours that are undecided: a check failed, or a value or verdict is missing."""
        return [b.name for _, b, v in self.verdicts if v.holds is None]

    def passed(self, given: bool | None, *, answered: bool) -> bool | None:
        """Decide whether the attempt passed; None if undecided, or if checks do not decide.

        `given` is a result from elsewhere, such as the verification of an agent. `answered` means
        that there is a target, which decides if the scenario has no behaviours.
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
        """Return every result with its evidence."""
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
    """Check one attempt. A check that fails is undecided, and the others still run."""
    found = (
        (role, one, one.verdict(attempt, given, forbidden=role == "must_not"))
        for role, one in scenario.all()
    )
    return Observation(scenario, tuple(found))
