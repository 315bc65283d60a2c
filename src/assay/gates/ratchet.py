"""The ratchet: thresholds in a policy file rise to what was reached, and never fall."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from assay.errors import InputError
from assay.gates.threshold import Amount, Threshold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.gates.verdict import Decision, Verdict

_TIMES = {"s": 1e3, "sec": 1e3, "seconds": 1e3, "min": 6e4, "m": 6e4}


@dataclass(frozen=True, slots=True)
class Raised:
    """A threshold that was raised."""

    gate: str
    file: str
    line: int
    before: str
    after: str


def ratchet(verdict: Verdict, margin: float) -> list[Raised]:
    """Raise the thresholds of passed gates to what they reached, less a margin.

    The margin is in points of a rate, and a share of other values. A gate on an interval reaches
    its worse end. Comments and layout stay: only the numbers are replaced.
    """
    raised: list[Raised] = []
    places = [d for d in verdict.gates if d.rule and d.rule.place and d.verdict == "pass"]
    for file in dict.fromkeys(d.rule.place.file for d in places if d.rule and d.rule.place):
        own = [d for d in places if d.rule and d.rule.place and d.rule.place.file == file]
        raised += _one_file(file, own, margin)
    return raised


def _one_file(file: str, decisions: Sequence[Decision], margin: float) -> list[Raised]:
    path = Path(file)
    text = path.read_bytes().decode("utf-8")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        hint = "Indent it with spaces."
        raise InputError([f"{file}: its layout cannot be kept."], hint=hint) from None
    edits: dict[tuple[int, int], tuple[str, Raised]] = {}
    for decision in decisions:
        rule = decision.rule
        assert rule is not None
        assert rule.place is not None
        assert rule.threshold is not None
        node = _follow(root, rule.place.path)
        new = _risen(decision, rule.threshold, margin)
        if node is None or new is None:
            continue
        span = node.start_mark.index, node.end_mark.index
        written = text[slice(*span)]
        after = _rewritten(written, new, rule.threshold)
        if after is not None and after != written:
            told = Raised(rule.name, file, rule.place.line, node.value, after.strip("\"'"))
            edits[span] = (after, told)
    for (start, end), (after, _) in sorted(edits.items(), reverse=True):
        text = text[:start] + after + text[end:]
    if edits:
        fresh = path.with_name(path.name + ".new")
        fresh.write_bytes((mark + text).encode("utf-8"))
        fresh.replace(path)
    return [told for _, told in edits.values()]


def _follow(node: Any, path: Sequence[str | int]) -> Any:
    """Find the scalar at a path of keys and positions; None if it is not there."""
    for part in path:
        if isinstance(node, yaml.MappingNode) and isinstance(part, str):
            node = next((v for k, v in node.value if k.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part] if part < len(node.value) else None
        else:
            return None
    return node if isinstance(node, yaml.ScalarNode) else None


def _risen(decision: Decision, threshold: Threshold, margin: float) -> float | None:
    """Give the new threshold, in the metric's unit; None if it would not rise."""
    reached = decision.value
    if decision.on == "confident":
        reached = decision.low if threshold.upwards else decision.high
    if reached is None or not math.isfinite(reached) or threshold.sign == "=":
        return None
    less = margin if threshold.kind == "rate" else margin * abs(reached)
    new = reached - less if threshold.upwards else reached + less
    return new if threshold.effect(new) > 0 else None


def _rewritten(written: str, value: float, old: Threshold) -> str | None:
    """Write a value in the notation that was used, rounded to the lenient side."""
    bare = written.strip("\"'")
    amount = Amount.parse(bare)
    scale, digits = _scale(amount, old)
    number = value / scale
    step = 10.0**digits
    number = (math.floor if old.upwards else math.ceil)(round(number * step, 6)) / step
    if old.effect(number * scale) <= 1e-12:
        return None
    place = bare.index(_digits(bare))
    changed = bare[:place] + f"{number:.{max(digits, 0)}f}" + bare[place + len(_digits(bare)) :]
    if "." in changed:
        whole, _, rest = changed.partition(".")
        figures = _digits("0." + rest).removeprefix("0.")
        short = figures.rstrip("0")
        changed = whole + (f".{short}" if short else "") + rest[len(figures) :]
    return written.replace(bare, changed)


def _scale(amount: Amount, old: Threshold) -> tuple[float, int]:
    """Say what 1 in the notation stands for, and how many decimals to keep."""
    if old.kind == "rate":
        return (0.01, 1) if amount.unit == "%" or amount.number > 1 else (1.0, 3)
    scale = _TIMES.get(amount.unit.lower(), 1.0)
    size = abs(old.value / scale)
    return scale, 0 if size >= 100 else 2 - math.floor(math.log10(size)) if size > 0 else 3


def _digits(text: str) -> str:
    """Give the number in a text, as it is written."""
    start = next(i for i, c in enumerate(text) if c.isdigit() or c == ".")
    end = start
    while end < len(text) and (text[end].isdigit() or text[end] in ".eE"):
        end += 1
    return text[start:end]
