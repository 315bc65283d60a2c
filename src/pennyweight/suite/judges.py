"""The judges of a suite: their models, the rubric, and how scores are combined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pennyweight.errors import InputError
from pennyweight.schema.tree import Node
from pennyweight.suite.rubric import DEFAULT, Rubric, read_rubric, rubric_file
from pennyweight.suite.values import Judging, Task

if TYPE_CHECKING:
    from pennyweight.suite.loader import SuiteReader


def read_judging(given: Mapping[str, Any], reader: SuiteReader) -> Judging | None:
    """Read the key `judge`; None if it is missing or has problems."""
    one = given.get("judge")
    if one is None:
        return None
    table: dict[str, Any] = {"models": [one]} if isinstance(one, str) else one
    root, problems = reader.root, reader.problems
    line = root.line_at("judge")
    keys = [key for key in ("models", "model") if key in table]
    if len(keys) != 1:
        if keys or not (root.get("judge", "models") or root.get("judge", "model")):
            problems.add(line, "judge needs 'models' (or 'model', for one).")
        return None
    models = table["models"] if keys == ["models"] else [table["model"]]
    judges = reader.subjects(models, "judge", keys[0])
    more = reader.subjects(table.get("more", []), "judge", "more")
    for judge in (*judges, *more):
        if judge.agent:
            problems.add(line, f"the judge {judge.name!r} is a command; a judge must be a model.")
    for twice in {s.name for s in judges} & {s.name for s in more}:
        problems.add(line, f"the judge {twice!r} is in 'models' and in 'more'.")
    rubric = _rubric(table.get("rubric"), reader)
    if rubric is None:
        return None
    if "pass_mark" in table:
        rubric = replace(rubric, pass_mark=table["pass_mark"])
    rules = {k: table[k] for k in ("consensus", "disagreement") if k in table}
    scores = table.get("rubric") is not None or "pass_mark" in table
    return Judging(judges, rubric, more, **rules, scores=scores)


def for_tasks(judging: Judging, tasks: Iterable[Task]) -> Judging:
    """Decide whether attempts are scored by a rubric.

    Without a rubric, a judge of a suite with sentences is asked about these only.
    """
    names = {b.check.name for t in tasks if t.scenario for _, b in t.scenario.all()}
    scores = judging.scores or "judge_score" in names or "judge" not in names
    return replace(judging, scores=scores)


def _rubric(given: Any, reader: SuiteReader) -> Rubric | None:
    if given is None or given == DEFAULT.name:
        return DEFAULT
    if isinstance(given, Node):
        return read_rubric(given, reader.problems, "inline")
    try:
        return rubric_file(str(reader.folder / given), reader.problems)
    except InputError as error:
        line = reader.root.line_at("judge", "rubric")
        reader.problems.add(line, f"rubric: {'; '.join(error.problems)}")
        return None
