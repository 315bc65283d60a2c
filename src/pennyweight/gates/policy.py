"""A policy as frozen values: its gates, required scenarios and weights."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Literal

from pennyweight.catalogue import METRICS
from pennyweight.errors import InputError, UsageError
from pennyweight.gates.threshold import FRACTIONS, Quantity, Threshold, unit_of
from pennyweight.text.format import declared, declared_points
from pennyweight.text.notation import SHARE

NORMALIZED = "normalized_latency"
"""The 95th percentile of the latency as a share of its budget, at most 1."""

_NAME = r"[A-Za-z_][A-Za-z_0-9]*"
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_FACTOR = rf"(?:(?P<name>{_NAME})|\(\s*1\s*[-−]\s*(?P<less>{_NAME})\s*\))"
_TERM = re.compile(rf"\s*(?:{_FACTOR}\s*[×*·]\s*(?P<weight>{_NUMBER}))\s*")
_TURNED = re.compile(rf"\s*(?P<weight>{_NUMBER})\s*[×*·]\s*{_FACTOR}\s*")
_ASSIGNED = re.compile(rf"^\s*({_NAME})\s*=(?!=)\s*", re.MULTILINE)
_CONDITION = re.compile(rf"\s*({_NAME})\s*((?:>=|<=|==|[≥≤<>=]).*)")


@dataclass(frozen=True, slots=True)
class Term:
    """A metric, or 1 minus it, with its weight."""

    metric: str
    weight: float
    less: bool = False


@dataclass(frozen=True, slots=True)
class Formula:
    """A named weighted sum of metrics, and the conditions for passing."""

    name: str
    terms: tuple[Term, ...]
    conditions: tuple[tuple[str, str], ...]
    """Names of metrics, or of the score, with their thresholds as written."""


def parse_formula(text: str) -> Formula:
    """Read the formula of a composite score and its conditions.

    >>> found = parse_formula("s = (a × 0.75 + (1 - b) × 0.25)  pass = s ≥ 0.8 AND a = 1")
    >>> found.name, [(t.metric, t.weight, t.less) for t in found.terms], found.conditions
    ('s', [('a', 0.75, False), ('b', 0.25, True)], (('s', '≥ 0.8'), ('a', '= 1')))
    """
    text = re.sub(r"\s+(pass)\s*=", r"\n\1 =", text)
    parts = _ASSIGNED.split(text)
    if parts[0].strip() or len(parts) < 3:
        raise UsageError("a composite is written as 'name = metric × weight + …'.")
    lines = list(zip(parts[1::2], parts[2::2], strict=True))
    named = [(name, body) for name, body in lines if name != "pass"]
    if len(named) != 1:
        raise UsageError("a composite needs exactly one formula; conditions follow 'pass ='.")
    ((name, body),) = named
    conditions = (rule for word, rules in lines if word == "pass" for rule in parse_rules(rules))
    terms = _terms(body)
    total = sum(term.weight for term in terms)
    if total > 1 + 1e-9:
        raise UsageError(f"the weights of {name} sum to {total:g}; they must not exceed 1.")
    return Formula(name, terms, tuple(conditions))


def read_formula(given: Any) -> Formula:
    """Read a composite: a formula, or a mapping with weights or a formula."""
    if isinstance(given, str):
        return parse_formula(given)
    name, rules = given.get("name", "final_score"), given.get("pass", "")
    if "formula" in given:
        body = given["formula"] if "=" in given["formula"] else f"{name} = {given['formula']}"
        return parse_formula(body + (f"\npass = {rules}" if rules else ""))
    weights: dict[str, float] = given.get("weights", {})
    if name == "pass":
        raise UsageError("a composite cannot be called 'pass', which introduces its conditions.")
    total = sum(weights.values())
    if not total:
        raise UsageError("the weights of a composite sum to 0.")
    terms = tuple(Term(n, w / total, less=n == NORMALIZED) for n, w in weights.items())
    return Formula(name, terms, parse_rules(rules))


def parse_rules(text: str) -> tuple[tuple[str, str], ...]:
    """Read conditions joined by AND."""
    conditions = []
    for part in re.split(r"\s+(?:AND|and|∧|&&)\s+", text.strip()) if text.strip() else []:
        found = _CONDITION.fullmatch(part)
        if not found:
            raise UsageError(f"{part!r} is not a condition; write it like 'final_score ≥ 0.85'.")
        conditions.append((found[1], found[2].strip()))
    return tuple(conditions)


def _terms(body: str) -> tuple[Term, ...]:
    inner = body.strip()
    if inner.startswith("(") and inner.endswith(")") and _one_pair(inner):
        inner = inner[1:-1]
    terms = []
    for part in re.split(r"\+(?![^()]*\))", inner):
        found = _TERM.fullmatch(part) or _TURNED.fullmatch(part)
        if not found:
            raise UsageError(f"{part.strip()!r} is not a term; write it like 'metric × 0.3'.")
        name = found["name"] or found["less"]
        terms.append(Term(name, float(found["weight"]), found["name"] is None))
    if not sum(term.weight for term in terms):
        raise UsageError("the weights of a composite sum to 0.")
    return tuple(terms)


def _one_pair(text: str) -> bool:
    """Return whether the first parenthesis closes at the end."""
    depths = accumulate((sign == "(") - (sign == ")") for sign in text)
    return next((i for i, depth in enumerate(depths) if not depth), 0) == len(text) - 1


Level = Literal["blocking", "warning"]
On = Literal["value", "confident"]
INDIFFERENCE = 0.05
Against = Literal["threshold", "no_worse_than", "better"]


@dataclass(frozen=True, slots=True)
class Location:
    """The place of a threshold: the file, its line, and the keys that lead to it."""

    file: str
    line: int
    path: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Margin:
    """How much worse than the baseline a value may be; below 0, how much better it must be."""

    value: float
    relative: bool
    """Whether it is a share of the baseline's value; never for a rate."""
    kind: str

    @classmethod
    def parse(cls, written: Any, metric: str, kind: str) -> Margin:
        """Read a margin: points for a rate, else a share of the baseline's value or an amount."""
        amount = Quantity.parse(written)
        if amount.sign is not None:
            raise UsageError(
                f"no_worse_than of {metric} takes an amount such as '2%', without a sign like '>'."
            )
        if kind in FRACTIONS and not amount.unit and abs(amount.number) == 1:
            raise UsageError(f"no_worse_than of {metric}: 1 means 100 points; write 1% or 100%.")
        if kind not in FRACTIONS and amount.unit == "%":
            return cls(amount.number / 100, relative=True, kind=kind)
        size = replace(amount, number=abs(amount.number)).value(metric, kind)
        return cls(math.copysign(size, amount.number), relative=False, kind=kind)

    def __str__(self) -> str:
        if self.kind == "rate" and not self.relative:
            return declared_points(self.value)
        return declared(self.value, SHARE if self.relative else unit_of(self.kind))


