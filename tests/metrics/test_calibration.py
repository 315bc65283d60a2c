"""Calibration against scikit-learn, where it defines the same."""

import math

import numpy as np
import polars as pl
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, roc_auc_score

import pennyweight
from pennyweight.define import evaluate
from pennyweight.metrics.calibration import brier, confidence_auroc, ece, ece_debiased


@pytest.fixture
def data():
    rng = np.random.default_rng(8)
    p = rng.random(5000)
    return p, rng.random(5000) < p**1.5


def test_brier(data):
    p, correct = data
    found = evaluate(brier, prob_correct=p.tolist(), correct=correct.tolist())
    assert found == pytest.approx(brier_score_loss(correct, p))


@pytest.mark.parametrize("bins", [5, 10, 15])
def test_ece(data, bins):
    p, correct = data
    accuracy, confidence = calibration_curve(correct, p, n_bins=bins)
    sizes = np.histogram(p, np.linspace(0, 1, bins + 1))[0]
    expected = float((sizes / len(p) * np.abs(accuracy - confidence)).sum())
    found = evaluate(ece, prob_correct=p.tolist(), correct=correct.tolist(), bins=bins)
    assert found == pytest.approx(expected)


def test_a_calibrated_model_has_next_to_no_calibration_error_once_chance_is_taken_off():
    rng = np.random.default_rng(7)
    plain, debiased = [], []
    for _ in range(200):
        p = rng.random(20)
        columns = {"prob_correct": p.tolist(), "correct": (rng.random(20) < p).tolist()}
        plain.append(evaluate(ece, **columns))
        debiased.append(evaluate(ece_debiased, **columns))
    assert np.mean(plain) > 0.18
    assert np.mean(debiased) < 0.06
    assert all(d <= e for d, e in zip(debiased, plain, strict=True))


def test_with_many_records_both_calibration_errors_are_the_same():
    rng = np.random.default_rng(8)
    p = 0.5 + rng.random(20_000) / 2
    columns = {"prob_correct": p.tolist(), "correct": (rng.random(20_000) < p - 0.2).tolist()}
    assert evaluate(ece_debiased, **columns) == pytest.approx(evaluate(ece, **columns), abs=1e-4)
    assert evaluate(ece_debiased, **columns) == pytest.approx(0.2, abs=0.01)


def test_the_area_under_the_curve_is_that_of_scikit_learn(data):
    p, correct = data
    p = np.round(p, 1)  # with ties
    found = evaluate(confidence_auroc, prob_correct=p.tolist(), correct=correct.tolist())
    assert found == pytest.approx(roc_auc_score(correct, p))


def test_the_interval_of_the_area_is_about_that_of_a_bootstrap(data):
    p, correct = (part[:300] for part in data)
    found = pennyweight.score(
        [{"prob_correct": x, "correct": bool(c)} for x, c in zip(p, correct, strict=True)],
        metrics="confidence_auroc",
    )["confidence_auroc"]
    rng = np.random.default_rng(1)
    picks = rng.integers(0, 300, (400, 300))
    low, high = np.quantile([roc_auc_score(correct[i], p[i]) for i in picks], (0.025, 0.975))
    assert (found.low, found.high) == (pytest.approx(low, abs=0.02), pytest.approx(high, abs=0.02))


@pytest.mark.parametrize(("tasks", "right", "apart"), [(60, 0.9, 1.0), (100, 0.95, 1.5)])
def test_intervals_of_the_area_hold_with_few_wrong_answers(tasks, right, apart):
    truth = (1 + math.erf(apart / 2)) / 2
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(80):
        correct = rng.random(tasks) < right
        stated = 1 / (1 + np.exp(-rng.normal(size=tasks) - apart * correct))
        frame = pl.DataFrame({"correct": correct, "prob_correct": stated})
        found = pennyweight.score(frame, metrics="confidence_auroc")["confidence_auroc"]
        if found.low is not None:
            inside.append(found.low <= truth <= found.high)
    assert np.mean(inside) >= 0.91  # 77 to 88 % by the linearised error alone
