"""A comparison in words that a person can act on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from assay.report.plain import one_line

if TYPE_CHECKING:
    from assay.comparison import Comparison, Side
    from assay.estimate import Estimate
    from assay.pairs import Pair

QUALITY = ("pass_rate", "accuracy", "impl_rate_mean", "composite_score")
"""What a side is judged by, the first that there is."""

VERBS = {
    "pass_rate": ("passes {} {} often than", "more", "less", "in passing"),
    "accuracy": ("is right {} {} often than", "more", "less", "in accuracy"),
    "impl_rate_mean": ("does {} {} of what is required than", "more", "less", "in impl_rate"),
    "composite_score": ("scores {} {} than", "higher", "lower", "in the composite score"),
}


def sentences(found: Comparison) -> list[str]:
    """Say what was found, one paragraph for each pair of sides, then what holds over all."""
    pairs = list(dict.fromkeys((p.a, p.b) for p in found.pairs))
    lines = [" ".join(_against(found, a, b)) for a, b in pairs]
    if not found.tested:
        lines.append("No chosen metric is a mean over records, so none is compared task by task.")
    elif not pairs:
        lines.append("The sides have nothing in common that could be compared task by task.")
    lines += _over_all(found)
    if found.without_side:
        have, belong = ("has", "belongs") if found.without_side == 1 else ("have", "belong")
        without = f"{have} no {' and '.join(found.by)} and {belong} to no side."
        lines.append(f"{_count(found.without_side, 'record')} {without}")
    return lines


def _against(found: Comparison, a: str, b: str) -> list[str]:
    pair = next((p for n in QUALITY if (p := found.pair(b, n, a))), None)
    first, second = one_line(a), one_line(b)
    cost = _cost(found, a, b)
    if pair is None:
        others = (p for p in found.pairs if (p.a, p.b) == (a, b) and p.metric != "cost_usd_mean")
        parts = [_other(p, found) for p in others if p.difference is not None]
    elif pair.difference is None:
        return [
            f"{second} and {first} have no task in common, so they cannot be compared task by task "
            f"(they tried {pair.only_b:,} and {pair.only_a:,})."
        ]
    elif pair.shown(found.level):
        told = [_quality(pair, found), *cost]
        joint = " and " if len(told) > 1 and told[1].startswith(("costs", "is")) else "; "
        return ["; ".join([joint.join(told[:2]), *told[2:]]) + ".", *_not_both(pair)]
    else:
        parts = [_quality(pair, found) + "."]
    if cost:
        begins = cost[0].startswith(("costs", "is"))
        parts.append(f"{second if begins else f'{second}:'} {'; '.join(cost)}.")
    return [*parts, *(_not_both(pair) if pair else ())]


def _quality(pair: Pair, found: Comparison) -> str:
    """Say by how much one side is better, or that it was not shown and what would show it."""
    assert pair.difference is not None
    verb, more, less, what = VERBS[pair.metric]
    a, b = one_line(pair.a), one_line(pair.b)
    sign = -1 if pair.difference < 0 else 1
    size = points(abs(pair.difference), pair)
    level = f"{found.confidence * 100:g} %"
    if pair.low is not None and pair.high is not None:
        ends = sorted((sign * pair.low, sign * pair.high))
        reach = f" ({level}: {' to '.join(_bare(e, pair) for e in ends)})"
    else:
        reach = ""
    if pair.shown(found.level):
        return f"{b} {verb.format(size, more if sign > 0 else less)} {a}{reach}"
    if pair.p is not None and pair.p <= found.level:
        chance = f"among {found.comparisons} comparisons that can be chance"
        said = f"{b} {verb.format(size, more if sign > 0 else less)} {a}{reach}, but {chance}"
        said += f" (Holm's p = {probability(pair.p_adjusted)})"
    else:
        near = ""
        if pair.low is not None and pair.high is not None:
            low, high = (_bare(e, pair) for e in (pair.low, pair.high))
            near = f" ({_signed(pair.difference, pair)} points; {level}: {low} to {high})"
        said = f"No difference {what} could be shown between {b} and {a}{near}"
    return said + _missed(pair, found.comparisons)


def _other(pair: Pair, found: Comparison) -> str:
    """Say how one side differs from the other in something that is no judgment."""
    assert pair.difference is not None
    a, b = one_line(pair.a), one_line(pair.b)
    if not pair.shown(found.level):
        return f"No difference in {pair.metric} could be shown between {b} and {a}."
    more = "higher" if pair.difference > 0 else "lower"
    always = ", at every task by the same" if pair.alike else ""
    return f"{pair.metric} is {plain(abs(pair.difference), 3)} {more} in {b} than in {a}{always}."


def _missed(pair: Pair, comparisons: int) -> str:
    """Say what the data could not have seen, all comparisons considered."""
    tasks = _count(pair.tasks, "task")
    among = f" among {comparisons} comparisons" if comparisons > 1 else ""
    if pair.detectable is None:
        could = f"; {tasks} cannot show any{among}"
    else:
        size = points(pair.detectable, pair)
        could = f"; {tasks} show one of {size} or more four times in five{among}"
    if pair.tasks_for_5_points is None or pair.tasks_for_5_points <= pair.tasks:
        return could
    return f"{could}, and to see one of 5 points you need about {rounded(pair.tasks_for_5_points)}"


def _cost(found: Comparison, a: str, b: str) -> list[str]:
    """Say what an attempt and a pass cost, beside the other side's."""
    pair = found.pair(b, "cost_usd_mean", a)
    parts = []
    if pair and pair.mean_a and pair.mean_b is not None:
        if pair.shown(found.level):
            parts.append(f"costs {_ratio(pair.mean_b / pair.mean_a)} per attempt")
        elif math.isclose(pair.mean_a, pair.mean_b, rel_tol=1e-9):
            parts.append("costs the same per attempt")
        else:
            parts.append("is not shown to differ in cost per attempt")
    passes = _pass(found[a], found[b], found.confidence)
    return [*parts, passes] if passes else parts


