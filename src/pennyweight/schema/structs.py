"""Mappings with known keys, and the fields they are made of."""

# ruff: noqa: D102 - the methods are documented in Kind

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pennyweight.errors import unknown
from pennyweight.schema.kinds import WRONG, Kind, listed
from pennyweight.schema.problems import Problems
from pennyweight.schema.spelling import near_miss
from pennyweight.schema.tree import Node, plain


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a struct: its kind and its meaning."""

    name: str
    kind: Kind
    meaning: str = ""
    required: bool = False
    aliases: tuple[str, ...] = ()
    """Other names for a column of a table of tasks."""
    default: Any = None

    def also(self, *aliases: str) -> Field:
        """Return the field with other names."""
        return replace(self, aliases=aliases)


def with_defaults(values: type, *fields: Field) -> tuple[Field, ...]:
    """Give fields the defaults of the dataclass that they are read into."""
    defaults = {f.name: f.default for f in dataclasses.fields(values)}
    shown = {n: d for n, d in defaults.items() if isinstance(d, str | int | float)}
    shown |= {n: int(d) for n, d in shown.items() if isinstance(d, float) and d.is_integer()}
    return tuple(replace(one, default=shown.get(one.name)) for one in fields)


@dataclass(frozen=True, slots=True)
class Struct(Kind):
    """A mapping with known keys."""

    noun: str
    fields: Sequence[Field]
    hints: Mapping[str, str] = field(default_factory=dict)
    """Keys that other tools use, with the name of the field here."""
    open: bool = False
    """Whether unknown keys are kept as they are."""
    either: Sequence[str] = ()
    """Keys of which at least one is required."""
    exactly_one: Sequence[str] = ()
    """Keys of which exactly one is required."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Keys that belong to another place, in words."""
    only_with: Sequence[tuple[str, str]] = ()
    """Pairs of keys: the first one requires the second one."""
    guarded: str = ""
    """If unknown keys are kept, what to do about one that looks like a misspelled field."""
    others: frozenset[str] = frozenset()
    """Unknown keys that exist, though they look like a misspelled field."""
    kinds: Mapping[str, Kind] = field(init=False, repr=False, compare=False)
    """The kind of each key."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", {f.name: f.kind for f in self.fields})

    @property
    def expected(self) -> str:
        return f"a mapping ({', '.join(f.name for f in self.fields[:4])}, …)"

    def fits(self, node: Node) -> bool:
        return node.is_mapping

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        if not self.fits(node):
            return self.refuse(node, name or self.noun, problems)
        values: dict[str, Any] = {}
        for key, below in node.items():
            kind = self.kinds.get(key)
            if kind is not None:
                value = kind.read(below, f"{name}.{key}" if name else key, problems)
                if value is not WRONG:
                    values[key] = value
            elif self.open:
                meant = self._misspelled(key)
                if meant:
                    what = f"Key {key!r} is not known in {self.noun}. Did you mean {meant!r}?"
                    problems.add(node.key_line(key), f"{what} {self.guarded}")
                values[key] = plain(below)
            else:
                problems.add(node.key_line(key), self.unknown_key(key))
        for line, message in self._missing(node):
            problems.add(line, f"{name or self.noun} {message}")
        return values

    def _missing(self, node: Node) -> Iterator[tuple[int, str]]:
        """Yield which keys are missing, or do not go together."""
        for one in self.fields:
            if one.required and one.name not in node.value:
                yield node.line, f"needs {one.name!r}: {one.meaning or one.kind.expected + '.'}"
        if self.either and not any(key in node.value for key in self.either):
            yield node.line, f"needs {listed(self.either)}."
        if self.exactly_one and sum(key in node.value for key in self.exactly_one) != 1:
            yield node.line, f"needs exactly one of {listed(self.exactly_one, 'and')}."
        for key, other in self.only_with:
            if key in node.value and other not in node.value:
                yield node.key_line(key), f"has {key!r}, which requires {other!r}."

    def _misspelled(self, key: str) -> str | None:
        """Return the field that an unknown key was probably meant to be."""
        if not self.guarded or key in self.others:
            return None
        return self.hints.get(key) or near_miss(key, [f.name for f in self.fields])

    def unknown_key(self, key: str) -> str:
        """Say that a key is unknown here, and which one is probably meant."""
        names = [f.name for f in self.fields]
        meant = near_miss(key, self.elsewhere)
        if meant and key not in self.hints and not near_miss(key, names):
            asked = "" if meant == key else f" Did you mean {meant!r}?"
            place = self.elsewhere[meant]
            return f"Key {key!r} is not known in {self.noun}.{asked} {meant!r} belongs {place}."
        if key in self.hints:
            return f"Key {key!r} is not known in {self.noun}. Did you mean {self.hints[key]!r}?"
        return unknown("Key", key, names, f"Keys of {self.noun}: {', '.join(names)}.")

    def schema(self) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        for one in self.fields:
            described = {"description": one.meaning} if one.meaning else {}
            described |= one.kind.schema()
            if one.default is not None:
                described["default"] = one.default
            properties |= dict.fromkeys((one.name, *one.aliases), described)
        required = [f.name for f in self.fields if f.required]
        groups = {"anyOf": self.either, "oneOf": self.exactly_one}
        together = {key: [other] for key, other in self.only_with}
        return {
            "type": "object",
            "properties": properties,
            "additionalProperties": self.open,
            **({"required": required} if required else {}),
            **{word: [{"required": [k]} for k in keys] for word, keys in groups.items() if keys},
            **({"dependentRequired": together} if together else {}),
        }
