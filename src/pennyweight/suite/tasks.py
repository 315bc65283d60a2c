"""Tasks and worked examples, read from the rows of a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain, islice
from operator import attrgetter
from typing import Any

from pennyweight.errors import unknown
from pennyweight.schema.kinds import NOT_STORABLE, WRONG, Kind
from pennyweight.schema.problems import Problems
from pennyweight.schema.spelling import bare, near_miss
from pennyweight.schema.structs import Struct
from pennyweight.schema.tree import Node
from pennyweight.suite import scenarios
from pennyweight.suite.agents import FILES, SOLUTION, SOLUTION_KEYS, WORK
from pennyweight.suite.choices import CHOICES, choice_columns, gathered
from pennyweight.suite.declaration import EXAMPLE, TASK
from pennyweight.suite.task_rows import Row
from pennyweight.suite.values import NO_EXTRA, Example, Solution, Task, Turn, Workspace
from pennyweight.suite.workspaces import WorkspaceReader
from pennyweight.text.safe import storable

HIDDEN = frozenset(
    name
    for one in TASK.fields
    if one.name in {"target", *(f.name for f in scenarios.FIELDS)}
    for name in (one.name, *one.aliases)
)
"""Columns that prompts cannot use, because they give the answer away."""

INPUTS = (TASK.fields[1].name, *TASK.fields[1].aliases)
"""What the input of a task is called."""
_ANY_CASE = frozenset({"id", "input", "target", "context"})
"""Fields whose columns are found in any case, and with blanks or signs: `Correct Answer`."""
_TEXTS = ("category", "capability", "name")
_TYPED = {f.name: f.kind for f in TASK.fields if f.name in {"pass_score", "weight", "required"}}
_WORKSPACE = {f.name: f.kind for f in (*WORK, FILES)}
GUARDED = tuple(
    name
    for one in TASK.fields
    if one.name in {*(f.name for f in scenarios.FIELDS), *_TEXTS[:2], *_TYPED, "target"}
    for name in (one.name, *(one.aliases if one in scenarios.FIELDS else ()))
)
"""Names that the user's own columns must not be a letter or two away from."""
_OWN_COLUMN_IN_FILE = "list it under tasks: 'columns: {{{key}: {key}}}'."
_OWN_COLUMN_INLINE = "rename it, or put it under 'input:'."
_BEHAVIOURS = ("expected_behaviors", "must_not", "checks")
_ROLES = {"system", "user", "assistant"}
MAX_COLUMNS_SHOWN = 20
"""Columns of a table that a message lists."""


