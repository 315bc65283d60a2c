"""Declare a check by writing a function.

The name of the function is the name of the check. Its first parameter is the attempt; the others
are the parameters that a suite may write, annotated with their kinds. Its docstring, with an
example, is the reference page. Reading suites and the JSON schema follow from the declaration.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pennyweight.checks import parameters
from pennyweight.checks.attempt import AttemptView
from pennyweight.define import points
from pennyweight.errors import DeclarationError, UsageError
from pennyweight.schema.kinds import Kind
from pennyweight.schema.structs import Field, Struct

By = Literal["record", "code", "judge", "person", "parts"]
"""Who decides: the record itself, code of the user, a judge, a person, or other checks."""

MAX_EXCERPT_LENGTH = 300
"""Characters of an excerpt that are stored."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Evidence: a piece of text, and its position in characters if it has one."""

    of: str
    text: str
    start: int | None = None
    end: int | None = None

    def moved(self, by: int) -> Excerpt:
        """Return the excerpt with its position moved by some characters."""
        if self.start is None or self.end is None:
            return self
        return replace(self, start=self.start + by, end=self.end + by)

    def plain(self) -> dict[str, Any]:
        """Return it as plain data; a long text is shortened."""
        cut = "…" if len(self.text) > MAX_EXCERPT_LENGTH else ""
        place = {} if self.start is None else {"start": self.start, "end": self.end}
        return {"of": self.of, "text": self.text[:MAX_EXCERPT_LENGTH] + cut, **place}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check: whether it holds (None: undecided), why, and the evidence."""

    holds: bool | None
    why: str
    evidence: tuple[Excerpt, ...] = ()
    error: bool = False
    """Whether the check itself failed."""

    def negated(self) -> CheckResult:
        """Return the opposite result; undecided stays undecided."""
        return self if self.holds is None else replace(self, holds=not self.holds)


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A way to observe a behaviour."""

    name: str
    function: Callable[..., CheckResult]
    struct: Struct
    """Its parameters, as a suite may write them."""
    arguments: Mapping[str, str]
    """The argument of the function for each parameter, such as `max_` for `max`."""
    by: By
    of_text: bool
    """Whether it looks at a text, so that it cannot hold for an attempt without one."""
    family: str
    summary: str
    details: str
    example: str

    def __call__(self, attempt: Any, /, *args: Any, **options: Any) -> CheckResult:
        """Check an attempt: a record, or the fields of one."""
        given = dict(zip(self.arguments, args, strict=False))
        given |= {name.rstrip("_"): value for name, value in options.items()}
        if not isinstance(attempt, AttemptView):
            row = attempt if isinstance(attempt, Mapping) else {"response": attempt}
            attempt = AttemptView(row)
        return self.apply(attempt, self.read(given))

    def apply(self, attempt: AttemptView, arguments: Mapping[str, Any]) -> CheckResult:
        """Check an attempt with arguments that `read` returned."""
        if self.of_text and attempt.text is None:
            return nothing_said(attempt)
        return self.function(attempt, **arguments)

    @property
    def alone(self) -> bool:
        """Whether it can be written without a value."""
        required = any(f.required for f in self.struct.fields)
        return not (required or self.struct.exactly_one or self.struct.either)

    def read(self, given: Any) -> dict[str, Any]:
        """Read what a suite gives: a mapping of parameters, or the value of the first one."""
        try:
            values = self.struct.of(self._table(given), self.name)
        except UsageError as error:
            if isinstance(given, list) and {"any", "all"} <= self.arguments.keys():
                hint = "Write {any: […]} or {all: […]}, to say which is meant."
                raise UsageError(f"{error} {hint}") from None
            raise
        return {self.arguments[name]: value for name, value in values.items()}

    def _table(self, given: Any) -> Mapping[str, Any]:
        if given is None or (given is True and self.alone):
            return {}
        if isinstance(given, Mapping):
            return given
        if not self.arguments:
            raise UsageError(f"{self.name} takes no value.")
        return {next(iter(self.arguments)): given}

    def schema(self) -> dict[str, Any]:
        """Describe what `read` reads as a JSON schema."""
        ways: list[dict[str, Any]] = [self.struct.schema()] if self.arguments else []
        first = self.struct.fields[0].kind.schema() if self.arguments else {}
        if first and first.get("type") != "object":
            ways.append(first)
        if self.alone:
            ways += [{"type": "null"}, {"const": True}]
        return {"description": self.summary, "anyOf": ways}


