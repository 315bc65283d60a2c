"""The smooth calibration error and how often its interval holds."""

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import pennyweight
from pennyweight.stats.smooth_calibration import smooth_error


def test_one_confidence_has_the_plain_gap():
    stated = np.full(1_000, 0.7)
    assert abs(smooth_error(stated, np.repeat([1.0, 0.0], [400, 600])) - 0.3) < 0.01


def test_it_sees_gaps_that_cancel_out():
    stated = np.repeat([0.2, 0.8], 500)
    correct = np.concatenate([np.repeat([1.0, 0.0], 250), np.repeat([1.0, 0.0], 250)])
    assert abs(np.mean(correct - stated)) < 1e-9
    assert 0.2 < smooth_error(stated, correct) < 0.31


def test_a_calibrated_model_is_not_blamed_and_a_bad_one_is():
    rng = np.random.default_rng(3)

    def interval(shift):
        p = rng.random(150) * 0.8 + 0.1
        y = rng.random(150) < np.clip(p - shift, 0, 1)
        frame = pl.DataFrame({"prob_correct": p, "correct": y})
        return pennyweight.score(frame, metrics=["ece_smooth"]).groups[0]["ece_smooth"]

    fair = [interval(0.0).low for _ in range(30)]
    assert sum(low == 0 for low in fair) >= 27
    bad = [interval(0.3) for _ in range(10)]
    assert all(e.low > 0.05 and e.high > 0.2 for e in bad)


confidence = st.integers(0, 10).map(lambda tenths: tenths / 10) | st.floats(0, 1)


@given(st.lists(st.tuples(confidence, st.booleans()), min_size=1, max_size=60), st.randoms())
def test_the_order_of_the_records_changes_nothing(rows, rng):
    mixed = rng.sample(rows, len(rows))
    one, other = (smooth_error(*np.array(some, dtype=float).T) for some in (rows, mixed))
    assert one == other


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(confidence, st.booleans(), st.integers(0, 9)), min_size=2, max_size=40),
    st.randoms(),
)
def test_nor_does_it_change_the_interval(rows, rng):
    names = ["prob_correct", "correct", "task_id", "attempt"]
    rows = [(p, y, f"t{task}", n) for n, (p, y, task) in enumerate(rows, 1)]

    def scored(some):
        frame = pl.DataFrame(some, schema=names, orient="row")
        found = pennyweight.score(frame, metrics=["ece_smooth"])["ece_smooth"]
        return found.value, found.low, found.high

    assert scored(rows) == scored(rng.sample(rows, len(rows)))
