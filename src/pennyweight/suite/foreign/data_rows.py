"""The rows of a foreign data set, JSONL, JSON or CSV, and their values as those of tasks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pennyweight.schema.spelling import near_miss
from pennyweight.schema.tree import TreeError, parse, plain
from pennyweight.suite.declaration import TASK
from pennyweight.suite.foreign.suite_format import (
    BrokenRow,
    ForeignSuite,
    Place,
    csv_rows,
    json_rows,
    read_text,
)
from pennyweight.suite.tasks import GUARDED, HIDDEN

Row = dict[str, Any]
_TAKEN = HIDDEN | {name for f in TASK.fields for name in (f.name, *f.aliases)} | {"examples"}
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def data_rows(text: str, path: Path) -> Iterator[tuple[int, Row | BrokenRow]]:
    """Yield the rows of a data set, each with its line; nothing if it is none."""
    ending = path.suffix.lower()
    found: Iterable[tuple[int, Any]] = ()
    if ending == ".csv":
        found = csv_rows(text)
    elif ending == ".jsonl":
        found = json_rows(text)
    elif ending == ".json":
        try:
            root, _ = parse(text, is_json=True)
        except TreeError:
            return
        found = ((one.line, plain(one)) for one in root.elements()) if root.is_list else ()
    yield from ((line, row) for line, row in found if isinstance(row, dict | BrokenRow))


def parsed(cell: str) -> Any:
    """Read a cell of a table: a list or mapping if it is one in JSON, else its text."""
    if cell.lstrip()[:1] in {"[", "{"}:
        try:
            return json.loads(cell)
        except (ValueError, RecursionError):
            return cell
    return cell


def first_row(text: str, path: Path) -> Row:
    """Return the first row of a data set; empty if it is none."""
    rows = (row for _, row in data_rows(text[: 4 << 20], path))
    return next((row for row in rows if not isinstance(row, BrokenRow)), {})


def placed_rows(source: ForeignSuite, path: Path) -> Iterator[tuple[Place, Row]]:
    """Yield the rows of a file, each with its place."""
    own = Place(source.name_of(path))
    for line, row in data_rows(read_text(path), path):
        if isinstance(row, BrokenRow):
            source.miss(own.at(line), "a row", "it is not valid JSON")
        else:
            yield own.at(line), row


def messages(source: ForeignSuite, place: Place, given: Any) -> Any:
    """Return an input as text or messages that end with the user's; None if it has no text."""
    if not isinstance(given, list):
        return str(given) if given not in (None, "") else None
    made: list[dict[str, str]] = []
    for one in given:
        content = one.get("content") if isinstance(one, Mapping) else None
        if isinstance(content, list):
            texts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
            plain_texts = [text for text in texts if isinstance(text, str)]
            content = "\n".join(plain_texts) if len(plain_texts) == len(texts) else None
        role = _ROLES.get(str(one.get("role"))) if isinstance(one, Mapping) else None
        if not isinstance(content, str) or role is None:
            source.miss(place, "input", "it has messages that are not plain text")
            return None
        made.append({"role": role, "content": content})
    if not made:
        return None
    if made[-1]["role"] == "system":
        source.note("A last message of the system is sent as the user's.")
        made[-1]["role"] = "user"
    if made[-1]["role"] != "user":
        source.miss(place, "input", "it does not end with a message of the user")
        return None
    return made[0]["content"] if len(made) == 1 else made


def columns(values: Mapping[str, Any]) -> Row:
    """Return further values as columns of a task, under names that mean nothing else."""
    made: Row = {}
    for name, value in values.items():
        if name in {"category", "capability"} and isinstance(value, str) and value.strip():
            made[name] = value
        elif value is not None:
            clash = name in _TAKEN or near_miss(name, GUARDED)
            made[f"meta_{name}" if clash else name] = value
    return made


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Write rows as JSONL."""
    return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
