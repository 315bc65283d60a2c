"""Diversity of answers: full agreement is not certainty."""

from __future__ import annotations

import polars as pl
import pytest

import pennyweight


@pytest.mark.parametrize(
    "name", ["task_sce_mean", "task_sce_corrected", "mode_share", "stability", "di_at_0"]
)
def test_repeats_that_all_agree_leave_room_for_others(name: str) -> None:
    frame = pl.DataFrame({
        "task_id": [f"t{i // 5}" for i in range(100)],
        "attempt": [i % 5 + 1 for i in range(100)],
        "answer": ["a"] * 100,
        "temperature": [0.0] * 100,
    })  # fmt: skip
    found = pennyweight.score(frame, metrics=name)[name]
    assert found.high - found.low > 0.05
