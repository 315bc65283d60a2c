"""Precision and recall against scikit-learn."""

import random

import pytest
from sklearn.metrics import precision_score, recall_score

from pennyweight import score
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


@pytest.mark.parametrize("metric", [precision, recall])
def test_the_last_digit_does_not_depend_on_the_labels_seen_before(metric):
    shares = [(1, 3), (2, 7), (5, 9), (3, 11), (10, 13), (1, 17), (12, 19)]
    found = set()
    for seed in range(20):  # each time other labels, whose codes follow the order of records
        rows = [(f"{seed}-{i}", n < k) for i, (k, size) in enumerate(shares) for n in range(size)]
        random.Random(seed).shuffle(rows)
        target = [label if hit or metric is recall else f"not {label}" for label, hit in rows]
        answer = [label if hit or metric is precision else f"not {label}" for label, hit in rows]
        group = score([{"target": t, "answer": a} for t, a in zip(target, answer, strict=True)])
        estimate = group.groups[0][metric.name]
        found.add((estimate.value, estimate.low, estimate.high))
    assert len(found) == 1
