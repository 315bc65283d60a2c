"""Read the scorers that a suite names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.errors import UsageError
from pennyweight.suite.values import LoadedSuite, Subject, Task, Tier

if TYPE_CHECKING:
    from pennyweight.scorers.declaration import Scorer
    from pennyweight.suite.loader import SuiteReader


def read_scorers(named: list[Any], reader: SuiteReader) -> tuple[Scorer, ...]:
    """Find the scorers; their files may also declare measures, metrics and checks."""
    if not named:
        return ()
    from pennyweight.scorers.loader import find_scorers  # noqa: PLC0415

    try:
        return find_scorers(named, reader.folder)
    except UsageError as error:
        reader.problems.add(reader.root.line_at("scorers"), f"scorers: {error}")
        return ()


def check_scorers(
    found: tuple[Scorer, ...],
    reader: SuiteReader,
    tasks: tuple[Task, ...],
    sides: tuple[Sequence[Subject], Sequence[Tier]],
    *,
    judged: bool,
) -> None:
    """Check that there are the columns that scorers read, the judge and the side they name."""
    if not found:
        return
    from pennyweight.scorers.loader import unknown_input  # noqa: PLC0415

    problems, line = reader.problems, reader.root.line_at("scorers")
    columns = {"context", *(name for task in tasks for name in task.extra)}
    for scorer in found if tasks else ():
        if wrong := unknown_input(scorer, columns):
            problems.add(line, f"scorers: {wrong}")
    subjects, tiers = sides
    names = {"subject": [s.name for s in subjects], "tier": [t.name for t in tiers]}
    for scorer in found if all(names.values()) and not reader.other_models else ():
        pair = scorer.question.pair if scorer.question else None
        if pair and (wrong := pair.problem(names)):
            problems.add(line, f"scorers: {scorer.name}: {wrong}")
    if asking := [one.name for one in found if one.question and not judged]:
        what = f"{', '.join(asking)}: a judge is asked, but the suite has none. Add 'judge:'."
        problems.add(line, f"scorers: {what}")


def confirmed_scorers(suite: LoadedSuite) -> tuple[Scorer, ...]:
    """Load the scorers of a suite that was read without loading its code."""
    if not suite.named_scorers:
        return ()
    from pennyweight.scorers.loader import find_scorers  # noqa: PLC0415

    return find_scorers(suite.named_scorers, Path(suite.path).parent)