@dataclass(frozen=True, slots=True)
class Gate:
    """A rule about one metric over some of the records."""

    name: str
    metric: str
    level: Level = "blocking"
    on: On = "value"
    threshold: Threshold | None = None
    """None if the policy sets none: the gate is shown, and cannot pass."""
    against: Against = "threshold"
    margin: Margin | None = None
    select: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, float], ...] = ()
    """The options of its metric that the gate sets, such as k."""
    kind: str = "rate"
    place: Location | None = None
    indifference: float | None = None
    """How far below the threshold a value must be for `--until-decided` to be sure to fail it."""
    note: str = ""
    origin: str = ""
    """The part of the policy, such as `risk table`."""
    entry: str = ""
    """The entry in that part, such as `gates[2]`."""

    @property
    def paired(self) -> bool:
        """Whether the gate compares with a baseline."""
        return self.against != "threshold"

    @property
    def zone(self) -> float:
        """The width of the indifference zone: 5 points, or 5 % of a threshold, unless set."""
        if self.indifference is not None:
            return self.indifference
        if self.kind in FRACTIONS or self.threshold is None:
            return INDIFFERENCE
        return INDIFFERENCE * abs(self.threshold.value)


@dataclass(frozen=True, slots=True)
class ErrorLimit:
    """How many attempts may fail with an error: a number, or a share of all."""

    value: float = 0.0
    share: bool = False

    @classmethod
    def of(cls, amount: Quantity) -> ErrorLimit:
        """Read a number of attempts, or a share of them."""
        if amount.sign not in {None, "<="} or amount.unit not in {"", "%"} or amount.number < 0:
            raise UsageError("errors must be a number of attempts, or a share such as '2%'.")
        if amount.unit:
            return cls(amount.number / 100, share=True)
        return cls(amount.number, share=0 < amount.number < 1)

    def exceeded(self, errors: int, attempts: int) -> bool:
        """Return whether there are too many errors."""
        return errors > (self.value * attempts if self.share else self.value)

    def __str__(self) -> str:
        return declared(self.value, SHARE if self.share else "")


