"""The ratchet: thresholds in a policy file rise to what was reached, and never fall."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from pennyweight.catalogue import METRICS
from pennyweight.errors import InputError, PennyweightError, UsageError
from pennyweight.gates.threshold import FRACTIONS, Quantity, Threshold, version_key

if TYPE_CHECKING:
    from pennyweight.gates.policy import Gate
    from pennyweight.gates.verdict import Decision, Verdict

_TIMES = {"s": 1e3, "sec": 1e3, "seconds": 1e3, "min": 6e4, "m": 6e4}
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_PLAIN = {None: "", "'": "'", '"': '"'}
"""The ways of quoting a scalar that can be rewritten."""

Path_ = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Raised:
    """A threshold that was raised."""

    gate: str
    file: str
    line: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Ratcheted:
    """The thresholds that were raised, and those that could not be written."""

    raised: tuple[Raised, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Edit:
    """One scalar of a file with its new text."""

    span: tuple[int, int]
    value: str
    written: str
    told: Raised


def ratchet(verdict: Verdict, margin: float) -> Ratcheted:
    """Raise the thresholds of passed gates to what they reached, less a margin.

    The margin is in points of a rate, and a share of other values. A gate on an interval reaches
    its worse end. Comments and layout stay: only the numbers are replaced. What was written is read
    again, and nothing is kept unless it is stricter.
    """
    passed = [d for d in verdict.gates if d.verdict == "pass" and d.rule and d.rule.threshold]
    places = [(d, d.rule.place.file) for d in passed if d.rule and d.rule.place]
    found = [
        _one_file(file, [d for d, own in places if own == file], margin)
        for file in dict.fromkeys(file for _, file in places)
    ]
    return Ratcheted(
        tuple(one for each in found for one in each.raised),
        tuple(one for each in found for one in each.left),
    )


def _one_file(file: str, decisions: Sequence[Decision], margin: float) -> Ratcheted:
    path = Path(file).resolve()
    whole = path.read_bytes().decode("utf-8")
    text = whole.removeprefix("\ufeff")
    root = _composed(file, text)
    edits: dict[Path_, _Edit] = {}
    left: list[str] = []
    for decision in decisions:
        rule = decision.rule
        assert rule is not None
        new = risen(decision, margin)
        if new is None:
            continue
        try:
            for at, gate in _places(root, rule, new):
                made = _edit(text, root, at, gate, new)
                older = edits.get(at)
                if made and (older is None or _stricter(made.value, older.value, gate)):
                    edits[at] = made
        except UsageError as error:
            left.append(f"{file}: {rule.name} stays at {rule.threshold}: {error}")
    for one in sorted(edits.values(), key=lambda e: e.span, reverse=True):
        text = text[: one.span[0]] + one.written + text[one.span[1] :]
    if edits:
        _check(file, root, _composed(file, text), {at: one.value for at, one in edits.items()})
        fresh = path.with_name(path.name + ".new")
        fresh.write_bytes(("\ufeff" * whole.startswith("\ufeff") + text).encode("utf-8"))
        shutil.copymode(path, fresh)
        fresh.replace(path)
    return Ratcheted(tuple(one.told for one in edits.values()), tuple(left))


def _composed(file: str, text: str) -> Any:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        hint = "Indent it with spaces."
        raise InputError([f"{file}: its layout cannot be kept."], hint=hint) from None


def risen(decision: Decision, margin: float) -> float | None:
    """Return the new threshold, in the metric's unit; None if it would not rise."""
    assert decision.rule is not None
    threshold = decision.rule.threshold
    assert threshold is not None
    reached = decision.value
    if decision.on == "confident":
        reached = decision.low if threshold.upwards else decision.high
    if reached is None or not math.isfinite(reached) or threshold.sign == "=":
        return None
    less = margin if threshold.kind in FRACTIONS else margin * abs(reached)
    new = reached - less if threshold.upwards else reached + less
    return new if threshold.effect(new) > 0 else None


def _places(root: Any, rule: Gate, new: float) -> Iterator[tuple[Path_, Gate]]:
    """Return the place of a threshold, and those of later versions that would be looser."""
    assert rule.place is not None
    path = rule.place.path
    if not path:
        raise UsageError("it stands in a formula; raise it there.")
    yield path, rule
    if path[0] != "progressive_thresholds":
        return
    chosen = version_key(str(path[2]))
    table = _follow(root, path[:2])
    for key, node in table.value if isinstance(table, yaml.MappingNode) else ():
        own = version_key(key.value)
        if key.value == path[2] or (own and chosen and own < chosen):
            continue
        at: Path_ = (*path[:2], key.value)
        if isinstance(node, yaml.MappingNode):
            at = (*at, "threshold")
        scalar = _follow(root, at)
        if not isinstance(scalar, yaml.ScalarNode):
            continue
        later = _read(scalar.value, rule)
        if later.sign != "=" and later.effect(new) > 0:
            yield at, replace(rule, threshold=later)


def _edit(text: str, root: Any, at: Path_, gate: Gate, new: float) -> _Edit | None:
    """Write a threshold in the notation that was used; None if that makes it no stricter."""
    node, old, place = _follow(root, at), gate.threshold, gate.place
    assert old is not None
    assert place is not None
    if not isinstance(node, yaml.ScalarNode) or node.style not in _PLAIN:
        raise UsageError("its layout cannot be kept.")
    if text[node.start_mark.index] in "&!":
        raise UsageError("other values hang on it; raise it there.")
    value = rewritten(node.value, new, old)
    if not _stricter(value, node.value, gate):
        return None
    span = node.start_mark.index, node.end_mark.index
    written = _quoted(value, text[slice(*span)], as_json=place.file.lower().endswith(".json"))
    line = node.start_mark.line + 1
    return _Edit(span, value, written, Raised(gate.name, place.file, line, node.value, value))


def rewritten(written: str, value: float, old: Threshold) -> str:
    """Replace the number of a threshold by a value, rounded to the lenient side.

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
    """Return the unit of the notation, and how many decimals to keep."""
    if old.kind in FRACTIONS:
        return (0.01, 1) if amount.unit == "%" or amount.number > 1 else (1.0, 3)
    scale = _TIMES.get(amount.unit.lower(), 1.0)
    size = abs(old.value / scale)
    return scale, 0 if size >= 100 else 2 - math.floor(math.log10(size)) if size > 0 else 3


def _quoted(value: str, before: str, *, as_json: bool) -> str:
    """Write a scalar with the quotes that it had; JSON has some around all but numbers."""
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
    """Refuse to write a file in which anything but these thresholds is another."""
    if dict(_scalars(before)) | edits != dict(_scalars(after)):
        raise PennyweightError(
            f"{file}: raising its thresholds would change something else, so it was left alone; "
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
