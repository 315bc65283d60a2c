"""Rows become tasks and worked examples: foreign names, types, and every check on a row."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from pennyweight.errors import unknown
from pennyweight.schema.kinds import NO_TEXT
from pennyweight.schema.spelling import near_miss
from pennyweight.suite import scenarios
from pennyweight.suite.declaration import EXAMPLE, TASK
from pennyweight.suite.values import NO_EXTRA, Example, Task, Turn, Workspace
from pennyweight.suite.workspaces import NAMES
from pennyweight.text.safe import storable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pennyweight.schema.problems import Problems
    from pennyweight.schema.structs import Struct
    from pennyweight.suite.task_rows import Row
    from pennyweight.suite.workspaces import WorkspaceReader

HIDDEN = frozenset(
    name
    for one in TASK.fields
    if one.name in {"target", *(f.name for f in scenarios.FIELDS)}
    for name in (one.name, *one.aliases)
)
"""Columns that no prompt may use, since they give the answer away."""

_TEXTS = ("category", "capability", "name")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NUMBERS = {"pass_score": (0.0, 1.0), "weight": (0.0, 1e9)}
GUARDED = tuple(
    name
    for one in TASK.fields
    if one.name
    in {*(f.name for f in scenarios.FIELDS), *_TEXTS[:2], *_NUMBERS, "required", "target"}
    for name in (one.name, *(one.aliases if one in scenarios.FIELDS else ()))
)
"""Names that a column of one's own must not be a letter or two away from."""
_KEEP = {
    True: "say so under tasks: 'columns: {{{key}: {key}}}'.",
    False: "give it another name, or put it below 'input:'.",
}
_SEVERAL = ("expected_behaviors", "must_not", "checks")
_ROLES = {"system", "user", "assistant"}
COLUMNS_SHOWN = 20
"""How many columns of a table are named where one is not found."""


