"""What may stand in a suite: each kind reads a value, says what it wants, and has a JSON schema.

One declaration of a suite (in `form.py`) is made of these kinds; the checks with their lines and
the schema that editors use both come from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pennyweight.errors import UsageError
from pennyweight.schema.tree import plain
from pennyweight.text.safe import storable

if TYPE_CHECKING:
    from collections.abc import Callable

    from pennyweight.schema.problems import Problems
    from pennyweight.schema.tree import Node

WRONG: Any = object()
"""What a kind gives for a value whose mistake it has told."""
NO_TEXT = "holds a character that no database takes (NUL, or half of a surrogate pair)."


class Kind(Protocol):
    """What may stand at a place of a suite."""

    @property
    def words(self) -> str:
        """What is wanted, as in "runs must be a whole number"."""

    def fits(self, node: Node) -> bool:
        """Whether the value has the right shape, be it right in itself or not."""

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Read a value; tell its mistakes and give `WRONG` if there are any."""

    def schema(self) -> dict[str, Any]:
        """Describe it as a JSON schema."""


def shown(node: Node) -> str:
    """Show a value in a message, short."""
    if isinstance(node.value, dict):
        return "a mapping"
    if isinstance(node.value, list):
        return "a list" if node.value else "an empty list"
    if node.value is None:
        return "nothing"
    text = node.text if len(node.text) <= 40 else node.text[:40] + "…"
    return repr(text) if isinstance(node.value, str) else text


def refuse(kind: Kind, node: Node, name: str, problems: Problems) -> Any:
    """Tell that a value is not what is wanted."""
    problems.add(node.line, f"{name} must be {kind.words}, not {shown(node)}.")
    return WRONG


@dataclass(frozen=True, slots=True)
class Text:
    """Text, or any scalar as it was written."""

    words: str = "text"
    one_line: bool = False
    strict: bool = False
    """Whether numbers, dates and the like are no text."""

    def fits(self, node: Node) -> bool:
        """Scalars other than null fit."""
        if self.strict:
            return isinstance(node.value, str)
        return not isinstance(node.value, dict | list) and node.value is not None

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Give the text as it was written."""
        blank = not node.text.strip()
        if not self.fits(node) or (self.one_line and (blank or "\n" in node.text.strip())):
            return refuse(self, node, name, problems)
        if self.one_line and storable(node.text) != node.text:
            problems.add(node.line, f"{name} {shown(node)} {NO_TEXT}")
            return WRONG
        return node.text.strip() if self.one_line else node.text

    def schema(self) -> dict[str, Any]:
        """Editors see text; numbers are text too."""
        return {"type": "string" if self.strict else ["string", "number", "boolean"]}


@dataclass(frozen=True, slots=True)
class Number:
    """A number within limits."""

    minimum: float | None = None
    maximum: float | None = None
    whole: bool = False
    above: bool = False
    """Whether the minimum itself is too small."""

    @property
    def words(self) -> str:
        """Say which numbers are right."""
        noun = "a whole number" if self.whole else "a number"
        if self.minimum is not None and self.maximum is not None:
            return f"{noun} from {self.minimum:g} to {self.maximum:g}"
        if self.minimum is None:
            return noun
        return f"{noun} {'above' if self.above else 'of at least'} {self.minimum:g}"

    def fits(self, node: Node) -> bool:
        """Numbers fit."""
        kinds = int if self.whole else int | float
        return isinstance(node.value, kinds) and not isinstance(node.value, bool)

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Give the number if it is within the limits."""
        if not self.fits(node) or not self._within(node.value):
            return refuse(self, node, name, problems)
        return node.value if self.whole else float(node.value)

    def _within(self, value: float) -> bool:
        low = self.minimum is None or (
            value > self.minimum if self.above else value >= self.minimum
        )
        return low and (self.maximum is None or value <= self.maximum) and abs(value) < 1e300

    def schema(self) -> dict[str, Any]:
        """Give the type with its limits."""
        limits = {
            "exclusiveMinimum" if self.above else "minimum": self.minimum,
            "maximum": self.maximum,
        }
        kept = {key: value for key, value in limits.items() if value is not None}
        return {"type": "integer" if self.whole else "number", **kept}


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    words: str = "true or false"

    def fits(self, node: Node) -> bool:
        """Booleans fit."""
        return isinstance(node.value, bool)

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Give the boolean."""
        return node.value if self.fits(node) else refuse(self, node, name, problems)

    def schema(self) -> dict[str, Any]:
        """Give the type."""
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    choices: tuple[str, ...]

    @property
    def words(self) -> str:
        """List the words."""
        return " or ".join(map(repr, self.choices))

    def fits(self, node: Node) -> bool:
        """Only the words themselves fit."""
        return node.value in self.choices

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Give the word if it is one of them."""
        return node.value if self.fits(node) else refuse(self, node, name, problems)

    def schema(self) -> dict[str, Any]:
        """List the words."""
        return {"enum": list(self.choices)}


