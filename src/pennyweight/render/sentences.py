"""A comparison in sentences that a person can act on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pennyweight.render.format import difference_cells, heading, unit_of
from pennyweight.render.plain import joined, listed, side_line
from pennyweight.render.prices import (
    MISSING_DECIDE,
    both_prices,
    lower_price,
    price_range,
    with_missing,
)
from pennyweight.scoring.comparison import ComparedSide, Comparison
from pennyweight.scoring.estimates import Estimate
from pennyweight.scoring.pairs import Pair
from pennyweight.text.format import (
    TIMES,
    count,
    interval,
    level,
    money,
    p_value,
    plural,
    points,
    quantity,
    ratio,
)
from pennyweight.text.notation import POINTS, SHARE

COST = "cost_usd_mean"
MAX_PAIRS = 4
"""With more pairs, sentences say only what holds for all of them."""


@dataclass(frozen=True, slots=True)
class _Quality:
    """How a difference in one metric of quality is worded."""

    verb: str
    """With places for the size of the difference and its direction."""
    more: str
    less: str
    noun: str


QUALITY = {
    "pass_rate": _Quality("passes {} {} often than", "more", "less", "pass rate"),
    "accuracy": _Quality("is right {} {} often than", "more", "less", "accuracy"),
    "impl_rate_mean": _Quality(
        "meets {} {} of the requirements than", "more", "less", "implementation rate"
    ),
    "composite_score": _Quality("scores {} {} than", "higher", "lower", "composite score"),
}
"""The metrics that a side is judged by; the first that was compared is used."""


@dataclass(frozen=True, slots=True)
class _Clause:
    """Part of a sentence: a predicate of the side that the sentence is about, or a main clause."""

    text: str
    predicate: bool = False


def sentences(comparison: Comparison) -> list[str]:
    """Write one paragraph for each pair of a few sides, then what holds for all of them."""
    pairs = comparison.compared
    few = pairs if len(pairs) <= MAX_PAIRS else []
    lines = [" ".join(_pair_sentences(comparison, a, b)) for a, b in few]
    if not comparison.tested:
        lines.append(
            "None of the chosen metrics is a mean over records, so none is compared task by task."
        )
    elif not pairs:
        tried = any(one.tasks for one in comparison.overlaps)
        why = "No task has a result on two sides" if tried else "The sides have no tasks in common"
        lines.append(f"{why}, so they are not compared task by task.")
    lines += [_margin(p) for p in comparison.pairs if p.held] + _overall(comparison)
    if comparison.without_side:
        have, belong = ("has", "belongs") if comparison.without_side == 1 else ("have", "belong")
        lines.append(
            f"{plural(comparison.without_side, 'record')} {have} no "
            f"{' and '.join(comparison.by)} and {belong} to no side."
        )
    return lines


def _pair_sentences(comparison: Comparison, a: str, b: str) -> list[str]:
    pair = next((p for n in QUALITY if (p := comparison.pair(b, n, a))), None)
    first, second = side_line(a), side_line(b)
    cost = _cost(comparison, a, b) if comparison.about_cost else []
    if pair is None:
        others = (
            p for p in comparison.pairs if (p.a, p.b) == (a, b) and p.metric != "cost_usd_mean"
        )
        parts = [_other_metric(p, comparison) for p in others if p.difference is not None]
    elif pair.difference is None:
        overlap = comparison.overlap(a, b)
        if overlap and overlap.tasks:
            return [
                f"{second} and {first} both tried {plural(overlap.tasks, 'task')}, but no task has "
                "a result on both sides, so they are not compared task by task."
            ]
        return [
            f"{second} and {first} have no tasks in common, so they are not compared task by task "
            f"({second} tried {plural(pair.only_b, 'task')}, {first} {count(pair.only_a)})."
        ]
    elif pair.errors_decide(comparison.level):
        parts = [without_verdict(pair), f"Without them, {_quality(pair, comparison)}."]
        parts.append(missing_results(pair))
    elif pair.shown(comparison.level):
        sentence = _quality(pair, comparison)
        for clause in cost:
            sentence += f"{' and' if clause.predicate else ';'} {clause.text}"
        return [f"{sentence}.", *_left_out(pair, comparison)]
    else:
        tested = 1 if pair.primary else comparison.other_comparisons
        parts = [_quality(pair, comparison), *_power(pair, tested)]
    if cost:
        begin = f"{second} " if cost[0].predicate else f"{second}: "
        parts.append(begin + "; ".join(clause.text for clause in cost) + ".")
    return [*parts, *(_left_out(pair, comparison) if pair else ())]


def _quality(pair: Pair, comparison: Comparison) -> str:
    """Write by how much one side is better, or that no difference was shown."""
    assert pair.difference is not None
    words, unit = QUALITY[pair.metric], unit_of(pair.metric)
    a, b = side_line(pair.a), side_line(pair.b)
    confidence = level(comparison.confidence)
    bounds = None if pair.low is None or pair.high is None else (pair.low, pair.high)
    by_chance = not (pair.shown(comparison.level) or pair.errors_decide(comparison.level))
    if by_chance and (pair.primary or pair.p is None or pair.p > comparison.level):
        size, ends = difference_cells(pair.metric, pair.difference, pair.low, pair.high)
        reach = f" ({size}; {confidence}: {ends})" if bounds else ""
        return f"No difference in {words.noun} was shown between {b} and {a}{reach}."
    sign = -1 if pair.difference < 0 else 1
    more = words.more if sign > 0 else words.less
    text = f"{b} {words.verb.format(_size(abs(pair.difference), unit), more)} {a}"
    if bounds:
        low, high = sorted(sign * end for end in bounds)
        text += f" ({confidence}: {interval(low, high, POINTS if unit == SHARE else unit)})"
    if by_chance and pair.p_adjusted is not None:
        text += (
            f", but among {comparison.other_comparisons} comparisons that can be chance "
            f"(Holm's {p_value(pair.p_adjusted)})."
        )
    return text


def without_verdict(pair: Pair) -> str:
    """Say what a verdict on a pair depends on."""
    decides = "errors" if pair.missing and pair.missing.errors else "missing verdicts"
    return f"No verdict: {decides} decide."


def missing_results(pair: Pair) -> str:
    """Write how many results of each side are missing, and between which differences they lie."""
    missing = pair.missing
    assert missing is not None
    lacks = [
        f"{plural(number, 'result')} of {side_line(name)}"
        for name, number in ((pair.a, missing.a), (pair.b, missing.b))
        if number
    ]
    are = "is" if missing.a + missing.b == 1 else "are"
    low, high = missing.low, missing.high
    unit = unit_of(pair.metric)
    first, last = (points(end) if unit == SHARE else quantity(end, unit) for end in (low, high))
    chance = ", which can be chance" if low * high > 0 else ""
    return (
        f"{joined(lacks)} {are} missing. Counted for and against each side, they leave a "
        f"difference between {first} and {last}{chance}."
    )


def _size(difference: float, unit: str) -> str:
    return points(difference, signed=False) if unit == SHARE else quantity(difference, unit)


def _other_metric(pair: Pair, comparison: Comparison) -> str:
    """Write how one side differs from the other in a metric that is not about quality."""
    assert pair.difference is not None
    a, b = side_line(pair.a), side_line(pair.b)
    if pair.errors_decide(comparison.level):
        return f"{without_verdict(pair)} {missing_results(pair)}"
    if not pair.shown(comparison.level):
        return f"No difference in {pair.metric} was shown between {b} and {a}."
    more = "higher" if pair.difference > 0 else "lower"
    always = ", by the same amount at every task" if pair.alike else ""
    size = _size(abs(pair.difference), unit_of(pair.metric))
    return f"{pair.metric} is {size} {more} in {b} than in {a}{always}."


def _power(pair: Pair, comparisons: int) -> Iterator[str]:
    """Write which difference the data would have shown, all comparisons considered."""
    tasks = plural(pair.tasks, "task")
    given = f"{tasks} and {comparisons} comparisons" if comparisons > 1 else tasks
    if pair.detectable is None:
        text = f"With {given}, no difference can be shown"
    else:
        size = _size(pair.detectable, unit_of(pair.metric))
        text = (
            f"With {given}, a true difference of {size} would be found in 80 % of such experiments"
        )
    if pair.tasks_for_5_points is not None and pair.tasks_for_5_points > pair.tasks:
        text += f"; finding one of 5 points takes about {_about(pair.tasks_for_5_points)} tasks"
    yield f"{text}."


def _about(number: int) -> str:
    """Round a number up to two significant digits.

    >>> _about(1_234), _about(57)
    ('1,300', '57')
    """
    step = 10 ** max(len(str(number)) - 2, 0)
    return count(-(-number // step) * step)


def _margin(pair: Pair) -> str:
    """Write whether a side is shown to be no worse by more than a margin, or equivalent."""
    held = pair.held
    assert held is not None
    a, b, metric = side_line(pair.a), side_line(pair.b), heading(pair.metric)
    unit = SHARE if held.margin_of == "ratio" else unit_of(pair.metric)
    amount = abs(held.margin)
    size = quantity(amount, unit) if held.margin_of == "ratio" else _size(amount, unit)
    if held.margin < 0:
        if held.p_no_worse_adjusted is None:
            return f"Neither direction of {metric} is better, so no margin below 0 is tested."
        told = f"{b} is better than {a} in {metric} by at least {size}"
        rare = "; at exactly that much better, this is said in at most " + level(held.level)
        said = f"({p_value(held.p_no_worse_adjusted)}{rare})"
        return f"{'' if held.no_worse else 'It is not shown that '}{told} {said}."
    shown, p = held.no_worse, held.p_no_worse_adjusted
    told = f"{b} is no worse than {a} in {metric} by more than {size}"
    if held.equivalent or p is None:
        shown, p = held.equivalent, held.p_equivalent_adjusted
        told = f"{b} and {a} are equivalent in {metric} within ±{size}"
    return f"{'' if shown else 'It is not shown that '}{told} ({p_value(p)})."


def _cost(comparison: Comparison, a: str, b: str) -> list[_Clause]:
    """Write what an attempt and a pass cost, compared with the other side."""
    pair = comparison.pair(b, "cost_usd_mean", a)
    clauses = []
    if pair and pair.mean_a and pair.mean_b is not None:
        if pair.shown(comparison.level):
            text = (
                f"costs {ratio(pair.mean_b / pair.mean_a)} per attempt{_factor(pair, comparison)}"
            )
        elif pair.errors_decide(comparison.level):
            text = "may cost as much per attempt, because errors are left out"
        elif math.isclose(pair.mean_a, pair.mean_b, rel_tol=1e-9):
            text = "costs the same per attempt"
        else:
            text = "is not shown to differ in cost per attempt"
        clauses.append(_Clause(text, predicate=True))
    passes = _cost_of_pass(comparison, comparison[a], comparison[b])
    if passes:
        unpriced = comparison[a].unpriced or comparison[b].unpriced
        known = ", as far as costs are known" if unpriced else ""
        clauses.append(_Clause(passes + known))
    return clauses


def _factor(pair: Pair, comparison: Comparison) -> str:
    """Write the interval of a ratio, as `ratio` writes its value."""
    low, high = pair.ratio_low, pair.ratio_high
    if low is None or high is None:
        return ""
    sure = level(comparison.confidence)
    if high <= 1 or (low >= 1 and (pair.ratio or 0) < TIMES):
        least, most = sorted((abs(low - 1), abs(high - 1)))
        return f" ({sure}: {interval(least, most, SHARE)})"
    return f" ({sure}: {interval(low, high, '')} times)"


def _cost_of_pass(comparison: Comparison, a: ComparedSide, b: ComparedSide) -> str:
    """Write what a pass costs on both sides; that one costs less, only if intervals show it."""
    overlap = comparison.overlap(a.name, b.name)
    confidence: float | None
    if overlap and not overlap.whole:
        first, second = overlap.passes if overlap.a == a.name else reversed(overlap.passes)
        old, new, confidence = Estimate(first), Estimate(second), None
    else:
        old, new, confidence = a["cost_of_pass"], b["cost_of_pass"], comparison.confidence
    if not isinstance(old.value, float) or not isinstance(new.value, float):
        return ""
    if math.isinf(old.value) and math.isinf(new.value):
        return _never_passed("neither ever passed", new, confidence)
    if math.isinf(new.value):
        never = _never_passed("it never passed", new, confidence)
        return f"{never}; a pass of {side_line(a.name)} costs {money(old.value)}"
    price = f"a pass costs {money(new.value)}"
    if math.isinf(old.value):
        never = _never_passed(f"{side_line(a.name)} never passed", old, confidence)
        return f"{price}; {never}"
    if confidence is None:
        same = money(old.value) == money(new.value)
        against = "on both sides" if same else f"against {money(old.value)}"
        return f"{price} {against} on the tasks that both tried"
    alike = not a.unpriced and not b.unpriced
    if alike and (lower_price(old, _at_best(b)) or lower_price(new, _at_best(a))):
        return f"{price} instead of {money(old.value)}"
    decide = alike and (lower_price(old, new) or lower_price(new, old))
    return f"a pass costs {both_prices(new, old)}{MISSING_DECIDE if decide else ''}"


def _at_best(side: ComparedSide) -> Estimate:
    """Return the price of a pass, with an interval for whatever its missing results would be."""
    return with_missing(side["cost_of_pass"], side["pass_rate"], side.group.records)


def _never_passed(text: str, e: Estimate, confidence: float | None) -> str:
    """Add to "never passed" the lower bound of what a pass costs then.

    Without a confidence, only the tasks that both sides tried are meant.
    """
    if confidence is None:
        return f"{text} on the tasks that both tried"
    if not isinstance(e.low, float) or not math.isfinite(e.low):
        return text
    return f"{text}, so a pass costs more than {money(e.low)} ({level(confidence)} confidence)"


def _left_out(pair: Pair, comparison: Comparison) -> list[str]:
    """Count the tasks and records that are not compared."""
    overlap = comparison.overlap(pair.a, pair.b)
    tried = max(overlap.tasks, pair.tasks) if overlap else pair.tasks
    parts = []
    if tried > pair.tasks:
        what = "verdict" if pair.metric in {"pass_rate", "accuracy"} else "value"
        parts.append(f"{count(tried - pair.tasks)} of these without a {what} on one side")
    for name, only in ((pair.a, pair.only_a), (pair.b, pair.only_b)):
        if only:
            parts.append(f"{count(only)} tried only by {side_line(name)}")
    lines = []
    if parts:
        lines.append(f"({plural(tried, 'task')} tried by both. Left out: {joined(parts)}.)")
    for common in overlap.common if overlap else ():
        left = joined(
            [
                f"{listed(one.values)} ({plural(one.records, 'record')} of {side_line(one.side)})"
                for one in common.alone
            ]
        )
        noun = common.column if len(common.values) == 1 else f"{common.column}s"
        lines.append(f"(Compared: {noun} {listed(common.values)}. Left out: {left}.)")
    return lines


def _overall(comparison: Comparison) -> list[str]:
    """Write what holds for all sides: what a pass costs, and what more passes cost."""
    if comparison.across.frontier is None or not comparison.about_cost:
        return []
    parts = [_prices(comparison)]
    if len(comparison.compared) <= MAX_PAIRS:
        parts += [*_further_passes(comparison), *_beaten(comparison)]
    elif further := list(comparison.steps):
        names = dict.fromkeys(name for step in further for name in (step.start, step.end))
        parts.append(f"The cost frontier of these values: {listed(list(names))}.")
    for side in comparison.sides:
        if side["cost_of_pass"].value is not None and side.unpriced:
            have, are = ("has", "is") if side.unpriced == 1 else ("have", "are")
            parts.append(
                f"{count(side.unpriced)} of {plural(side.attempts, 'attempt')} of "
                f"{side_line(side.name)} {have} no cost and {are} not part of these figures."
            )
    return [" ".join(parts)]


def _prices(comparison: Comparison) -> str:
    """Write what a pass costs; name a side that costs least only where intervals show it."""
    costs = {s.name: s.number("cost_of_pass") for s in comparison.sides}
    known = {name: cost for name, cost in costs.items() if cost is not None}
    paid = {n: comparison[n]["cost_of_pass"] for n, cost in known.items() if math.isfinite(cost)}
    unknown = [name for name in costs if name not in known]
    lacking = f"; not known for {listed(unknown)}" if unknown else ""
    if not paid:
        if any(comparison[name].number("pass_rate") for name in unknown):
            return f"The cost of a pass is not known for {listed(unknown)}; nothing else passed."
        return "Nothing passed on any side, so a pass has no price."
    cheap = min(paid, key=lambda name: known[name])
    others = [name for name in paid if name != cheap]
    rest = [paid[name] for name in others]
    if not rest:
        alone = f"A pass of {side_line(cheap)} costs {price_range([paid[cheap]])}"
        never = [name for name in known if name != cheap]
        return f"{alone}{'; nothing else passed' if never else ''}{lacking}."
    partly = ", as far as costs are known" if any(comparison[n].unpriced for n in paid) else ""
    own = _own_tasks(comparison)
    alike = not own and not partly and not lacking
    if alike and all(lower_price(paid[cheap], _at_best(comparison[n])) for n in others):
        least = f"{side_line(cheap)} costs least: {price_range([paid[cheap]])} per pass"
        return f"{least}, the others {price_range(rest)}."
    found = price_range(list(paid.values()))
    none = "" if " to " not in found else "; no side is shown to cost least"
    return f"A pass costs {found}{none}{partly}{lacking}{own}."


def _further_passes(comparison: Comparison) -> Iterator[str]:
    """Write what more passes of a side cost, from the next cheaper one on, where both are shown.

    Only for sides whose costs are known, where the tasks that both tried agree.
    """
    priced = _priced(comparison)
    for step in comparison.steps:
        overlap = comparison.overlap(step.start, step.end)
        if not {step.start, step.end} <= priced or not overlap:
            continue
        if not overlap.better(step.end) or not overlap.dearer(step.end):
            continue
        if _more(comparison, QUALITY, step.start, step.end) != step.end:
            continue
        if _more(comparison, [COST], step.start, step.end) != step.end:
            continue
        start, end, price = side_line(step.start), side_line(step.end), step.cost_of_further_pass
        own = _own_tasks(comparison, step.start, step.end)
        yield f"Going from {start} to {end} buys more passes at {money(price)} each{own}."


def _beaten(comparison: Comparison) -> Iterator[str]:
    """Name the sides that are shown to cost more than another and to pass less often."""
    priced = _priced(comparison)
    for worse in comparison.dominated:
        a, b = worse.by, worse.name
        if not {a, b} <= priced:
            continue
        if _more(comparison, QUALITY, a, b) == a and _more(comparison, [COST], a, b) == b:
            yield f"{side_line(a)} beats {side_line(b)} on both: better, and it costs less."


def _more(comparison: Comparison, metrics: Iterable[str], a: str, b: str) -> str | None:
    """Return which of two sides is shown to have more of the first metric that is compared."""
    for name in metrics:
        pair = comparison.pair(b, name, a) or comparison.pair(a, name, b)
        if pair is not None:
            if not pair.shown(comparison.level) or not pair.difference:
                return None
            return pair.b if pair.difference > 0 else pair.a
    return None


def _priced(comparison: Comparison) -> set[str]:
    """Return the sides whose costs are all known."""
    return {side.name for side in comparison.sides if not side.unpriced}


def _own_tasks(comparison: Comparison, *names: str) -> str:
    """Note that two sides, or any if none is named, did not try the same tasks."""
    overlaps = [comparison.overlap(*names)] if names else comparison.overlaps
    apart = any(one and not one.whole for one in overlaps)
    return " (each over its own tasks)" if apart else ""
