"""A policy as frozen values: its gates, what must pass, and what counts how much."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pennyweight.errors import InputError, UsageError
from pennyweight.gates.threshold import Quantity, Threshold, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pennyweight.gates.formula import Formula

Level = Literal["blocking", "warning"]
On = Literal["value", "confident"]
Against = Literal["threshold", "no_worse_than", "better"]


@dataclass(frozen=True, slots=True)
class Location:
    """Where a threshold stands: the file, its line, and the keys that lead to it."""

    file: str
    line: int
    path: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Margin:
    """How much worse than the baseline is still allowed."""

    value: float
    relative: bool
    """Whether it is a share of the baseline's value; of a rate it never is."""
    kind: str

    @classmethod
    def parse(cls, written: Any, metric: str, kind: str) -> Margin:
        """Read an amount: points of a rate, else a share of the baseline's value or an amount."""
        amount = Quantity.parse(written)
        if amount.sign is not None or amount.number < 0:
            raise UsageError(f"no_worse_than of {metric} is an amount such as '2%', no sign.")
        if kind == "rate" and not amount.unit and amount.number == 1:
            raise UsageError(f"no_worse_than of {metric}: 1 is 100 points; write 1% or 100%.")
        if kind != "rate" and amount.unit == "%":
            return cls(amount.number / 100, relative=True, kind=kind)
        return cls(amount.value(metric, kind), relative=False, kind=kind)

    def __str__(self) -> str:
        return shown(self.value, "rate" if self.relative else self.kind)


@dataclass(frozen=True, slots=True)
class Gate:
    """A rule about one metric over some of the records."""

    name: str
    metric: str
    level: Level = "blocking"
    on: On = "value"
    threshold: Threshold | None = None
    """None where nothing was set: then it is shown and cannot pass."""
    against: Against = "threshold"
    margin: Margin | None = None
    select: tuple[tuple[str, str], ...] = ()
    """Columns and the value that records must have in them."""
    kind: str = "rate"
    place: Location | None = None
    indifference: float = 0.05
    """How far below the threshold a value must be for `--until-decided` to be sure to fail it."""
    note: str = ""
    """Why no threshold is set, where none is."""
    origin: str = ""
    """The part of a policy that it was written in."""

    @property
    def paired(self) -> bool:
        """Whether it compares with a baseline."""
        return self.against != "threshold"


@dataclass(frozen=True, slots=True)
class ErrorLimit:
    """How many attempts may fail to be made: a number, or a share of all."""

    value: float = 0.0
    share: bool = False

    @classmethod
    def of(cls, amount: Quantity) -> ErrorLimit:
        """Take a number of attempts, or a share of them."""
        if amount.sign not in {None, "<="} or amount.unit not in {"", "%"} or amount.number < 0:
            raise UsageError("errors is a number of attempts, or a share of them such as '2%'.")
        if amount.unit:
            return cls(amount.number / 100, share=True)
        return cls(amount.number, share=0 < amount.number < 1)

    def exceeded(self, errors: int, attempts: int) -> bool:
        """Whether so many errors are too many."""
        return errors > (self.value * attempts if self.share else self.value)

    def __str__(self) -> str:
        return shown(self.value, "rate") if self.share else f"{self.value:g}"


@dataclass(frozen=True, slots=True)
class Policy:
    """A file of gates, or several of them joined."""

    name: str = "policy"
    gates: tuple[Gate, ...] = ()
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By column (`category`, `capability`), the weight of each value."""
    composites: Mapping[str, Formula] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of metrics, such as the label that precision is about."""
    error_rate: float = 0.05
    """The most either wrong decision may happen: an alarm for nothing, a pass for nothing."""
    errors: ErrorLimit = field(default_factory=ErrorLimit)

    set_in: Mapping[str, str] = field(default_factory=dict)
    """By setting, the file and the line that set it."""

    @property
    def paired(self) -> bool:
        """Whether a gate compares with a baseline."""
        return any(gate.paired for gate in self.gates)

    def joined(self, other: Policy) -> Policy:
        """Put two policies together; what one sets, the other's silence does not undo.

        What both set must be the same: neither is looser in secret.
        """
        clashes = list(self._clashes(other))
        if clashes:
            raise InputError(clashes, hint="Policies that are joined must not contradict.")
        first = {name: getattr(self, name) for name in ("error_rate", "errors")
                 if name in self.set_in}  # fmt: skip
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
        """Say what two policies contradict each other in, with both places."""
        mine, theirs = self._settings(), other._settings()
        for name in mine:
            if name in theirs and mine[name] != theirs[name]:
                places = self.set_in.get(name, self.name), other.set_in.get(name, other.name)
                yield f"{name} is set twice, and differently: {places[0]}; {places[1]}."
        for one, two in ((self, other), (other, self)):
            for name in one.required:
                if name in two.optional:
                    yield (
                        f"Scenario {name!r} is required ({one.set_in['required_scenarios']}) and "
                        f"optional ({two.set_in['optional_scenarios']})."
                    )

    def _settings(self) -> dict[str, Any]:
        """Give what was set, by name."""
        found: dict[str, Any] = {n: getattr(self, n) for n in ("error_rate", "errors")
                                 if n in self.set_in}  # fmt: skip
        found |= {n: v for n, v in self.options.items() if n != "weights"}
        found |= {f"weights.{n}": v for n, v in self.options.get("weights", {}).items()}
        found |= {f"weights.by_{c}.{n}": v for c, t in self.weights.items() for n, v in t.items()}
        return found | {f"composite {n}": formula for n, formula in self.composites.items()}
