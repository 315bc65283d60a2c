"""What holds for every measure and metric, stated once."""

import doctest
import random
import re

import polars as pl
import pytest

from generate import many
from pennyweight.catalogue import FAMILIES, MEASURES, METRICS, chosen
from pennyweight.define import add_measures as add
from pennyweight.define import (
    by_task,
    dtype,
    evaluate,
    measure_passes,
    needed_columns,
    needed_measures,
)
from pennyweight.errors import UsageError
from pennyweight.record import BY_NAME, COLUMNS
from pennyweight.scoring.groups import interval_text

ROWS = many(200, seed=5, attempts=2)
OPTIONS = {"weights": {"accuracy": 1.0, "safety_rate": 3.0}}
metrics = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


def measured(rows):
    schema = {c.name: dtype(c.name) for c in COLUMNS}
    frame = pl.DataFrame(rows, schema=schema, strict=False).lazy()
    return add(frame, measure_passes(MEASURES.values(), {})).collect()


def value_of(metric, frame):
    """Return the value of a metric; over tasks, the mean of the values of all tasks."""
    if metric.over != "tasks":
        return frame.select(metric.expression(OPTIONS)).item()
    return by_task(frame, ["task_id"], [metric], {**OPTIONS, "n": 2})[metric.name].mean()


FRAME = measured(ROWS)


@pytest.mark.parametrize(
    "one", [*MEASURES.values(), *METRICS.values()], ids=lambda d: f"{type(d).__name__}-{d.name}"
)
def test_the_example_on_its_page_is_true(one):
    where = MEASURES if one is MEASURES.get(one.name) else METRICS
    test = doctest.DocTestParser().get_doctest(
        one.example, {"evaluate": evaluate, **where}, one.name, None, 0
    )
    assert test.examples, "it has no example"
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


@metrics
def test_no_records_give_null(metric):
    assert value_of(metric, FRAME.clear()) is None


@metrics
def test_nulls_alone_give_null(metric):
    frame = measured([{c.name: None for c in COLUMNS}] * 3)
    value = value_of(metric, frame)
    # a record without a status went well
    assert value == (0 if metric.family == "attempts" and metric.over == "all" else None)


@metrics
def test_the_order_of_records_does_not_matter(metric):
    shuffled = FRAME.sample(fraction=1, shuffle=True, seed=1)
    value, other = (value_of(metric, frame) for frame in (FRAME, shuffled))
    assert value is not None
    assert other == (value if isinstance(value, str) else pytest.approx(value))


@metrics
def test_terms_are_added_in_one_order(metric):
    body = str(metric.expression(OPTIONS))
    assert not re.search("(sum|mean)_horizontal", body), "add(…) of pennyweight.metrics.sums does"


@metrics
def test_it_is_the_same_alone_as_in_groups(metric):
    if metric.over == "tasks":
        by_both = by_task(FRAME, ["tier", "task_id"], [metric], {"n": 2})
        by_group = by_both.group_by("tier").agg(pl.col(metric.name).mean()).rows()
    else:
        by_group = FRAME.group_by("tier").agg(metric.expression(OPTIONS)).rows()
    for tier, value in by_group:
        alone = value_of(metric, FRAME.filter(pl.col("tier") == tier))
        assert value == (alone if isinstance(alone, str) else pytest.approx(alone))


@pytest.mark.parametrize("metric", [m for m in METRICS.values() if m.range], ids=lambda m: m.name)
def test_values_lie_in_the_range(metric):
    low, high = metric.range
    rng = random.Random(2)
    for size in (1, 2, 7, 50):
        frame = measured(rng.sample(ROWS, size))
        value = value_of(metric, frame)
        assert value is None or low is None or value >= low
        assert value is None or high is None or value <= high


@metrics
def test_it_can_be_computed_from_what_it_says_it_reads(metric):
    columns = needed_columns([metric], OPTIONS)
    assert columns <= {*BY_NAME, *MEASURES}
    assert FRAME.select(sorted(columns)).select(metric.expression(OPTIONS)).height == 1


@metrics
def test_it_is_explained(metric):
    assert metric.summary.endswith((".", "`."))
    assert metric.formula
    assert metric.spec
    assert interval_text(metric)
    assert metric.family in FAMILIES


def test_measures_come_after_what_they_read():
    ordered = [m.name for m in needed_measures(["composite_score", "token_efficiency"])]
    for name in ordered:
        reads = [n for n in MEASURES[name].inputs if n in ordered and n != name]
        assert all(ordered.index(n) < ordered.index(name) for n in reads)


def test_choosing_keeps_the_order_of_families_and_refuses_unknown_names():
    assert [m.name for m in chosen(["pass_rate", "accuracy"])] == ["accuracy", "pass_rate"]
    with pytest.raises(UsageError, match="Did you mean 'accuracy'"):
        chosen(["acuracy"])
