"""What a pilot shows: records drawn with known variances give them back."""

import numpy as np
import pytest

import pennyweight
from pennyweight.errors import PennyweightError
from pennyweight.scoring.pilot import PilotRecords
from pennyweight.sources.source import RowsSource


def records(tasks=400, runs=4, share=0.5, seed=0, sides=("a", "b"), same=0.7):
    """Draw passes and costs of sides on the same tasks."""
    rng = np.random.default_rng(seed)
    size = 1 / share - 1
    ease = rng.beta(0.8 * size, 0.2 * size, (2, tasks))
    dear = rng.standard_normal((2, tasks)) * 0.6
    alike = rng.random(tasks) < same
    for side, name in enumerate(sides):
        rates, costs = (np.where(alike, x[0], x[side]) for x in (ease, dear))
        for task in range(tasks):
            for attempt in range(runs):
                yield {
                    "task_id": str(task),
                    "subject": name,
                    "attempt": attempt + 1,
                    "passed": bool(rng.random() < rates[task]),
                    "cost_usd": 0.02 * np.exp(costs[task] + 0.8 * rng.standard_normal()),
                }


def pilot(rows, metric="pass_rate", *, paired=True, **options):
    found = PilotRecords.read([RowsSource(list(rows))], [metric], (), options, paired=paired)
    return found.pilot(metric, 0.7, 0.7)


def test_repeated_runs_of_two_sides_show_everything():
    found = pilot(records())
    variation = found.variation
    assert (found.tasks, found.attempts, found.sides) == (400, 3200, ("a", "b"))
    assert variation.mean == pytest.approx(0.8, abs=0.03)
    assert variation.task_share == pytest.approx(0.5, abs=0.08)
    assert variation.correlation == pytest.approx(0.7, abs=0.1)
    assert variation.seen == 400


def test_costs_are_split_on_the_scale_of_logarithms():
    variation = pilot(records(), "cost_usd_mean").variation
    assert variation.log_sd == pytest.approx(1.0, abs=0.05)
    assert variation.task_share == pytest.approx(0.36, abs=0.06)
    assert variation.correlation == pytest.approx(0.7, abs=0.1)


def test_what_single_attempts_do_not_show_is_assumed():
    found = pilot(records(runs=1))
    assert not found.repeated
    assert found.variation.task_share == 0.7
    assert found.variation.discordance == pytest.approx(2 * 0.16 * (1 - 0.35), abs=0.04)


def test_one_side_does_not_show_the_correlation():
    found = pilot(records(sides=("a",)))
    assert found.sides == ()
    assert found.variation.correlation == 0.7


def test_what_always_passed_is_not_taken_for_certain():
    found = pilot([{"task_id": str(i), "passed": True} for i in range(9)])
    assert found.extreme
    assert found.variation.mean == 0.95


def test_a_question_about_one_side_refuses_several():
    with pytest.raises(PennyweightError, match="--where subject=b"):
        pilot(records(tasks=3), paired=False)
    assert pilot(records(tasks=30), paired=False, subject="b").tasks == 30


def test_settings_that_are_no_sides_do_not_count_as_variation():
    """Two subjects, one ten times as dear: their tiers are compared within each."""
    rows = [
        dict(row, subject=name, tier=row["subject"], cost_usd=row["cost_usd"] * factor)
        for name, factor in (("cheap", 1), ("dear", 10))
        for row in records(seed=factor)
    ]
    assert pilot(rows, "cost_usd_mean").variation.log_sd == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no records"),
        ([{"task_id": "1", "passed": True}] , "one task only"),
        ([{"task_id": str(i), "answer": "x"} for i in range(5)], "shows no rate"),
    ],
)  # fmt: skip
def test_a_pilot_that_shows_nothing_is_refused(rows, message):
    with pytest.raises(PennyweightError, match=message):
        pennyweight.plan(rows, difference="5%")
