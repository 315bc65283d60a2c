"""Precision and recall against scikit-learn."""

import random

import pytest
from sklearn.metrics import precision_score, recall_score

from pennyweight.define import evaluate
from pennyweight.metrics.answer import precision, recall

LABELS = ["cat", "dog", "owl"]


def labels(seed):
    rng = random.Random(seed)
    target = [rng.choice(LABELS) for _ in range(200)]
    return target, [t if rng.random() < 0.7 else rng.choice(LABELS) for t in target]


@pytest.mark.parametrize(
    ("metric", "sklearn"), [(precision, precision_score), (recall, recall_score)]
)
@pytest.mark.parametrize("seed", range(3))
def test_labels(metric, sklearn, seed):
    target, answer = labels(seed)
    macro = evaluate(metric, target=target, answer=answer)
    assert macro == pytest.approx(sklearn(target, answer, average="macro"))
    for label in LABELS:
        one = evaluate(metric, target=target, answer=answer, positive=label.upper())
        expected = sklearn(target, answer, labels=[label], average="macro")
        assert one == pytest.approx(expected)


def test_an_empty_denominator_is_null():
    assert evaluate(precision, target=["a"], answer=["b"], positive="a") is None
    assert evaluate(recall, target=["a"], answer=["b"], positive="b") is None
