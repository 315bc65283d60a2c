"""Audit: is an exam sound? The right replies pass, and nothing else does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from pennyweight.engine.execution import open_suite
from pennyweight.soundness.audit import Audit, Flaw
from pennyweight.soundness.examination import Examination
from pennyweight.soundness.findings import Progress
from pennyweight.suite.definition import GivenSuite
from pennyweight.suite.implied import is_table
from pennyweight.suite.narrowing import Narrowing, NarrowingOptions
from pennyweight.text.format import count, plural

if TYPE_CHECKING:
    from pennyweight.suite.values import LoadedSuite

_NO_MODEL = "python:builtins:str"
SAMPLE = 200
"""How many tasks a run examines by itself, evenly spread."""
TOLD_OTHERWISE = frozenset({"prompt"})
"""Probes about which a run warns by itself."""


def audit(
    suite: GivenSuite,
    *,
    judges: bool = False,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
    **options: Unpack[NarrowingOptions],
) -> Audit:
    """Examine a suite: the right replies must pass, and nothing else may.

    Replies that are known to be right or wrong are scored as those of a run would be: the target of
    each task must pass; an empty reply, the prompt itself, a refusal and the answers of other tasks
    must fail. The commands that verify agents must fail where nothing was done, and pass with the
    solution. With `judges`, the judges are asked about such replies too, within the limits of the
    suite; that costs money, and `note` is told how much is asked. `suite` and `options` are those
    of `run`. What was not checked is counted. `progress` is called with the number of workspaces
    that were tried, and of how many.

    >>> tasks = [{"id": "a", "input": "2 + 2?", "target": "4"}]
    >>> audit({"tasks": tasks, "subjects": ["python:builtins:str"], "answer": "last_line"}).is_sound
    True
    """
    if isinstance(suite, str | Path) and is_table(Path(suite)):
        options.setdefault("models", [_NO_MODEL])  # a file of tasks has none
    chosen = open_suite(suite, narrowing=Narrowing.of(**options), keyless=True)
    return Examination(
        chosen, chosen.tasks, judges=judges, progress=progress, note=note or (lambda _: None)
    ).audit()


def audit_notes(suite: LoadedSuite, *, hint: bool = True) -> list[str]:
    """Say what is wrong with a suite, as far as a look at some tasks shows; call and run nothing.

    One line for each probe that failed; none if all is well. With `hint`, the last one names the
    command that shows all of it.
    """
    step = max(1, -(-len(suite.tasks) // SAMPLE))
    some = suite.tasks[::step]
    look = Examination(suite, some, runs_code=False, pairs=False, workspaces=False)
    found = look.audit()
    by_probe: dict[str, list[Flaw]] = defaultdict(list)
    for flaw in found.flaws:
        by_probe[flaw.probe].append(flaw)
    part = ""
    if len(found.audited) < found.tasks:
        part = f" ({count(len(found.audited))} of {plural(found.tasks, 'task')} were examined)"
    lines = [
        f"Unsound: {_words(flaws)}{part}."
        for probe, flaws in by_probe.items()
        if probe not in TOLD_OTHERWISE
    ]
    if hint and lines and Path(suite.path).is_file():
        lines[-1] += f" 'pennyweight audit {suite.path}' shows all of it."
    return lines


def _words(flaws: list[Flaw]) -> str:
    """Describe the flaws that one probe found by the first of them."""
    first = flaws[0]
    if not first.tasks:
        return first.why
    more = f" and {count(len(flaws) - 1)} more" if len(flaws) > 1 else ""
    return f"{first.why} (task {first.tasks[0]}{more})"
