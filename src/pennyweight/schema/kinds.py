"""Kinds of values: each recognizes a value, reads it, and describes it as a JSON schema.

Suites, policies, the parameters of checks, replies of functions and price lists are declared with
them. Error messages, JSON schemas and reference pages follow from the declarations.
"""

# ruff: noqa: D102 - the methods are documented in Kind

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from pennyweight.errors import UsageError
from pennyweight.schema.problems import Problems
from pennyweight.schema.tree import Node, plain
from pennyweight.text.safe import storable

WRONG: Any = object()
"""What a kind returns for a value in which it has reported a problem."""
NOT_STORABLE = "contains a character that no database accepts (NUL or an unpaired surrogate)."
_TOO_LARGE = 1e300
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Kind:
    """A kind of value. Subclasses say what they expect, what fits, and how it is converted."""

    __slots__ = ()

    @property
    def expected(self) -> str:
        """What is accepted, as in "runs must be a whole number"."""
        raise NotImplementedError

    def fits(self, node: Node) -> bool:
        """Return whether the value has the right shape, even if its content is wrong."""
        raise NotImplementedError

    def convert(self, node: Node, name: str, problems: Problems) -> Any:  # noqa: ARG002
        """Convert a value that fits; report its problems and return `WRONG` if there are any."""
        return node.value

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """Read a value; report its problems and return `WRONG` if there are any."""
        if not self.fits(node):
            return self.refuse(node, name, problems)
        return self.convert(node, name, problems)

    def refuse(self, node: Node, name: str, problems: Problems) -> Any:
        """Report that a value is not what is expected."""
        problems.add(node.line, f"{name} must be {self.expected}, not {shown(node)}.")
        return WRONG

    def of(self, value: Any, name: str) -> Any:
        """Read a plain value; raise UsageError with every problem in it."""
        problems = Problems()
        read = self.read(Node.of(value), name, problems)
        if problems.found:
            raise UsageError(" ".join(dict.fromkeys(p.message for p in problems.found)))
        return read

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema."""
        raise NotImplementedError


def shown(node: Node) -> str:
    """Describe a value in a message, shortened."""
    if node.is_mapping:
        return "a mapping"
    if node.is_list:
        return "a list" if node.value else "an empty list"
    if node.value is None:
        return "an empty value"
    text = node.text if len(node.text) <= 40 else node.text[:40] + "…"
    return repr(text) if isinstance(node.value, str) else text


def listed(names: Sequence[str], joint: str = "or") -> str:
    """List names in quotes.

    >>> listed(("mean", "median", "mode"))
    "'mean', 'median' or 'mode'"
    """
    *some, last = map(repr, names)
    return f"{', '.join(some)} {joint} {last}" if some else last


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """Text, or any scalar as it was written."""

    expected: str = "text"
    one_line: bool = False
    strict: bool = False
    """Whether numbers and booleans are refused."""
    filled: bool = False
    """Whether text without any visible character is refused."""

    def fits(self, node: Node) -> bool:
        return isinstance(node.value, str) if self.strict else node.is_scalar

    def convert(self, node: Node, name: str, problems: Problems) -> Any:
        text = node.text.strip()
        if not text and (self.filled or self.one_line):
            return self.refuse(node, name, problems)
        if not self.one_line:
            return node.text
        if "\n" in text:
            return self.refuse(node, name, problems)
        if storable(text) != text:
            problems.add(node.line, f"{name} {shown(node)} {NOT_STORABLE}")
            return WRONG
        return text

    def schema(self) -> dict[str, Any]:
        return {"type": "string" if self.strict else ["string", "number", "boolean"]}


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """A number within limits."""

    minimum: float | None = None
    maximum: float | None = None
    whole: bool = False
    above: bool = False
    """Whether the minimum itself is refused."""
    loose: bool = False
    """Whether a number written as text is accepted, as in the cells of a table."""

    @property
    def expected(self) -> str:
        noun = "a whole number" if self.whole else "a number"
        if self.minimum is None:
            return noun
        if self.maximum is not None:
            return f"{noun} from {self.minimum:g} to {self.maximum:g}"
        return f"{noun} {'above' if self.above else 'of at least'} {self.minimum:g}"

    def fits(self, node: Node) -> bool:
        return self._number(node.value) is not None

    def convert(self, node: Node, name: str, problems: Problems) -> Any:
        number = self._number(node.value)
        low, high = self.minimum, self.maximum
        if (
            number is None
            or (low is not None and (number <= low if self.above else number < low))
            or (high is not None and number > high)
        ):
            return self.refuse(node, name, problems)
        return number

    def _number(self, value: Any) -> float | None:
        if isinstance(value, str) and self.loose:
            try:
                value = float(value.replace(",", ""))
            except ValueError:
                return None
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not abs(value) < _TOO_LARGE:
            return None
        if not self.whole:
            return float(value)
        return int(value) if value == int(value) else None

    def schema(self) -> dict[str, Any]:
        low = "exclusiveMinimum" if self.above else "minimum"
        limits = {low: self.minimum, "maximum": self.maximum}
        known = {key: value for key, value in limits.items() if value is not None}
        return {"type": "integer" if self.whole else "number", **known}


@dataclass(frozen=True, slots=True)
class Flag(Kind):
    """True or false."""

    expected: str = "true or false"
    loose: bool = False
    """Whether yes, no, 1 and 0 are accepted, as in the cells of a table."""

    def fits(self, node: Node) -> bool:
        return isinstance(node.value, bool) or (
            self.loose and node.is_scalar and node.text.strip().lower() in _FLAGS
        )

    def convert(self, node: Node, name: str, problems: Problems) -> Any:  # noqa: ARG002
        return _FLAGS[node.text.strip().lower()]

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class OneOf(Kind):
    """One of a few words."""

    choices: tuple[str, ...]
    any_case: bool = False
    """Whether a word may begin with a capital letter."""

    @property
    def expected(self) -> str:
        return listed(self.choices)

    def fits(self, node: Node) -> bool:
        return isinstance(node.value, str) and self._word(node.value) in self.choices

    def convert(self, node: Node, name: str, problems: Problems) -> Any:  # noqa: ARG002
        return self._word(node.value)

    def _word(self, text: str) -> str:
        return text.lower() if self.any_case else text

    def schema(self) -> dict[str, Any]:
        capitals = [word.title() for word in self.choices] if self.any_case else []
        return {"enum": [*self.choices, *capitals]}


@dataclass(frozen=True, slots=True)
class Null(Kind):
    """Null, which removes what would be inherited."""

    expected: str = "null"

    def fits(self, node: Node) -> bool:
        return node.value is None

    def schema(self) -> dict[str, Any]:
        return {"type": "null"}


@dataclass(frozen=True, slots=True)
class Anything(Kind):
    """Any value, kept as it is."""

    expected: str = "any value"

    def fits(self, node: Node) -> bool:  # noqa: ARG002
        return True

    def convert(self, node: Node, name: str, problems: Problems) -> Any:  # noqa: ARG002
        return plain(node)

    def schema(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, slots=True)
class Verbatim(Kind):
    """A value that is checked but kept as it was written, or null."""

    kind: Kind

    @property
    def expected(self) -> str:
        return self.kind.expected

    def fits(self, node: Node) -> bool:
        return node.value is None or self.kind.fits(node)

    def convert(self, node: Node, name: str, problems: Problems) -> Any:
        if node.value is None:
            return None
        return WRONG if self.kind.read(node, name, problems) is WRONG else plain(node)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.kind.schema(), {"type": "null"}]}


@dataclass(frozen=True, slots=True)
class Deferred(Verbatim):
    """A value whose shape is checked here and whose content is read elsewhere, from its node."""

    def fits(self, node: Node) -> bool:
        return self.kind.fits(node)

    def convert(self, node: Node, name: str, problems: Problems) -> Any:  # noqa: ARG002
        return node

    def schema(self) -> dict[str, Any]:
        return self.kind.schema()


@dataclass(frozen=True, slots=True)
class ListOf(Kind):
    """A list of values of one kind."""

    kind: Kind
    expected: str = "a list"
    lone: bool = False
    """Whether a single value counts as a list of one."""
    some: bool = False
    """Whether an empty list is refused."""

    def fits(self, node: Node) -> bool:
        return node.is_list or (self.lone and self.kind.fits(node))

    def convert(self, node: Node, name: str, problems: Problems) -> Any:
        if self.some and node.is_list and not node.value:
            return self.refuse(node, name, problems)
        nodes = node.elements() if node.is_list else [node]
        read = [self.kind.read(n, f"{name}[{i}]", problems) for i, n in enumerate(nodes, 1)]
        return WRONG if any(value is WRONG for value in read) else read

    def schema(self) -> dict[str, Any]:
        one = self.kind.schema()
        many = {"type": "array", "items": one, **({"minItems": 1} if self.some else {})}
        return {"anyOf": [one, many]} if self.lone else many


@dataclass(frozen=True, slots=True)
class MapOf(Kind):
    """A mapping whose keys the user chooses."""

    kind: Kind
    expected: str = "a mapping"

    def fits(self, node: Node) -> bool:
        return node.is_mapping

    def convert(self, node: Node, name: str, problems: Problems) -> Any:
        read = {}
        for key, below in node.items():
            if storable(key) != key:
                problems.add(below.line, f"the name {key!r} in {name} {NOT_STORABLE}")
            read[key] = self.kind.read(below, f"{name}.{key}", problems)
        return {key: value for key, value in read.items() if value is not WRONG}

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.kind.schema()}


@dataclass(frozen=True, slots=True)
class AnyOf(Kind):
    """One of several kinds, told apart by their shape."""

    kinds: tuple[Kind, ...]

    @property
    def expected(self) -> str:
        *some, last = [kind.expected for kind in self.kinds]
        return f"{', '.join(some)} or {last}" if some else last

    def fits(self, node: Node) -> bool:
        return any(kind.fits(node) for kind in self.kinds)

    def convert(self, node: Node, name: str, problems: Problems) -> Any:
        kind = next(kind for kind in self.kinds if kind.fits(node))
        return kind.read(node, name, problems)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [kind.schema() for kind in self.kinds]}


@dataclass(frozen=True, slots=True)
class ParsedBy(Kind):
    """A value with a notation of its own, read by a function.

    The function raises UsageError with a reason, or ValueError if the value is not what is
    expected at all.
    """

    parse: Callable[[Any], Any]
    described: Mapping[str, Any] = field(hash=False)
    """Its JSON schema."""
    expected: str = "a rule"
    kind: Kind = field(default_factory=Anything)
    """What the value is before it is parsed."""

    def fits(self, node: Node) -> bool:
        return self.kind.fits(node)

    def convert(self, node: Node, name: str, problems: Problems) -> Any:
        value = self.kind.convert(node, name, problems)
        if value is WRONG:
            return WRONG
        try:
            return self.parse(value)
        except UsageError as error:
            problems.add(node.line, f"{name}: {error}")
            return WRONG
        except ValueError:
            return self.refuse(node, name, problems)

    def schema(self) -> dict[str, Any]:
        return dict(self.described)
