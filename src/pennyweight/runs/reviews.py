"""What a person is still to be asked about a run, and what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pennyweight.checks.declaration import CheckResult
from pennyweight.record import AttemptKey
from pennyweight.runs.observations import Observer, given_by, rows_of, said_of
from pennyweight.store.verdicts import keep_verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pennyweight.checks.behaviour import Behaviour
    from pennyweight.store.store import Run, Store


def waiting(
    run: Run, store: Store, who: str, *, again: bool = False
) -> Iterator[tuple[Mapping[str, Any], str, Behaviour]]:
    """Give each attempt with a behaviour that this person has not spoken about yet, and its role.

    With `again`, also what they have spoken about.
    """
    observer = Observer.of(run, store)
    if observer is None:
        return
    for row in rows_of(run, store):
        about = said_of(row)
        given = observer.given.get(AttemptKey.of(row), ())
        said = {g.mark for g in given if g.who == who and g.said_of == about}
        scenario = observer.scenarios.get(row["task_id"])
        for role, one in scenario.all() if scenario else ():
            asked = not one.problem and one.check.by == "person"
            if asked and (again or one.mark not in said):
                yield row, role, one


def say(
    store: Store,
    row: Mapping[str, Any],
    behaviour: Behaviour,
    who: str,
    holds: bool,
    note: str = "",
) -> None:
    """Keep what a person says, with who and when."""
    keep_verdicts(store, [given_by(who, row, behaviour, CheckResult(holds, note))])