@dataclass(slots=True)
class TaskReader:
    """Turns the rows of a table into tasks or worked examples, and reports their problems."""

    rows: Iterable[Row]
    problems: Problems
    inline: bool = False
    """Whether the rows are in the suite itself."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The column of each field that the suite maps."""
    header: dict[str, None] = field(default_factory=dict)
    """The columns of a table that lists them before its rows."""
    limit: int | None = None
    workspaces: WorkspaceReader | None = None
    """Reads the workspaces of tasks, if the suite has agents."""
    judged: bool = False
    """Whether the suite has a judge; only then a behaviour may be a sentence."""
    _spelling_checked: set[tuple[str, ...]] = field(default_factory=set)
    _plans: dict[tuple[str, ...], tuple[dict[str, str], list[str]]] = field(default_factory=dict)
    _choices: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    """The columns that hold choices, by the columns of a row."""
    _inputless: dict[tuple[str, ...], list[tuple[int, str]]] = field(default_factory=dict)
    """The tasks without an input, by the columns that they have."""

    def tasks(self) -> Iterator[tuple[int, Task]]:
        """Yield each task with its line or row."""
        for number, (place, given) in enumerate(islice(self.rows, self.limit), 1):
            row = {"input": given} if isinstance(given, str | int | float) else given
            if not isinstance(row, dict):
                self.problems.add(place, "a task must be text or a mapping with an input.")
                continue
            values, extra = self._split(row, TASK)
            self._check_spelling(place, extra)
            self._gather_choices(row, extra)
            yield place, self._task(place, str(number), values, extra)

    @property
    def aliases(self) -> dict[str, str]:
        """The columns that became fields under another name. Call it after the tasks were read."""
        plans = (named for named, _ in self._plans.values())
        return {column: name for named in plans for name, column in named.items() if column != name}

    def report_inputless(self) -> None:
        """Report the tasks without an input, once for all that have the same columns."""
        for keys, tasks in self._inputless.items():
            (place, id_), more = tasks[0], len(tasks) - 1
            which = f"task {id_!r} has" if not more else f"task {id_!r} and {more:,} more have"
            likely = next((key for key in keys if near_miss(key, INPUTS)), "COLUMN")
            self.problems.add(
                place,
                f"{which} no input; there is {_listed(keys) or 'no column'}. The input is called "
                f"{', '.join(INPUTS)}; 'columns: {{input: {likely}}}' (--map input={likely}) names "
                "another column.",
            )

    def missing_columns(self) -> Iterator[tuple[str, str]]:
        """Yield the mapped columns that no row has. Call it after the tasks were read."""
        seen = self.header | dict.fromkeys(chain.from_iterable(self._plans))
        if not seen or not self.columns:  # problems of the table itself were reported
            return
        for _, row in self.rows if not seen.keys() >= set(self.columns.values()) else ():
            seen |= dict.fromkeys(row) if isinstance(row, dict) else {}  # beyond the limit
        where = f"{self.problems.file} has: {_listed(seen)}."
        for name, column in self.columns.items():
            if column not in seen:
                yield name, unknown("Column", column, seen, where)

    def examples(self) -> Iterator[Example]:
        """Yield each worked example."""
        for place, row in islice(self.rows, self.limit):
            values, extra = self._split(row, EXAMPLE) if isinstance(row, dict) else ({}, {})
            output, asked = written(values.get("output")), written(values.get("input"))
            if asked is None or output is None:
                what = "an example needs an input and an output (the right response)."
                self.problems.add(place, what)
            else:
                yield Example(asked, output, values.get("context"), extra or NO_EXTRA)

    def _split(self, row: dict[str, Any], struct: Struct) -> tuple[dict[str, Any], dict[str, Any]]:
        """Take the known fields out of a row, whatever their columns are called."""
        keys = tuple(row)
        plan = self._plans.get(keys)
        if plan is None:
            plan = self._plans[keys] = _plan(keys, struct, self.columns)
        named, rest = plan
        return {f: row[key] for f, key in named.items()}, {key: row[key] for key in rest}

    def _gather_choices(self, row: Mapping[str, Any], extra: dict[str, Any]) -> None:
        """Add the choices that a row has in other columns."""
        if CHOICES in extra:
            return
        keys = tuple(row)
        if keys not in self._choices:
            self._choices[keys] = choice_columns(tuple(extra))
        if columns := self._choices[keys]:
            choices = gathered(extra, columns)
            if choices is not None:
                extra[CHOICES] = choices

    def _check_spelling(self, place: int, extra: Mapping[str, Any]) -> None:
        """Refuse a column that looks like a misspelled field, because it would be ignored."""
        keys = tuple(extra)
        if keys in self._spelling_checked:
            return
        self._spelling_checked.add(keys)
        advice = _OWN_COLUMN_INLINE if self.inline else _OWN_COLUMN_IN_FILE
        for key in keys:
            meant = near_miss(key, GUARDED)
            if meant and self.columns.get(key) != key:
                self.problems.add(
                    place,
                    f"Key {key!r} is not known in a task. Did you mean {meant!r}? "
                    f"If it is a column of your own, {advice.format(key=key)}",
                )

    def _task(self, place: int, number: str, row: dict[str, Any], extra: dict[str, Any]) -> Task:
        """Turn the fields of a row into a task."""
        id_ = written(row.pop("id", None)) or number
        if storable(id_) != id_:
            self.problems.add(place, f"the task id {id_!r} {NOT_STORABLE}")
        asked, before = self._asked(place, id_, row, extra)
        target = written(row.pop("target", None))
        target = target if target and target.strip() else None
        if not row:  # most tasks have nothing else
            return Task(id_, asked, target, before=before, extra=extra or NO_EXTRA)
        problems = self.problems.at(place, f"task {id_!r}: ")
        solution = self._solution(row.pop("solution", None), extra, problems)
        values: dict[str, Any] = {n: written(row[n]) for n in _TEXTS if row.get(n) is not None}
        values |= {n: _several(row[n]) for n in _BEHAVIOURS if row.get(n) is not None}
        values |= _read(_TYPED, row, problems)
        workspace = {name: row[name] for name in _WORKSPACE if name in row}
        if workspace and self.workspaces is None:
            extra |= workspace
        elif workspace and self.workspaces:
            parsed = {name: scenarios.parsed(value) for name, value in workspace.items()}
            values["work"] = self.workspaces.read(
                _read(_WORKSPACE, parsed, problems),
                Workspace(),
                lambda key, what: problems.add(0, f"{key}: {what}"),
            )
        if row.get("evaluation_criteria") is not None:
            more = scenarios.criteria(row["evaluation_criteria"])
            values["checks"] = (*values.get("checks", ()), *more)
        values["scenario"] = scenarios.read_scenario(values, problems, judged=self.judged)
        values["turns"] = scenarios.read_script(row, problems)
        return Task(
            id=id_,
            input=asked,
            before=before,
            target=target,
            context=row.get("context"),
            extra=extra or NO_EXTRA,
            solution=solution,
            **values,
        )

    def _solution(self, given: Any, extra: dict[str, Any], problems: Problems) -> Solution | None:
        """Read what solves a task. A text is also a column: many tables have one of that name."""
        if given is None:
            return None
        parsed = scenarios.parsed(given)
        is_table = isinstance(parsed, Mapping) and (
            self.inline or (bool(parsed) and parsed.keys() <= SOLUTION_KEYS)
        )
        if not is_table:
            extra["solution"] = given
            return Solution(written(given))
        table = SOLUTION.kind.read(Node.of(parsed), "solution", problems)
        if table is WRONG:
            return None
        if self.workspaces is None:
            return Solution(table["reply"]) if table.get("reply") is not None else None
        return self.workspaces.solution(
            table, lambda key, what: problems.add(0, f"solution.{key}: {what}")
        )

    def _asked(
        self, place: int, id_: str, row: dict[str, Any], extra: dict[str, Any]
    ) -> tuple[str, tuple[Turn, ...]]:
        """Read an input: text, messages of which the last is the question, or a query."""
        given = row.pop("input", None)
        if isinstance(given, dict):
            extra |= {k: v for k, v in given.items() if k not in {"query", "context"}}
            row.setdefault("context", given.get("context"))
            if self.workspaces and "files" in extra:
                row.setdefault("files", extra.pop("files"))
            given = given.get("query")
        if isinstance(given, list):
            return self._conversation(place, id_, given)
        text = written(given)
        if text is not None and not text.strip():
            self.problems.add(place, f"task {id_!r}: the input is empty.")
        elif text is None:
            self._inputless.setdefault((*row, *extra), []).append((place, id_))
        return text or "", ()

    def _conversation(
        self, place: int, id_: str, turns: Sequence[Any]
    ) -> tuple[str, tuple[Turn, ...]]:
        """Read messages; the last one must be the user's."""
        right = all(
            isinstance(t, dict) and t.get("role") in _ROLES and isinstance(t.get("content"), str)
            for t in turns
        )
        if not turns or not right or turns[-1]["role"] != "user":
            self.problems.add(
                place,
                f"task {id_!r}: an input of several messages is a list of mappings with role "
                "(system, user or assistant) and content; the last role is user.",
            )
            return "", ()
        messages = [Turn(t["role"], t["content"]) for t in turns]
        return messages[-1].content, tuple(messages[:-1])


