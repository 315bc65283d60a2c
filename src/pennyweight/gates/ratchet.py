"""The ratchet: thresholds in a policy file rise to what was reached, and never fall.

The best value of many releases is partly luck, so a threshold at that value would fail the next
release of the same system more often than not. A threshold therefore rises only to what a system
this good stays above: in twenty releases of a system that does not change, each fails with a
probability of at most 6 %.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pennyweight.catalogue import METRICS
from pennyweight.errors import InputError, PennyweightError, UsageError
from pennyweight.gates.policy import Gate
from pennyweight.gates.threshold import FRACTIONS, MILLISECONDS, Quantity, Threshold, version_key
from pennyweight.gates.verdict import Decision, Verdict
from pennyweight.stats.interval import wilson_interval
from pennyweight.stats.quantiles import normal_quantile

RATE, NUMBER = 3.7, 2.33
"""How many standard errors below its value a new threshold is: of a rate that is decided on its
value, and of a number that is decided on its interval, which allows for chance once more."""
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_PLAIN = {None: "", "'": "'", '"': '"'}
"""The ways of quoting a scalar that can be rewritten."""

Path_ = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class RaisedThreshold:
    """A threshold that was raised."""

    gate: str
    file: str
    line: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class RatchetResult:
    """The thresholds that were raised, and why others could not be."""

    raised: tuple[RaisedThreshold, ...] = ()
    left: tuple[str, ...] = ()
    above: bool = False
    """Whether thresholds were set above the values reached, so that a version as good fails."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """One scalar of a file with its new text."""

    span: tuple[int, int]
    value: str
    written: str
    raised: RaisedThreshold


def ratchet(verdict: Verdict, margin: float) -> RatchetResult:
    """Raise the thresholds of passed gates to the values reached, less chance and a margin.

    The margin is in points for a rate, and a share of other values. Only the numbers in the files
    change, and only if the file, read again, is stricter.
    """
    files: dict[str, list[Decision]] = {}
    for decision in verdict.gates:
        rule = decision.rule
        if decision.verdict == "pass" and rule and rule.threshold and rule.place:
            files.setdefault(rule.place.file, []).append(decision)
    rate = verdict.error_rate
    results = [_raise_in(file, decisions, margin, rate) for file, decisions in files.items()]
    return RatchetResult(
        tuple(raised for result in results for raised in result.raised),
        tuple(left for result in results for left in result.left),
        above=margin < 0,
    )


def _raise_in(
    file: str, decisions: Sequence[Decision], margin: float, error_rate: float
) -> RatchetResult:
    path = Path(file).resolve()
    whole = path.read_bytes().decode("utf-8")
    text = whole.removeprefix("\ufeff")
    root = _composed(file, text)
    edits: dict[Path_, _Edit] = {}
    left: list[str] = []
    for decision in decisions:
        rule = decision.rule
        assert rule is not None
        try:
            new = risen(decision, margin, error_rate)
            if new is None:
                continue
            for at, gate in _places(root, rule, new):
                edit, older = _edit(text, root, at, gate, new), edits.get(at)
                if edit and (older is None or _stricter(edit.value, older.value, gate)):
                    edits[at] = edit
        except UsageError as error:
            left.append(f"{file}: {rule.name} stays at {rule.threshold}: {error}")
    for edit in sorted(edits.values(), key=lambda e: e.span, reverse=True):
        text = text[: edit.span[0]] + edit.written + text[edit.span[1] :]
    if edits:
        _check(file, root, _composed(file, text), {at: e.value for at, e in edits.items()})
        fresh = path.with_name(path.name + ".new")
        fresh.write_bytes(("\ufeff" * whole.startswith("\ufeff") + text).encode("utf-8"))
        shutil.copymode(path, fresh)
        fresh.replace(path)
    return RatchetResult(tuple(edit.raised for edit in edits.values()), tuple(left))


def _composed(file: str, text: str) -> Any:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        what = f"{file}: its layout cannot be preserved."
        raise InputError([what], hint="Indent it with spaces.") from None


def risen(decision: Decision, margin: float, error_rate: float) -> float | None:
    """Return the new threshold, in the metric's unit; None if it would not rise."""
    assert decision.rule is not None
    threshold, value = decision.rule.threshold, decision.value
    assert threshold is not None
    if value is None or not math.isfinite(value) or threshold.sign == "=":
        return None
    if threshold.effect(value) <= 0:
        return None
    if margin < 0:  # better than what was measured, so chance is not allowed for
        reached = value
    else:
        reached = _reached(decision, threshold, value, normal_quantile(1 - error_rate))
    less = margin if threshold.kind in FRACTIONS else margin * abs(reached)
    new = reached - less if threshold.upwards else reached + less
    if threshold.kind in FRACTIONS and not 0 <= new <= 1:
        raise UsageError("no value can be that much better.")
    return new if threshold.effect(new) > 0 else None


def _reached(decision: Decision, threshold: Threshold, value: float, quantile: float) -> float:
    """Return what a system with this value stays above, or below if lower is better.

    Values from 0 to 1 vary no more than a rate does, so they get the error of one. How much other
    numbers vary is estimated by each release again, and the lucky ones seem to vary least.
    """
    if decision.on == "value" and threshold.kind not in FRACTIONS:
        raise UsageError(
            "the best value of several releases is partly luck, and a threshold there fails the "
            "next one; write 'on: confident', or compare with a baseline by 'no_worse_than'."
        )
    end = decision.low if threshold.upwards else decision.high
    if end is None or not math.isfinite(end):
        raise UsageError("its interval has no end; more tasks are needed to raise it.")
    steady = value - NUMBER * (value - end) / quantile
    if threshold.kind not in FRACTIONS:
        return steady
    ends = wilson_interval(np.array([value]), np.array([max(decision.tasks, 1)]), quantile)
    rate = float(ends[0 if threshold.upwards else 1][0])
    if decision.on == "value":
        return value - RATE * (value - rate) / quantile
    return max(steady, min(end, rate)) if threshold.upwards else min(steady, max(end, rate))


