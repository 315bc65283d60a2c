"""Several gates share one error rate, by Holm's method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pennyweight.gates.verdict import Decision


class GateTest(Protocol):
    """A gate that can be decided at any level."""

    def at(self, pass_level: float, fail_level: float) -> Decision:
        """Decide, each wrong decision having this chance at most."""


def shared(tests: Sequence[GateTest], error_rate: float) -> list[Decision]:
    """Decide gates so that even one false alarm among them has a chance of `error_rate` at most.

    Alarms are shared: with m gates each may raise one at error_rate / m, and every gate that has
    failed leaves more to the others. Passes need no sharing: a policy passes only if all its gates
    do, so it passes wrongly no oftener than one of them does.
    """
    failed: dict[int, Decision] = {}
    while True:
        level = error_rate / max(1, len(tests) - len(failed))
        made = {i: t.at(error_rate, level) for i, t in enumerate(tests) if i not in failed}
        new = {i: decision for i, decision in made.items() if decision.verdict == "fail"}
        failed |= new
        if not new or len(failed) == len(tests):
            everything = {**made, **failed}
            return [everything[i] for i in range(len(tests))]
