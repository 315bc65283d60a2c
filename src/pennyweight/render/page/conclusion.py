"""The conclusion of a page or report: who is best, by how much, how sure, at what price."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pennyweight.render.format import estimate_cells, unit_of
from pennyweight.render.page import visible
from pennyweight.render.page.board import BoardView
from pennyweight.render.page.board_sides import board_sides
from pennyweight.render.page.leaderboard import board_of, leaderboard
from pennyweight.render.page.metric_titles import metric_title
from pennyweight.render.page.probe_words import probe_words, side_value
from pennyweight.render.plain import joined, side_line
from pennyweight.render.prices import (
    MISSING_DECIDE,
    both_prices,
    higher_price,
    lower_price,
    own_tasks,
    price_range,
    with_missing,
)
from pennyweight.render.sentences import QUALITY
from pennyweight.render.view import estimate
from pennyweight.scoring.estimates import Estimate
from pennyweight.scoring.sides import MAX_SIDES
from pennyweight.text.format import count, interval, level, money, plural, points, quantity
from pennyweight.text.notation import POINTS, SHARE

MAX_NAMED = 4
"""The most sides that are named as possibly the best."""
_UNDECIDED = "Nothing says which attempts are right, so none of this is about quality."
_DECIDES = "A target or checks of the tasks, 'verify' of an agent, or a judge decides it."
_PEOPLE_DECIDE = "The answers of people decide it."


@dataclass(frozen=True, slots=True)
class Words:
    """A part of a sentence; a name is set apart, because anything can be in it."""

    text: str
    name: bool = False


@dataclass(frozen=True, slots=True)
class Conclusion:
    """One sentence, and what else a reader must know: why nothing is shown, what it would take."""

    parts: tuple[Words, ...]
    notes: tuple[str, ...] = ()
    shown: bool = False
    """Whether one side is shown to be the best."""

    def __str__(self) -> str:
        return "".join(part.text for part in self.parts)


def conclusion(digest: Mapping[str, Any], by: str = "") -> Conclusion | None:
    """Write the conclusion of a digest about the sides by these columns; None without records."""
    metric, whole = digest["headline"], digest["whole"]
    if whole["records"] and whole["errors"] == whole["records"]:
        text = f"Nothing was measured: all {plural(whole['records'], 'attempt')} ended in an error."
        return _said(
            text if whole["records"] > 1 else "Nothing was measured: the attempt ended in an error."
        )
    if metric is None:
        decides = _PEOPLE_DECIDE if digest.get("questions") else _DECIDES
        return _said(_UNDECIDED, decides) if whole["records"] else None
    board = board_of(digest, by)
    if board is None or (not digest["sides"] and not by):
        return _alone(whole, metric, digest)
    view = leaderboard(digest, None if not by else _choice(by))
    if view is None or not any(side_value(side, metric) is not None for side in board["sides"]):
        return None
    if board_sides(board["sides"]).is_probed:
        return _said(*probe_words(digest, board["sides"], metric))
    sides = {side["name"]: side for side in board["sides"]}
    named = [side for row in view.rows if None not in (side := sides[row.name])["group"].values()]
    order = [side for side in named if side_value(side, metric) is not None]
    if not order:
        return None
    if board["comparison"] is None:
        same = digest.get("same_exam", True)
        found = _apart(order, metric, board["by"], _pooled(digest, board["by"]), same=same)
    else:
        found = _compared(view, order, metric, board["comparison"], digest)
        pooled = _pooled(digest, board["by"])
        found = replace(found, notes=(*found.notes, *([pooled] if pooled else [])))
    return replace(found, notes=(*found.notes, *_left_out(digest, sides, named, order, metric)))


def _errors_as(digest: Mapping[str, Any]) -> str:
    """Say what errors count as."""
    if digest.get("errors") == "failures":
        return "Errors count as failures (--errors failures)"
    return "Left out because they ended in an error"


def _left_out(
    digest: Mapping[str, Any],
    sides: Mapping[str, Mapping[str, Any]],
    named: Sequence[Mapping[str, Any]],
    order: Sequence[Mapping[str, Any]],
    metric: str,
) -> Iterator[str]:
    """Say what is not compared: errors, sides without a value, and records that are of no side."""
    failed = [side for side in order if side["errors"]]
    some = [
        f"{count(side['errors'])} of {plural(side['records'], 'attempt')} of {_name(side)}"
        for side in failed[:MAX_NAMED]
    ]
    if len(failed) > MAX_NAMED:
        errors = sum(side["errors"] for side in failed)
        some = [f"{plural(errors, 'attempt')} of {count(len(failed))} sides"]
    if some:
        yield f"{_errors_as(digest)}: {joined(some)}."
    if without := len(named) - len(order):
        have, are = ("has", "is") if without == 1 else ("have", "are")
        yield f"{plural(without, 'side')} {have} no {_noun(metric)} and {are} not compared."
    apart = (side["group"] for side in sides.values() if None in side["group"].values())
    lacking = dict.fromkeys(n for group in apart for n, value in group.items() if value is None)
    if lacking:
        yield f"Records without a {' or '.join(lacking)} are not compared."


def _compared(
    view: BoardView,
    order: Sequence[Mapping[str, Any]],
    metric: str,
    compared: Mapping[str, Any],
    digest: Mapping[str, Any],
) -> Conclusion:
    """Write what the tests of sides show, which are in the order of the board."""
    leading = [row.name for row in view.rows if row.leads]
    ahead = next((side for side in order if side["name"] in leading), order[0])
    told = _Told(order, metric, compared, digest["confidence"], digest["whole"]["tasks"])
    if ahead is order[0] and len(order) == 2 and (told.gap(order[1]) or 0) < 0:
        ahead = order[1]
    told = replace(told, order=[ahead, *(side for side in order if side is not ahead)])
    if not view.ranked:
        return told.unranked()
    return told.best() if len(leading) == 1 else told.tied(leading)


def _choice(by: str) -> Any:
    from pennyweight.render.page.board import BoardChoice  # noqa: PLC0415

    return BoardChoice(by=by)


def _said(text: str, *notes: str) -> Conclusion:
    return Conclusion((Words(text),), tuple(filter(None, notes)))


def _alone(whole: Mapping[str, Any], metric: str, digest: Mapping[str, Any]) -> Conclusion:
    """Write the headline of the only side."""
    e = estimate(whole["estimates"][metric])
    value, ends = estimate_cells(metric, e)
    sure = f" ({level(digest['confidence'])}: {ends})" if ends else ""
    text = f"{metric_title(metric).title.capitalize()}: {value}{sure}"
    rests = plural(e.records, "attempt") if e.skipped else plural(whole["tasks"], "task")
    text += f" on {rests}"
    price = _price(whole).value
    text += f"; a pass costs {money(price)}." if isinstance(price, float) else "."
    few = "One task shows nothing about others." if whole["tasks"] == 1 else ""
    lacking = ""
    if e.skipped:
        have = "has no verdict and is" if e.skipped == 1 else "have no verdict and are"
        of = plural(e.records + e.skipped, "attempt")
        lacking = f"{count(e.skipped)} of {of} {have} left out."
    failed = ""
    if whole["errors"]:
        of = f"{count(whole['errors'])} of {plural(whole['records'], 'attempt')}"
        failed = f"{_errors_as(digest)}: {of}."
    return _said(text, few, lacking, failed)


def _pooled(digest: Mapping[str, Any], by: Sequence[str]) -> str | None:
    """Say what is together in each side of another board; None for the run's own sides."""
    if by == digest["by"]:
        return None
    if not digest["sides"]:
        return ""
    rest = [name for name in digest["by"] if name not in by]
    several = " and ".join(f"{name}s" for name in rest)
    if len(rest) == len(digest["by"]):
        several = f"{count(len(digest['sides']))} sides"
    return f"Each value is that of all {several} together."


