"""Thresholds as people write them: `≥ 85%`, `>= 0.85`, `85`, `< 5000ms`, `5s`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from pennyweight.define import Metric
from pennyweight.errors import UsageError
from pennyweight.metrics.scores import FAMILY
from pennyweight.schema.tree import Written
from pennyweight.text.format import declared, with_unit
from pennyweight.text.notation import SHARE

Sign = Literal[">=", ">", "<=", "<", "="]

_SIGNS: dict[str, Sign] = {
    ">=": ">=", "≥": ">=", "=>": ">=", ">": ">", "<=": "<=", "≤": "<=", "=<": "<=", "<": "<",
    "=": "=", "==": "=",
}  # fmt: skip
SHOWN = {">=": "≥", "<=": "≤"}
FRACTIONS = ("rate", "score")
"""Kinds of values from 0 to 1: rates are written in percent, scores such as ECE as decimals."""

_FORM = re.compile(
    r"\s*(>=|=>|<=|=<|==|[≥≤<>=])?\s*(\$)?\s*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
    r"\s*(%|[A-Za-z$]*)\s*"
)
MILLISECONDS = {"ms": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3, "min": 6e4, "m": 6e4}
_TINY = 1e-12
"""Rounding errors of sums of fractions are smaller than this."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its sign and unit, not yet tied to a metric."""

    sign: Sign | None
    number: float
    unit: str

    @classmethod
    def parse(cls, written: Any) -> Quantity:
        """Read a number, or text with a sign and a unit."""
        if isinstance(written, bool) or not isinstance(written, int | float | str):
            given = "an empty value" if written is None else repr(written)
            raise UsageError(f"{given} is not a threshold; write it like '≥ 85%' or 0.85.")
        text = str(written) if isinstance(written, str | Written) else repr(written)
        found = _FORM.fullmatch(text)
        if not found:
            raise UsageError(f"{text!r} is not a threshold; write it like '≥ 85%', 0.85 or '< 5s'.")
        sign, dollar, number, unit = found.groups()
        return cls(_SIGNS.get(sign or ""), float(number), "$" if dollar else unit)

    def value(self, metric: str, kind: str) -> float:
        """Convert to the unit of a metric; `kind` is `rate`, `score`, or that unit."""
        number, unit = self.number, self.unit.lower()
        if kind in FRACTIONS:
            if unit not in {"", "%"}:
                raise UsageError(f"{metric} is from 0 to 1; its unit is %, not {self.unit!r}.")
            if not unit and 1 < number < 2:
                text = f"{number:g}"
                what = f"{text} could be a share or a percentage"
                raise UsageError(f"{metric}: {what}; write {text}% for a percentage.")
            number = number / 100 if unit or number > 1 else number
            if not 0 <= number <= 1:
                raise UsageError(
                    f"{metric} is from 0 to 1; {self.number:g} is not between 0 and 100 %."
                )
            return number
        if kind == SHARE and unit in {"", "%"}:  # a share that may be more than all, or negative
            return number / 100 if unit or abs(number) > 1 else number
        if kind == "ms" and unit in MILLISECONDS:
            return number * MILLISECONDS[unit]
        allowed = {"US$": {"$", "usd"}, "tokens": {"tokens", "token"}}.get(kind, set())
        if unit and unit not in allowed:
            wanted = {"ms": "ms or s", "US$": "$"}.get(kind, "no unit")
            raise UsageError(f"{metric} takes {wanted}, not {self.unit!r}.")
        return number


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit that a metric must keep."""

    sign: Sign
    value: float
    kind: str = "rate"

    @classmethod
    def parse(cls, written: Any, metric: Metric, kind: str = "") -> Threshold:
        """Read a threshold of a metric; without a sign, the metric's better direction decides.

        >>> from pennyweight.catalogue import metric_named
        >>> accuracy, slow = metric_named("accuracy"), metric_named("latency_p95_ms")
        >>> {str(Threshold.parse(t, accuracy)) for t in ("≥ 85%", ">= 0.85", 85, 0.85)}
        {'≥ 85.0 %'}
        >>> [str(Threshold.parse(t, slow)) for t in ("< 5000ms", "5s")]
        ['< 5,000 ms', '≤ 5,000 ms']
        """
        amount = Quantity.parse(written)
        kind = kind or kind_of(metric)
        value = amount.value(metric.name, kind)
        if amount.sign is None and metric.better is None:
            raise UsageError(
                f"{metric.name} has no better direction; write a sign, as in '≥ {written}'."
            )
        sign = amount.sign or (">=" if metric.better == "higher" else "<=")
        threshold = cls(sign, value, kind)
        if metric.better and sign != "=" and threshold.upwards != (metric.better == "higher"):
            right = cls(">=" if metric.better == "higher" else "<=", value, kind)
            better = f"{metric.name} is better when {metric.better}"
            other = "lower" if metric.better == "higher" else "higher"
            own = f', or declare it with @scorer(better="{other}")' * (metric.family == FAMILY)
            raise UsageError(f"{better}, so {threshold} asks for bad values; write '{right}'{own}.")
        if threshold.vacuous and amount.sign is None and not amount.unit and value == 1:
            raise UsageError(
                f"{metric.name}: 1 means 100 %, which every value meets; write 1% or 100%."
            )
        return threshold

    @property
    def upwards(self) -> bool:
        """Whether a higher value is better."""
        return self.sign in {">=", ">"} or (self.sign == "=" and self.value > 0)

    def holds(self, value: float) -> bool:
        """Return whether a value meets the threshold."""
        gap = value - self.value
        near = abs(gap) <= _TINY * max(1.0, abs(self.value))
        if self.sign == "=":
            return near
        if near:
            return self.sign in {">=", "<="}
        return gap > 0 if self.upwards else gap < 0

    def effect(self, value: float) -> float:
        """Return how much better than the threshold a value is; negative if it is worse."""
        if self.sign == "=":
            return -abs(value - self.value)
        return value - self.value if self.upwards else self.value - value

    @property
    def extreme(self) -> bool:
        """Whether it is the best possible rate, which no sample can prove."""
        return self.kind in FRACTIONS and (
            (self.upwards and self.value >= 1) or (not self.upwards and self.value <= 0)
        )

    @property
    def vacuous(self) -> bool:
        """Whether every possible rate meets it."""
        return self.kind in FRACTIONS and (self.sign, self.value) in {(">=", 0), ("<=", 1)}

    def __str__(self) -> str:
        return f"{SHOWN.get(self.sign, self.sign)} {declared(self.value, unit_of(self.kind))}"


def kind_of(metric: Metric, parts_are_fractions: bool = False) -> str:
    """Return the kind of a metric's thresholds: `rate`, `score`, or a unit."""
    if metric.range == (0, 1) or (metric.open_parts and parts_are_fractions):
        return "rate" if metric.unit == SHARE else "score"
    return metric.unit


