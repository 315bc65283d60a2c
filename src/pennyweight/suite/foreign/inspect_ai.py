"""Inspect AI: a data set of samples. Solvers and scorers are Python, so they are not in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from pennyweight.errors import InputError
from pennyweight.schema.tree import Node
from pennyweight.suite.foreign.data_rows import (
    Row,
    columns,
    first_row,
    json_lines,
    messages,
    parsed,
    placed_rows,
)
from pennyweight.suite.foreign.lm_eval import CHOICES
from pennyweight.suite.foreign.suite_format import (
    ConvertedSuite,
    ForeignSuite,
    Place,
    SuiteFormat,
)
from pennyweight.suite.foreign.suite_text import suite_text

_KNOWN = {"id", "input", "target", "choices", "metadata"}
_AGENT = {"sandbox", "files", "setup"}
_UNSAID = (
    "they do not say how replies are scored; --from {}#includes says that a reply which contains "
    "the target is right"
)
_CHOICE = "Choices are shown with letters, and the letter of the answer is compared."


def _recognise(_: Node | None, text: str, path: Path) -> bool:
    row = first_row(text, path)
    return "input" in row and bool({"target", "choices", "metadata", "sandbox"} & row.keys())


def _convert(source: ForeignSuite) -> ConvertedSuite:
    tasks = [
        task
        for place, row in placed_rows(source, source.path)
        if (task := _task(source, place, row)) is not None
    ]
    if not tasks:
        raise source.refuse("no sample can be carried over.")
    for number, task in enumerate(tasks, 1):
        task.setdefault("id", str(number))
    table: Row = {"suite": source.path.stem, "subjects": source.subjects()}
    with_choices = sum("choices" in task for task in tasks)
    if with_choices == len(tasks):
        source.note(_CHOICE)
        table |= {"prompt": CHOICES, "answer": {"choice": "A-Z"}, "match": "choice"}
    elif with_choices:
        raise InputError([f"{source.path}: only some samples have choices; split the file."])
    elif _is_included(source):
        several = any(isinstance(task.get("target"), list) for task in tasks)
        match: Any = {"any_of": {"match": "contains"}} if several else "contains"
        table |= {"answer": "reply", "match": match}
    else:
        table |= {"answer": "reply", "match": "none"}
    table["tasks"] = "tasks.jsonl"
    files = {"suite.yaml": suite_text(source, table), "tasks.jsonl": json_lines(tasks)}
    return ConvertedSuite(files)


def _is_included(source: ForeignSuite) -> bool:
    """Whether replies are scored by includes(), which the user says: the samples do not."""
    part = source.options.part
    if part is None:
        source.miss(source.place, "samples", _UNSAID.format(source.path.name))
    elif part != "includes":
        hint = "There is: includes. For others, write answer and match after --partial."
        raise InputError([f"{source.path}: no scorer {part!r} is carried over."], hint=hint)
    return part is not None


def _task(source: ForeignSuite, place: Place, row: Row) -> Row | None:
    asked = messages(source, place, row.get("input"))
    if asked is None:
        source.miss(place, "a sample", "it has no input")
        return None
    task: Row = {"id": str(row["id"])} if row.get("id") is not None else {}
    task["input"] = asked
    target = row.get("target")
    if choices := _choices(row.get("choices")):
        task["choices"] = choices
        target = target[0] if isinstance(target, list) and len(target) == 1 else target
        if isinstance(target, list):
            source.miss(place, "a sample", "it has several right choices")
            return None
        letter = str(target).strip().upper()
        if letter not in ascii_uppercase[: len(task["choices"])]:
            source.miss(place, f"target {target!r}", "it is no letter of its choices")
            return None
    if target not in (None, "", []):
        task["target"] = [str(t) for t in target] if isinstance(target, list) else str(target)
    for key in sorted(_AGENT & row.keys()):
        if row[key]:
            source.miss(place, key, "it is for an agent; see workspace and files of suites")
    metadata = row.get("metadata")
    metadata = parsed(metadata) if isinstance(metadata, str) else metadata
    extra = {key: value for key, value in row.items() if key not in _KNOWN | _AGENT}
    if isinstance(metadata, Mapping):
        extra |= metadata
    return task | columns(extra)


def _choices(given: Any) -> list[str]:
    """Read choices; in a cell of a table they are separated by commas, else by spaces."""
    if isinstance(given, str):
        given = given.split(",") if "," in given else given.split()
    return [str(one).strip() for one in given or () if str(one).strip()]


FORMAT = SuiteFormat("inspect_ai", "Inspect AI", _recognise, _convert)
