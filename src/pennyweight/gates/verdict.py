"""Verdicts: the decision on each gate and the reason, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import polars as pl

from pennyweight.gates.policy import Gate
from pennyweight.scoring.exam import ExamMatch
from pennyweight.scoring.result import Result
from pennyweight.scoring.scores import json_value

Word = Literal["pass", "fail", "inconclusive"]
TestKind = Literal["rule", "value", "interval", "sequential"]
"""What decided a gate: a built-in rule, its value, its interval, or a sequential test."""

_JSON = (
    *("name", "metric", "level", "on", "value"),
    *("threshold", "sign", "effect", "baseline", "verdict", "why", "records", "tasks"),
)
EXIT_CODES: dict[Word, int] = {"pass": 0, "fail": 1, "inconclusive": 3}


LISTED = 100_000
"""The most scenarios that are listed with one gate: each takes as much memory as its record."""


@dataclass(frozen=True, slots=True)
class Decider:
    """A scenario that decided a gate."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on one gate."""

    name: str
    metric: str
    verdict: Word
    why: str
    level: Literal["blocking", "warning"] = "blocking"
    on: str = "value"
    value: float | None = None
    low: float | None = None
    high: float | None = None
    threshold: float | None = None
    sign: str | None = None
    kind: str = "rate"
    effect: float | None = None
    """By how much the value exceeds the threshold, in the better direction."""
    baseline: float | None = None
    records: int = 0
    tasks: int = 0
    scenarios: tuple[Decider, ...] = ()
    """What decided it, at most LISTED of them."""
    unlisted: int = 0
    """How many more decided it."""
    needed: int | None = None
    """About how many more attempts would decide it if the value stays."""
    weighted: bool = False
    rule: Gate | None = field(default=None, repr=False)
    test: TestKind = "rule"
    indifference: tuple[float, float] | None = None
    """Of a sequential test: values between these may pass or fail; on the scale of `value`."""
    planned_tasks: int | None = None
    """Of a sequential test: the most tasks it can use; it used `tasks`."""
    side: str = ""
    """The side that it is about, if every side was decided."""

    @classmethod
    def of(cls, gate: Gate, verdict: Word, why: str) -> Decision:
        """Return the decision on a gate, without numbers."""
        test: TestKind = "value" if gate.on == "value" else "interval"
        named = cls(gate.name, gate.metric, verdict, why, gate.level, gate.on)
        return replace(named, kind=gate.kind, rule=gate, test=test)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            **{name: json_value(getattr(self, name)) for name in _JSON[:5]},
            "interval": None if self.low is None else [json_value(self.low), json_value(self.high)],
            **{name: json_value(getattr(self, name)) for name in _JSON[5:]},
            "scenarios": [asdict(one) for one in self.scenarios],
            **({"more_scenarios": self.unlisted} if self.unlisted else {}),
            "more_attempts": self.needed,
            "weighted": self.weighted,
            "decided_by": self.test,
            **({"side": self.side} if self.side else {}),
        }


@dataclass(frozen=True, slots=True)
class VerdictEvidence:
    """The records that a verdict rests on."""

    run: str | None = None
    """The run that was decided on; None for files, and for several runs."""
    stamp: str = ""
    """The state of the run when it was read."""
    side: str = ""
    tasks: frozenset[str] = frozenset()
    """The tasks that have records; none if there are too many."""
    left_out: int = 0
    baseline_planned: int | None = None
    baseline_missing: int = 0
    score_errors: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """How often each scorer failed, and with which error first."""


@dataclass(frozen=True, slots=True)
class SideVerdict:
    """The verdict on one of several sides; without gates if it has no record yet."""

    side: Mapping[str, str]
    verdict: Verdict

    @property
    def name(self) -> str:
        """The side in words."""
        return " · ".join(self.side.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        about = {n: getattr(self.verdict, n) for n in ("verdict", "records", "errors")}
        return {"side": dict(self.side), "name": self.name, **about}


@dataclass(frozen=True, slots=True)
class Verdict(Result):
    """The decisions on all gates of a policy."""

    policy: str
    gates: tuple[Decision, ...]
    records: int
    errors: int
    error_rate: float
    baseline: str | None = None
    sequential: bool = False
    notes: tuple[str, ...] = ()
    """Likely mistakes in the policy."""
    sides: tuple[SideVerdict, ...] = ()
    """The verdict on each side, if every side was decided; `gates` are those of all sides."""
    exam: ExamMatch | None = field(default=None, compare=False)
    """How far the records and their baseline are of the same exam; None if none is compared."""
    evidence: VerdictEvidence = field(default=VerdictEvidence(), repr=False, compare=False)
    pooled: Mapping[str, int] = field(default_factory=dict)
    """How many data sets, tools or (across tiers) tiers the records are of, if several."""
    errors_as: str = "exclude"
    """What errors count as: they are left out, or are `failures`."""

    @property
    def verdict(self) -> Word:
        """Fail if a blocking gate fails, pass if all of them pass; else it is open."""
        words = {gate.verdict for gate in self.gates if gate.level == "blocking"}
        if "fail" in words:
            return "fail"
        return "inconclusive" if "inconclusive" in words or not self.gates else "pass"

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return EXIT_CODES[self.verdict]

    @property
    def warnings(self) -> tuple[Decision, ...]:
        """The warning gates that did not pass."""
        return tuple(g for g in self.gates if g.level == "warning" and g.verdict != "pass")

    @property
    def deciding(self) -> tuple[Decision, ...]:
        """The blocking gates that keep the policy from passing."""
        blocking = (g for g in self.gates if g.level == "blocking" and g.verdict != "pass")
        return tuple(g for g in blocking if g.verdict == self.verdict)

    def to_polars(self) -> pl.DataFrame:
        """Return a row for each gate."""
        texts, numbers = (
            ("name", "metric", "level", "verdict"),
            ("value", "low", "high", "threshold"),
        )
        names = (*texts, *numbers, "records", "tasks", "why")
        counts = dict.fromkeys(("records", "tasks"), pl.Int64)
        known = {**dict.fromkeys(numbers, pl.Float64), **counts}
        schema = {name: known.get(name, pl.String) for name in names}
        return pl.DataFrame(
            [[getattr(g, n) for n in names] for g in self.gates], schema, orient="row"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `pennyweight gate --format json` prints."""
        return {
            "verdict": self.verdict,
            "policy": self.policy,
            "records": self.records,
            "errors": self.errors,
            "errors_as": self.errors_as,
            "error_rate": self.error_rate,
            "baseline": self.baseline,
            "notes": list(self.notes),
            "exam": self.exam.to_dict() if self.exam else None,
            "gates": [gate.to_dict() for gate in self.gates],
            **({"pooled": dict(self.pooled)} if self.pooled else {}),
            **({"sides": [one.to_dict() for one in self.sides]} if self.sides else {}),
        }
