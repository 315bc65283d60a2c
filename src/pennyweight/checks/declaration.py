"""Declare checks: the declaration is the function.

Its name is the check's name, its first parameter is the attempt it looks at, the others are what
a suite may write, by kind and with their defaults; its docstring is the page about it, with an
example. From it follow the reading of suites, the JSON schema and the reference page.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

from pennyweight.checks import parameters as parameter
from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.parameters import Kind
from pennyweight.errors import DeclarationError, UsageError, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

By = Literal["record", "code", "judge", "person"]
"""Who decides: the record alone, code of the suite's writer, a judge, or a person."""

LONGEST = 300
"""Characters of evidence that are quoted."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A piece of evidence: what was found, and where; `start` and `end` count characters."""

    of: str
    text: str
    start: int | None = None
    end: int | None = None

    def moved(self, by: int) -> Evidence:
        """Give the same, some characters further on."""
        if self.start is None or self.end is None:
            return self
        return replace(self, start=self.start + by, end=self.end + by)

    def plain(self) -> dict[str, Any]:
        """Give it as plain data; a long text is quoted in part."""
        text = self.text if len(self.text) <= LONGEST else self.text[:LONGEST] + "…"
        found: dict[str, Any] = {"of": self.of, "text": text}
        if self.start is not None:
            found |= {"start": self.start, "end": self.end}
        return found


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check says: whether it holds (None: it cannot say), why, and on what evidence."""

    holds: bool | None
    why: str
    evidence: tuple[Evidence, ...] = ()
    error: bool = False
    """Whether the check itself broke."""

    def negated(self) -> CheckResult:
        """Say the opposite; what cannot be said still cannot."""
        return self if self.holds is None else replace(self, holds=not self.holds)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One thing that a check may be given."""

    name: str
    argument: str
    kind: Kind
    default: Any

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A way to observe a behaviour."""

    name: str
    function: Callable[..., CheckResult]
    parameters: tuple[Parameter, ...]
    by: By
    one_of: tuple[str, ...]
    """Parameters of which exactly one is needed."""
    some_of: tuple[str, ...]
    """Parameters of which at least one is needed."""
    family: str
    summary: str
    details: str
    example: str

    def __call__(self, attempt: Any, /, *args: Any, **options: Any) -> CheckResult:
        """Check an attempt: a record, or the fields of one."""
        given = dict(zip((p.name for p in self.parameters), args, strict=False))
        return self.apply(_seen(attempt), self.read({**given, **_unmarked(options)}))

    def apply(self, attempt: AttemptView, arguments: Mapping[str, Any]) -> CheckResult:
        """Check an attempt with arguments that were read."""
        return self.function(attempt, **arguments)

    @property
    def alone(self) -> bool:
        """Whether it can be written without any value."""
        return not any(p.required for p in self.parameters) and not (self.one_of or self.some_of)

    def read(self, given: Any) -> dict[str, Any]:
        """Read what a suite gives: a mapping of parameters, or the value of the first."""
        table = self._table(given)
        known = {p.name: p for p in self.parameters}
        for name in table:
            if name not in known:
                there = f"It has: {', '.join(known)}." if known else "It takes nothing."
                raise UsageError(unknown(f"{self.name}: parameter", str(name), known, there))
        for group, count in ((self.one_of, "exactly one"), (self.some_of, "at least one")):
            number = sum(name in table for name in group)
            if group and (not number or (group is self.one_of and number > 1)):
                raise UsageError(f"{self.name} needs {count} of {', '.join(group)}.")
        for one in self.parameters:
            if one.required and one.name not in table:
                raise UsageError(f"{self.name} needs {one.name}: {one.kind.words}.")
        return {known[name].argument: self._value(known[name], v) for name, v in table.items()}

    def _table(self, given: Any) -> Mapping[str, Any]:
        if given is None or (given is True and self.alone):
            return {}
        if isinstance(given, Mapping):
            return given
        if not self.parameters:
            raise UsageError(f"{self.name} takes no value.")
        return {self.parameters[0].name: given}

    def _value(self, parameter: Parameter, given: Any) -> Any:
        try:
            return parameter.kind.read(given)
        except UsageError as error:
            raise UsageError(f"{self.name}: {parameter.name}: {error}") from None
        except ValueError:
            hint = ""
            if isinstance(given, list) and {"any", "all"} <= {p.name for p in self.parameters}:
                hint = " Write {any: […]} or {all: […]}, so that what is meant is plain."
            shown = f"{given!r:.60}"
            what = f"{self.name}: {parameter.name} must be {parameter.kind.words}, not {shown}."
            raise UsageError(what + hint) from None

    def schema(self) -> dict[str, Any]:
        """Describe what `read` reads as a JSON schema."""
        properties = {p.name: dict(p.kind.schema) for p in self.parameters}
        table: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        required = [p.name for p in self.parameters if p.required]
        if required:
            table["required"] = required
        group = self.one_of or self.some_of
        if group:
            table["oneOf" if self.one_of else "anyOf"] = [{"required": [name]} for name in group]
        ways: list[dict[str, Any]] = [table] if self.parameters else []
        first = self.parameters[0] if self.parameters else None
        if first and first.kind.schema and first.kind.schema.get("type") != "object":
            ways.append(dict(first.kind.schema))
        if self.alone:
            ways += [{"type": "null"}, {"const": True}]
        return {"description": self.summary, "anyOf": ways}


CHECKS: dict[str, Check] = {}


def check(
    *, by: By = "record", one_of: Sequence[str] = (), some_of: Sequence[str] = ()
) -> Callable[[Callable[..., CheckResult]], Check]:
    """Declare a check."""

    def declare(function: Callable[..., CheckResult]) -> Check:
        doc = inspect.cleandoc(function.__doc__ or "")
        details, marker, example = doc.partition("\n")[2].partition(">>> ")
        name = function.__name__.rstrip("_")
        if not marker or not doc:
            raise DeclarationError(f"The check {name} needs a docstring with an example.")
        made = Check(
            name=name,
            function=function,
            parameters=_parameters(function),
            by=by,
            one_of=tuple(one_of),
            some_of=tuple(some_of),
            family=function.__module__.rpartition(".")[2],
            summary=doc.partition("\n")[0],
            details=details.strip(),
            example=(marker + example).strip(),
        )
        known = CHECKS.get(name)
        if known and known.function.__module__ != function.__module__:
            raise DeclarationError(f"Another check is called {name}.")
        CHECKS[name] = made
        return made

    return declare


_NAMES = {**vars(parameter), "AttemptView": AttemptView}
"""What annotations may name, imported there or not."""


def _parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    hints = get_type_hints(function, localns=_NAMES, include_extras=True)
    _, *rest = inspect.signature(function).parameters.values()
    return tuple(
        Parameter(p.name.rstrip("_"), p.name, _kind(hints[p.name], function), p.default)
        for p in rest
    )


def _kind(hint: Any, function: Callable[..., Any]) -> Kind:
    """Find the kind in an annotation, also in one that allows None."""
    for one in (hint, *get_args(hint)):
        for part in getattr(one, "__metadata__", ()):
            if isinstance(part, Kind):
                return part
    raise DeclarationError(f"{function.__name__}: the kind of a parameter is not known: {hint}.")


def _unmarked(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name.rstrip("_"): value for name, value in options.items()}


def _seen(given: Any) -> AttemptView:
    if isinstance(given, AttemptView):
        return given
    return AttemptView(given if isinstance(given, Mapping) else {"response": given})
