"""The leaderboard of a page or report: a row for each side, the best first.

It is a function of a digest, so that a page, a report and a static site show the same.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pennyweight.catalogue import METRICS
from pennyweight.metrics.probes import is_probe
from pennyweight.render.charts.scales import Scale, ticks
from pennyweight.render.charts.svg import Link, nowhere
from pennyweight.render.format import difference_cells, estimate_cells, unit_of
from pennyweight.render.page.board import (
    Address,
    Bar,
    BoardCell,
    BoardChoice,
    BoardColumn,
    BoardRow,
    BoardTab,
    BoardVerdict,
    BoardView,
    Gap,
)
from pennyweight.render.page.metric_titles import metric_title
from pennyweight.render.view import estimate
from pennyweight.scoring.estimates import Estimate
from pennyweight.scoring.overview import best_first, overview
from pennyweight.scoring.scores import Group
from pennyweight.text.format import plural, probability, quantity
from pennyweight.text.notation import SHARE

FOLD = 15
"""With more sides, the rest is shown on request."""
WIDTH, EDGE = 150, 5
"""The width of a bar, and the space left at its ends."""
NAME = "name"
"""Sorts by the names of the sides."""

Verdicts = Mapping[str, Sequence[BoardVerdict]]
"""The verdicts of policies, by the name of the side."""


def board_name(by: Sequence[str]) -> str:
    """Write the columns of sides for an address and a heading.

    >>> board_name(["subject", "tier"])
    'subject × tier'
    """
    return " × ".join(by)


def board_of(digest: Mapping[str, Any], by: str = "") -> Mapping[str, Any] | None:
    """Return the sides by these columns: `by`, `sides` and `comparison`; None without sides.

    The default is the sides of the digest, or its first other board if it has one side only.
    """
    known = {board_name(one["by"]): one for one in digest.get("boards", ())}
    if digest["sides"]:
        own = {name: digest[name] for name in ("by", "sides", "comparison")}
        known = {board_name(digest["by"]): own, **known}
    return known.get(by) or next(iter(known.values()), None)


def is_probed(sides: Sequence[Mapping[str, Any]]) -> bool:
    """Whether sides are the points of a probe: they have an order, and none of them is best."""
    return all(any(is_probe(str(v)) for v in side["group"].values()) for side in sides)


def _title(board: Mapping[str, Any], *, alone: bool, curve: bool) -> str:
    if curve:
        return "Points of the probe"
    return f"By {board_name(board['by'])}" if alone else "Leaderboard"


_GROUPS: deque[tuple[Any, tuple[str, ...], list[Group]]] = deque(maxlen=8)
"""The sides that were read last: a server shows the same ones in many orders."""


def groups_of(sides: Sequence[Mapping[str, Any]]) -> list[Group]:
    """Return the sides of a digest as groups."""
    names = tuple(METRICS)
    for known, metrics, groups in tuple(_GROUPS):
        if known is sides and metrics == names:
            return groups
    made = _groups_of(sides)
    _GROUPS.append((sides, names, made))
    return made


def _groups_of(sides: Sequence[Mapping[str, Any]]) -> list[Group]:
    return [
        Group(
            {"": side["name"]},
            side["records"],
            side["errors"],
            {n: estimate(cells) for n, cells in side["estimates"].items() if n in METRICS},
            {},
            side["tasks"],
        )
        for side in sides
    ]


def leaderboard(
    digest: Mapping[str, Any],
    choice: BoardChoice | None = None,
    *,
    pairs: Sequence[Mapping[str, Any]] | None = None,
    verdicts: Verdicts | None = None,
    link: Link = nowhere,
    address: Address | None = None,
) -> BoardView | None:
    """Return the leaderboard of a digest; None where nothing tells sides apart.

    `pairs` compares the sides with the chosen baseline, if that is not the digest's own. `link`
    gives the records of a side. Without an `address`, a static page, nothing can be chosen.
    """
    choice = choice or BoardChoice()
    board = board_of(digest, choice.by)
    if board is None:
        return None
    curve = is_probed(board["sides"])
    compared = {} if curve else board["comparison"] or {}
    groups = groups_of(board["sides"])
    metric = digest["headline"] or next(iter(overview(groups)), "accuracy")
    names = [n for n in overview(groups) if any(g[n].value is not None for g in groups)]
    known = [n for n, m in METRICS.items() if _sortable(n, groups)]
    sort = choice.sort if choice.sort in (*known, NAME) else metric
    shown = _columns(metric, sort, names)
    drawn = metric if sort == NAME else sort
    order = _ordered(groups, sort, reverse=choice.reverse)
    if curve and not choice.sort:
        order = list(range(len(groups)))
    baseline, against = _against(compared, choice, pairs)
    ranks = _ranks(compared, groups, metric)
    scale, ends = _scale([groups[i].estimates.get(drawn) for i in order], drawn)
    given = verdicts or {}
    columns = {n: [g.estimates.get(n, _NONE) for g in groups] for n in shown}
    made = []
    for place, index in enumerate(order):
        side, group = board["sides"][index], groups[index]
        name = side["name"]
        rank, words, leads = ranks.get(name, ("", "", False))
        rest = not choice.every and place >= FOLD and name != baseline
        made.append(
            BoardRow(
                name=name,
                rank=rank,
                rank_words=words,
                leads=leads,
                cells=tuple(
                    _cell(n, every[index], every, side, scale if n == drawn else None)
                    for n, every in columns.items()
                ),
                errors=group.errors,
                records=group.records,
                gap=_gap(
                    against.get(name),
                    digest["confidence"],
                    baseline,
                    ranked=bool(compared.get("ranks")),
                ),
                baseline=name == baseline,
                href=link({k: v for k, v in side["group"].items() if v is not None}),
                choose=_choose(address, name, baseline, compared),
                verdicts=tuple(given.get(name, ())),
                hidden=rest and not choice.find,
            )
        )
    found = [row for row in made if choice.find.casefold() in row.name.casefold()]
    hidden = sum(row.hidden for row in found)
    direct = sort == metric and not choice.reverse and not curve
    leaders = [row.leads for row in made]
    in_front = leaders.index(False) if False in leaders else len(leaders)
    return BoardView(
        rows=tuple(found),
        columns=tuple(_column(n, sort, drawn, choice, ends, address) for n in shown),
        headline=metric_title(metric),
        by=board_name(board["by"]),
        title=_title(board, alone=not digest["sides"], curve=curve),
        tabs=_tabs(digest, board, address),
        baseline=baseline if against else "",
        ranked=bool(ranks),
        leaders=in_front if direct and sum(leaders) == in_front and not choice.find else 0,
        ordered=direct,
        sorts=tuple((n, str(metric_title(n)), n == sort) for n in known)
        if address and (sort in known or sort == NAME)
        else (),
        hidden=hidden,
        every_href=address({"all": "1"}) if address and hidden else "",
        name_href=address({"sort": NAME, "order": _turned(choice, NAME)}) if address else "",
        choice=replace(choice, sort=sort),
        confidence=digest["confidence"],
        errors=any(row.errors for row in made),
        verdicts=any(row.verdicts for row in made),
        common=compared.get("common", 0),
        sides=len(made),
    )


MAX_COLUMNS = 6
_SAID_ELSEWHERE = ("attempt_error_rate", "grade")
"""Errors have a column of their own; a grade hides what an interval shows."""
_FIRST = ("cost_of_pass", "latency_p95_ms")
"""What most readers ask next."""


def _columns(metric: str, sort: str, names: Sequence[str]) -> list[str]:
    """Choose the columns: the headline, what the board is sorted by, cost, latency, the rest."""
    known = [n for n in names if n not in _SAID_ELSEWHERE]
    if "cost_of_pass" in known:
        known = [n for n in known if n != "cost_usd_total"]
    asked = [sort] if sort != NAME else []
    ordered = [metric, *asked, *(n for n in _FIRST if n in known), *known]
    return list(dict.fromkeys(ordered))[: MAX_COLUMNS + (sort not in known)]


def _sortable(name: str, groups: Sequence[Group]) -> bool:
    """Whether some side has a number for a metric."""
    return any(isinstance(g.estimates.get(name, _NONE).value, float) for g in groups)


_NONE = Estimate(None)


def _ordered(groups: Sequence[Group], sort: str, *, reverse: bool) -> list[int]:
    """Order the sides: by a metric the best first, equal ones by name."""
    names = [str(g.group[""]) for g in groups]
    places = sorted(range(len(groups)), key=lambda i: names[i].casefold())
    if sort == NAME:
        return places[::-1] if reverse else places
    first = [groups[i] for i in places]
    ranked = best_first(first, sort)
    if reverse:
        known = [g for g in ranked if g[sort].value is not None]
        ranked = known[::-1] + [g for g in ranked if g[sort].value is None]
    at = {id(group): i for i, group in enumerate(groups)}
    return [at[id(group)] for group in ranked]


def _against(
    compared: Mapping[str, Any], choice: BoardChoice, pairs: Sequence[Mapping[str, Any]] | None
) -> tuple[str, dict[str, Mapping[str, Any]]]:
    """Return the baseline, and the pair of each other side with it."""
    baseline = compared.get("baseline", "")
    found = list(compared.get("gaps", ()))
    if pairs is not None and choice.baseline:
        baseline, found = choice.baseline, list(pairs)
    return baseline, {p["b"]: p for p in found if p["a"] == baseline}


def _choose(address: Address | None, name: str, baseline: str, compared: Mapping[str, Any]) -> str:
    if address is None or not compared or name == baseline:
        return ""
    return address({"baseline": "" if name == compared["baseline"] else name})


def _ranks(
    compared: Mapping[str, Any], groups: Sequence[Group], metric: str
) -> dict[str, tuple[str, str, bool]]:
    """Return the ranks that the data leave open, in short, in words, and whether 1 is one."""
    found = {r["name"]: (r["low"], r["high"]) for r in compared.get("ranks", ())}
    if not found and len(groups) == 2 and compared.get("gaps"):
        found = _two_ranks(compared, metric)
    return {name: _rank(low, high, len(groups)) for name, (low, high) in found.items()}


def _two_ranks(compared: Mapping[str, Any], metric: str) -> dict[str, tuple[int, int]]:
    """Rank two sides by their paired test."""
    pair = compared["gaps"][0]
    p, gap = pair["p_adjusted"], pair["difference"]
    if p is None or gap is None:
        return {}
    first, second = pair["a"], pair["b"]
    if p > 0.05 or gap == 0:
        return {first: (1, 2), second: (1, 2)}
    lower = getattr(METRICS.get(metric), "better", None) == "lower"
    best = second if (gap > 0) != lower else first
    return {name: (1, 1) if name == best else (2, 2) for name in (first, second)}


def _rank(low: int, high: int, sides: int) -> tuple[str, str, bool]:
    """Write a range of ranks.

    >>> _rank(1, 4, 9)[:2], _rank(2, 2, 9)[0]
    (('1–4', 'The data leave ranks 1 to 4 of 9 open.'), '2')
    """
    short = str(low) if low == high else f"{low}–{high}"
    words = f"Rank {low} of {sides}." if low == high else ""
    words = words or f"The data leave ranks {low} to {high} of {sides} open."
    return short, words, low == 1


def _gap(
    pair: Mapping[str, Any] | None, confidence: float, baseline: str, *, ranked: bool
) -> Gap | None:
    """Write the difference of a side from the baseline; its interval agrees with its test."""
    if pair is None or pair["difference"] is None:
        return None
    low, high = pair["interval"] or (None, None)
    value, ends = difference_cells(pair["metric"], pair["difference"], low, high, bare=True)
    p = pair["p_adjusted"]
    shown = p is not None and p <= 1 - confidence
    told = "A difference is shown" if shown else "No difference is shown"
    how = " for all pairs of sides at once" if ranked else ""
    words = f"{told}: p = {probability(p)}{how}, on {plural(pair['tasks'], 'task')}."
    return Gap(value, ends, shown, f"{words} Compared with {baseline} task by task.")


def _cell(
    name: str,
    found: Estimate,
    others: Sequence[Estimate],
    side: Mapping[str, Any],
    scale: Scale | None,
) -> BoardCell:
    value, ends = estimate_cells(name, found, narrow=True, others=others)
    bar = _bar(found, scale) if scale else None
    return BoardCell(value, ends, name in side.get("skewed", ()), bar)


def _scale(
    values: Sequence[Estimate | None], name: str
) -> tuple[Scale | None, tuple[str, str] | None]:
    """Return the scale of the bars, over what the sides really cover, and its ends in words."""
    known = [x for e in values if e for x in (e.value, e.low, e.high)]
    ends = [x for x in known if isinstance(x, float) and math.isfinite(x)]
    if not ends:
        return None, None
    low, high = min(ends), max(ends)
    steps = ticks(low, high, 4)
    step = steps[1] - steps[0] if len(steps) > 1 else (high - low) or abs(high) or 1.0
    low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    metric = METRICS.get(name)
    if metric and metric.range == (0, 1):
        low, high = max(low, 0.0), min(high, 1.0)
    if not high > low:
        low, high = low - step, high + step
    unit = unit_of(name)
    words = [quantity(end, unit, largest=high) for end in (low, high)]
    if unit == SHARE:
        words = [f"{round(100 * end)} %" for end in (low, high)]
    return Scale(low, high, EDGE, WIDTH - EDGE), (words[0], words[1])


def _bar(e: Estimate, scale: Scale) -> Bar | None:
    if not isinstance(e.value, float) or not math.isfinite(e.value):
        return None
    low, high = (e.value if not isinstance(x, float) else x for x in (e.low, e.high))
    return Bar(scale(e.value), scale(low), scale(high))


def _column(
    name: str,
    sort: str,
    drawn: str,
    choice: BoardChoice,
    ends: tuple[str, str] | None,
    address: Address | None,
) -> BoardColumn:
    title = metric_title(name)
    order = ""
    if name == sort:
        down = title.better != "lower"
        order = "descending" if down != choice.reverse else "ascending"
    href = address({"sort": name, "order": _turned(choice, name)}) if address else ""
    return BoardColumn(title, href, order, ends if name == drawn else None)


def _turned(choice: BoardChoice, name: str) -> str:
    """Return the order after a click: a second click on the same column reverses it."""
    return "reverse" if choice.sort == name and not choice.reverse else ""


def _tabs(
    digest: Mapping[str, Any],
    board: Mapping[str, Any],
    address: Address | None,
) -> tuple[BoardTab, ...]:
    names = [board_name(one["by"]) for one in digest.get("boards", ())]
    if digest["sides"]:
        names.insert(0, board_name(digest["by"]))
    if address is None or len(names) < 2:
        return ()
    first, current = names[0], board_name(board["by"])
    return tuple(
        BoardTab(name, address({"by": "" if name == first else name}), name == current)
        for name in names
    )
