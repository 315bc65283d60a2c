"""Plans: how the equations of a line follow from its numbers, kept for lines of the same shape.

Lines that differ only in their numbers are read in the same way. When a shape comes again, its line
is read with numbers that write down what is done with them, and later lines repeat just that. Where
the way depends on the numbers (is the divisor 0?), a plan checks that it is still the same one; if
not, the line is read as if there were no plan. So a plan never changes what is found.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any, NamedTuple

from pennyweight.text.arithmetic_tokens import NumberOf, Token, number_of

_RUN, _DIGIT = re.compile(r"(\d+)"), re.compile(r"\d")
_HEXADECIMAL = re.compile(r"0[xX][\da-fA-F]")
LONGEST_RUN, LONGEST_LINE = 14, 240
MOST_SHAPES, MOST_PLANS = 8_192, 3
"""How many shapes are kept, and how many plans of each: for mistakes, the divisor 0, …"""
COMPILED_AFTER = 6
"""A plan that was used so often becomes a function, which costs what twenty uses save."""

Operation = Callable[[Any, Any], Any]
Place = tuple[int, int]
"""A place in a line: in its shape, and how many numbers stand before it."""


class Equation(NamedTuple):
    """An equation of a text: where it is, what its right side states, and whether it holds."""

    start: int
    end: int
    value: tuple[int, int]
    holds: bool
    computed: tuple[int, int]
    """The value of the calculation: of the right side if only that is one."""


ReadLine = Callable[[str, NumberOf], Iterable[Equation]]


class Plans:
    """The plans of the shapes that were seen."""

    def __init__(self, read: ReadLine) -> None:
        self._read = read
        self._known: dict[str, list[LinePlan]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def equations(self, line: str, start: int) -> Iterable[Equation]:
        """Return the equations of a line that starts there in its text."""
        parts = _RUN.split(line)
        runs, shape = parts[1::2], "0".join(parts[::2])
        may_be_long = len(line) - len(shape) >= LONGEST_RUN
        if len(line) > LONGEST_LINE or (may_be_long and max(map(len, runs)) > LONGEST_RUN):
            return _moved(self._read(line, number_of), start)
        if "0,0" in shape or "0\\,0" in shape:  # commas between digits are read by their distance
            shape = _DIGIT.sub("1", line)
        elif ("0x" in line or "0X" in line) and _HEXADECIMAL.search(line):
            return _moved(self._read(line, number_of), start)  # 5x10 is another thing
        plans = self._known.get(shape)
        for plan in plans or ():
            found = plan.run(runs, start)
            if found is not None:
                return found
        if plans is None:  # seen for the first time
            if len(self._known) >= MOST_SHAPES:
                self._forget()
            self._known[shape] = []
        elif len(plans) < MOST_PLANS:
            plans.append(traced(line, self._read) or NEVER)
        return _moved(self._read(line, number_of), start)

    def _forget(self) -> None:
        """Forget the shapes that came only once; if all came again, forget them all."""
        again = {shape: plans for shape, plans in self._known.items() if plans}
        self._known = again if len(again) < MOST_SHAPES // 2 else {}


def _moved(found: Iterable[Equation], by: int) -> list[Equation]:
    return [Equation(e.start + by, e.end + by, *e[2:]) for e in found]


_Step = tuple[Operation, int, int]
_Found = tuple[Place, Place, tuple[int, int], bool, tuple[int, int]]


class LinePlan:
    """What to compute from the digits of a line, and what must hold for it."""

    def __init__(
        self,
        constants: list[int],
        inputs: list[tuple[int, int, bool]],
        steps: list[_Step],
        checks: list[tuple[Operation, int, int, bool]],
        found: list[_Found],
    ) -> None:
        self.constants, self.inputs, self.steps = constants, inputs, steps
        self.checks, self.found = checks, found
        self.uses = 0
        self.run: Callable[[list[str], int], list[Equation] | None] = self.interpreted
        """Returns the equations of a line with these digits; None if a check fails."""

    def interpreted(self, runs: list[str], start: int) -> list[Equation] | None:
        """Follow the plan step by step, until it is used often enough to be compiled."""
        self.uses += 1
        if self.uses == COMPILED_AFTER:
            self.run = self.compiled()
        values = self.constants.copy()
        for first, last, is_scale in self.inputs:
            if is_scale:
                values.append(10 ** len(runs[first]))
            else:
                values.append(int(runs[first] if last - first == 1 else "".join(runs[first:last])))
        for operation, a, b in self.steps:
            values.append(operation(values[a], values[b]))
        for operation, a, b, outcome in self.checks:
            if operation(values[a], values[b]) is not outcome:
                return None
        made = []
        digits = [*accumulate(map(len, runs), initial=start)] if self.found else []
        for (first, before), (last, inside), (a, b), holds, (c, d) in self.found:
            ends = first - before + digits[before], last - inside + digits[inside]
            made.append(Equation(*ends, (values[a], values[b]), holds, (values[c], values[d])))
        return made

    def compiled(self) -> Callable[[list[str], int], list[Equation] | None]:
        """Return the plan as a function; its text has whole numbers and signs, nothing else."""
        count = len(self.constants)
        names = [f"({value})" for value in self.constants]
        names += [f"v{n}" for n in range(count, count + len(self.inputs) + len(self.steps))]
        lines = []
        for first, last, is_scale in self.inputs:
            digits = "+".join(f"r[{n}]" for n in range(first, last))
            lines.append(f"{names[count]}={f'10**len({digits})' if is_scale else f'int({digits})'}")
            count += 1
        for operation, a, b in self.steps:
            lines.append(f"{names[count]}={_SIGNS[operation].format(names[a], names[b])}")
            count += 1
        for operation, a, b, outcome in self.checks:
            holds = _SIGNS[operation].format(names[a], names[b])
            lines.append(f"if {'not ' if outcome else ''}({holds}): return None")
        places = [place for one in self.found for place in one[:2]]
        lines += [
            f"d{n + 1}=d{n}+len(r[{n}])" for n in range(max((p[1] for p in places), default=0))
        ]
        made = []
        for (first, before), (last, inside), (a, b), right, (c, d) in self.found:
            ends = f"{first - before}+d{before},{last - inside}+d{inside}"
            value, computed = (f"({names[x]},{names[y]})" for x, y in ((a, b), (c, d)))
            made.append(f"new(Equation,({ends},{value},{right},{computed}))")
        lines.append(f"return [{','.join(made)}]")
        scope: dict[str, Any] = {"new": tuple.__new__, "Equation": Equation}
        exec("def run(r, d0):\n " + "\n ".join(lines), scope)  # noqa: S102 - no text of the line
        run: Callable[[list[str], int], list[Equation] | None] = scope["run"]
        return run


class LineTrace:
    """What is done with the numbers of one line."""

    def __init__(self, line: str) -> None:
        self.runs = [match.span() for match in _RUN.finditer(line)]
        self.registers: list[tuple[Any, ...]] = []
        self.known: dict[tuple[Any, ...], int] = {}
        self.checks: dict[Any, tuple[Operation, TracedNumber, Any, bool]] = {}

    def number(self, token: Token) -> tuple[Any, Any, object]:
        """Read a number so that everything done with it is written down."""
        top, scale, _ = number_of(token)
        inside = [i for i, (at, _) in enumerate(self.runs) if token.start <= at < token.end]
        first, last = inside[0], inside[-1] + 1
        traced = self.traced(top, first, last, False)
        return traced, 1 if scale == 1 else self.traced(scale, last - 1, last, True), traced

    def traced(self, value: int, *made: Any) -> TracedNumber:
        """Return a number that is made in this way; what was made before is not made again."""
        key = tuple((one.at,) if isinstance(one, TracedNumber) else one for one in made)
        at = self.known.setdefault(key, len(self.registers))
        if at == len(self.registers):
            self.registers.append(made)
        return TracedNumber(self, at, value)

    def place(self, at: int) -> Place:
        """Return a place of the line as every line of its shape has it."""
        before = [run for run in self.runs if run[0] < at]
        return at - sum(end - start - 1 for start, end in before), len(before)

    def plan(self, equations: list[Equation]) -> LinePlan:
        """Return the plan: its values are the constants, the inputs, then the steps in order."""
        inputs = [i for i, made in enumerate(self.registers) if not callable(made[0])]
        steps = [i for i, made in enumerate(self.registers) if callable(made[0])]
        operands = [one for i in steps for one in self.registers[i][1:]]
        operands += [one for _, a, b, _ in self.checks.values() for one in (a, b)]
        operands += [one for e in equations for one in (*e.value, *e.computed)]
        constants = [*dict.fromkeys(one for one in operands if not isinstance(one, TracedNumber))]
        registers = {at: n for n, at in enumerate([*inputs, *steps], len(constants))}

        def of(a: Any, b: Any) -> tuple[int, int]:
            first, second = (
                registers[v.at] if isinstance(v, TracedNumber) else constants.index(v)
                for v in (a, b)
            )
            return first, second

        return LinePlan(
            constants,
            [self.registers[i] for i in inputs],
            [(op, *of(a, b)) for op, a, b in (self.registers[i] for i in steps)],
            [(op, *of(a, b), is_so) for op, a, b, is_so in self.checks.values()],
            [
                (self.place(e.start), self.place(e.end), of(*e.value), e.holds, of(*e.computed))
                for e in equations
            ],
        )


class TracedNumber:
    """A whole number of a line that writes down what is done with it."""

    __slots__ = ("at", "trace", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: LineTrace, at: int, value: int) -> None:
        self.trace, self.at, self.value = trace, at, value

    def _step(self, operation: Operation, a: Any, b: Any) -> TracedNumber:
        return self.trace.traced(operation(_plain(a), _plain(b)), operation, a, b)

    def _check(self, operation: Operation, other: Any) -> bool:
        outcome: bool = operation(self.value, _plain(other))
        at = other.at if isinstance(other, TracedNumber) else (other,)
        self.trace.checks[operation, self.at, at] = operation, self, other, outcome
        return outcome

    def __mul__(self, other: Any) -> TracedNumber:
        if type(other) is int and other == 1:
            return self
        return self._step(operator.mul, self, other)

    def __add__(self, other: Any) -> TracedNumber:
        return self._step(operator.add, self, other)

    def __sub__(self, other: Any) -> TracedNumber:
        return self._step(operator.sub, self, other)

    def __rsub__(self, other: Any) -> TracedNumber:
        return self._step(operator.sub, other, self)

    def __neg__(self) -> TracedNumber:
        return self._step(operator.mul, self, -1)

    def __abs__(self) -> TracedNumber:
        return self._step(_absolute, self, 0)

    __rmul__, __radd__ = __mul__, __add__

    def __eq__(self, other: object) -> bool:
        return self._check(operator.eq, other)

    def __lt__(self, other: Any) -> bool:
        return self._check(operator.lt, other)

    def __le__(self, other: Any) -> bool:
        return self._check(operator.le, other)

    def __gt__(self, other: Any) -> bool:
        return self._check(operator.gt, other)

    def __ge__(self, other: Any) -> bool:
        return self._check(operator.ge, other)

    def __str__(self) -> str:
        raise TypeError("a plan cannot depend on how a number is written")

    def __bool__(self) -> bool:
        return self._check(operator.ne, 0)


def _absolute(value: int, _: int) -> int:
    return abs(value)


_SIGNS = {
    operator.mul: "{0}*{1}",
    operator.add: "{0}+{1}",
    operator.sub: "{0}-{1}",
    _absolute: "abs({0})",
    operator.eq: "{0}=={1}",
    operator.ne: "{0}!={1}",
    operator.lt: "{0}<{1}",
    operator.le: "{0}<={1}",
    operator.gt: "{0}>{1}",
    operator.ge: "{0}>={1}",
}
"""How each operation is written in the text of a function."""

NEVER = LinePlan([0], [], [], [(operator.ne, 0, 0, True)], [])
"""The plan of a line for which there can be none: its check always fails."""


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, TracedNumber) else value


def traced(line: str, read: ReadLine) -> LinePlan | None:
    """Read a line and return its plan; None if something is done that a plan cannot repeat."""
    trace = LineTrace(line)
    try:
        return trace.plan(list(read(line, trace.number)))
    except (TypeError, AttributeError):  # a root, a power or a text of the number itself
        return None
