"""A comparison as a table for the terminal, Markdown, CSV or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.table import Table
from rich.text import Text

from pennyweight.catalogue import canonical, metric_named
from pennyweight.errors import UsageError
from pennyweight.render.catalogue import why_missing
from pennyweight.render.format import (
    difference_cells,
    estimate_cells,
    heading,
    skewed_line,
    unit_of,
)
from pennyweight.render.plain import (
    csv_table,
    errors_line,
    json_text,
    listed,
    markdown_table,
    markdown_text,
    side_line,
    wrapped,
)
from pennyweight.render.sentences import MAX_PAIRS, QUALITY, sentences
from pennyweight.render.terminal import GAP, Terminal, aligned, borderless
from pennyweight.render.view import family
from pennyweight.scoring.comparison import ComparedSide, Comparison
from pennyweight.scoring.overview import LEADERBOARD_FROM, best_first, is_curve
from pennyweight.scoring.pairs import Pair
from pennyweight.scoring.ranking import SideRank
from pennyweight.text.format import (
    MISSING,
    count,
    difference,
    level,
    money,
    plural,
    points,
    probability,
    quantity,
    times,
)
from pennyweight.text.notation import SHARE, largest_of

TEXT_WIDTH = 80
NOTICEABLE = 0.01
"""By how much a tested difference may deviate from that of the table without a remark."""
MAX_ALIKE = 2
"""The most groups of sides without a shown difference that are listed in words."""
COLUMNS = {
    "pass_rate": "pass rate",
    "accuracy": "accuracy",
    "impl_rate_mean": "impl rate",
    "cost_usd_mean": "cost",
    "cost_of_pass": "cost of pass",
    "composite_median": "composite",
}
"""The metrics of a side that are shown, with their titles."""


def render(
    comparison: Comparison,
    format: str,  # noqa: A002
    sort: str | None = None,
) -> str:
    """Write a comparison in one of the formats; `sort` names a metric whose best side is first."""
    if format != "json" or sort:
        comparison = _sorted(comparison, sort)
    if format == "json":
        return json_text({**comparison.to_dict(), "words": words(comparison)})
    ways = {"csv": _csv, "markdown": _markdown, "table": as_table}
    return ways[format](comparison)


def is_overview(format: str, sort: str | None = None) -> bool:  # noqa: A002
    """Whether sides are shown with a few metrics, so that no others are needed."""
    return format != "json" and sort is None


def _sorted(comparison: Comparison, sort: str | None) -> Comparison:
    """Put the best sides first, by a metric; many sides by the first that is tested."""
    sides = comparison.sides
    if sort is None and len(sides) >= LEADERBOARD_FROM and not is_curve([s.group for s in sides]):
        sort = next((n for n in comparison.tested if n in sides[0].group.estimates), None)
    if sort is None:
        return comparison
    sort = canonical(sort)
    if sort not in sides[0].group.estimates:
        metric_named(sort)
        raise UsageError(f"--sort {sort}: name it under --metric too, so that it is computed.")
    place = {id(g): i for i, g in enumerate(best_first([s.group for s in sides], sort))}
    return replace(comparison, sides=tuple(sorted(sides, key=lambda s: place[id(s.group)])))


def words(comparison: Comparison) -> list[str]:
    """Write a comparison in sentences; of many sides, how they rank and what all have in common."""
    ranks = " ".join([*_ranks(comparison), *_tasks(comparison)])
    told, ranked = [*sentences(comparison), *_unknown(comparison)], [ranks] if ranks else []
    if comparison.exam:
        told = [*comparison.exam.sentences(), *told]
    if len(comparison.compared) > MAX_PAIRS:
        return [*ranked, *told, *_apart(comparison)]
    return [*told, *_tested(comparison), *ranked]


def _apart(comparison: Comparison) -> Iterator[str]:
    """Say which of many sides have no result in common with the one that they are compared with."""
    tested = {(p.a, p.b) for p in comparison.pairs if p.tasks}
    apart = [pair for pair in comparison.compared if pair not in tested]
    for first in dict.fromkeys(a for a, _ in apart):
        names = [b for a, b in apart if a == first]
        who = listed(names) if len(names) <= MAX_PAIRS else f"{count(len(names))} sides"
        base = side_line(first)
        yield f"Not compared with {base}, because no task has a result on both sides: {who}."


def _unknown(comparison: Comparison) -> Iterator[str]:
    """Say why metrics that were asked for have no value on any side."""
    for name in (n for n in comparison.asked if n not in comparison.about_all):
        sides = [s.group for s in comparison.sides if name in s.group.estimates]
        if sides and all(group[name].value is None for group in sides):
            yield f"{name} has no value on any side: {why_missing(name, sides[0])}."


def _tested(comparison: Comparison) -> Iterator[str]:
    """Give the values that a test is about, where those of the table differ from them."""
    for pair in comparison.pairs:
        if pair.metric not in QUALITY or pair.metric not in comparison[pair.a].group.estimates:
            continue
        a, b = (comparison[name].number(pair.metric) for name in (pair.a, pair.b))
        if a is None or b is None or pair.difference is None:
            continue
        if abs((b - a) - pair.difference) > NOTICEABLE:
            unit = unit_of(pair.metric)
            means = (quantity(mean, unit) for mean in (pair.mean_a, pair.mean_b))
            of_a, of_b = (
                f"{side_line(n)} has {v}" for n, v in zip((pair.a, pair.b), means, strict=True)
            )
            yield (
                f"On the tasks that both tried, each counted once, {of_a} and {of_b} in "
                f"{QUALITY[pair.metric].noun}: the test is about these values."
            )


def _ranks(comparison: Comparison) -> Iterator[str]:
    """Say between which of several sides no difference is shown."""
    if ranking := comparison.ranking:
        noun = QUALITY[ranking.metric].noun if ranking.metric in QUALITY else ranking.metric
        alike = [listed(group) for group in ranking.groups if len(group) > 1]
        first = [side.name for side in sorted(ranking.sides, key=lambda s: s.rank) if side.low == 1]
        if not alike:
            yield f"All sides differ in {noun}, in this order: {listed(sum(ranking.groups, ()))}."
        elif len(alike) <= MAX_ALIKE:
            yield f"No difference in {noun} is shown between {', nor between '.join(alike)}."
        elif len(first) == 1:
            yield f"Ranked by {noun}, {side_line(first[0])} is best."
        else:
            yield f"Ranked by {noun}, the best is one of {listed(first)}."


def _tasks(comparison: Comparison) -> Iterator[str]:
    """Say how many tasks do not tell the sides apart."""
    common = comparison.common
    if common and (same := common.solved_by_all + common.solved_by_none):
        rest = len(common) - same
        every = f"every side always solves {count(common.solved_by_all)}"
        no = f"no side ever solves {count(common.solved_by_none)}"
        alike = [every] * bool(common.solved_by_all) + [no] * bool(common.solved_by_none)
        found = f"Of the {plural(len(common), 'common task')}, {' and '.join(alike)}."
        which = f"Only the other {count(rest)}" if rest else "None of them"
        yield f"{found} {which} can tell the sides apart."


def _csv(comparison: Comparison) -> str:
    """Write one row for each pair of sides and metric, with raw numbers."""
    names = [
        *("a", "b", "metric", "difference", "low", "high", "p", "p_adjusted", "method", "tasks"),
        *("only_a", "only_b", "mean_a", "mean_b", "cliffs_delta", "detectable"),
        *("tasks_for_5_points", "ratio", "ratio_low", "ratio_high"),
    ]
    rows = [[getattr(pair, name) for name in names] for pair in comparison.pairs]
    if any(pair.missing for pair in comparison.pairs):
        names += ["missing_a", "missing_b", "errors_decide"]
        for row, pair in zip(rows, comparison.pairs, strict=True):
            lacks = (pair.missing.a, pair.missing.b) if pair.missing else (0, 0)
            row += [*lacks, pair.errors_decide(comparison.level)]
    return csv_table([names, *rows])


def adjusted_p(pair: Pair, level: float) -> str:
    """Write the corrected p-value; it shows nothing where errors decide."""
    return "errors decide" if pair.errors_decide(level) else probability(pair.p_adjusted)


def _markdown(comparison: Comparison) -> str:
    """Write the sentences as a list, then the sides and the pairs as tables."""
    parts = ["".join(f"- {markdown_text(line)}\n" for line in words(comparison))]
    head, *body = _sides(comparison, narrow=False)
    rows = [[cell.replace("\n", " (") + ")" * ("\n" in cell) for cell in row] for row in body]
    parts.append(markdown_table([head, *rows], right=range(1, len(head))))
    if across := _across(comparison):
        parts.append(f"{markdown_text(across)}\n")
    if comparison.pairs:
        title = ["pair", "metric", "difference", f"{level(comparison.confidence)} interval"]
        rows = [[*title, "p", "adjusted p", "Cliff's δ", "tasks", "detects", "ratio of means"]]
        for pair in comparison.pairs:
            *tested, detects = _cells(comparison, pair, bare=False)
            last = [difference(pair.cliffs_delta), count(pair.tasks), detects, _times(pair)]
            rows.append([f"{pair.b} − {pair.a}", pair.metric, *tested, *last])
        parts.append(markdown_table(rows, right=range(2, 10)))
    parts += [f"{markdown_text(line)}\n" for line in _legend(comparison, "in brackets")]
    return "\n".join(parts)


def as_table(comparison: Comparison) -> str:
    """Write for the terminal: the sentences, then the sides, then the pairs."""
    terminal = Terminal()
    width = min(terminal.width, TEXT_WIDTH)
    for text in words(comparison):
        terminal.print("\n".join(wrapped(text, width=width)))
    terminal.print()
    tables = list(_fitting(_sides(comparison, narrow=True), terminal.width))
    if comparison.ranking and len(tables) > 1:
        without = _sides(replace(comparison, ranking=None), narrow=True)
        tables = list(_fitting(without, terminal.width))
    for head, *body in tables:
        terminal.print(sides_table(head, body))
    if across := _across(comparison):
        terminal.print("\n".join(wrapped(across, width=width)), style="dim")
    if comparison.comparisons:
        terminal.print()
        title = ["on the same tasks", "difference", "p", "adjusted p", "detects"]
        for row in aligned([title, *_by_pair(comparison)]):
            terminal.print(row)
    for text in _legend(comparison, "below the values"):
        terminal.print("\n".join(wrapped(text, width=width)), style="dim")
    return terminal.text()


def _fitting(rows: Sequence[Sequence[str]], width: int) -> Iterator[list[list[str]]]:
    """Split a table into tables that fit; each begins with the first column."""
    columns = list(zip(*rows, strict=True))
    widths = [max(len(line) for cell in c for line in cell.split("\n")) + GAP for c in columns]
    chosen, used = [0], widths[0]
    for index in range(1, len(columns)):
        if used + widths[index] - GAP > width and len(chosen) > 1:
            yield [[row[i] for i in chosen] for row in rows]
            chosen, used = [0], widths[0]
        chosen.append(index)
        used += widths[index]
    yield [[row[i] for i in chosen] for row in rows]


def sides_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Align numbers on the right; the second line of a cell, an interval, is dim."""
    table = borderless()
    for index, name in enumerate(head):
        if index:
            table.add_column(name, justify="right", overflow="fold", no_wrap=True)
        else:
            table.add_column(name, overflow="fold")
    for row in rows:
        parts = (cell.partition("\n") for cell in row)
        table.add_row(*(Text.assemble(first, (line + rest, "dim")) for first, line, rest in parts))
    return table


