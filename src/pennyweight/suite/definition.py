"""Suites that are built in Python: tasks as values, functions as subjects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from pennyweight.errors import UsageError
from pennyweight.schema.documents import Document
from pennyweight.schema.problems import Problems
from pennyweight.schema.tree import Node
from pennyweight.schema.user_code import function_path, register_function
from pennyweight.sources.frames import frame_of
from pennyweight.text.extraction import MARKER

IN_PYTHON = "<python>.json"
"""What a run stores as the file of such a suite; there is no file of this name."""
_ASKS = ("prompt", "system", "messages", "examples", "tiers")
"""The keys whose texts can ask a model to mark its answer."""


class Suite:
    """A suite that is built in Python, with the keys of a suite's file as keywords.

    `tasks` are mappings or texts, a Polars or pandas frame, or the name of a file. A subject is
    the name of a model, a mapping of its settings, or any callable: it gets the prompt (or a
    `Request`, if its parameter is named `request`) and returns the reply as a text or a dict; it
    may be async. Unless an `answer` rule is given, or a prompt asks for the marker
    `FINAL_ANSWER:`, the answer is the last line of a reply.

    >>> Suite(["2 + 2?"], [lambda prompt: "4"], name="sums")
    Suite('sums', 1 task, 1 subject)
    """

    __slots__ = ("keys",)

    def __init__(
        self,
        tasks: Any,
        subjects: Any = (),
        *,
        name: str = "suite",
        scorers: Sequence[Any] = (),
        **keys: Any,
    ) -> None:
        if not any(MARKER in str(keys.get(key, "")) for key in _ASKS):
            keys.setdefault("answer", "last_line")
        given = {"suite": name, "tasks": tasks, "subjects": subjects, **keys}
        self.keys: Mapping[str, Any] = {**given, **({"scorers": scorers} if scorers else {})}
        """The suite as a mapping, as a file would hold it."""

    def __repr__(self) -> str:
        tasks, subjects = self.keys["tasks"], self.keys["subjects"]
        parts = [repr(self.keys["suite"])]
        if isinstance(tasks, list | tuple):
            parts.append(f"{len(tasks):,} task{'' if len(tasks) == 1 else 's'}")
        if isinstance(subjects, list | tuple):
            parts.append(f"{len(subjects)} subject{'' if len(subjects) == 1 else 's'}")
        return f"Suite({', '.join(parts)})"


GivenSuite = str | Path | Suite | Mapping[str, Any]
"""What `run` takes as a suite: a file, a mapping as in a file, or a suite built in Python."""


def document_of(given: Suite | Mapping[str, Any]) -> Document:
    """Return a suite from Python in the form in which a file is read.

    Its text is JSON, so that a run can store it; a function is stored as module:function.
    """
    plain = _Plain()
    keys = dict(given.keys if isinstance(given, Suite) else given)
    keys.setdefault("suite", "suite")
    if "subjects" in keys:
        keys["subjects"] = plain.subjects(keys["subjects"])
    if "tasks" in keys:
        keys["tasks"] = _rows(keys["tasks"])
    values = plain.of(keys, "")
    text = _written(values)
    problems = Problems(f"Suite {values['suite']!r}")
    return Document(IN_PYTHON, text, Node.tree(values), problems)


def _written(values: Any) -> str:
    """Write JSON; large integers and unpaired surrogates need the slower writer."""
    try:
        return orjson.dumps(values, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        return json.dumps(values, indent=2)


@dataclass(frozen=True, slots=True)
class _Plain:
    """Turns the values of a suite into plain data, and gives its functions a name."""

    names: dict[str, Callable[..., Any]] = field(default_factory=dict)
    """The functions of this suite by their paths."""

    def path(self, function: Callable[..., Any]) -> str:
        """Return the path of a function; a second one of the same path gets a number."""
        plain = function_path(function)
        for number in count(1):
            path = plain if number == 1 else f"{plain} {number}"
            if self.names.setdefault(path, function) is function:
                break
        register_function(path, function)
        return path

    def subjects(self, given: Any) -> list[Any]:
        """Return subjects as a list, in which each function is a model with a name."""
        if isinstance(given, Mapping) and not given.keys() & {"model", "command"}:
            named = given.items()
            return [{"name": name, **self._subject(one, str(name))} for name, one in named]
        alone = isinstance(given, str | Mapping) or callable(given)
        return [
            one if isinstance(one, str) else self._subject(one)
            for one in ([given] if alone else given)
        ]

    def _subject(self, given: Any, name: str = "") -> dict[str, Any]:
        subject = dict(given) if isinstance(given, Mapping) else {"model": given}
        function = subject.get("model")
        if callable(function):
            path = self.path(function)
            short = path.rpartition(":")[2].rpartition(".")[2].replace("<lambda>", "lambda")
            subject |= {"name": subject.get("name", name or short), "model": f"python:{path}"}
        return subject

    def of(self, value: Any, place: str) -> Any:
        """Return a value as JSON has it."""
        if value is None or isinstance(value, str | bool | int | float):
            return None if value != value else value  # noqa: PLR0124 - NaN is a missing value
        if isinstance(value, Mapping):
            return {str(k): self.of(below, f"{place}.{k}") for k, below in value.items()}
        if isinstance(value, Path):
            return str(value)
        if callable(value):
            return self.path(value)
        if isinstance(value, Iterable):
            return [self.of(one, f"{place}[{n}]") for n, one in enumerate(value, 1)]
        what = f"{place.removeprefix('.')}: a {type(value).__name__} is no value of a suite."
        raise UsageError(f"{what} Write it as text, a number, a list or a mapping.")


def _rows(tasks: Any) -> Any:
    """Return the rows of a frame without their empty cells; other tasks stay as they are."""
    frame = frame_of(tasks)
    if frame is None:
        return tasks
    rows = frame.iter_rows(named=True)
    return [{name: cell for name, cell in row.items() if cell is not None} for row in rows]
