"""Repeated attempts in words: which k the metrics use, and where the variance comes from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pennyweight.text.format import count, number, plural, share

VALUES = {"passed": "passes", "judge_scores": "judges' scores", "impl_rate": "implementation rates"}
"""The values whose variance is split, in words."""
MAX_SIDES = 3
"""The most sides that are described one by one."""


def repeat_lines(groups: Sequence[tuple[str, Mapping[str, Any] | None]]) -> Iterator[str]:
    """Describe the repeats of named groups, given as `Repeats.to_dict` writes them.

    Of several groups, only the first value that varies is described.
    """
    known = [(f"{name}: " if len(groups) > 1 else "", found) for name, found in groups if found]
    designs = {(*found["attempts"], found["k"]) for _, found in known}
    described = known if len(known) <= MAX_SIDES else []
    for who, found in described if len(designs) > 1 else known[:1]:
        low, high = found["attempts"]
        each = plural(high, "attempt") if low == high else f"{count(low)} to {count(high)} attempts"
        k = count(found["k"])
        yield f"{who if len(designs) > 1 else ''}{each} at each task; k is {k}."
    sizes = sorted({k for *_, k in designs})
    if len(sizes) > 1:
        yield f"k differs between the groups; --k {sizes[0]} makes them comparable."
    for who, found in described:
        said = [variance_sentence(value, split) for value, split in found["variance"].items()]
        yield from (f"{who}{line}" for line in [s for s in said if s][: 1 if who else None])


def repeat_words(digest: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what pages and reports say about the repeats of each side."""
    groups = digest["sides"] or [digest["whole"]]
    return {"words": list(repeat_lines([(g["name"], g.get("repeats")) for g in groups]))}


def variance_sentence(value: str, split: Mapping[str, Any]) -> str:
    """Say what explains the variance of a value, and what would make its mean more certain."""
    if split["icc"] is None:
        return ""
    total = split["task"] + split["attempt"] + (split["judge"] or 0.0)
    parts = f"Repeats explain {share(split['attempt'] / total)}"
    if split["judge"] is not None:
        parts += f" and judges {share(split['judge'] / total)}"
    ends = split["icc_interval"]
    icc = number(split["icc"], 2)
    icc += f", {number(ends[0], 2)} to {number(ends[1], 2)}" if ends else ""
    less = share(1 - math.sqrt(max(0.0, 1 - split["from_repeats"])))
    advice = {
        "tasks": f"add tasks, not repeats. Endless repeats would narrow the interval by {less}",
        "both": f"add tasks first. Endless repeats would narrow the interval by {less}",
        "either": "more repeats help nearly as much as more tasks",
    }[split["advice"]]
    return f"{parts} of the variance of {VALUES[value]}: {advice} (intraclass correlation {icc})."