def unit_of(kind: str) -> str:
    """Return the unit in which values of a kind are written."""
    return {"rate": SHARE, "score": ""}.get(kind, kind)


def shown(value: float, kind: str) -> str:
    """Write a measured value with its unit."""
    return with_unit(value, unit_of(kind))


_VERSION = re.compile(r"[vV]?([0-9]+(?:\.[0-9]+)*)(?:[-+.]?([A-Za-z].*))?")


def version_key(text: str) -> tuple[tuple[int, ...], bool] | None:
    """Return a sort key for a version; None for a word such as `Target`.

    >>> version_key("v2") == version_key("2.0.0"), version_key("2.0-rc1") < version_key("2.0")
    (True, True)
    """
    found = _VERSION.fullmatch(text.strip())
    if not found:
        return None
    parts = [int(part) for part in found[1].split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts), found[2] is None


def in_force(versions: Iterable[str], evaluated: str) -> str | None:
    """Return the highest version that is not above the evaluated one; None if all are above it.

    >>> in_force(["v1.0", "v2.0", "v3.0", "Target"], "2.4")
    'v2.0'
    """
    known = list(versions)
    for name in known:
        if name.strip().lower() == evaluated.strip().lower():
            return name
    wanted = version_key(evaluated)
    if wanted is None:
        words = ", ".join(known)
        raise UsageError(f"--version {evaluated!r} is not a version such as v2.0. Known: {words}.")
    below = [(key, name) for name in known if (key := version_key(name)) and key <= wanted]
    return max(below)[1] if below else None