def _apart(
    order: Sequence[Mapping[str, Any]],
    metric: str,
    by: Sequence[str],
    pooled: str | None,
    *,
    same: bool,
) -> Conclusion:
    """Write the ends of sides that have no tasks in common, or not the same exam.

    `pooled` says what is together in each side; None for the run's own sides.
    """
    first, last = order[0], order[-1]
    value, lowest = (quantity(side_value(side, metric), unit_of(metric)) for side in (first, last))
    parts = [Words(_name(first), name=True)]
    if last is first:
        parts.append(Words(f" is the only side with a value; its {_noun(metric)} is {value}."))
        return Conclusion(tuple(parts), tuple(filter(None, (pooled,))))
    parts.append(Words(f" has the highest {_noun(metric)}, {value}; the lowest is "))
    parts += [Words(_name(last), name=True), Words(f", {lowest}.")]
    note = f"Each {' and '.join(by)} has tasks of its own"
    if len(order) > MAX_SIDES:
        note = f"There are more than {MAX_SIDES} sides"
    elif pooled is None:
        note = "The sides have no tasks in common"
        if len(order) > 2:
            note = "The first side has no tasks in common with the others"
        if not same:
            note = "The sides did not take the same exam"
    note += ", so their differences are not tested."
    return Conclusion(tuple(parts), tuple(filter(None, (note, pooled))))


