"""A Jinja sandbox with limits, so that no template exhausts the memory or runs for ever.

Loops, calls and operators use up an allowance of steps before they make a long text, list or
number.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_STEPS = 100_000_000
"""The most steps of one rendering; a character or a list entry that it makes counts as a step."""
MAX_SECONDS = 5.0
MAX_BITS = 10_000
"""The most bits of a number that a template computes."""
MAX_WIDTH = 1_000_000
"""The largest width or number of items that a template can ask for."""
MAX_PARAGRAPHS = 1_000

_WIDTHS = {
    *("batch", "center", "expandtabs", "generate_lorem_ipsum", "indent", "ljust", "rjust"),
    *("round", "slice", "to_bytes", "tojson", "wordwrap", "zfill"),
}
"""Functions, methods and filters whose numbers are widths or numbers of items."""
_PRODUCTS = {"expandtabs", "indent", "join", "replace", "tojson", "translate", "wordwrap"}
"""Those that can insert one argument at each item of another."""
_KEEPS_VALUES = {
    *("attr", "batch", "count", "d", "default", "dictsort", "first", "float", "groupby", "int"),
    *("items", "last", "length", "list", "map", "max", "min", "random", "reject", "rejectattr"),
    *("reverse", "round", "select", "selectattr", "slice", "sort", "sum", "unique"),
}
"""Filters that do not turn lists into text."""
_NESTED = re.compile(r"\*|\{[^{}]*:[^{}]*\{")
"""A format that takes a width or a precision from its values."""
_LARGE = re.compile(r"%(\([^)]*\))?[-+ #0-9.*]*\d{7,}|\{[^{}]*:[^{}]*\d{7,}")
"""A format with a width or a precision of a million or more."""


class LimitError(SecurityError):
    """A template that makes or takes too much."""


class Allowance(threading.local):
    """The steps and the time that are left for the rendering in this thread."""

    steps = MAX_STEPS
    until = float("inf")

    def renew(self) -> None:
        """Begin a rendering."""
        self.steps, self.until = MAX_STEPS, time.monotonic() + MAX_SECONDS

    def spend(self, steps: int) -> None:
        """Use steps; raise LimitError if none or no time is left."""
        self.steps -= steps
        if self.steps < 0:
            raise LimitError(f"the template makes more than {MAX_STEPS:,} characters or steps")
        if time.monotonic() > self.until:
            raise LimitError(f"the template takes longer than {MAX_SECONDS:g} seconds")

    def spend_lists(self, *values: Any) -> None:
        """Use the steps for writing the lists and mappings among values as text."""
        for value in values:
            inner = [*value.keys(), *value.values()] if isinstance(value, dict) else value
            if isinstance(inner, list | tuple | set | frozenset):
                self.spend(sum(len(v) if isinstance(v, str) else 10 for v in inner))
                self.spend_lists(*inner)

    def check(self, name: str, subject: Any, *others: Any) -> None:
        """Use the steps for a call of a function, method or filter."""
        self.spend(1)
        if name in _WIDTHS:
            limit = MAX_PARAGRAPHS if name == "generate_lorem_ipsum" else MAX_WIDTH
            for number in others:
                if isinstance(number, int) and abs(number) > limit:
                    raise LimitError(f"{name} of more than {limit:,} is not allowed")
        if name in _PRODUCTS:
            self.spend_lists(subject, *others)
            self.spend(_length(subject) * max(map(_size, others), default=1))
        if name in {"format", "format_map"}:
            self.check_format(str(subject), others)
        if name == "sum" and not all(isinstance(v, int | float | str | None) for v in others):
            raise LimitError("sum adds only numbers")

    def check_format(self, form: str, values: tuple[Any, ...]) -> None:
        """Use the steps for filling in a format; widths of a million or more are not allowed."""
        self.spend_lists(values)
        large = any(isinstance(value, int) and value > MAX_WIDTH for value in values)
        if _LARGE.search(form) or (large and _NESTED.search(form)):
            raise LimitError(f"a format wider than {MAX_WIDTH:,} is not allowed")


ALLOWANCE = Allowance()


class _Generator(CodeGenerator):
    """Compiles loops and `~` so that they use steps."""

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802
        counted = nodes.EnvironmentAttribute("counted")
        node.iter = nodes.Call(counted, [node.iter], [], None, None, lineno=node.lineno)
        node.iter.set_environment(self.environment)
        super().visit_For(node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class LimitedEnvironment(ImmutableSandboxedEnvironment):
    """The sandbox in which prompts are rendered."""

    code_generator_class = _Generator
    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=_finalize, **options)
        self.filters = {name: limited(name, made) for name, made in self.filters.items()}

    @staticmethod
    def concat(pieces: Iterable[str]) -> str:
        """Join the output of a template, a macro or a block."""
        texts = []
        for text in pieces:
            ALLOWANCE.spend(len(text))
            texts.append(text)
        return "".join(texts)

    @staticmethod
    def counted(items: Iterable[Any]) -> Iterator[Any]:
        """Yield the items of a loop."""
        for item in items:
            ALLOWANCE.spend(1)
            yield item

    @staticmethod
    def joined(values: tuple[Any, ...]) -> str:
        """Return the text of `a ~ b`."""
        ALLOWANCE.spend_lists(*values)
        return LimitedEnvironment.concat(map(str, values))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute `left operator right`."""
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length()
            sizes = {"**": bits * right, "*": bits + right.bit_length()}
            if sizes.get(operator, 0) > MAX_BITS:
                raise LimitError(f"a number of more than {MAX_BITS:,} bits is not allowed")
        elif operator == "*":
            times = next((v for v in (left, right) if isinstance(v, int)), 1)
            ALLOWANCE.spend(max(times, 0) * max(_length(left), _length(right)))
        elif operator == "%" and isinstance(left, str):
            ALLOWANCE.check_format(left, right if isinstance(right, tuple) else (right,))
        else:
            ALLOWANCE.spend(_length(left) + _length(right))
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, obj: Any, /, *args: Any, **named: Any) -> Any:
        """Call a function, a macro or a method."""
        subject = getattr(getattr(obj, "__wrapped__", obj), "__self__", None)
        if getattr(obj, "__name__", "") == "join":
            args = tuple(list(v) if isinstance(v, Iterator) else v for v in args)
        ALLOWANCE.check(getattr(obj, "__name__", ""), subject, *args, *named.values())
        result = super().call(context, obj, *args, **named)
        ALLOWANCE.spend(_length(result))
        return result


def limited(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that uses steps."""
    first = 0 if getattr(function, "jinja_pass_arg", None) is None else 1

    @wraps(function)
    def counted(*args: Any, **named: Any) -> Any:
        values = list(args[first:])
        if name == "join" and isinstance(values[0], Iterator):
            values[0] = list(values[0])
        ALLOWANCE.check(name, *values, *named.values())
        if name not in _KEEPS_VALUES:
            ALLOWANCE.spend_lists(*values)
        result = function(*args[:first], *values, **named)
        ALLOWANCE.spend(_length(result))
        return result

    return counted


def _finalize(value: Any) -> Any:
    ALLOWANCE.spend_lists(value)
    return "" if value is None else value


def _size(value: Any) -> int:
    """Return the largest number or length in an argument."""
    inner = value.values() if isinstance(value, dict) else value
    parts = inner if isinstance(inner, list | tuple) or inner is not value else ()
    return max(value if isinstance(value, int) else _length(value), *map(_length, parts), 1)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | tuple | dict) else 1
