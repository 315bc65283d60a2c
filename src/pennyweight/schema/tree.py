"""YAML and JSON as a tree with line numbers, and with scalars as they were written.

The usual loaders discard line numbers and turn `yes` into a boolean, `010` into 8 and `1:30` into
90. Answers in a suite often look like that. So only the literals of JSON (`true`, `false`, `null`,
plain numbers) are converted, and their text is preserved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import yaml

MAX_DEPTH = 64
MAX_VALUES = 5_000_000
"""Values in a tree after its aliases are expanded."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,4000})")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_WORDS.update({word.title(): value for word, value in _WORDS.items()})
_TAB = re.compile(r" *\t")
_WHITE = re.compile(r"[ \t\r\n]*")
_PLAIN = (str, int, float, list, type(None))
_TAGS = {None, "!", "tag:yaml.org,2002:str"}


class TreeError(ValueError):
    """The text is not valid YAML or JSON; has the line of the error."""

    def __init__(self, line: int, what: str) -> None:
        self.line = line
        super().__init__(what)


class Written(float):
    """A number that preserves its notation: a target of 1.50 stays 1.50."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Written:
        """Store the text with the number."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[Written], tuple[str]]:
        return Written, (self.text,)


@dataclass(slots=True, eq=False)
class Node:
    """A value and the line it is on."""

    value: Any
    """A mapping, a list or a scalar; inside are nodes or, without lines, plain values."""
    line: int = 0
    text: str = ""
    """A scalar as it was written."""
    block: bool = False
    """Whether the text begins on the line after `line`, as in `prompt: |`."""
    key_lines: Mapping[str, int] | None = None
    """The line of each key of a mapping."""
    file: str = ""
    """The file that the text was read from, if the document only names it."""

    @classmethod
    def of(cls, value: Any, line: int = 0) -> Node:
        """Wrap a plain value; its elements are wrapped when they are read."""
        if isinstance(value, str):
            return cls(value, line, value)
        if isinstance(value, bool):
            return cls(value, line, "true" if value else "false")
        return cls(value, line, str(value) if isinstance(value, Real) else "")

    @classmethod
    def tree(cls, value: Any) -> Node:
        """Make a tree of plain values; it has no lines."""
        if isinstance(value, dict):
            below = {str(key): cls.tree(one) for key, one in value.items()}
            return cls(below, key_lines=dict.fromkeys(below, 0))
        if isinstance(value, list | tuple):
            return cls([cls.tree(one) for one in value])
        return cls.of(value)

    @property
    def is_mapping(self) -> bool:
        """Whether the value is a mapping."""
        return isinstance(self.value, dict) or (
            not isinstance(self.value, _PLAIN) and isinstance(self.value, Mapping)
        )

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.value, list | tuple)

    @property
    def is_scalar(self) -> bool:
        """Whether the value is text, a number or a boolean."""
        return self.value is not None and not self.is_mapping and not self.is_list

    def items(self) -> Iterator[tuple[str, Node]]:
        """Yield the keys of a mapping with their nodes."""
        for key, below in self.value.items():
            yield str(key), below if isinstance(below, Node) else Node.of(below, self.line)

    def elements(self) -> Iterator[Node]:
        """Yield the nodes of a list."""
        for below in self.value:
            yield below if isinstance(below, Node) else Node.of(below, self.line)

    def key_line(self, key: str) -> int:
        """Return the line of a key of this mapping."""
        return self.key_lines.get(key, self.line) if self.key_lines else self.line

    def get(self, *path: str | int) -> Node | None:
        """Follow a path of keys and positions."""
        node = self
        for part in path:
            if isinstance(node.value, str):
                return None
            try:
                node = node.value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return node

    def line_at(self, *path: str | int) -> int:
        """Return the line of a path, or of as much of it as exists."""
        node, line = self, self.line
        for part in path:
            below = node.get(part)
            if below is None:
                break
            line = node.key_line(part) if isinstance(part, str) else below.line
            node = below
        return line


