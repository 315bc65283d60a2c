"""Mappings with known keys: fields and tables of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pennyweight.errors import unknown
from pennyweight.schema.kinds import WRONG, refuse
from pennyweight.schema.tree import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennyweight.schema.kinds import Kind
    from pennyweight.schema.problems import Problems
    from pennyweight.schema.tree import Node


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a table: its kind and its meaning."""

    name: str
    kind: Kind
    meaning: str
    required: bool = False
    aliases: tuple[str, ...] = ()
    """Foreign names under which a column of a task is known too."""
    default: Any = None

    def also(self, *aliases: str) -> Field:
        """Know it under other names too."""
        return replace(self, aliases=aliases)


@dataclass(frozen=True, slots=True)
class Struct:
    """A mapping with known keys."""

    noun: str
    fields: Sequence[Field]
    hints: Mapping[str, str]
    """Foreign names of keys, with what they are called here."""
    open: bool = False
    """Whether other keys are kept too."""
    either: Sequence[str] = ()
    """Keys of which one must be there."""
    only_with: Sequence[tuple[str, str]] = ()
    """Keys that mean something only beside another one."""

    @property
    def words(self) -> str:
        """Say that it is a mapping."""
        return f"a mapping ({', '.join(f.name for f in self.fields[:4])}, …)"

    def fits(self, node: Node) -> bool:
        """Mappings fit."""
        return isinstance(node.value, dict)

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Read the keys that are there; tell unknown and missing ones."""
        if not self.fits(node):
            return refuse(self, node, name or self.noun, problems)
        known = {f.name: f for f in self.fields}
        read: dict[str, Any] = {}
        for key, below in node.value.items():
            if key in known:
                path = f"{name}.{key}" if name else key
                value = known[key].kind.read(below, path, problems)
                read |= {} if value is WRONG else {key: value}
            elif self.open:
                read[key] = plain(below)
            else:
                problems.add(node.key_lines[key], self.unknown(key))
        for field in self.fields:
            if field.required and field.name not in node.value:
                problems.add(
                    node.line, f"{name or self.noun} needs {field.name!r}: {field.meaning}"
                )
        if self.either and not any(key in node.value for key in self.either):
            wanted = " or ".join(map(repr, self.either))
            problems.add(node.line, f"{name or self.noun} needs {wanted}.")
        for key, other in self.only_with:
            if key in node.value and other not in node.value:
                what = f"{key!r} has a meaning only beside {other!r}."
                problems.add(node.key_lines[key], f"{name or self.noun}: {what}")
        return read

    def unknown(self, key: str) -> str:
        """Say that a key is not known here, and which one is meant."""
        names = [f.name for f in self.fields]
        if key in self.hints:
            return f"Key {key!r} is not known in {self.noun}. Did you mean {self.hints[key]!r}?"
        return unknown("Key", key, names, f"{self.noun.capitalize()} has: {', '.join(names)}.")

    def schema(self) -> dict[str, Any]:
        """Describe every key."""
        properties: dict[str, Any] = {}
        for field in self.fields:
            described = {"description": field.meaning, **field.kind.schema()}
            if field.default is not None:
                described["default"] = field.default
            properties |= dict.fromkeys((field.name, *field.aliases), described)
        required = [f.name for f in self.fields if f.required]
        needs = {key: [other] for key, other in self.only_with}
        return {
            "type": "object",
            "properties": properties,
            "additionalProperties": self.open,
            **({"required": required} if required else {}),
            **({"anyOf": [{"required": [key]} for key in self.either]} if self.either else {}),
            **({"dependentRequired": needs} if needs else {}),
        }