def _places(root: Any, rule: Gate, new: float) -> Iterator[tuple[Path_, Gate]]:
    """Yield the place of a threshold, and those of later versions that would be looser."""
    assert rule.place is not None
    path = rule.place.path
    if not path:
        raise UsageError("it is part of a formula; raise it by hand.")
    yield path, rule
    if path[0] != "progressive_thresholds":
        return
    chosen = version_key(str(path[2]))
    table = _follow(root, path[:2])
    for key, node in table.value if isinstance(table, yaml.MappingNode) else ():
        version = version_key(key.value)
        if key.value == path[2] or (version and chosen and version < chosen):
            continue
        inner = ("threshold",) if isinstance(node, yaml.MappingNode) else ()
        at: Path_ = (*path[:2], key.value, *inner)
        scalar = _follow(root, at)
        if not isinstance(scalar, yaml.ScalarNode):
            continue
        later = _read(scalar.value, rule)
        if later.sign != "=" and later.effect(new) > 0:
            yield at, replace(rule, threshold=later)


def _edit(text: str, root: Any, at: Path_, gate: Gate, new: float) -> _Edit | None:
    """Write a threshold in the notation of the file; None if that does not make it stricter."""
    node, old, place = _follow(root, at), gate.threshold, gate.place
    assert old is not None
    assert place is not None
    if not isinstance(node, yaml.ScalarNode) or node.style not in _PLAIN:
        raise UsageError("its layout cannot be preserved.")
    if text[node.start_mark.index] in "&!":
        raise UsageError("it has an anchor or a tag, which other values may use; raise it by hand.")
    value = rewritten(node.value, new, old)
    if not _stricter(value, node.value, gate):
        return None
    span = node.start_mark.index, node.end_mark.index
    written = _quoted(value, text[slice(*span)], as_json=place.file.lower().endswith(".json"))
    line = node.start_mark.line + 1
    raised = RaisedThreshold(gate.name, place.file, line, node.value, value)
    return _Edit(span, value, written, raised)


def rewritten(written: str, value: float, old: Threshold) -> str:
    """Replace the number of a threshold with a value, rounded to the lenient side.

    >>> rewritten("< 1.5e-1 min", 4321.0, Threshold("<", 9000, "ms"))
    '< 0.073 min'
    >>> rewritten("5", 0.01, Threshold("<=", 0.05))
    '1%'
    """
    amount = Quantity.parse(written)
    scale, digits = _scale(amount, old)
    step = 10.0**digits
    number = (math.floor if old.upwards else math.ceil)(round(value / scale * step, 6)) / step
    figures = f"{number:.{max(digits, 0)}f}"
    figures = figures.rstrip("0").rstrip(".") if "." in figures else figures
    if old.kind in FRACTIONS and not amount.unit and scale != 1 and number < 2:
        figures += "%"
    found = _NUMBER.search(written)
    assert found is not None
    return written[: found.start()] + figures + written[found.end() :]


def _scale(amount: Quantity, old: Threshold) -> tuple[float, int]:
    """Return the unit of the notation, and the number of decimal places."""
    if old.kind in FRACTIONS:
        return (0.01, 1) if amount.unit == "%" or amount.number > 1 else (1.0, 3)
    scale = MILLISECONDS.get(amount.unit.lower(), 1.0)
    size = abs(old.value / scale)
    return scale, 0 if size >= 100 else 2 - math.floor(math.log10(size)) if size > 0 else 3


def _quoted(value: str, before: str, *, as_json: bool) -> str:
    """Write a scalar with its original quotes; in JSON, all but numbers have quotes."""
    if before.startswith("'"):
        return "'" + value.replace("'", "''") + "'"
    if before.startswith('"') or (as_json and not _NUMBER.fullmatch(value)):
        return json.dumps(value, ensure_ascii=before.isascii())
    return value


def _read(written: str, gate: Gate) -> Threshold:
    metric = METRICS.get(gate.metric, METRICS["final_score"])
    return Threshold.parse(written, metric, gate.kind)


def _stricter(new: str, old: str, gate: Gate) -> bool:
    after, before = _read(new, gate), _read(old, gate)
    return after.sign == before.sign and before.effect(after.value) > 1e-12


def _follow(node: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        if isinstance(node, yaml.MappingNode) and isinstance(part, str):
            node = next((v for k, v in node.value if k.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part] if part < len(node.value) else None
        else:
            return None
    return node


def _check(file: str, before: Any, after: Any, edits: dict[Path_, str]) -> None:
    """Raise an error if anything but these thresholds would change."""
    if dict(_scalars(before)) | edits != dict(_scalars(after)):
        raise PennyweightError(
            f"{file} was not changed, because raising its thresholds would change other values; "
            "raise them by hand."
        )


def _scalars(node: Any, path: Path_ = ()) -> Iterator[tuple[Path_, str]]:
    if isinstance(node, yaml.MappingNode):
        for key, below in node.value:
            yield from _scalars(below, (*path, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for number, below in enumerate(node.value):
            yield from _scalars(below, (*path, number))
    else:
        yield path, node.value