@dataclass(slots=True)
class TaskReader:
    """Rows of one table, and how their problems are told."""

    rows: Iterable[Row]
    problems: Problems
    file: str = ""
    unit: str = "line"
    columns: Mapping[str, str] = field(default_factory=dict)
    """Where fields are found, as the suite says."""
    header: dict[str, None] = field(default_factory=dict)
    """The columns of a table that names them before its rows."""
    limit: int | None = None
    work: WorkspaceReader | None = None
    """Reads what tasks say about their workspaces, where the suite has agents."""
    judged: bool = False
    """Whether the suite has a judge, for whom a behaviour may be a sentence."""
    _spelt: set[tuple[str, ...]] = field(default_factory=set)
    """The sets of columns whose spelling was looked at."""
    _plans: dict[tuple[str, ...], tuple[dict[str, str], list[str]]] = field(default_factory=dict)

    def tasks(self) -> Iterator[tuple[int, Task]]:
        """Give each task with its place; what is wrong with a row is told."""
        for number, (place, given) in enumerate(islice(self.rows, self.limit), 1):
            row = {"input": given} if isinstance(given, str | int | float) else given
            if not isinstance(row, dict):
                self.tell(place, "a task is a mapping with an input, or text.")
                continue
            own, extra = self.split(row, TASK)
            self.spelling(place, extra)
            yield place, self.task(place, str(number), own, extra)

    def missing(self) -> Iterator[tuple[str, str]]:
        """Say, once the tasks were read, where the suite names a column that no row has."""
        seen = self.header | dict.fromkeys(chain.from_iterable(self._plans))
        if not seen or not self.columns:  # what is wrong with the table itself was told
            return
        for _, row in self.rows if not seen.keys() >= set(self.columns.values()) else ():
            seen |= dict.fromkeys(row) if isinstance(row, dict) else {}  # behind the limit
        shown = ", ".join(list(seen)[:COLUMNS_SHOWN]) + (", …" if len(seen) > COLUMNS_SHOWN else "")
        for name, column in self.columns.items():
            if column not in seen:
                yield name, unknown("Column", column, seen, f"{self.file} has: {shown}.")

    def examples(self) -> Iterator[Example]:
        """Give each worked example."""
        for place, row in islice(self.rows, self.limit):
            own, extra = self.split(row, EXAMPLE) if isinstance(row, dict) else ({}, {})
            said, asked = written(own.get("output")), written(own.get("input"))
            if asked is None or said is None:
                self.tell(place, "an example needs an input and an output (the right response).")
            else:
                yield Example(asked, said, own.get("context"), extra or NO_EXTRA)

    def tell(self, place: int, what: str) -> None:
        """Keep a problem of one row."""
        self.problems.add(place, what, self.file, self.unit)

    def split(self, row: dict[str, Any], table: Struct) -> tuple[dict[str, Any], dict[str, Any]]:
        """Take the known fields out of a row, under whichever name they have there."""
        keys = tuple(row)
        plan = self._plans.get(keys)
        if plan is None:
            plan = self._plans[keys] = _plan(keys, table, self.columns)
        named, rest = plan
        return {f: row[key] for f, key in named.items()}, {key: row[key] for key in rest}

    def spelling(self, place: int, extra: Mapping[str, Any]) -> None:
        """Refuse a column that looks like a field's name misspelt: what it says would be lost."""
        keys = tuple(extra)
        if keys in self._spelt:
            return
        self._spelt.add(keys)
        for key in keys:
            meant = near_miss(key, GUARDED)
            if meant and self.columns.get(key) != key:
                self.tell(
                    place,
                    f"Key {key!r} is not known in a task. Did you mean {meant!r}? "
                    f"If it is a column of your own, {_KEEP[bool(self.file)].format(key=key)}",
                )

    def task(self, place: int, number: str, row: dict[str, Any], extra: dict[str, Any]) -> Task:
        """Make one task of its fields; what is wrong is told."""
        id_ = written(row.pop("id", None)) or number
        if storable(id_) != id_:
            self.tell(place, f"the task id {id_!r} {NO_TEXT}")
        asked, before = self.asked(place, id_, row, extra)
        target = row.pop("target", None)
        if not row:  # most tasks are only asked and compared
            return Task(id_, asked, written(target), before=before, extra=extra or NO_EXTRA)
        values: dict[str, Any] = {n: written(row[n]) for n in _TEXTS if row.get(n) is not None}
        values |= {n: _several(row[n]) for n in _SEVERAL if row.get(n) is not None}
        for name, (low, high) in _NUMBERS.items():
            if row.get(name) is not None:
                values[name] = self.number(place, id_, name, row[name], low, high)
        said = {name: row[name] for name in NAMES if name in row}
        if said and self.work is None:
            extra |= said
        elif said and self.work:
            tell = self._tell_work(place, id_)
            values["work"] = self.work.read(said, Workspace(), tell)
        if row.get("required") is not None:
            values["required"] = self.flag(place, id_, "required", row["required"])
        self.scenario(place, id_, row, values)
        return Task(
            id=id_,
            input=asked,
            before=before,
            target=written(target),
            context=row.get("context"),
            extra=extra or NO_EXTRA,
            **values,
        )

    def scenario(self, place: int, id_: str, row: dict[str, Any], values: dict[str, Any]) -> None:
        """Read what the attempts are checked for, and what a scripted user says."""

        def tell(what: str) -> None:
            self.tell(place, f"task {id_!r}: {what}")

        if row.get("evaluation_criteria") is not None:
            more = scenarios.criteria(row["evaluation_criteria"])
            values["checks"] = (*values.get("checks", ()), *more)
        values["scenario"] = scenarios.read_scenario(values, tell, judged=self.judged)
        values["turns"] = scenarios.read_script(row, tell)

    def _tell_work(self, place: int, id_: str) -> Callable[[str, str], None]:
        return lambda key, what: self.tell(place, f"task {id_!r}: {key}: {what}")

    def asked(
        self, place: int, id_: str, row: dict[str, Any], extra: dict[str, Any]
    ) -> tuple[str, tuple[Turn, ...]]:
        """Read an input: text, messages of which the last is the question, or a query."""
        given = row.pop("input", None)
        if isinstance(given, dict):
            extra |= {k: v for k, v in given.items() if k not in {"query", "context"}}
            row.setdefault("context", given.get("context"))
            if self.work and "files" in extra:
                row.setdefault("files", extra.pop("files"))
            given = given.get("query")
        if isinstance(given, list):
            return self.conversation(place, id_, given)
        text = written(given)
        if text is not None and not text.strip():
            self.tell(place, f"task {id_!r}: its input is empty; it must ask something.")
        elif text is None:
            columns = ", ".join(map(repr, (*row, *extra))) or "no columns"
            names = ", ".join(TASK.fields[1].aliases)
            self.tell(
                place,
                f"task {id_!r} has no input; it has {columns}. "
                f"The input is called input (or {names}); 'columns:' names another.",
            )
        return text or "", ()

    def conversation(
        self, place: int, id_: str, turns: Sequence[Any]
    ) -> tuple[str, tuple[Turn, ...]]:
        """Read messages; the last must be the user's."""
        right = all(
            isinstance(t, dict) and t.get("role") in _ROLES and isinstance(t.get("content"), str)
            for t in turns
        )
        if not turns or not right or turns[-1]["role"] != "user":
            self.tell(
                place,
                f"task {id_!r}: an input of several messages is a list of role (system, user, "
                "assistant) and content, and ends with the user's.",
            )
            return "", ()
        messages = [Turn(t["role"], t["content"]) for t in turns]
        return messages[-1].content, tuple(messages[:-1])

    def flag(self, place: int, id_: str, name: str, given: Any) -> bool:
        """Read yes or no; a table may write them in words or as 1 and 0."""
        said = str(given).strip().lower()
        if said not in _FLAGS:
            self.tell(place, f"task {id_!r}: {name} must be true or false, not {given!r:.40}.")
        return _FLAGS.get(said, False)

    def number(self, place: int, id_: str, name: str, given: Any, low: float, high: float) -> float:
        """Read a number within limits."""
        try:
            value = float(given)
        except (TypeError, ValueError):
            value = float("nan")
        if not low <= value <= high:
            self.tell(place, f"task {id_!r}: {name} must be a number from {low:g} to {high:g}.")
        return value


