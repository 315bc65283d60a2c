"""What a reply is compared with, where a judge says which of two is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pennyweight.errors import UsageError, unknown
from pennyweight.record import AttemptKey

OWN, OTHER, EQUAL = "the first reply", "the second reply", "neither: they are equally good"
ORDERS = 2
"""A judge is asked in both orders, since many prefer what they read first."""
BASELINE = "T0"


@dataclass(frozen=True, slots=True)
class Pairing:
    """The other reply: of a tier, of a subject, or in a column; else that of the baseline."""

    tier: str = ""
    subject: str = ""
    column: str = ""

    @classmethod
    def of(cls, given: Any) -> Pairing:
        """Read it as a suite writes it; raise UsageError for a mistake.

        >>> Pairing.of({"tier": "T0"}), Pairing.of("target").column
        (Pairing(tier='T0', subject='', column=''), 'target')
        """
        if given is True:
            return cls()
        if isinstance(given, str) and given.strip():
            return cls(column=given.strip())
        names = given if isinstance(given, dict) and len(given) == 1 else {}
        for key, name in names.items():
            if key in {"tier", "subject"} and isinstance(name, str) and name:
                return cls(**{key: name})
        raise UsageError(
            "'pairwise' is true for the baseline, {tier: T0}, {subject: NAME}, or a column such "
            "as target."
        )

    def resolved(self, sides: Mapping[str, Sequence[str]]) -> Pairing | None:
        """Name the baseline: a tier if there are several, else the first subject; None: no side."""
        if self != Pairing():
            return self
        tiers, subjects = sides["tier"], sides["subject"]
        if len(tiers) > 1:
            return Pairing(tier=BASELINE if BASELINE in tiers else tiers[0])
        return Pairing(subject=subjects[0]) if len(subjects) > 1 else None

    def problem(self, sides: Mapping[str, Sequence[str]]) -> str:
        """Return why there is nothing to compare with; empty if there is."""
        for kind, name in (("tier", self.tier), ("subject", self.subject)):
            if name and name not in sides[kind]:
                return unknown(kind.capitalize(), name, sides[kind], "'pairwise' names it.")
        if self.resolved(sides) is None:
            return (
                "there is one subject in one tier, so there is nothing to compare with; "
                "'pairwise: target' compares with a column."
            )
        return ""

    def share(self, sides: Mapping[str, Sequence[str]]) -> float:
        """Return the share of attempts that are compared: a side is not compared with itself."""
        found = self.resolved(sides)
        if found is None:
            return 0.0
        names = sides["tier"] if found.tier else sides["subject"] if found.subject else ()
        return 1 - 1 / len(names) if names else 1.0

    def other(self, key: AttemptKey) -> AttemptKey | None:
        """Return the attempt that one is compared with; None for one of that side itself."""
        one = key._replace(tier=self.tier or key.tier, subject=self.subject or key.subject)
        return None if one == key else one


def preference(own_first: float | None, own_second: float | None) -> float | None:
    """Return 1 if a reply is preferred in both orders, 0 if the other is, else 0.5: a tie.

    The values are the numbers of the labels that a judge chose, with the own reply as the first
    and as the second.

    >>> preference(1, 2), preference(2, 1), preference(1, 1), preference(1, None)
    (1.0, 0.0, 0.5, None)
    """
    if own_first is None or own_second is None:
        return None
    return {(1, 2): 1.0, (2, 1): 0.0}.get((int(own_first), int(own_second)), 0.5)
