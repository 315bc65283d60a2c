"""Typical records: their intervals are as wide as those of drawn records are on average."""

import numpy as np
import polars as pl
import pytest

import pennyweight
from pennyweight.scoring.typical_records import tasks_for_width, typical_records, width
from pennyweight.stats.variation import Variation
from stats.test_variation import drawn


def test_records_have_an_attempt_for_each_run():
    frame = typical_records(Variation.of_rate(0.75, 0.5, 0.7), 40, 3)
    assert frame.height == 120
    assert frame["task_id"].n_unique() == 40
    assert frame["passed"].mean() == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize("runs", [1, 5])
@pytest.mark.parametrize("rate", [0.5, 0.95])
def test_the_interval_of_a_rate_is_as_wide_as_planned(rate, runs):
    variation = Variation.of_rate(rate, 0.5, 0.7)
    tasks = tasks_for_width(variation, 0.12, runs, 0.95)
    parts = []
    for seed in range(60):
        passes = np.rint(drawn(variation, tasks, runs, seed)[0] * runs).astype(int)
        single = (np.arange(runs) < passes[:, None]).ravel()
        parts.append(
            pl.DataFrame({"set": seed, "task_id": np.repeat(np.arange(tasks), runs)}).with_columns(
                attempt=pl.int_range(pl.len()) % runs + 1, passed=pl.Series(single)
            )
        )
    scores = pennyweight.score(pl.concat(parts), by="set", metrics="pass_rate")
    widths = [group["pass_rate"].high - group["pass_rate"].low for group in scores.groups]
    assert np.mean(widths) == pytest.approx(0.12, rel=0.05)


def test_the_interval_of_many_tasks_shrinks_with_their_square_root():
    variation = Variation.of_rate(0.8, 0.5, 0.7)
    ratio = width(variation, 100_000, 1, 0.95) / width(variation, 400_000, 1, 0.95)
    assert ratio == pytest.approx(2, rel=0.01)


def test_a_single_task_has_no_interval():
    assert width(Variation.of_rate(0.8, 0.5, 0.7), 1, 1, 0.95) == np.inf