def _ratio(ratio: float) -> str:
    if ratio >= 1.5:
        return f"{ratio:.2g} times as much" if ratio < 10 else f"{ratio:,.0f} times as much"
    share = abs(ratio - 1) * 100
    return f"{share:.2g} % {'more' if ratio >= 1 else 'less'}"


def _pass(a: Side, b: Side, confidence: float) -> str:
    """Say what a pass costs on both sides."""
    old, new = a["cost_of_pass"], b["cost_of_pass"]
    if not isinstance(old.value, float) or not isinstance(new.value, float):
        return ""
    if math.isfinite(old.value) and math.isfinite(new.value):
        if money(old.value) == money(new.value):
            return f"a pass costs {money(new.value)} on both"
        return f"a pass costs {money(new.value)} instead of {money(old.value)}"
    if math.isfinite(new.value):
        return f"a pass costs {money(new.value)}; {_never(a.name, old, confidence)}"
    if math.isfinite(old.value):
        return f"{_never('it', new, confidence)} instead of {money(old.value)}"
    return _never("neither", new, confidence)


def _never(name: str, e: Estimate, confidence: float) -> str:
    """Say that nothing passed, and the lower bound of what a pass then costs."""
    said = "neither ever passed" if name == "neither" else f"{one_line(name)} never passed"
    if not isinstance(e.low, float) or not math.isfinite(e.low):
        return said
    return f"{said}: a pass costs more than {money(e.low)} at {confidence * 100:g} %"


def _not_both(pair: Pair) -> list[str]:
    """Count the tasks that stay out."""
    said = []
    for name, count in ((pair.a, pair.only_a), (pair.b, pair.only_b)):
        if count:
            said.append(f"{count:,} only by {one_line(name)}")
    if not said:
        return []
    return [f"({_count(pair.tasks, 'task')} tried by both; {' and '.join(said)}, left out.)"]


def _over_all(found: Comparison) -> list[str]:
    best = found.across.frontier
    if best is None:
        return []
    if best.name is None:
        return ["Nothing passed on any side, so a pass has no price."]
    parts = [f"The cheapest pass: {one_line(best.name)}, {money(best.cost_of_pass)}."]
    for step in found.steps:
        way = f"from {one_line(step.start)} to {one_line(step.end)}"
        parts.append(f"Going {way}, each further pass costs {money(step.cost_of_further_pass)}.")
    for worse in found.dominated:
        name, by = one_line(worse.name), one_line(worse.by)
        parts.append(f"{name} costs no less than {by} and passes no more often.")
    return [" ".join(parts)]


def points(share: float, pair: Pair) -> str:
    """Write a difference of shares in points, as exactly as its interval allows."""
    text = _bare(share, pair)
    return f"{text} point" if text == "1" else f"{text} points"


def _bare(share: float, pair: Pair) -> str:
    wide = pair.low is None or pair.high is None or pair.high - pair.low >= 0.05
    text = f"{share * 100:.0f}" if wide else f"{share * 100:.1f}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


def _signed(share: float, pair: Pair) -> str:
    text = _bare(share, pair)
    return text if text.startswith("−") or not float(text) else f"+{text}"


def money(value: float, digits: int = 2) -> str:
    """Write dollars: cents from one dollar on, so many significant digits below."""
    if not math.isfinite(value):
        return "∞"
    sign, size = "−" if value < 0 else "", abs(value)
    return f"{sign}${size:,.2f}" if size >= 1 else f"{sign}${plain(size, digits)}"


def plain(value: float, digits: int = 2) -> str:
    """Write a number without an exponent, as short as so many significant digits allow."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(places, 0)}f}"


def probability(p: float | None) -> str:
    """Write a p-value."""
    return "—" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def rounded(count: int) -> str:
    """Write a number of tasks with two significant digits."""
    step = 10 ** max(len(str(count)) - 2, 0)
    return f"{-(-count // step) * step:,} tasks"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
