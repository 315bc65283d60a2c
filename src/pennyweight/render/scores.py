"""Scores in the formats that `pennyweight score` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pennyweight.catalogue import METRICS
from pennyweight.render.catalogue import tabled, why_missing
from pennyweight.render.format import estimate_cells, is_amount, skewed_line, unseen_line
from pennyweight.render.plain import (
    csv_table,
    errors_line,
    json_text,
    listed,
    markdown_table,
    markdown_text,
    one_line,
)
from pennyweight.render.repeats import repeat_lines
from pennyweight.scoring.estimands import Estimand
from pennyweight.scoring.overview import LEADERBOARD_FROM, best_first, overview
from pennyweight.scoring.pooling import pooled_words
from pennyweight.scoring.scores import Group, Scores, json_value
from pennyweight.text.format import count, level, plural, share


def render(
    scores: Scores,
    format: str,  # noqa: A002
    *,
    every: bool = False,
    rest: str = "--all",
    sort: str | None = None,
) -> str:
    """Write scores in one of the formats.

    Tables show a few metrics unless `every` is set; JSON and CSV have all of them. `rest` is what
    to write to see the others. `sort` names the metric whose best group is first.
    """
    if sort is not None:
        scores = replace(scores, groups=tuple(best_first(scores.groups, sort)))
    if format == "json":
        return json_text(scores.to_dict())
    if format == "csv":
        return _csv(scores)
    names = shown(scores, every=every)
    more = [*pass_line(scores.groups, names), *([] if every else more_line(scores, names, rest))]
    if len(scores.groups) >= LEADERBOARD_FROM:
        from pennyweight.render import leaderboard  # noqa: PLC0415

        return leaderboard.render(scores, format, names, more, sort, every=every, rest=rest)
    if format == "table":
        from pennyweight.render.scores_table import as_table  # noqa: PLC0415

        return as_table(scores, names, more, every=every)
    return _markdown(scores, names, more)


def is_overview(format: str, *, every: bool = False, sort: str | None = None) -> bool:  # noqa: A002
    """Whether scores are shown as a table of a few metrics, so that no others are needed."""
    return format in {"table", "markdown"} and not every and sort is None


def shown(scores: Scores, *, every: bool) -> list[str]:
    """Return the metrics that a table shows: a few, or every one that it can."""
    return _every(scores) if every else overview(scores.groups)


def _every(scores: Scores) -> list[str]:
    groups = scores.groups
    return tabled({n: any(g[n].value is not None for g in groups) for n in groups[0].estimates})


def more_line(scores: Scores, names: Sequence[str], rest: str) -> list[str]:
    """Say how to see the metrics that are not shown; nothing if all are shown."""
    return [f"{rest} shows every metric."] if set(_every(scores)) - set(names) else []


def pass_line(groups: Sequence[Group], names: Sequence[str]) -> list[str]:
    """Say what decides passes where a table has a pass rate that is not the accuracy."""
    both = ("pass_rate", "accuracy")
    if not set(both) <= set(names):
        return []
    pairs = [tuple(group[n].value for n in both) for group in groups]
    if not any(None not in pair and pair[0] != pair[1] for pair in pairs):
        return []

    def known(name: str) -> bool:
        return any(name in g.estimates and g[name].value is not None for g in groups)

    decider = "given with the records"
    if known("behavior_coverage"):
        decider = "decided by the scenarios"
    elif known("impl_rate_mean"):
        decider = "decided by the judges"
    return [f"Passes are {decider}; accuracy compares answers with targets."]


def _csv(scores: Scores) -> str:
    """Write one row for each group and metric, with raw numbers."""
    keys = list(scores.groups[0].group) if scores.groups else []
    failed = ["errors"] if any(group.errors for group in scores.groups) else []
    heads = ["metric", "value", "low", "high", "records", "skipped", "pooled", *failed]
    rows: list[list[object]] = [[*keys, *heads]]
    for group in scores.groups:
        for name, e in group.estimates.items():
            ends = [json_value(x) for x in (e.value, e.low, e.high)]
            pooled = pooled_words(group.pooled).removesuffix(" pooled")
            last = [pooled, *([group.errors] if failed else [])]
            rows.append([*group.group.values(), name, *ends, e.records, e.skipped, *last])
    return csv_table(rows)


def _markdown(scores: Scores, names: Sequence[str], more: Sequence[str]) -> str:
    """Write a table for each group."""
    parts = []
    for group in scores.groups:
        if group.group:
            parts.append(f"### {markdown_text(group.name)}\n")
        parts.append(f"{counts(group)}\n")
        head = pooled_words(group.pooled) or "value"
        rows = [["metric", head, interval_title(scores), "records"]]
        for name in names:
            e = group[name]
            rows.append([name, *estimate_cells(name, e), count(e.records)])
        parts.append(markdown_table(rows, right=(1, 2, 3)))
    lines = [
        *caution_lines(scores, names),
        *repeats_of(scores, names),
        *more,
    ]
    parts += [f"{markdown_text(line)}\n" for line in lines]
    return "\n".join(parts)


EXPLAINED = "'pennyweight metrics NAME' explains a number."
UNEVEN = (
    "Tasks have unequal numbers of attempts, and each attempt counts the same. With --weight "
    "tasks, each task does."
)


def repeats_of(scores: Scores, names: Sequence[str]) -> list[str]:
    """Describe repeated attempts, if a metric of them is shown; and uneven ones in any case.

    Attempts are uneven if a task has at least twice as many as another.
    """
    shown = any(METRICS[n].over == "tasks" for n in names)
    groups = [(g.name, g.repeats.to_dict() if g.repeats else None) for g in scores.groups]
    uneven = scores.estimand.weight == "records" and any(
        g.repeats and g.repeats.most >= 2 * g.repeats.fewest for g in scores.groups
    )
    return [*(repeat_lines(groups) if shown else ()), *([UNEVEN] if uneven else ())]


def caution_lines(scores: Scores, names: Sequence[str]) -> list[str]:
    """Name the metrics whose intervals may be too narrow, and what too few tasks cannot show."""
    amounts = [n for n in names if is_amount(n)]
    some = [g.tasks for g in scores.groups if any(g[n].low is not None for n in amounts)]
    skewed = [n for n in names if any(g[n].skewed for g in scores.groups)]
    failed = errors_line(scores.errors, some=any(g.errors for g in scores.groups))
    lacking = _lacking_line(scores) if "pass_rate" in names else []
    return [*skewed_line(skewed), *unseen_line(min(some, default=0)), *failed, *lacking]


def _lacking_line(scores: Scores) -> list[str]:
    """Say how many records have no verdict where others have one, and what their rates could be.

    Failures may be decided where passes are not: the rate of those that are decided is then 0.
    """
    decided = [g for g in scores.groups if "pass_rate" in g.estimates and g["pass_rate"].records]
    lacking = sum(g["pass_rate"].skipped for g in decided)
    if not lacking:
        return []
    have, are = ("has", "is") if lacking == 1 else ("have", "are")
    of = plural(sum(g.records for g in decided), "record")
    line = f"{count(lacking)} of {of} {have} no verdict and {are} left out of pass_rate."
    if scores.estimand.weight != "records":
        return [line]
    several = len(scores.groups) > 1
    open_groups = [g for g in decided if g["pass_rate"].skipped]
    bounds = [f"{_bounds(g)}{f' for {g.name}' if several else ''}" for g in open_groups]
    return [line, f"With verdicts on them, it would be between {listed(bounds)}."]


def _bounds(group: Group) -> str:
    """Write between which values a pass rate is, whatever the missing verdicts are."""
    rate = group["pass_rate"]
    whole, passed = rate.records + rate.skipped, rate.value * rate.records
    return f"{share(passed / whole)} and {share((passed + rate.skipped) / whole)}"


def intervals_lines(scores: Scores, names: Sequence[str]) -> list[str]:
    """Say where intervals are shown, if there are any."""
    if not any(g[n].low is not None or g[n].high is not None for g in scores.groups for n in names):
        return []
    about = scores.estimand.about.replace("-", " ")
    intervals = f"{level(scores.confidence)} confidence intervals, for {about},"
    return [f"{intervals} are shown below the values."]


def estimand_line(estimand: Estimand) -> str:
    """Say what means weigh, and what their intervals are about, where that is not the usual."""
    parts = []
    if estimand.weight == "tasks":
        parts.append("Means count each task once; metrics that are not means have no value.")
    if estimand.about == "these-tasks":
        parts.append(
            "Intervals are about these tasks alone (benchmark accuracy): how other attempts at "
            "them would end. They need two attempts at every task."
        )
    return " ".join(parts)


def counts(group: Group) -> str:
    """Write how many records a group has, and how many of them are errors."""
    errors = f", including {plural(group.errors, 'error')}" if group.errors else ""
    return f"{plural(group.records, 'record')}{errors}."


def interval_title(scores: Scores) -> str:
    """Write the title of a column of intervals."""
    return f"{level(scores.confidence)} interval"


def missing_lines(groups: Sequence[Group]) -> Iterator[str]:
    """Explain for each metric without a value why it has none, and in which groups."""
    for name in groups[0].estimates:
        by_reason: dict[str, list[str]] = {}
        for group in groups:
            if group[name].value is None:
                by_reason.setdefault(why_missing(name, group), []).append(group.name)
        for reason, names in by_reason.items():
            some = ", ".join(names) if len(names) < LEADERBOARD_FROM else f"{len(names)} groups"
            where = "" if len(names) == len(groups) else f" for {some}"
            yield f"{name} has no value{where}: {reason}."


def score_error_lines(errors: Mapping[str, tuple[int, str]]) -> list[str]:
    """Say how often each scorer failed, and with which error first."""
    return [
        f"The scorer {one_line(name)} failed on {plural(count, 'record')}, which it left without "
        f"a score. The first error: {one_line(first)}"
        for name, (count, first) in errors.items()
    ]
