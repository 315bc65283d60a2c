"""Formulas of composite scores: `final = a × 0.3 + (1 - b) × 0.7` and `pass = final ≥ 0.85`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pennyweight.errors import UsageError

NORMALIZED = "normalized_latency"
"""The 95th percentile of the latency as a share of its budget, at most 1."""

_NAME = r"[A-Za-z_][A-Za-z_0-9]*"
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_FACTOR = rf"(?:(?P<name>{_NAME})|\(\s*1\s*[-−]\s*(?P<less>{_NAME})\s*\))"
_TERM = re.compile(rf"\s*(?:{_FACTOR}\s*[×*·]\s*(?P<after>{_NUMBER}))\s*")
_TURNED = re.compile(rf"\s*(?P<after>{_NUMBER})\s*[×*·]\s*{_FACTOR}\s*")
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
    """Metrics, or the name of the score, with their thresholds as written."""


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
    conditions = (found for word, rule in lines if word == "pass" for found in parse_rule(rule))
    terms = _terms(body)
    total = sum(term.weight for term in terms)
    if total > 1 + 1e-9:
        raise UsageError(f"the weights of {name} sum to {total:g}; they must not exceed 1.")
    return Formula(name, terms, tuple(conditions))


def read_formula(given: Any) -> Formula:
    """Read a composite: a formula, or a mapping with weights or a formula."""
    if isinstance(given, str):
        return parse_formula(given)
    name, rule = given.get("name", "final_score"), given.get("pass", "")
    if "formula" in given:
        body = given["formula"] if "=" in given["formula"] else f"{name} = {given['formula']}"
        return parse_formula(body + (f"\npass = {rule}" if rule else ""))
    weights: dict[str, float] = given.get("weights", {})
    if name == "pass":
        raise UsageError("a composite cannot be called 'pass', which introduces its conditions.")
    if not sum(weights.values()):
        raise UsageError("the weights of a composite sum to 0.")
    total = sum(weights.values())
    terms = tuple(Term(n, w / total, less=n == NORMALIZED) for n, w in weights.items())
    return Formula(name, terms, parse_rule(rule))


def parse_rule(text: str) -> tuple[tuple[str, str], ...]:
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
        terms.append(Term(name, float(found["after"]), found["name"] is None))
    if not sum(term.weight for term in terms):
        raise UsageError("the weights of a composite sum to 0.")
    return tuple(terms)


def _one_pair(text: str) -> bool:
    """Return whether the first bracket closes at the very end."""
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return place == len(text) - 1
    return False