def parse(text: str, *, is_json: bool) -> tuple[Node, list[tuple[int, str]]]:
    """Parse a text; return its tree, and the problems that do not prevent reading it."""
    return _Json(text).parse() if is_json else _Yaml(text).parse()


def plain(node: Node) -> Any:
    """Return a value without lines: dicts, lists and scalars."""
    if isinstance(node.value, dict):
        return {k: plain(v) if isinstance(v, Node) else v for k, v in node.value.items()}
    if isinstance(node.value, list):
        return [plain(below) if isinstance(below, Node) else below for below in node.value]
    return node.value


def scalar(text: str) -> Any:
    """Read a plain scalar: `true`, `false`, `null`, a number, or else text.

    >>> [scalar(s) for s in ("yes", "010", "7", "true", "1:30")]
    ['yes', '010', 7, True, '1:30']
    """
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return Written(text) if _NUMBER.fullmatch(text) else text


class _Yaml:
    """Builds the tree from parser events without recursion, so nesting cannot exhaust the stack."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.problems: list[tuple[int, str]] = []
        self.anchors: dict[str, tuple[Node, int]] = {}
        self.stack: list[_Open] = []
        self.root: Node | None = None
        self.size = 0

    def parse(self) -> tuple[Node, list[tuple[int, str]]]:
        try:
            for event in yaml.parse(self.text, Loader=_LOADER):
                self.take(event)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            why = error.problem or error.context or "it cannot be read"
            line = mark.line + 1 if mark else 1
            if _TAB.match(self._line(line)):
                why = "a tab cannot indent YAML; use spaces"
            raise TreeError(line, f"not YAML: {why}.") from None
        except yaml.reader.ReaderError as error:
            line = self.text.count("\n", 0, error.position) + 1
            raise TreeError(line, f"not YAML: {error.reason}.") from None
        return self.root or Node(None, 1), self.problems

    def _line(self, number: int) -> str:
        lines = self.text.split("\n")
        return lines[number - 1] if number <= len(lines) else ""

    def take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            self.alias(event.anchor or "", line)
        elif isinstance(event, yaml.ScalarEvent):
            self.check_tag(event, line)
            is_plain = event.implicit[0] and not event.style
            value = scalar(event.value) if is_plain else event.value
            node = Node(value, line, event.value, event.style in {"|", ">"})
            self.put(node, 1, event.anchor)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self.check_tag(event, line)
            self.open(event, line)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            done = self.stack.pop()
            self.put(done.close(), done.size, done.anchor)
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise TreeError(line, "a second document begins with '---'; a suite is one document.")

    def open(self, event: Any, line: int) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise TreeError(line, f"nested more than {MAX_DEPTH} levels deep.")
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        self.stack.append(_Open(Node(value, line), event.anchor))

    def check_tag(self, event: Any, line: int) -> None:
        if event.tag not in _TAGS:
            self.problems.append((line, f"the tag {event.tag!r} is not supported; remove it."))

    def alias(self, name: str, line: int) -> None:
        if name not in self.anchors:
            raise TreeError(line, f"not YAML: the alias *{name} has no anchor &{name} before it.")
        node, size = self.anchors[name]
        self.put(node, size, None)

    def put(self, node: Node, size: int, anchor: str | None) -> None:
        if anchor:
            self.anchors[anchor] = (node, size)
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        top.size += size
        if top.size > MAX_VALUES:
            raise TreeError(
                node.line, f"more than {MAX_VALUES:,} values after its aliases are expanded."
            )
        self.problems += top.put(node)


@dataclass(slots=True)
class _Open:
    """A mapping or list that is not closed yet."""

    node: Node
    anchor: str | None
    size: int = 1
    key: Node | None = None
    merged: list[Node] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    def put(self, node: Node) -> list[tuple[int, str]]:
        if isinstance(self.node.value, list):
            self.node.value.append(node)
            return []
        if self.key is None:
            self.key = node
            return []
        key, self.key = self.key, None
        if isinstance(key.value, dict | list):
            return [(key.line, "a key must be text, not a list or mapping.")]
        if key.text == "<<" and not key.block:
            return self.merge(node)
        if key.text in self.lines:
            first = self.lines[key.text]
            return [(key.line, f"the key {key.text!r} is already on line {first}.")]
        self.node.value[key.text] = node
        self.lines[key.text] = key.line
        return []

    def merge(self, node: Node) -> list[tuple[int, str]]:
        """Remember a mapping whose keys are merged (`<<: *base`) when this one is closed."""
        sources = node.value if isinstance(node.value, list) else [node]
        if not all(isinstance(source.value, dict) for source in sources):
            return [(node.line, "'<<' must refer to a mapping.")]
        self.merged += sources
        return []

    def close(self) -> Node:
        for source in self.merged:
            for key, value in source.value.items():
                if key not in self.node.value:
                    self.node.value[key] = value
                    self.lines[key] = source.key_line(key)
        self.node.key_lines = self.lines
        return self.node


def refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity."""
    raise ValueError(f"{name} is not a number in JSON; write null for a missing value")


