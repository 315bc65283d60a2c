"""People's verdicts beside the automatic ones, in words and as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pennyweight.render.page.metric_titles import metric_title
from pennyweight.render.view import spark_of
from pennyweight.scoring.labelled import LabelledMetric, LabelledRun, SideCorrection
from pennyweight.stats.labels import Agreement
from pennyweight.text.format import count, estimate, number, plural, share
from pennyweight.text.notation import SHARE


def people_lines(found: LabelledRun) -> Iterator[str]:
    """Say what people's verdicts show, one sentence or two for each metric and side."""
    yield from agreement_lines(found)
    for metric in found.metrics:
        if metric.agreement.records:
            yield from (correction_words(metric.metric, side) for side in metric.sides)


@dataclass(frozen=True, slots=True)
class CorrectionRow:
    """The metric of a side with and without people's verdicts, as a table shows it."""

    metric: str
    side: str
    automatic: str
    value: str
    interval: str
    spark: dict[str, float] | None
    labels: str
    more: str


def correction_rows(found: LabelledRun) -> list[CorrectionRow]:
    """Return a row for each metric and side that people's verdicts correct."""
    rows = []
    for metric in found.metrics:
        for side in metric.sides if metric.agreement.records else ():
            one = side.share
            assert one.interval is not None
            value, between = estimate(one.value, *one.interval, SHARE)
            rows.append(
                CorrectionRow(
                    str(metric_title(metric.metric)),
                    side.side,
                    share(one.judged),
                    value,
                    between,
                    spark_of(metric.metric, one.value, *one.interval),
                    f"{count(one.labelled)} of {count(one.records)}",
                    halving_words(side),
                )
            )
    return rows


def agreement_lines(found: LabelledRun) -> Iterator[str]:
    """Say how many records people labelled, and how often automatic verdicts equal theirs."""
    if not found.labelled and not found.undecided:
        yield "No person has labelled a record of this run yet."
        return
    who = plural(len(found.people), "person", "people")
    unsure = f" On {plural(found.undecided, 'more record')} they are unsure or divided."
    text = f"{who} labelled {plural(found.labelled, 'record')}."
    yield text[0].upper() + text[1:] + (unsure if found.undecided else "")
    for metric in found.metrics:
        yield from _metric_lines(metric, found)
    if found.labelled and not found.drawn:
        yield (
            "These records were not drawn at random, so they say little about the others. A random "
            "review queue also corrects the metrics."
        )


def _metric_lines(metric: LabelledMetric, found: LabelledRun) -> Iterator[str]:
    one = metric.agreement
    if not one.records:
        return
    where = "drawn at random" if found.drawn else "that people chose"
    yield (
        f"{metric_title(metric.metric)}: {agreement_words(one)}, on "
        f"{plural(one.records, 'record')} {where}."
    )


def agreement_words(one: Agreement) -> str:
    """Say how often automatic verdicts equal people's, and Cohen's kappa.

    >>> agreement_words(Agreement(40, 0.925, (0.8, 0.984), 0.8, (0.44, 0.95)))
    "92.5 % (80.0 to 98.4 %) of the verdicts equal people's; Cohen's kappa 0.80 (0.44 to 0.95)"
    """
    text = f"{_written(one.share, one.interval)} of the verdicts equal people's"
    if one.kappa is None:
        return f"{text}; Cohen's kappa is undefined, because all of them are the same"
    low_high = one.kappa_interval
    between = f" ({number(low_high[0], 2)} to {number(low_high[1], 2)})" if low_high else ""
    return f"{text}; Cohen's kappa {number(one.kappa, 2)}{between}"


def correction_words(metric: str, one: SideCorrection) -> str:
    """Say what a metric is after correction, and what more labels would bring."""
    found = one.share
    of = f" of {one.side}" if one.side else ""
    return (
        f"By people's verdicts, the {metric_title(metric).title}{of} is "
        f"{_written(found.value, found.interval)}; the automatic one is {share(found.judged)}. "
        f"{plural(found.labelled, 'label')} on {plural(found.records, 'record')}. "
        f"{halving_words(one)}"
    )


def _written(value: float | None, ends: tuple[float, float] | None) -> str:
    if value is None or ends is None:
        return share(value)
    shown, between = estimate(value, *ends, SHARE)
    return f"{shown} ({between})"


def halving_words(one: SideCorrection) -> str:
    """Say how many more labels would halve the interval."""
    found = one.share
    if found.to_halve is not None:
        more = plural(found.to_halve, "more label")
        return f"{more} would halve the interval."
    if found.labelled == found.records:
        return "All records are labelled; only more tasks would narrow the interval."
    rest = count(found.records - found.labelled)
    return f"Even labels of the other {rest} would not halve the interval; more tasks would."


def waiting_questions(questions: int) -> str:
    """Say how many questions of a suite nobody has answered; nothing if there are none.

    >>> waiting_questions(1), waiting_questions(0)
    ('1 question of the suite waits for a person.', '')
    """
    verb = "waits" if questions == 1 else "wait"
    return f"{plural(questions, 'question')} of the suite {verb} for a person." if questions else ""