def _columns(comparison: Comparison, *, narrow: bool) -> list[str]:
    """Return the metrics of the table of sides.

    A metric that no side has is omitted, and a narrow table has room for fewer of them.
    """
    sides = comparison.sides
    names = [
        n
        for n in comparison.asked or COLUMNS
        if n in sides[0].group.estimates and any(s[n].value is not None for s in sides)
    ]
    if not comparison.asked and "pass_rate" in names and "accuracy" in names:
        same = all(s["pass_rate"].value == s["accuracy"].value for s in sides)
        judged = "impl_rate_mean" in names
        names.remove("pass_rate" if same and not judged else "accuracy")
    if not comparison.asked and narrow and {"composite_median", "impl_rate_mean"} <= set(names):
        names.remove("impl_rate_mean")
    return names


def _sides(comparison: Comparison, *, narrow: bool) -> list[list[str]]:
    """Make one row for each side; an interval is on a second line of its cell."""
    sides = comparison.sides
    names = _columns(comparison, narrow=narrow)
    graded = not comparison.asked and any(s["grade"].value is not None for s in sides)
    yes_or_no = any(s.group.is_yes_or_no for s in sides)
    grade = [] if not graded else ["uplift"] if narrow or yes_or_no else ["grade", "uplift"]
    ranks, errors = comparison.ranking, any(side.group.errors for side in sides)
    rows = [
        [
            ", ".join(comparison.by),
            "records",
            *(["errors"] if errors else []),
            *(["rank"] if ranks else []),
            *(COLUMNS.get(n) or heading(n) for n in names),
            *grade,
        ]
    ]
    for side in sides:
        cells = [count(side.group.errors)] if errors else []
        cells += [_rank(ranks[side.name])] if ranks else []
        cells += [_estimate(n, side, narrow=narrow) for n in names]
        if graded:
            cells += [] if narrow or yes_or_no else [str(side["grade"].value or MISSING)]
            cells.append(_uplift(side, comparison, of_means=yes_or_no))
        rows.append([side_line(side.name, 24), count(side.group.records), *cells])
    return rows


