"""Read the scorers that a suite names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.errors import UsageError
from pennyweight.schema.problems import Problems
from pennyweight.suite.values import LoadedSuite, Task

if TYPE_CHECKING:
    from pennyweight.scorers.declaration import Scorer


def read_scorers(
    given: list[Any], folder: Path, tasks: tuple[Task, ...], problems: Problems, line: int
) -> tuple[Scorer, ...]:
    """Find the scorers, and check that the columns they read exist."""
    if not given:
        return ()
    from pennyweight.scorers.loader import find_scorers, unknown_input  # noqa: PLC0415

    try:
        found = find_scorers(given, folder)
    except UsageError as error:
        problems.add(line, f"scorers: {error}")
        return ()
    columns = {"context", *(name for task in tasks for name in task.extra)}
    for scorer in found if tasks else ():
        if wrong := unknown_input(scorer, columns):
            problems.add(line, f"scorers: {wrong}")
    return found


def confirmed_scorers(suite: LoadedSuite) -> tuple[Scorer, ...]:
    """Load the scorers of a suite that was read without loading its code."""
    if not suite.named_scorers:
        return ()
    from pennyweight.scorers.loader import find_scorers  # noqa: PLC0415

    return find_scorers(suite.named_scorers, Path(suite.path).parent)
