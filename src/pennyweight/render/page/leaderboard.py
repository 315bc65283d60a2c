"""The leaderboard of a page or report: a row for each side, the best first.

It is a function of a digest, so that a page, a report and a static site show the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pennyweight.catalogue import METRICS
from pennyweight.render.charts.svg import Link, nowhere
from pennyweight.render.format import difference_cells
from pennyweight.render.page.board import (
    Address,
    BoardChoice,
    BoardColumn,
    BoardRow,
    BoardTab,
    BoardVerdict,
    BoardView,
    Gap,
)
from pennyweight.render.page.board_sides import NAME, board_sides
from pennyweight.render.page.metric_titles import MetricTitle, metric_title
from pennyweight.scoring.pooling import most_pooled, pooled_words
from pennyweight.text.format import p_value, plural

FOLD = 15
"""With more sides, the rest is shown on request."""

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


def _title(board: Mapping[str, Any], *, alone: bool, curve: bool) -> str:
    if curve:
        return "Points of the probe"
    title = f"By {board_name(board['by'])}" if alone else "Leaderboard"
    words = pooled_words(most_pooled(side["pooled"] for side in board["sides"]))
    return f"{title}, {words}" if words else title


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
    sides = board_sides(board["sides"])
    curve = sides.is_probed
    compared = {} if curve else board["comparison"] or {}
    metric = digest["headline"] or next(iter(sides.overview), "accuracy")
    sort = choice.sort if choice.sort in (*sides.sortable, NAME) else metric
    shown = _columns(metric, sort, sides.known)
    drawn = metric if sort == NAME else sort
    order = sides.order(sort, reverse=choice.reverse)
    direct = sort == metric and not choice.reverse and not curve
    if curve and not choice.sort:
        order = list(range(len(sides.groups)))
    baseline, against = _against(compared, choice, pairs)
    valued = [
        metric in group.estimates and group[metric].value is not None
        and None not in side["group"].values()
        for side, group in zip(sides.sides, sides.groups, strict=True)
    ]  # fmt: skip
    ranks = _ranks(compared, sum(valued), metric, digest["confidence"])
    if direct and ranks:  # sides that lack a column have a value, but nobody to be compared with
        places = dict.fromkeys(ranks, 0)
        if any(group.errors for group in sides.groups):  # values leave out other tasks on each side
            places |= _places(compared, metric)
        last = len(order) + 1
        order.sort(key=lambda index: places.get(sides.sides[index]["name"], last))
    given = verdicts or {}
    columns = [sides.column(n, drawn=n == drawn) for n in shown]
    made = []
    for place, index in enumerate(order):
        side, group = sides.sides[index], sides.groups[index]
        name = side["name"]
        rank, words, leads = ranks.get(name, ("", "", False))
        rest = not choice.every and place >= FOLD and name != baseline
        made.append(
            BoardRow(
                name=name,
                brief=sides.brief[name],
                rank=rank,
                rank_words=words,
                leads=leads,
                cells=tuple(column.cells[index] for column in columns),
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
                choose=_choose(address, name, baseline, compared) if valued[index] else "",
                verdicts=tuple(given.get(name, ())),
                hidden=rest and not choice.find,
            )
        )
    sought = choice.find.casefold().split()
    found = [row for row in made if all(word in row.name.casefold() for word in sought)]
    hidden = sum(row.hidden for row in found)
    leaders = [row.leads for row in made]
    in_front = leaders.index(False) if False in leaders else len(leaders)
    return BoardView(
        rows=tuple(found),
        columns=tuple(
            _column(_titled(name, board), sort, column.axis, choice, address)
            for name, column in zip(shown, columns, strict=True)
        ),
        headline=metric_title(metric),
        by=board_name(board["by"]),
        title=_title(board, alone=not digest["sides"], curve=curve),
        tabs=_tabs(digest, board, address),
        baseline=baseline if against else "",
        ranked=bool(ranks),
        unranked=_unranked(board["sides"], ranks, valued, str(metric_title(metric).title)),
        leaders=in_front if direct and sum(leaders) == in_front and not choice.find else 0,
        ordered=direct,
        sorts=tuple((n, str(metric_title(n)), n == sort) for n in sides.sortable)
        if address and (sort in sides.sortable or sort == NAME)
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


def _unranked(
    sides: Sequence[Mapping[str, Any]], ranks: Collection[str], valued: Sequence[bool], title: str
) -> str:
    """Say why sides have no rank, if some have one."""
    apart = [
        (side["group"], has)
        for side, has in zip(sides, valued, strict=True)
        if side["name"] not in ranks
    ]
    lacking = [name for group, _ in apart for name, value in group.items() if value is None]
    lacking += [title for group, has in apart if not has and None not in group.values()]
    return f"not ranked: no {' or '.join(dict.fromkeys(lacking))}" if lacking else "not ranked"


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
    compared: Mapping[str, Any], valued: int, metric: str, confidence: float
) -> dict[str, tuple[str, str, bool]]:
    """Return the ranks that the data leave open, in short, in words, and whether 1 is one.

    `valued` is the number of sides that have a value.
    """
    found = {r["name"]: (r["low"], r["high"]) for r in compared.get("ranks", ())}
    if not found and valued == 2 and compared.get("gaps"):
        found = _two_ranks(compared, metric, confidence)
    return {name: _rank(low, high, len(found)) for name, (low, high) in found.items()}


def _places(compared: Mapping[str, Any], metric: str) -> dict[str, int]:
    """Return the place of each side on the tasks that are compared, as the ranks are made."""
    if compared.get("ranks"):
        return {rank["name"]: rank["rank"] for rank in compared["ranks"]}
    pair = compared["gaps"][0]
    best = _better_of(pair, metric)
    return {name: 1 + (name != best) for name in (pair["a"], pair["b"]) if pair["difference"]}


def _better_of(pair: Mapping[str, Any], metric: str) -> str:
    """Return the side of a pair whose value is better."""
    lower = getattr(METRICS.get(metric), "better", None) == "lower"
    return str(pair["b"] if (pair["difference"] > 0) != lower else pair["a"])


def _two_ranks(
    compared: Mapping[str, Any], metric: str, confidence: float
) -> dict[str, tuple[int, int]]:
    """Rank two sides by their paired test."""
    pair = compared["gaps"][0]
    p, gap = pair["p_adjusted"], pair["difference"]
    if p is None or gap is None:
        return {}
    first, second = pair["a"], pair["b"]
    if p > 1 - confidence or gap == 0 or pair["errors_decide"]:
        return {first: (1, 2), second: (1, 2)}
    best = _better_of(pair, metric)
    return {name: (1, 1) if name == best else (2, 2) for name in (first, second)}


@lru_cache(1_024)
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
    """Return the difference of a side from the baseline as it is shown."""
    if pair is None or pair["difference"] is None:
        return None
    low, high = pair["interval"] or (None, None)
    numbers = (pair["difference"], low, high, pair["p_adjusted"], pair["tasks"])
    decide = bool(pair["errors_decide"])
    return _gap_of(pair["metric"], numbers, confidence, baseline, ranked=ranked, decide=decide)


@lru_cache(2_048)
def _gap_of(
    metric: str,
    numbers: tuple[float, float | None, float | None, float | None, int],
    confidence: float,
    baseline: str,
    *,
    ranked: bool,
    decide: bool,
) -> Gap:
    """Write a difference, whose interval agrees with its test; every order shows the same ones."""
    difference, low, high, p, tasks = numbers
    value, ends = difference_cells(metric, difference, low, high, bare=True)
    shown = p is not None and p <= 1 - confidence and not decide
    told = "A difference is shown" if shown else "No difference is shown"
    if decide:
        told = "No verdict, because missing results decide; without them"
    how = " for all pairs of sides at once" if ranked else ""
    words = f"{told}: {p_value(p)}{how}, on {plural(tasks, 'task')}."
    return Gap(value, ends, shown, f"{words} Compared with {baseline} task by task.")


def _titled(name: str, board: Mapping[str, Any]) -> MetricTitle:
    """Return a metric in plain words; they say which k it is of, where all sides have the same."""
    title, sizes = metric_title(name), {(side["repeats"] or {}).get("k") for side in board["sides"]}
    if name not in METRICS or "k" not in METRICS[name].options or len(sizes) != 1 or None in sizes:
        return title
    return replace(title, title=title.title.replace(" k ", f" {sizes.pop()} "))


def _column(
    title: MetricTitle,
    sort: str,
    axis: tuple[str, ...] | None,
    choice: BoardChoice,
    address: Address | None,
) -> BoardColumn:
    order = ""
    if title.name == sort:
        down = title.better != "lower"
        order = "descending" if down != choice.reverse else "ascending"
    href = address({"sort": title.name, "order": _turned(choice, title.name)}) if address else ""
    return BoardColumn(title, href, order, axis)


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