def _rank(side: SideRank) -> str:
    """Write the ranks that the data leave open."""
    return f"{side.low}–{side.high}" if side.low < side.high else str(side.low)


def _estimate(name: str, side: ComparedSide, *, narrow: bool) -> str:
    """Write a value, and its interval on a second line; a narrow table has the grade here."""
    value, interval = estimate_cells(name, side[name], narrow=narrow)
    if name == "composite_median" and side.group.is_yes_or_no:
        found = side.group.statistics["composite_score"]
        return f"{quantity(found.mean, SHARE)}\nmean" if found else value
    if narrow and name == "composite_median" and (grade := side["grade"].value):
        value = f"{value} ({grade})"
    if not interval or (narrow and name == "cost_usd_mean"):
        return value
    return f"{value}\n{interval}"


def _uplift(side: ComparedSide, comparison: Comparison, *, of_means: bool) -> str:
    """Write by how much the side's composite score exceeds the baseline's, relative to it."""
    uplift = side.mean_uplift if of_means else side.tier_uplift
    if side.name == comparison.baseline or uplift is None:
        return MISSING
    return f"{'+' if uplift > 0 else ''}{quantity(uplift, SHARE)}"


def _across(comparison: Comparison) -> str:
    """Write how far the medians of the sides are apart: their costs, and how often they pass."""
    found = comparison.across
    said = []
    if found.cost_delta is not None and comparison.about_cost:
        said.append(f"The sides' median costs differ by up to {money(found.cost_delta)}.")
    known = [f"{n} {quantity(v, '')}" for n, v in comparison.variances.items() if v is not None]
    if known:
        said.append(f"Across the sides: {', '.join(known)}.")
    return " ".join(said)