def _plan(
    keys: tuple[str, ...], table: Struct, columns: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Decide once for all rows with these keys which key is which field; own names go first."""
    named: dict[str, str] = {}
    for one in table.fields:
        names = (columns[one.name],) if one.name in columns else (one.name, *one.aliases)
        taken = set(named.values()) | (set(columns.values()) if one.name not in columns else set())
        found = next((n for n in names if n in keys and n not in taken), None)
        if found is not None:
            named[one.name] = found
    used = set(named.values())
    return named, [key for key in keys if key not in used]


def written(value: Any) -> str | None:
    """Write a value as text: numbers as they were written, lists and mappings as JSON."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _several(value: Any) -> tuple[Any, ...]:
    """Read a list; in a CSV cell it is written as JSON."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return (value,)
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def unique(tasks: Iterable[tuple[int, Task]], rows: TaskReader) -> tuple[Task, ...]:
    """Collect tasks; an id that is there twice is told with both places."""
    seen: dict[str, int] = {}
    kept: list[Task] = []
    for place, task in tasks:
        first = seen.get(task.id)
        if first is not None:
            rows.tell(place, f"the task id {task.id!r} is already on {rows.unit} {first}.")
        seen.setdefault(task.id, place)
        kept.append(task)
    return tuple(kept)


def usable(tasks: Iterable[Task]) -> frozenset[str]:
    """Name what prompts may use of these tasks: their fields and every other column."""
    names = {"id", "input", "context", "category", "capability", "name", "examples"}
    for keys in {tuple(task.extra) for task in tasks}:
        names.update(keys)
    return frozenset(names - HIDDEN)


def bad_columns(columns: Mapping[str, str]) -> list[str]:
    """Name the mistakes in where fields are found."""
    known = [f.name for f in TASK.fields]
    own = {name for name, column in columns.items() if name == column}
    return [unknown("Field", name, known) for name in columns if name not in {*known, *own}]


def data_hash(tasks: Iterable[Task], examples: Iterable[Example]) -> str:
    """Hash tasks and examples as values."""
    digest = hashlib.sha256()
    encode = json.JSONEncoder(sort_keys=True, default=_encodable, ensure_ascii=True).encode
    made = {"work", "scenario"}
    names = {kind: [f.name for f in fields(kind) if f.name not in made] for kind in (Task, Example)}
    rows: Iterable[Task | Example] = chain(tasks, examples)
    for one in rows:
        values = {name: getattr(one, name) for name in names[type(one)]}
        if isinstance(one, Task) and one.work:
            values["work"] = one.work.identity()
        digest.update(encode(values).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _encodable(value: Any) -> Any:
    if isinstance(value, Turn):
        return [value.role, value.content]
    return dict(value) if hasattr(value, "keys") else str(value)
