"""A comparison in words that a person can act on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pennyweight.render.plain import one_line
from pennyweight.scoring.estimates import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennyweight.scoring.comparison import Comparison, Side
    from pennyweight.scoring.pairs import Pair
    from pennyweight.scoring.tiers import Frontier

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
        overlap = found.overlap(a, b)
        if overlap and overlap.tasks:
            tried = _count(overlap.tasks, "task")
            return [
                f"{second} and {first} both tried {tried}, but none with a result on both sides, "
                "so they cannot be compared task by task."
            ]
        return [
            f"{second} and {first} have no task in common, so they cannot be compared task by task "
            f"(they tried {pair.only_b:,} and {pair.only_a:,})."
        ]
    elif pair.shown(found.level):
        told = [_quality(pair, found), *cost]
        joint = " and " if len(told) > 1 and told[1].startswith(("costs", "is")) else "; "
        return ["; ".join([joint.join(told[:2]), *told[2:]]) + ".", *_not_both(pair, found)]
    else:
        parts = [_quality(pair, found) + "."]
    if cost:
        begins = cost[0].startswith(("costs", "is"))
        parts.append(f"{second if begins else f'{second}:'} {'; '.join(cost)}.")
    return [*parts, *(_not_both(pair, found) if pair else ())]


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
    passes = _pass(found, found[a], found[b])
    if passes and (found[a].unpriced or found[b].unpriced):
        passes += ", as far as costs are known"
    return [*parts, passes] if passes else parts


def _ratio(ratio: float) -> str:
    if ratio >= 1.5:
        return f"{ratio:.2g} times as much" if ratio < 10 else f"{ratio:,.0f} times as much"
    share = abs(ratio - 1) * 100
    return f"{share:.2g} % {'more' if ratio >= 1 else 'less'}"


def _pass(found: Comparison, a: Side, b: Side) -> str:
    """Say what a pass costs on both sides, on the tasks that both tried."""
    overlap = found.overlap(a.name, b.name)
    if overlap and not overlap.whole:
        first, second = overlap.passes if overlap.a == a.name else reversed(overlap.passes)
        old, new, confidence = Estimate(first), Estimate(second), None
    else:
        old, new, confidence = a["cost_of_pass"], b["cost_of_pass"], found.confidence
    if not isinstance(old.value, float) or not isinstance(new.value, float):
        return ""
    if math.isfinite(old.value) and math.isfinite(new.value):
        if money(old.value) == money(new.value):
            return f"a pass costs {money(new.value)} on both"
        return f"a pass costs {money(new.value)} instead of {money(old.value)}"
    if math.isfinite(new.value):
        return f"a pass costs {money(new.value)}; {_never(a.name, old, confidence)}"
    if math.isfinite(old.value):
        never = _never("it", new, confidence)
        return f"{never}; a pass of {one_line(a.name)} costs {money(old.value)}"
    return _never("neither", new, confidence)


def _never(name: str, e: Estimate, confidence: float | None) -> str:
    """Say that nothing passed, and the lower bound of what a pass then costs.

    Without a confidence only the tasks of both sides are meant.
    """
    said = "neither ever passed" if name == "neither" else f"{one_line(name)} never passed"
    if confidence is None:
        return f"{said} on the tasks of both"
    if not isinstance(e.low, float) or not math.isfinite(e.low):
        return said
    return f"{said}: a pass costs more than {money(e.low)} at {confidence * 100:g} %"


def _not_both(pair: Pair, found: Comparison) -> list[str]:
    """Count the tasks and records that stay out."""
    overlap = found.overlap(pair.a, pair.b)
    tried = max(overlap.tasks, pair.tasks) if overlap else pair.tasks
    said = []
    if tried > pair.tasks:
        what = "verdict" if pair.metric in {"pass_rate", "accuracy"} else "value"
        said.append(f"{tried - pair.tasks:,} of them without a {what} on a side")
    for name, count in ((pair.a, pair.only_a), (pair.b, pair.only_b)):
        if count:
            said.append(f"{count:,} only by {one_line(name)}")
    lines = []
    if said:
        lines.append(f"({_count(tried, 'task')} tried by both; {_joined(said)}, left out.)")
    for common in overlap.common if overlap else ():
        left = _joined(
            [
                f"{_listed(one.values)} ({_count(one.records, 'record')} of {one_line(one.side)})"
                for one in common.alone
            ]
        )
        plural = "" if len(common.values) == 1 else "s"
        lines.append(
            f"(Only {common.column}{plural} {_listed(common.values)} compared; {left} left out.)"
        )
    return lines


def _over_all(found: Comparison) -> list[str]:
    best = found.across.frontier
    if best is None:
        return []
    parts = [_cheapest(found, best), *_further(found)]
    for side in found.sides:
        if side["cost_of_pass"].value is not None and side.unpriced:
            have = "has" if side.unpriced == 1 else "have"
            some = f"{side.unpriced:,} of {_count(side.attempts, 'attempt')}"
            rest = "what it cost" if side.unpriced == 1 else "what they cost"
            parts.append(
                f"{some} of {one_line(side.name)} {have} no cost; {rest} is not in these figures."
            )
    return [" ".join(parts)]


def _cheapest(found: Comparison, best: Frontier) -> str:
    """Name the side whose pass is cheapest, as far as that is known."""
    known = {s.name: c for s in found.sides if (c := s.number("cost_of_pass")) is not None}
    unknown = [s.name for s in found.sides if s.name not in known]
    if best.name is None:
        if any(found[name].number("pass_rate") for name in unknown):
            return f"What a pass costs is not known for {_listed(unknown)}; nothing else passed."
        return "Nothing passed on any side, so a pass has no price."
    price, own = money(best.cost_of_pass), _own(found)
    if len(known) == 1:
        return (
            f"A pass of {one_line(best.name)} costs {price}; what one costs is not known for "
            f"{_listed(unknown)}."
        )
    tied = [
        name
        for name, cost in known.items()
        if name != best.name and math.isclose(cost, best.cost_of_pass, rel_tol=1e-9)
    ]
    said = f"{one_line(best.name)}, {price}"
    if tied:
        said += f", tied with {_listed(tied)}"
    if found[best.name].unpriced:
        said += ", as far as costs are known"
    if unknown:
        said += f"; not known for {_listed(unknown)}"
    return f"The cheapest pass: {said}{own}."


def _further(found: Comparison) -> Iterator[str]:
    """Say what further passes cost, and who costs more for no more.

    Only of sides whose costs are all known, and where the tasks that both tried say the same.
    """
    priced = {side.name for side in found.sides if not side.unpriced}
    for step in found.steps:
        overlap = found.overlap(step.start, step.end)
        if not {step.start, step.end} <= priced or not overlap:
            continue
        if not overlap.better(step.end) or not overlap.dearer(step.end):
            continue
        way = f"from {one_line(step.start)} to {one_line(step.end)}"
        real = "" if _differ(found, step.start, step.end) else ", if the difference is real"
        price = money(step.cost_of_further_pass)
        own = _own(found, step.start, step.end)
        yield f"Going {way}, each further pass costs {price}{real}{own}."
    for worse in found.dominated:
        overlap = found.overlap(worse.by, worse.name)
        if not {worse.name, worse.by} <= priced or not overlap or not overlap.tasks:
            continue
        if overlap.better(worse.name) or overlap.dearer(worse.by):
            continue
        name, by = one_line(worse.name), one_line(worse.by)
        own = _own(found, worse.by, worse.name)
        yield f"{name} costs no less than {by} and passes no more often{own}."


def _differ(found: Comparison, a: str, b: str) -> bool:
    """Whether two sides were shown to pass differently often."""
    tested = (
        found.pair(end, metric, start)
        for metric in ("pass_rate", "accuracy")
        for start, end in ((a, b), (b, a))
    )
    return any(pair.shown(found.level) for pair in tested if pair)


def _own(found: Comparison, *names: str) -> str:
    """Remark that sides, all unless named, did not try the same tasks."""
    overlaps = [found.overlap(*names)] if names else found.overlaps
    apart = any(one and not one.whole for one in overlaps)
    return " (each over its own tasks)" if apart else ""


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _listed(names: Sequence[str], most: int = 6) -> str:
    """Join names; of many the first."""
    shown = [one_line(name) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} others"
    return _joined(shown)


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