def _by_pair(comparison: Comparison) -> Iterator[list[str]]:
    """Yield a title for each pair of sides, and below it a row for each metric."""
    last: tuple[str, str] | None = None
    tasks = 0
    for pair in comparison.pairs:
        if (pair.a, pair.b) != last:
            last, tasks = (pair.a, pair.b), pair.tasks
            common = plural(tasks, "task") if tasks else "no tasks in common"
            yield [f"{side_line(pair.b, 30)} − {side_line(pair.a, 30)}, {common}"]
        if pair.tasks:
            other = f" ({plural(pair.tasks, 'task')})" if pair.tasks != tasks else ""
            value, ends, *tested = _cells(comparison, pair, bare=True)
            lines = filter(None, (value, ends, _times(pair)))
            yield [f"  {pair.metric}{other}", "\n".join(lines), *tested]


def _times(pair: Pair) -> str:
    return times(pair.ratio, pair.ratio_low, pair.ratio_high)


def _cells(comparison: Comparison, pair: Pair, *, bare: bool) -> list[str]:
    """Write difference, interval, p, adjusted p, and the smallest difference that is detected."""
    same = (p for p in comparison.pairs if p.metric == pair.metric)
    numbers = (n for p in same for n in (p.difference, p.low, p.high, p.detectable))
    largest = largest_of(*(n for n in numbers if n is not None))
    value, ends = difference_cells(
        pair.metric, pair.difference, pair.low, pair.high, bare=bare, largest=largest
    )
    if pair.alike:
        ends = "nothing varied"
    unit = unit_of(pair.metric)
    if unit == SHARE:
        detects = points(pair.detectable, signed=False)
    else:
        detects = quantity(pair.detectable, unit, largest=largest)
    return [value, ends, probability(pair.p), adjusted_p(pair, comparison.level), detects]


def _legend(comparison: Comparison, where: str) -> Iterator[str]:
    """Explain the columns."""
    intervals = f"{level(comparison.confidence)} confidence intervals, for tasks like these,"
    shown = _columns(comparison, narrow=False)
    ends = [side[n].low for side in comparison.sides for n in shown]
    ends += [pair.low for pair in comparison.pairs]
    if any(end is not None for end in ends):
        yield f"{intervals} are shown {where}."
    yield from skewed_line([n for n in shown if any(s[n].skewed for s in comparison.sides)])
    yield from errors_line(comparison.errors, some=any(s.group.errors for s in comparison.sides))
    if not comparison.comparisons:
        return
    if comparison.ranking:
        yield "rank: the true rank is in this range, for all sides at once."
    if unsure := dict.fromkeys(pair.metric for pair in comparison.pairs if pair.long_tail):
        yield (
            f"{', '.join(unsure)}: few tasks for such a long tail. Tasks that were not tried may "
            "change the ratio by a factor of 2."
        )
    some = any(pair.ratio is not None for pair in comparison.pairs)
    ratio = " ×: the mean of the first side divided by that of the second." if some else ""
    yield (
        f"p: paired, by task, of one comparison alone. {family(comparison.to_dict()['pairs'])} "
        "detects: a true difference this large would be "
        f"found in 80 % of such experiments.{ratio} --format json has all numbers."
    )
