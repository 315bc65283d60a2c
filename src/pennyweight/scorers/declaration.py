"""Declare a scorer by writing a function.

The name of the function is the name of the score. Its parameters are the columns and measures that
it reads, or further columns of the task; a parameter called `record` gets all of them. It returns a
number, true or false, a label, None if there is nothing to score, or a dict of several of these.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, overload

import numpy as np

from pennyweight.define import Better, Measure
from pennyweight.errors import DeclarationError
from pennyweight.metrics.scores import (
    MAX_LABELS,
    ScoreColumn,
    ScoreKind,
    is_replaced,
    name_problem,
)
from pennyweight.scorers.questions import Question
from pennyweight.stats.skewness import Range

RECORD = "record"
"""The parameter that receives the whole record."""
MAX_LABEL_LENGTH = 80
Value = float | bool | str | None
Scored = dict[str, Value]
"""The scores of one record by name."""
_KINDS: dict[Any, ScoreKind] = {bool: "flag", "bool": "flag", str: "label", "str": "label"}


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """A function that scores one record."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    """The columns and measures that it reads."""
    summary: str
    details: str = ""
    example: str = ""
    unit: str = ""
    range: Range | None = None
    better: Better | None = "higher"
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword-only parameters: settings that a suite may change."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What inputs are where the record has no such column."""
    question: Question | None = None
    """What judges are asked, in place of calling the function."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function itself."""
        return self.function(*args, **named)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The function, for tools that look behind a decorator."""
        return self.function

    def with_options(self, options: Mapping[str, Any]) -> Scorer:
        """Return the scorer with other settings."""
        return replace(self, options={**self.options, **options})

    def score(self, row: Mapping[str, Any]) -> Scored:
        """Score a record; raise TypeError if the function returns something else than scores."""
        given = {name: self._input(name, row) for name in self.inputs}
        returned = self.function(**given, **self.options)
        if not isinstance(returned, Mapping):
            return {self.name: _checked(self.name, _value(returned))}
        for name in returned:
            if not isinstance(name, str) or (problem := name_problem(name)):
                raise TypeError(problem if isinstance(name, str) else f"{name!r} is no name")
        return {name: _checked(name, _value(value)) for name, value in returned.items()}

    def _input(self, name: str, row: Mapping[str, Any]) -> Any:
        if name == RECORD:
            return dict(row)
        value = row.get(name)
        return self.defaults.get(name) if value is None else value

    @property
    def mark(self) -> str:
        """A hash of its code and settings: scores of another mark are computed again."""
        if self.question:
            return hashlib.blake2b(repr(self.question).encode(), digest_size=8).hexdigest()
        function = inspect.unwrap(self.function)
        code, file = function.__code__, inspect.getsourcefile(function)
        source = Path(file).read_bytes() if file and Path(file).is_file() else b""
        parts = (self.name, self.options, source or (code.co_code, code.co_consts, code.co_names))
        return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()

    def column(self, name: str, values: Sequence[Value] = ()) -> ScoreColumn:
        """Describe a score by its values; without any, by what the function says it returns."""
        if self.question and self.question.labels and not self.question.pair:
            return ScoreColumn(name, "label", self.question.labels, self.summary, better=None)
        known = [value for value in values if value is not None]
        hint = inspect.get_annotations(self.function).get("return")
        kind: ScoreKind = _KINDS.get(hint, "number")
        if known:
            kinds = {_kind(value) for value in known}
            kind = "label" if "label" in kinds else "number" if "number" in kinds else "flag"
        labels = tuple(sorted({str(v) for v in known})) if kind == "label" else ()
        labels = labels if len(labels) <= MAX_LABELS else ()
        return ScoreColumn(name, kind, labels, self.summary, self.unit, self.range, self.better)


@overload
def scorer(function: Callable[..., Any], /) -> Scorer: ...


@overload
def scorer(
    *, unit: str = "", range: Range | None = None, better: Better | None = "higher"
) -> Callable[[Callable[..., Any]], Scorer]: ...


def scorer(
    function: Callable[..., Any] | None = None,
    /,
    *,
    unit: str = "",
    range: Range | None = None,  # noqa: A002
    better: Better | None = "higher",
) -> Scorer | Callable[[Callable[..., Any]], Scorer]:
    """Declare a scorer: `@scorer`, or `@scorer(range=(1, 5), better="lower")`.

    >>> @scorer
    ... def brevity(response):
    ...     return 1 / (1 + len(response.split()))
    >>> brevity.score({"response": "No."})
    {'brevity': 0.5}
    """

    def declare(function: Callable[..., Any]) -> Scorer:
        return as_scorer(function, unit=unit, range=range, better=better)

    return declare if function is None else declare(function)


def as_scorer(function: Callable[..., Any], **declared: Any) -> Scorer:
    """Return the scorer of a function; a scorer is returned as it is."""
    if isinstance(function, Scorer):
        return function
    inner = inspect.unwrap(function)
    if not (inspect.isfunction(inner) or inspect.ismethod(inner)):
        raise DeclarationError(f"{function!r} is no scorer: write a function with 'def'.")
    name = function.__name__
    if problem := name_problem(name):
        raise DeclarationError(f"The scorer {_place(function)}: {problem} Name it differently.")
    summary, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n")
    details, marker, example = rest.partition(">>> ")
    inputs, defaults, options = [], {}, {}
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.KEYWORD_ONLY:
            if one.default is one.empty:
                what = f"its setting {one.name!r} needs a default, such as {one.name}=1."
                raise DeclarationError(f"The scorer {_place(function)}: {what}")
            options[one.name] = one.default
        elif one.kind is one.POSITIONAL_OR_KEYWORD:
            inputs.append(one.name)
            if one.default is not one.empty:
                defaults[one.name] = one.default
        else:
            raise DeclarationError(
                f"The scorer {_place(function)}: name each column that it reads as a parameter, "
                f"or take the whole record as {RECORD!r}."
            )
    return Scorer(
        name=name,
        function=function,
        inputs=tuple(inputs),
        summary=summary.strip(),
        details=details.strip(),
        example=(marker + example).strip(),
        options=options,
        defaults=defaults,
        **declared,
    )


def scorers_in(module: Any) -> Iterator[Scorer]:
    """Yield the scorers that a module declares, in their order.

    Its measures are among them: a run stores their values, which then need no code to be read.
    """
    for one in dict.fromkeys(one for one in vars(module).values() if _is_declared(one)):
        if isinstance(one, Scorer):
            yield one
        elif one.function.__module__ == module.__name__:
            yield _measured(one)


def _is_declared(one: Any) -> bool:
    return isinstance(one, Scorer | Measure)


def _measured(measure: Measure) -> Scorer:
    """Return the scorer that gives a record the value of a measure, if that can be a score."""

    @wraps(measure.function)
    def value(**given: Any) -> Any:
        found = given[measure.name]
        try:
            return _value(found)
        except TypeError:
            return {}

    name, summary = measure.name, measure.summary
    return Scorer(name, value, (name,), summary, unit=measure.unit, better=None)


def _place(function: Callable[..., Any]) -> str:
    code = inspect.unwrap(function).__code__
    return f"{function.__name__} ({code.co_filename}, line {code.co_firstlineno})"


def _checked(name: str, value: Value) -> Value:
    """Return the value of a score; refuse what cannot take the place of a screen's share."""
    share = value is None or (not isinstance(value, str) and 0 <= value <= 1)
    if is_replaced(name) and not share:
        raise TypeError(f"{name} is a share from 0 to 1, not {value!r:.40}")
    return value


def _value(value: Any) -> Value:
    """Return a value as a score; raise TypeError for what is none."""
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        if not math.isfinite(number):
            raise TypeError(f"it returned {number}; return None where there is no score")
        return number
    if isinstance(value, str):
        return as_label(value)
    raise TypeError(
        f"it returned a {type(value).__name__}; return a number, true or false, a label, None or "
        "a dict of these"
    )


def as_label(text: str) -> str:
    """Return a text that can be a label; raise TypeError for another."""
    if not text.strip() or len(text) > MAX_LABEL_LENGTH or not text.isprintable():
        what = f"it returned {text[:60]!r}"
        raise TypeError(f"{what}; a label is one line of 1 to {MAX_LABEL_LENGTH} characters")
    return text


def _kind(value: Value) -> ScoreKind:
    if isinstance(value, str):
        return "label"
    return "flag" if isinstance(value, bool) else "number"
