"""Calibration in detail against scikit-learn, SciPy and a direct computation."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import entropy
from sklearn.metrics import brier_score_loss, roc_auc_score

import pennyweight

RNG = np.random.default_rng(5)
STATED = RNG.choice([0.05, 0.35, 0.55, 0.85, 0.95], 400)
RIGHT = RNG.random(400) < STATED**1.5
ROWS = [
    {"task_id": f"t{i}", "prob_correct": p, "stated_confidence": p, "correct": bool(y)}
    for i, (p, y) in enumerate(zip(STATED.tolist(), RIGHT, strict=True))
]


def test_the_parts_of_the_brier_score_add_up_to_that_of_scikit_learn() -> None:
    scores = pennyweight.score(ROWS)
    parts = (scores[f"brier_{name}"].value for name in ("reliability", "resolution", "uncertainty"))
    reliability, resolution, uncertainty = parts
    brier = brier_score_loss(RIGHT, STATED)
    assert reliability - resolution + uncertainty == pytest.approx(brier)
    assert scores["brier"].value == pytest.approx(brier)


def test_areas_are_those_of_scikit_learn() -> None:
    scores = pennyweight.score(ROWS)
    expected = roc_auc_score(RIGHT, STATED)
    for name in ("auroc_stated", "confidence_auroc"):
        found = scores[name]
        assert found.value == pytest.approx(expected)
        assert found.low < found.value < found.high


def test_the_risk_coverage_area_is_the_mean_over_random_orders_of_ties() -> None:
    rows = [{"prob_correct": p, "correct": y} for p, y in [(0.9, True), (0.5, False), (0.5, True)]]
    # the two answers at 0.5 come in either order: errors 0, 1/2, 1/3 or 0, 0, 1/3
    either = (np.mean([0, 1 / 2, 1 / 3]) + np.mean([0, 0, 1 / 3])) / 2
    assert pennyweight.score(rows)["aurc"].value == pytest.approx(either)


def test_the_smooth_error_is_that_of_a_plain_sum_over_a_reflected_kernel() -> None:
    grid = (np.arange(400) + 0.5) / 400

    def smoothed(width: float) -> float:
        images = np.stack([STATED, -STATED, 2 - STATED])
        distances = grid[:, None, None] - images
        kernel = np.exp(-(distances**2) / (2 * width**2)) / (width * math.sqrt(2 * math.pi))
        return float(np.abs(kernel.sum(axis=1) @ (RIGHT - STATED)).mean() / len(STATED))

    low, high = 0.002, 1.0
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (middle, high) if smoothed(middle) > middle else (low, middle)
    assert pennyweight.score(ROWS)["ece_smooth"].value == pytest.approx(high, abs=0.003)


def test_the_entropy_of_a_tasks_answers_is_that_of_scipy() -> None:
    counts = {"a": [3, 2, 1], "b": [6]}
    rows = [
        {"task_id": task, "attempt": 10 * place + i + 1, "answer": f"x{place}", "target": "x0"}
        for task, sizes in counts.items()
        for place, size in enumerate(sizes)
        for i in range(size)
    ]
    scores = pennyweight.score(rows)
    expected = np.mean([entropy(sizes) for sizes in counts.values()])
    assert scores["task_sce_mean"].value == pytest.approx(expected)
    corrected = expected + np.mean([2 / 12, 0])
    assert scores["task_sce_corrected"].value == pytest.approx(corrected)


def test_answers_of_one_value_are_one_class_where_the_matching_is_mathematical() -> None:
    rows = [
        {"task_id": "a", "attempt": i, "answer": answer, "target": "7", "temperature": 0}
        for i, answer in enumerate(["1/2", "0.5", r"\frac{2}{4}"], 1)
    ]
    assert pennyweight.score(rows, match="math")["di_at_0"].value == 1.0
    assert pennyweight.score(rows, match="exact")["di_at_0"].value == 0.0


def test_the_interval_of_uncertainty_holds_where_nearly_all_are_right():
    rng = np.random.default_rng(5)
    inside = []
    for _ in range(80):
        frame = pl.DataFrame({"correct": rng.random(60) < 0.97, "prob_correct": [0.8] * 60})
        found = pennyweight.score(frame, metrics="brier_uncertainty")["brier_uncertainty"]
        inside.append(found.low <= 0.97 * 0.03 <= found.high)
    assert np.mean(inside) >= 0.91  # 83 % by a linearised error
