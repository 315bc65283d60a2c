"""A policy as frozen values: its gates, what must pass, and what counts how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pennyweight.errors import InputError, UsageError
from pennyweight.gates.threshold import FRACTIONS, Quantity, Threshold, unit_of
from pennyweight.text.format import declared, declared_points
from pennyweight.text.notation import SHARE

if TYPE_CHECKING:
    from pennyweight.gates.formula import Formula

Level = Literal["blocking", "warning"]
On = Literal["value", "confident"]
Against = Literal["threshold", "no_worse_than", "better"]


@dataclass(frozen=True, slots=True)
class Location:
    """The place of a threshold: the file, its line, and the keys that lead to it."""

    file: str
    line: int
    path: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Margin:
    """How much worse than the baseline a value may be."""

    value: float
    relative: bool
    """Whether it is a share of the baseline's value; never for a rate."""
    kind: str

    @classmethod
    def parse(cls, written: Any, metric: str, kind: str) -> Margin:
        """Read a margin: points for a rate, else a share of the baseline's value or an amount."""
        amount = Quantity.parse(written)
        if amount.sign is not None or amount.number < 0:
            raise UsageError(
                f"no_worse_than of {metric} takes an amount such as '2%', without a sign."
            )
        if kind in FRACTIONS and not amount.unit and amount.number == 1:
            raise UsageError(f"no_worse_than of {metric}: 1 means 100 points; write 1% or 100%.")
        if kind not in FRACTIONS and amount.unit == "%":
            return cls(amount.number / 100, relative=True, kind=kind)
        return cls(amount.value(metric, kind), relative=False, kind=kind)

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
    """None if none was set: the gate is shown and cannot pass."""
    against: Against = "threshold"
    margin: Margin | None = None
    select: tuple[tuple[str, str], ...] = ()
    kind: str = "rate"
    place: Location | None = None
    indifference: float = 0.05
    """How far below the threshold a value must be for `--until-decided` to be sure to fail it."""
    note: str = ""
    origin: str = ""
    """The part of the policy, such as `risk table`."""
    entry: str = ""
    """The entry in that part, such as `gates[2]`."""

    @property
    def paired(self) -> bool:
        """Whether it compares with a baseline."""
        return self.against != "threshold"


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

    def joined(self, other: Policy) -> Policy:
        """Join two policies. A setting in both must have the same value."""
        clashes = list(self._clashes(other))
        if clashes:
            raise InputError(
                clashes, hint="Policies that are joined must not contradict each other."
            )
        both: dict[str, Any] = {"error_rate": self.error_rate, "errors": self.errors}
        first = {name: value for name, value in both.items() if name in self.set_in}
        weights = {c: {**self.weights.get(c, {}), **other.weights.get(c, {})}
                   for c in {**self.weights, **other.weights}}  # fmt: skip
        metrics = {**self.options.get("weights", {}), **other.options.get("weights", {})}
        return replace(
            other,
            **first,
            name=f"{self.name}, {other.name}",
            gates=self.gates + other.gates,
            required=tuple(dict.fromkeys(self.required + other.required)),
            optional=tuple(dict.fromkeys(self.optional + other.optional)),
            weights=weights,
            composites={**self.composites, **other.composites},
            options={
                **self.options,
                **other.options,
                **({"weights": metrics} if metrics else {}),
            },
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

    def _settings(self) -> dict[str, Any]:
        both: dict[str, Any] = {"error_rate": self.error_rate, "errors": self.errors}
        settings = {n: v for n, v in both.items() if n in self.set_in}
        settings |= {n: v for n, v in self.options.items() if n != "weights"}
        settings |= {f"weights.{n}": v for n, v in self.options.get("weights", {}).items()}
        for column, weights in self.weights.items():
            settings |= {f"weights.by_{column}.{n}": v for n, v in weights.items()}
        return settings | {f"composite {n}": formula for n, formula in self.composites.items()}