@dataclass(frozen=True, slots=True)
class _Told:
    """The sides, the best first, and their comparison with the first."""

    order: Sequence[Mapping[str, Any]]
    metric: str
    compared: Mapping[str, Any]
    confidence: float
    tasks: int
    """How many tasks have a result on some side."""

    def best(self) -> Conclusion:
        """Say that one side is the best."""
        first, second = self.order[:2]
        size, sure = self._gap(second)
        parts = [Words(_name(first), name=True), Words(f" is best: {size}{sure} above ")]
        parts += [Words(_name(second), name=True), *self._prices(first, second)]
        notes = (*self._other_tasks(), *self._ways(len(self.order)))
        return Conclusion((*parts, Words(".")), notes, shown=True)

    def _other_tasks(self) -> Iterator[str]:
        """Say why a side with a higher value is not the first."""
        first, second = self.order[:2]
        mine, other = (side_value(side, self.metric) for side in (first, second))
        if mine is None or other is None or other <= mine:
            return
        tests, where = self.compared["tests"], "both"
        if (self.gap(second) or 0) <= 0:
            means = dict(zip(tests["sides"], tests["means"], strict=True)) if tests else {}
            if not means.get(second["name"], math.inf) < means.get(first["name"], -math.inf):
                return
            where = "all sides"
        value = quantity(other, unit_of(self.metric))
        yield f"Another side has {value} over all its attempts, but less on what {where} tried."

    def tied(self, leading: Sequence[str]) -> Conclusion:
        """Say which sides may be the best, which of them is cheapest, and what it would take."""
        first, second = self.order[:2]
        named = [s for s in self.order if s["name"] in leading]
        parts: list[Words] = []
        few = self._few(": ")
        pair = self._pair(second)
        if len(self.order) == 2 and pair and pair["errors_decide"]:
            decides = "errors" if pair["missing"]["errors"] else "missing verdicts"
            parts.append(Words(f"No verdict: {decides} decide. Without them, "))
            gap, sure = self._gap(second)
            parts += [Words(_name(first), name=True), Words(f" is ahead by {gap}{sure}")]
            notes = (*self._missing(pair), *self._other_tasks())
            return Conclusion((*parts, *self._prices(first, second), Words(".")), notes)
        if len(self.order) == 2:
            parts.append(Words(f"No difference in {_noun(self.metric)} is shown between "))
            parts += _listed([_name(s) for s in named])
        elif len(named) == len(self.order):
            every = f"None of the {count(len(named))} sides is shown to be better than the others"
            parts.append(Words(f"{every}{self._few(': ')}. "))
        elif len(named) > MAX_NAMED:
            many = f"{count(len(named))} of {count(len(self.order))} sides"
            parts.append(Words(f"{many} may be the best{few}. "))
        else:
            parts += _listed([_name(s) for s in named])
            parts.append(Words(f" may be the best{few}. "))
        if len(self.order) > 2:
            parts += [*self._ahead(named), *self._cheapest(first, named), Words(".")]
        else:
            parts += [*self._ahead_by(second), *self._prices(first, second), Words(".")]
        notes = (*self._other_tasks(), *self._takes(second), *self._ways(len(self.order)))
        return Conclusion(tuple(parts), notes)

    def _missing(self, pair: Mapping[str, Any]) -> Iterator[str]:
        """Write between which differences the missing results lie."""
        missing, unit, sign = pair["missing"], unit_of(pair["metric"]), self._sign(pair)
        lacks = ((pair["a"], missing["a"]), (pair["b"], missing["b"]))
        named = [
            f"{plural(n, 'result')} of {side_line(visible(name), 60)}" for name, n in lacks if n
        ]
        ends = sorted(sign * end for end in missing["bounds"])
        low, high = (points(end) if unit == SHARE else quantity(end, unit) for end in ends)
        are = "is" if missing["a"] + missing["b"] == 1 else "are"
        yield (
            f"{joined(named)} {are} missing. Counted for and against each side, they leave a "
            f"difference between {low} and {high}."
        )

    def _few(self, before: str) -> str:
        """Say that few tasks can rank the sides, where fewer than half of them do."""
        common = self.compared["common"]
        if 2 * common >= self.tasks:
            return ""
        have = "has" if common == 1 else "have"
        of = f"{count(common)} of {plural(self.tasks, 'task')}"
        return f"{before}only {of} {have} a result on every side"

    def _ahead(self, named: Sequence[Mapping[str, Any]]) -> list[Words]:
        """Say which side has the highest value; several, if theirs is the same."""
        best = side_value(self.order[0], self.metric)
        value = quantity(best, unit_of(self.metric))
        ahead = [s for s in named if side_value(s, self.metric) == best]
        if len(ahead) == len(self.order):
            return [Words(f"All have {value}")]
        names = _listed([_name(s) for s in ahead[:MAX_NAMED]])
        if len(ahead) > MAX_NAMED:
            names = [Words(f"{count(len(ahead))} sides")]
        return [*names, Words(f" {'is' if len(ahead) < 2 else 'are'} ahead with {value}")]

    def _ahead_by(self, second: Mapping[str, Any]) -> list[Words]:
        """Say by how much the first of two sides is ahead."""
        size, sure = self._gap(second)
        if self.gap(second) == 0:  # neither is ahead
            return [Words(f": {size}{sure}")]
        first = Words(_name(self.order[0]), name=True)
        return [Words(". "), first, Words(f" is ahead by {size}{sure}")]

    def _prices(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[Words]:
        """Write what a pass of two sides costs; which one costs less, only if that is shown."""
        mine, other = _price(first), _price(second)
        if not isinstance(mine.value, float) or not isinstance(other.value, float):
            return
        if math.isinf(mine.value):
            return
        if math.isinf(other.value):
            yield from (Words("; "), Words(_name(second), name=True))
            yield from (Words(" never passed, and a pass of "), Words(_name(first), name=True))
            yield Words(f" costs {money(mine.value)}")
            return
        own = own_tasks(self._tasks(second), first, second)
        cheaper = lower_price(mine, _price_at_best(second))
        dearer = higher_price(_price_at_best(first), other)
        if not cheaper and not dearer:
            decide = lower_price(mine, other) or lower_price(other, mine)
            both = both_prices(mine, other) + (MISSING_DECIDE if decide else "")
            yield Words(f"; a pass costs {both}{own}")
        elif self.gap(second) == 0:  # no side is the subject of the sentence yet
            side, less = (
                (first, cheaper) if cheaper else (second, lower_price(other, _price_at_best(first)))
            )
            yield from (Words(". "), Words(_name(side), name=True), Words(f" costs {less}{own}"))
        else:
            yield Words(f", and costs {cheaper}{own}" if cheaper else f", but costs {dearer}{own}")

    def _cheapest(
        self, first: Mapping[str, Any], named: Sequence[Mapping[str, Any]]
    ) -> Iterator[Words]:
        """Name the cheapest of the sides that may be the best, as far as intervals show it."""
        prices = {side["name"]: _price(side) for side in named}
        mine, values = prices[first["name"]], [p.value for p in prices.values()]
        if not all(isinstance(value, float) and math.isfinite(value) for value in values):
            return
        cheap = min(named, key=lambda side: prices[side["name"]].value)
        less = lower_price(prices[cheap["name"]], _price_at_best(first))
        if less:
            value = quantity(side_value(cheap, self.metric), unit_of(self.metric))
            own = own_tasks(self._tasks(cheap), first, cheap)
            yield from (Words("; "), Words(_name(cheap), name=True))
            yield Words(f", with {value}, is not shown to be worse and costs {less}{own}")
            return
        others = [side for side in named if side["name"] != first["name"]]
        rest = [prices[side["name"]] for side in others]
        if all(lower_price(mine, _price_at_best(side)) for side in others):
            of = "" if len(named) == len(self.order) else " of these"
            yield from (Words("; "), Words(_name(first), name=True))
            yield Words(f" costs least{of}: {money(mine.value)} per pass, the others ")
            yield Words(price_range(rest))
        else:
            yield Words(f"; a pass of these sides costs {price_range([mine, *rest])}")

    def unranked(self) -> Conclusion:
        """Name the first side where no task was tried by all sides."""
        first, unit = self.order[0], unit_of(self.metric)
        value = quantity(side_value(first, self.metric), unit)
        parts = (
            Words(_name(first), name=True),
            Words(f" has the highest {_noun(self.metric)}, {value}."),
        )
        why = "No task has a result on every side, so the sides are not ranked; the differences "
        why += "below are over the tasks that two sides share."
        if self.compared["common"]:
            why = "One task shows nothing about others, so the sides are not ranked."
        return Conclusion(parts, (why,))

    def _pair(self, side: Mapping[str, Any]) -> Mapping[str, Any] | None:
        ends = {self.order[0]["name"], side["name"]}
        found = (p for p in self.compared["gaps"] if {p["a"], p["b"]} == ends)
        return next((p for p in found if p["difference"] is not None), None)

    def _tasks(self, side: Mapping[str, Any]) -> int:
        """Return how many tasks the first side and another one both tried, or all sides."""
        return int((self._pair(side) or {"tasks": self.compared["common"]})["tasks"])

    def gap(self, side: Mapping[str, Any]) -> float | None:
        """Return by how much the first side is above another on the tasks that both tried."""
        pair = self._pair(side)
        return None if pair is None else self._sign(pair) * float(pair["difference"])

    def _sign(self, pair: Mapping[str, Any]) -> int:
        return 1 if pair["b"] == self.order[0]["name"] else -1

    def _gap(self, side: Mapping[str, Any]) -> tuple[str, str]:
        """Write by how much the first side is above another, and how sure that is."""
        pair, gap = self._pair(side), self.gap(side)
        if pair is None or gap is None:
            return "", ""
        unit, sign = unit_of(pair["metric"]), self._sign(pair)
        size = points(gap, signed=False) if unit == SHARE else quantity(gap, unit)
        if not pair["interval"] or None in pair["interval"]:
            return size, ""
        low, high = sorted(sign * end for end in pair["interval"])
        ends = interval(low, high, POINTS if unit == SHARE else unit, bare=True)
        return size, f" ({level(self.confidence)}: {ends})"

    def _takes(self, side: Mapping[str, Any]) -> Iterator[str]:
        """Say which difference would have been found, and how many tasks a small one takes."""
        pair = self._pair(side)
        if pair is None:
            return
        tasks, unit = plural(pair["tasks"], "task"), unit_of(pair["metric"])
        if pair["tasks"] == 1:
            yield "One task shows nothing about others."
            return
        known = pair["detectable"]
        text = f"With {tasks}, no difference between them can be shown"
        if known is not None:
            size = points(known, signed=False) if unit == SHARE else quantity(known, unit)
            text = f"With {tasks}, a true difference of {size} would be found in 80 % of such runs"
        needs = pair["tasks_for_5_points"]
        if needs is not None and needs > pair["tasks"]:
            text += f"; one of 5 points takes about {_rounded(needs)} tasks"
        yield f"{text}."

    def _ways(self, sides: int) -> Iterator[str]:
        if sides > 2:
            tasks = plural(self.compared["common"], "task")
            yield f"Ranked task by task on {tasks}, all {count(sides)} sides at once."


def _listed(names: Sequence[str]) -> list[Words]:
    parts = [Words(names[0], name=True)]
    for index, name in enumerate(names[1:], 2):
        parts += [Words(" and " if index == len(names) else ", "), Words(name, name=True)]
    return parts


def _name(side: Mapping[str, Any]) -> str:
    return side_line(visible(side["name"]), 60)


def _noun(metric: str) -> str:
    return QUALITY[metric].noun if metric in QUALITY else metric_title(metric).title


def _price(side: Mapping[str, Any]) -> Estimate:
    return estimate(side["estimates"].get("cost_of_pass", (None,) * 5))


def _price_at_best(side: Mapping[str, Any]) -> Estimate:
    """Return the price of a pass, with an interval for whatever its missing results would be."""
    rate = estimate(side["estimates"].get("pass_rate", (None, None, None, 0, 0)))
    return with_missing(_price(side), rate, side["records"])


def _rounded(tasks: int) -> str:
    step = 10 ** max(len(str(tasks)) - 2, 0)
    return count(-(-tasks // step) * step)