@dataclass(frozen=True, slots=True)
class Policy:
    """The gates of one policy file, or of several that were joined."""

    name: str = "policy"
    gates: tuple[Gate, ...] = ()
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By column (`category`, `capability`), the weight of each value."""
    composites: Mapping[str, Formula] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of metrics, such as the positive label of precision."""
    error_rate: float = 0.05
    errors: ErrorLimit = field(default_factory=ErrorLimit)

    set_in: Mapping[str, str] = field(default_factory=dict)
    """The file and line of each setting."""

    @property
    def paired(self) -> bool:
        """Whether a gate compares with a baseline."""
        return any(gate.paired for gate in self.gates)

    @property
    def across(self) -> frozenset[str]:
        """The columns whose values each of its gates compares: one side has all of them."""
        declared = [METRICS.get(gate.metric) for gate in self.gates]
        columns = {metric.across if metric else "" for metric in declared}
        return frozenset(columns if len(columns) == 1 else ()) - {""}

    def joined(self, other: Policy) -> Policy:
        """Join two policies. A setting in both must have the same value."""
        if clashes := list(self._clashes(other)):
            raise InputError(clashes, hint="Policies used together must not contradict each other.")
        columns = {**self.weights, **other.weights}
        weights = {c: {**self.weights.get(c, {}), **other.weights.get(c, {})} for c in columns}
        metrics = {**self.options.get("weights", {}), **other.options.get("weights", {})}
        return replace(
            other,
            **self._limits(),
            name=f"{self.name}, {other.name}",
            gates=self.gates + other.gates,
            required=tuple(dict.fromkeys(self.required + other.required)),
            optional=tuple(dict.fromkeys(self.optional + other.optional)),
            weights=weights,
            composites={**self.composites, **other.composites},
            options={**self.options, **other.options, **({"weights": metrics} if metrics else {})},
            set_in={**other.set_in, **self.set_in},
        )

    def _clashes(self, other: Policy) -> Iterator[str]:
        """Yield the contradictions between two policies, with both places."""
        mine, theirs = self._settings(), other._settings()
        for name in mine:
            if name in theirs and mine[name] != theirs[name]:
                places = self.set_in.get(name, self.name), other.set_in.get(name, other.name)
                yield f"{name} is set to different values: {places[0]}; {places[1]}."
        for one, two in ((self, other), (other, self)):
            for name in one.required:
                if name in two.optional:
                    yield (
                        f"Scenario {name!r} is required ({one.set_in['required_scenarios']}) and "
                        f"optional ({two.set_in['optional_scenarios']})."
                    )

    def _limits(self) -> dict[str, Any]:
        return {n: getattr(self, n) for n in ("error_rate", "errors") if n in self.set_in}

    def _settings(self) -> dict[str, Any]:
        settings = self._limits() | {n: v for n, v in self.options.items() if n != "weights"}
        settings |= {f"weights.{n}": v for n, v in self.options.get("weights", {}).items()}
        for column, weights in self.weights.items():
            settings |= {f"weights.by_{column}.{n}": v for n, v in weights.items()}
        return settings | {f"composite {n}": formula for n, formula in self.composites.items()}