@dataclass(frozen=True, slots=True)
class Null:
    """Null: what is inherited is taken away."""

    words: str = "null"

    def fits(self, node: Node) -> bool:
        """Only null fits."""
        return node.value is None

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Give nothing."""
        return None if self.fits(node) else refuse(self, node, name, problems)

    def schema(self) -> dict[str, Any]:
        """Give the type."""
        return {"type": "null"}


@dataclass(frozen=True, slots=True)
class Anything:
    """Any value, kept as it is."""

    words: str = "any value"

    def fits(self, node: Node) -> bool:
        """Everything fits."""
        return node is not None

    def read(self, node: Node, name: str, problems: Problems) -> Any:  # noqa: ARG002
        """Give the value without its lines."""
        return plain(node)

    def schema(self) -> dict[str, Any]:
        """Allow everything."""
        return {}


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A value that is checked, and kept as it was written; null takes away what is inherited."""

    kind: Kind

    @property
    def words(self) -> str:
        """Say what the kind says."""
        return self.kind.words

    def fits(self, node: Node) -> bool:
        """What fits the kind fits, and null."""
        return node.value is None or self.kind.fits(node)

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Give the value without its lines if the kind finds no mistake in it."""
        if node.value is None:
            return None
        return WRONG if self.kind.read(node, name, problems) is WRONG else plain(node)

    def schema(self) -> dict[str, Any]:
        """Describe the kind, and null."""
        return {"anyOf": [self.kind.schema(), {"type": "null"}]}


@dataclass(frozen=True, slots=True)
class Deferred:
    """A kind whose values are checked elsewhere, as rows of a table are."""

    kind: Kind

    @property
    def words(self) -> str:
        """Say what the kind says."""
        return self.kind.words

    def fits(self, node: Node) -> bool:
        """What fits the kind fits."""
        return self.kind.fits(node)

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Give the node itself, with its lines."""
        return node if self.fits(node) else refuse(self, node, name, problems)

    def schema(self) -> dict[str, Any]:
        """Describe the kind."""
        return self.kind.schema()


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one kind of value; a lone value counts as a list of one if `lone` is set."""

    kind: Kind
    words: str = "a list"
    lone: bool = False
    some: bool = False
    """Whether the list must not be empty."""

    def fits(self, node: Node) -> bool:
        """Lists fit."""
        return isinstance(node.value, list) or (self.lone and self.kind.fits(node))

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Read each; one that is wrong does not hide the others' mistakes."""
        if not self.fits(node) or (self.some and node.value == []):
            return refuse(self, node, name, problems)
        nodes = node.value if isinstance(node.value, list) else [node]
        read = [self.kind.read(n, f"{name}[{i}]", problems) for i, n in enumerate(nodes, 1)]
        return WRONG if any(value is WRONG for value in read) else read

    def schema(self) -> dict[str, Any]:
        """Describe the list."""
        many = {
            "type": "array",
            "items": self.kind.schema(),
            **({"minItems": 1} if self.some else {}),
        }
        return {"anyOf": [self.kind.schema(), many]} if self.lone else many


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping whose keys are the writer's own names."""

    kind: Kind
    words: str = "a mapping"

    def fits(self, node: Node) -> bool:
        """Mappings fit."""
        return isinstance(node.value, dict)

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Read each value; wrong ones are left out, their mistakes told."""
        if not self.fits(node):
            return refuse(self, node, name, problems)
        for key, below in node.value.items():
            if storable(key) != key:
                problems.add(below.line, f"the name {key!r} in {name} {NO_TEXT}")
        read = {
            key: self.kind.read(below, f"{name}.{key}", problems)
            for key, below in node.value.items()
        }
        return {key: value for key, value in read.items() if value is not WRONG}

    def schema(self) -> dict[str, Any]:
        """Describe the values."""
        return {"type": "object", "additionalProperties": self.kind.schema()}


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of several kinds, told apart by their shape."""

    kinds: tuple[Kind, ...]

    @property
    def words(self) -> str:
        """Join what each wants."""
        *some, last = [kind.words for kind in self.kinds]
        return f"{', '.join(some)} or {last}" if some else last

    def fits(self, node: Node) -> bool:
        """What fits one of them fits."""
        return any(kind.fits(node) for kind in self.kinds)

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Read it as the first kind that it fits."""
        for kind in self.kinds:
            if kind.fits(node):
                return kind.read(node, name, problems)
        return refuse(self, node, name, problems)

    def schema(self) -> dict[str, Any]:
        """Allow each."""
        return {"anyOf": [kind.schema() for kind in self.kinds]}


@dataclass(frozen=True, slots=True)
class ParsedBy:
    """A rule that has its own small language, such as how an answer is found."""

    parse: Callable[[Any], Any]
    described: Callable[[], dict[str, Any]]
    words: str = "a rule"

    def fits(self, node: Node) -> bool:
        """Its own parser decides."""
        return node is not None

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Parse it; its complaint gets the line."""
        try:
            return self.parse(plain(node))
        except UsageError as error:
            problems.add(node.line, f"{name}: {error}")
            return WRONG

    def schema(self) -> dict[str, Any]:
        """Take the rule's own description."""
        return self.described()
