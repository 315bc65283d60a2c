"""Calibration against scikit-learn, where it defines the same."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from pennyweight.define import evaluate
from pennyweight.metrics.calibration import brier, ece


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