class _Json:
    """A JSON parser with line numbers; the standard library parses strings and numbers."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.line = text, 0, 1
        self.counted = 0
        self.problems: list[tuple[int, str]] = []
        self.decoder = json.JSONDecoder(parse_float=Written, parse_constant=refuse_constant)

    def parse(self) -> tuple[Node, list[tuple[int, str]]]:
        node = self.value(0)
        if self.peek():
            raise self.error("unexpected text after the JSON value")
        return node, self.problems

    def peek(self) -> str:
        white = _WHITE.match(self.text, self.at)
        self.at = white.end() if white else self.at
        return self.text[self.at : self.at + 1]

    def place(self) -> int:
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def error(self, what: str) -> TreeError:
        return TreeError(self.place(), f"not JSON: {what}.")

    def value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise TreeError(self.place(), f"nested more than {MAX_DEPTH} levels deep.")
        start = self.peek()
        if start == "{":
            return self.mapping(depth)
        if start == "[":
            return self.sequence(depth)
        return self.scalar()

    def scalar(self) -> Node:
        line, start = self.place(), self.at
        try:
            value, self.at = self.decoder.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            self.at = min(error.pos, len(self.text))
            raise self.error(error.msg[:1].lower() + error.msg[1:]) from None
        except ValueError as error:
            raise self.error(str(error)) from None
        return Node(value, line, value if isinstance(value, str) else self.text[start : self.at])

    def step(self, close: str) -> bool:
        """Consume a comma or the closing bracket; return whether it was a comma."""
        sign = self.peek()
        if sign not in {",", close} or not sign:
            raise self.error(f"',' or '{close}' is missing")
        self.at += 1
        return sign == ","

    def sequence(self, depth: int) -> Node:
        node = Node([], self.place())
        self.at += 1
        more = self.peek() != "]" or self.step("]")
        while more:
            node.value.append(self.value(depth + 1))
            more = self.step("]")
        return node

    def mapping(self, depth: int) -> Node:
        lines: dict[str, int] = {}
        node = Node({}, self.place(), key_lines=lines)
        self.at += 1
        more = self.peek() != "}" or self.step("}")
        while more:
            if self.peek() != '"':
                raise self.error('a key in "double quotes" is missing')
            key = self.scalar()
            if self.peek() != ":":
                raise self.error("':' is missing")
            self.at += 1
            if key.text in node.value:
                first = lines[key.text]
                what = f"the key {key.text!r} is already on line {first}."
                self.problems.append((key.line, what))
            node.value[key.text] = self.value(depth + 1)
            lines.setdefault(key.text, key.line)
            more = self.step("}")
        return node