CHECKS: dict[str, Check] = {}


def nothing_said(attempt: AttemptView) -> CheckResult:
    """Return the result for a text that is missing."""
    return CheckResult(holds=False, why=f"The attempt has no {attempt.of}.")


def within(value: Decimal | int, least: Decimal | int | None, most: Decimal | int | None) -> bool:
    """Return whether a value is between two limits, of which either may be missing."""
    return (least is None or value >= least) and (most is None or value <= most)


def check(
    *,
    by: By = "record",
    one_of: Sequence[str] = (),
    some_of: Sequence[str] = (),
    of_text: bool = False,
) -> Callable[[Callable[..., CheckResult]], Check]:
    """Declare a check.

    `one_of` names parameters of which exactly one is needed, `some_of` those of which at least
    one is. A check that is neither of Pennyweight nor of an installed package is code of the user:
    it runs while a run is carried out, and its results are stored.
    """

    def declare(function: Callable[..., CheckResult]) -> Check:
        summary, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n")
        details, marker, example = rest.partition(">>> ")
        name = function.__name__.rstrip("_")
        if not marker:
            raise DeclarationError(f"The check {name} needs a docstring with an example.")
        arguments = _parameters(function)
        declared = Check(
            name=name,
            function=function,
            struct=Struct(name, tuple(arguments.values()), either=some_of, exactly_one=one_of),
            arguments={field.name: argument for argument, field in arguments.items()},
            by="code" if by == "record" and _is_users(function) else by,
            of_text=of_text,
            family=function.__module__.rpartition(".")[2],
            summary=summary,
            details=details.strip(),
            example=(marker + example).strip(),
        )
        known = CHECKS.get(name)
        if known and known.function.__module__ != function.__module__:
            raise DeclarationError(f"Another check is called {name}.")
        CHECKS[name] = declared
        return declared

    return declare


def _is_users(function: Callable[..., Any]) -> bool:
    """Whether other processes may lack the code of a function: it is in no installed package."""
    package = function.__module__.partition(".")[0]
    installed = {re.split(r"[.:]", point.value)[0] for point in points("pennyweight.checks")}
    return package not in {"pennyweight", *installed}


_NAMES = {**vars(parameters), "AttemptView": AttemptView}
"""What annotations may name, even if the module of the check imports it for typing only."""


def _parameters(function: Callable[..., Any]) -> dict[str, Field]:
    """Return the field of each argument but the first, which is the attempt."""
    hints = get_type_hints(function, localns=_NAMES, include_extras=True)
    _, *rest = inspect.signature(function).parameters.values()
    return {p.name: _field(p, _kind(hints[p.name], function)) for p in rest}


def _field(parameter: inspect.Parameter, kind: Kind) -> Field:
    default = parameter.default if isinstance(parameter.default, str | int | float) else None
    required = parameter.default is inspect.Parameter.empty
    return Field(parameter.name.rstrip("_"), kind, required=required, default=default)


def _kind(hint: Any, function: Callable[..., Any]) -> Kind:
    """Find the kind in an annotation, also in one that allows None."""
    for one in (hint, *get_args(hint)):
        if get_origin(one) is Annotated:
            for part in get_args(one)[1:]:
                if isinstance(part, Kind):
                    return part
    raise DeclarationError(f"{function.__name__}: the kind of a parameter is not known: {hint}.")