def _listed(columns: Iterable[str]) -> str:
    names = list(columns)
    return ", ".join(names[:MAX_COLUMNS_SHOWN]) + (", …" if len(names) > MAX_COLUMNS_SHOWN else "")


def _read(kinds: Mapping[str, Kind], row: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Read the fields that a row has; leave out those with problems."""
    values = {
        name: kind.read(Node.of(row[name]), name, problems)
        for name, kind in kinds.items()
        if row.get(name) is not None
    }
    return {name: value for name, value in values.items() if value is not WRONG}


def _plan(
    keys: tuple[str, ...], struct: Struct, columns: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Decide which key is which field, once for all rows with these keys."""
    named: dict[str, str] = {}
    mapped = set(columns.values())
    likely = {bare(key): key for key in reversed(keys)}
    for one in struct.fields:
        if one.name in columns:
            names: Iterable[str] = (columns[one.name],)
        else:
            names = (n for n in (one.name, *one.aliases) if n not in mapped)
            if one.name in _ANY_CASE and not {one.name, *one.aliases} & set(keys):
                names = (key for n in (one.name, *one.aliases) if (key := likely.get(bare(n))))
        taken = set(named.values()) | (mapped if one.name not in columns else set())
        found = next((n for n in names if n in keys and n not in taken), None)
        if found is not None:
            named[one.name] = found
    used = set(named.values())
    return named, [key for key in keys if key not in used]


def written(value: Any) -> str | None:
    """Return a value as text: numbers as they were written, lists and mappings as JSON."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _several(value: Any) -> tuple[Any, ...]:
    """Return a list; in a cell of a table it is written as JSON."""
    value = scenarios.parsed(value)
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def unique(tasks: Iterable[tuple[int, Task]], rows: TaskReader) -> tuple[Task, ...]:
    """Collect tasks; report an id that is used twice, with both places."""
    seen: dict[str, int] = {}
    collected: list[Task] = []
    for place, task in tasks:
        first = seen.get(task.id)
        if first is not None:
            at = f"{rows.problems.unit} {first}"
            rows.problems.add(place, f"the task id {task.id!r} is already used on {at}.")
        seen.setdefault(task.id, place)
        collected.append(task)
    return tuple(collected)


def usable(tasks: Iterable[Task]) -> frozenset[str]:
    """Return what prompts may use of these tasks: their fields and every other column."""
    names = {"id", "input", "context", "category", "capability", "name", "examples"}
    for keys in {tuple(task.extra) for task in tasks}:
        names.update(keys)
    return frozenset(names - HIDDEN)


def bad_columns(columns: Mapping[str, str]) -> list[str]:
    """Return the problems in a mapping of fields to columns."""
    known = [f.name for f in TASK.fields]
    unmapped = {name for name, column in columns.items() if name == column}
    return [unknown("Field", name, known) for name in columns if name not in {*known, *unmapped}]


def data_hash(tasks: Iterable[Task], examples: Iterable[Example]) -> str:
    """Hash tasks and examples as values."""
    digest = hashlib.sha256()
    encode = json.JSONEncoder(sort_keys=True, default=_encodable, ensure_ascii=True).encode
    derived = {"work", "scenario", "solution"}
    names = {
        kind: [f.name for f in fields(kind) if f.name not in derived] for kind in (Task, Example)
    }
    values_of = {kind: attrgetter(*own) for kind, own in names.items()}
    rows: Iterable[Task | Example] = chain(tasks, examples)
    for one in rows:
        kind = type(one)
        values = dict(zip(names[kind], values_of[kind](one), strict=True))
        if isinstance(one, Task) and one.work:
            values["work"] = one.work.identity()
        digest.update(encode(values).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _encodable(value: Any) -> Any:
    if isinstance(value, Turn):
        return [value.role, value.content]
    return dict(value) if isinstance(value, Mapping) else str(value)
