"""How a foreign suite is declared and read: its files, what it becomes, and what is left out."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError
from pennyweight.schema.documents import Document, read_document
from pennyweight.schema.tree import Node

MAX_BYTES = 64 << 20
"""The most bytes of a file that is read while converting."""
MAX_FILES = 1_000
"""The most files that a pattern such as tests/*.yaml may name."""
_ENV = re.compile(r"^\s*(?:\{\{-?\s*env\.(\w+)\s*-?\}\}|\$\{?(\w+)\}?)\s*$")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a foreign file."""

    file: str
    line: int = 0

    def at(self, line: int) -> Place:
        """Return another line of the same file."""
        return replace(self, line=line or self.line)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class NotCarried:
    """Something that could not be carried over, and why."""

    place: Place
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}: {self.why}"


class NotCarriedError(Exception):
    """An assertion, filter or metric that cannot be carried over; says why."""


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    """What a user chooses, and what the converter asks about models."""

    code: bool = False
    """Whether code in the foreign suite becomes commands that the new suite runs."""
    model: str | None = None
    """The model to measure, in place of those of the foreign suite."""
    first_model: Callable[[], str] = lambda: "local/smollm2-135m"
    """Returns the model to measure if a tool's suites name none."""
    partial: bool = False
    """Whether the suite is written although parts of it are missing."""
    part: str | None = None
    """The one to convert, if a file holds several."""
    has_price: Callable[[str], bool] = lambda _: False
    """Whether a model, as provider/name, has a published price."""


@dataclass(slots=True)
class ForeignSuite:
    """A foreign file that is being converted; it can read the files next to it, and no others."""

    path: Path
    options: ConvertOptions = field(default_factory=ConvertOptions)
    missing: list[NotCarried] = field(default_factory=list)
    """What belongs to the exam and could not be carried over: it would not be the same."""
    left: list[NotCarried] = field(default_factory=list)
    """What is not carried over and decides nothing."""
    notes: list[str] = field(default_factory=list)
    """What is measured differently, although it was carried over."""

    home: Path | None = None
    """The folder that the file belongs to, if not the one it is in."""

    @property
    def folder(self) -> Path:
        """The folder of the file: nothing outside of it is read."""
        return self.home or self.path.parent

    @property
    def place(self) -> Place:
        """The file itself."""
        return Place(self.path.name)

    def miss(self, place: Place, what: str, why: str) -> None:
        """Say once that a part of the exam cannot be carried over."""
        one = NotCarried(place, what, why)
        if one not in self.missing:
            self.missing.append(one)

    def leave(self, place: Place, what: str, why: str) -> None:
        """Say once that something which decides nothing is not carried over."""
        one = NotCarried(place, what, why)
        if one not in self.left:
            self.left.append(one)

    def refuse(self, what: str, hint: str = "") -> InputError:
        """Return the error of a suite that cannot be converted at all."""
        return InputError([f"{self.path}: {what}", *map(str, self.missing)], hint=hint)

    def note(self, text: str) -> None:
        """Say once what is measured differently."""
        if text not in self.notes:
            self.notes.append(text)

    def subjects(self) -> list[Any]:
        """Return the subjects of a suite whose tool names models elsewhere."""
        if self.options.model is not None:
            return [self.options.model]
        model = self.options.first_model()
        self.note(f"It names no model, so the suite measures {model}; --model names another.")
        return [model]

    def document(self, path: Path | None = None) -> Document:
        """Read a YAML or JSON file with its lines."""
        path = path or self.path
        name = self.name_of(path)
        read_text(path)
        document = read_document(path)
        for one in document.problems.found:
            if "'!function'" not in one.message:
                self.miss(Place(name, one.line), "YAML", one.message.rstrip("."))
        return document

    def name_of(self, path: Path) -> str:
        """Return the name of a file as messages show it: relative to the folder."""
        return path.name if path == self.path else str(path.relative_to(self.folder.resolve()))

    def find(self, name: str, place: Place, what: str) -> Path | None:
        """Find a file below the folder; None, and a line in the list, if it cannot be used."""
        try:
            path = (self.folder / name).resolve()
            inside = path.is_relative_to(self.folder.resolve())
            if inside and path.is_file() and path.stat().st_size <= MAX_BYTES:
                return path
            why = "the file does not exist" if inside else "the file is outside of the folder"
            why = f"more than {MAX_BYTES >> 20} MB" if inside and path.is_file() else why
        except (OSError, ValueError) as error:
            why = f"it cannot be read ({error})"
        self.miss(place, f"{what} {name}", why)
        return None

    def find_all(self, pattern: str, place: Place, what: str) -> list[Path]:
        """Find the files that a name or a pattern with * means, in the order of their names."""
        if not re.search(r"[*?\[]", pattern):
            found = self.find(pattern, place, what)
            return [found] if found else []
        home = self.folder.resolve()
        clean = pattern.removeprefix("./")
        if clean.startswith("/") or ".." in Path(clean).parts:
            self.miss(place, f"{what} {pattern}", "the files are outside of the folder")
            return []
        paths = sorted(p.resolve() for p in home.glob(clean))
        paths = [p for p in paths if p.is_relative_to(home) and p.is_file()]
        if not paths:
            self.miss(place, f"{what} {pattern}", "there are no such files")
        if len(paths) > MAX_FILES:
            self.miss(place, f"{what} {pattern}", f"more than {MAX_FILES:,} files")
        return paths[:MAX_FILES]


def read_text(path: Path) -> str:
    """Read a text file of a reasonable size; raise InputError if it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError([f"{path}: cannot be read: {reason}."]) from None
    if len(data) > MAX_BYTES:
        raise InputError([f"{path}: more than {MAX_BYTES >> 20} MB; a suite is smaller."])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError([f"{path}: not UTF-8 text."]) from None


def csv_rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV file, each with its line."""
    head = text.split("\n", 1)[0]
    csv.field_size_limit(max(len(text), 131_072))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count))
    columns = [name.strip() for name in next(reader, [])]
    line = reader.line_num + 1
    for cells in reader:
        if any(map(str.strip, cells)):
            yield line, dict(zip(columns, cells, strict=False))
        line = reader.line_num + 1


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """A line that is no JSON."""


def json_rows(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the values of a JSONL file, each with its line; a line may be a `BrokenRow`."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                yield number, BrokenRow()


def env_name(value: Any) -> str | None:
    """Return the environment variable that a text stands for, and never its value.

    >>> env_name("{{env.MY_KEY}}"), env_name("${MY_KEY}"), env_name("sk-123")
    ('MY_KEY', 'MY_KEY', None)
    """
    found = _ENV.match(value) if isinstance(value, str) else None
    return (found[1] or found[2]) if found else None


DEFAULT_JUDGE = "openai/gpt-5"
"""The judge of a suite that needs one and names none."""


@dataclass(frozen=True, slots=True)
class ConvertedSuite:
    """The files of the suite that was made."""

    files: Mapping[str, str]
    """The text of each file by its name; the suite itself is suite.yaml."""


@dataclass(frozen=True, slots=True)
class SuiteFormat:
    """A suite or data set of another tool."""

    name: str
    title: str
    """The name of the tool, as its makers write it."""
    recognise: Callable[[Node | None, str, Path], bool]
    """Whether a file is one: its tree (None if it is neither YAML nor JSON), text and path."""
    convert: Callable[[ForeignSuite], ConvertedSuite]
