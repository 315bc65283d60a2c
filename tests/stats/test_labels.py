"""Labels agree with scikit-learn's kappa and ppi-python's mean, and intervals hold."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from pennyweight.stats.labels import agreement, corrected_share


def drawn(rng, records, labels, *, rate=0.7, right=(0.95, 0.9), attempts=1):
    """Truths, verdicts of a judge that is `right` on good and bad ones, and some labels."""
    tasks = np.repeat(np.arange(records // attempts), attempts)
    share = rng.beta(2 * rate, 2 - 2 * rate, records // attempts) if attempts > 1 else rate
    truth = (rng.random(records) < np.broadcast_to(share, records // attempts)[tasks]).astype(float)
    correct = rng.random(records) < np.where(truth == 1, *right)
    verdicts = np.where(correct, truth, 1 - truth)
    given = np.full(records, np.nan)
    chosen = rng.permutation(records)[:labels]
    given[chosen] = truth[chosen]
    return verdicts, given, tasks


def test_kappa_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = rng.integers(0, 2, (2, 30)).astype(float)
        found = agreement(a, b, np.arange(30), 0.95)
        assert found.kappa == pytest.approx(cohen_kappa_score(a, b), abs=1e-12)
        assert found.share == pytest.approx(np.mean(a == b))
        assert found.interval[0] <= found.share <= found.interval[1]
        assert found.kappa_interval[0] <= found.kappa <= found.kappa_interval[1]


def test_agreement_without_disagreement_is_not_certain():
    all_right = agreement(np.ones(10), np.ones(10), np.arange(10), 0.95)
    assert (all_right.share, all_right.kappa) == (1.0, None)
    both = np.array([1.0] * 5 + [0.0] * 5)
    found = agreement(both, both, np.arange(10), 0.95)
    assert found.kappa == 1.0
    assert found.kappa_interval[0] < 0.6
    assert agreement(np.empty(0), np.empty(0), np.arange(0), 0.95).share is None


def test_kappa_intervals_hold():
    rng, kept, every = np.random.default_rng(1), 0, 400
    cells = np.array([0.56, 0.04, 0.04, 0.36])
    marginal = 0.6 * 0.6 + 0.4 * 0.4
    true = (0.92 - marginal) / (1 - marginal)
    for _ in range(every):
        counts = rng.multinomial(40, cells)
        a, b = (np.repeat(v, counts).astype(float) for v in ([1, 1, 0, 0], [1, 0, 1, 0]))
        low, high = agreement(a, b, np.arange(40), 0.95).kappa_interval
        kept += low <= true <= high
    assert kept / every >= 0.93


def test_the_corrected_share_is_the_plain_formula():
    """The labels' share, plus λ times (mean verdict without labels − mean verdict with labels)."""
    verdicts, given, tasks = drawn(np.random.default_rng(2), 200, 40)
    found = corrected_share(verdicts, given, tasks, 0.95)
    pairs = [(v, g) for v, g in zip(verdicts, given, strict=True) if not np.isnan(g)]
    others = [v for v, g in zip(verdicts, given, strict=True) if np.isnan(g)]
    judged, said = (sum(side) / 40 for side in zip(*pairs, strict=True))
    covariance = sum((v - judged) * (g - said) for v, g in pairs) / 40
    spread = sum((v - sum(verdicts) / 200) ** 2 for v in verdicts) / 199
    power = covariance / spread * 160 / 200
    assert 0 < power < 1
    plain = said + power * (sum(others) / 160 - judged)
    assert found.value == pytest.approx(plain, abs=1e-12)
    assert (found.judged, found.records, found.labelled) == (verdicts.mean(), 200, 40)


@pytest.mark.parametrize(("records", "labels"), [(400, 100), (2000, 400), (5000, 600)])
@pytest.mark.parametrize("right", [(0.85, 0.8), (0.65, 0.65), (0.3, 0.3)])
def test_it_is_the_estimate_of_ppi_python(records, labels, right):
    """With its tuned λ; large samples, where normal and score intervals are alike."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
    verdicts, given, tasks = drawn(np.random.default_rng(3), records, labels, right=right)
    known = ~np.isnan(given)
    theirs = given[known], verdicts[known], verdicts[~known]
    found = corrected_share(verdicts, given, tasks, 0.95)
    assert found.value == pytest.approx(ppi_mean_pointestimate(*theirs)[0], abs=1e-12)
    low, high = (end[0] for end in ppi_mean_ci(*theirs, alpha=0.05))
    assert found.interval == pytest.approx((low, high), abs=0.06 * (high - low))


@pytest.mark.parametrize("right", [0.5, 0.65, 0.9])
def test_a_judge_never_makes_the_interval_wider_than_the_labels_alone(right):
    rng, corrected, alone = np.random.default_rng(7), [], []
    for _ in range(60):
        verdicts, given, tasks = drawn(rng, 2000, 50, rate=0.5, right=(right, right))
        known = ~np.isnan(given)
        corrected.append(corrected_share(verdicts, given, tasks, 0.95).interval)
        alone.append(corrected_share(given[known], given[known], tasks[known], 0.95).interval)
    widths = [np.mean([high - low for low, high in ends]) for ends in (corrected, alone)]
    assert widths[0] < widths[1]
    assert (widths[0] < 0.75 * widths[1]) == (right == 0.9)


@pytest.mark.parametrize(
    ("records", "labels", "more"),
    [
        (200, 5, {}),
        (200, 10, {"rate": 0.97, "right": (1.0, 0.0)}),
        (200, 20, {}),
        (60, 20, {"right": (0.6, 0.6)}),
        (200, 10, {"rate": 0.5, "right": (0.65, 0.65)}),
        (2000, 50, {"rate": 0.5, "right": (0.65, 0.65)}),
        (400, 50, {"rate": 0.6, "right": (0.5, 0.5)}),
        (1000, 50, {"rate": 0.9, "right": (0.99, 0.9)}),
        (200, 200, {"rate": 0.5, "right": (0.8, 0.8)}),
        (30, 30, {"rate": 0.95, "right": (0.98, 0.3)}),
        (30, 30, {"rate": 0.2, "right": (1.0, 0.5), "attempts": 5}),
        (60, 57, {"right": (0.6, 0.6)}),
        (1000, 100, {"attempts": 10}),
    ],
)
def test_corrected_intervals_hold(records, labels, more):
    rng, kept, every = np.random.default_rng(4), 0, 300
    for _ in range(every):
        low, high = corrected_share(*drawn(rng, records, labels, **more), 0.95).interval
        kept += low <= more.get("rate", 0.7) <= high
    assert kept / every >= 0.93


def test_that_many_labels_do_halve_the_interval():
    widths = []
    rng = np.random.default_rng(5)
    verdicts, given, tasks = drawn(rng, 4000, 4000, right=(0.9, 0.8))
    order = rng.permutation(4000)

    def some(n):
        part = np.full(4000, np.nan)
        part[order[:n]] = given[order[:n]]
        return corrected_share(verdicts, part, tasks, 0.95)

    first = some(100)
    second = some(100 + first.to_halve)
    widths = [found.interval[1] - found.interval[0] for found in (first, second)]
    assert widths[1] / widths[0] == pytest.approx(0.5, abs=0.05)
    assert some(4000).to_halve is None
    assert corrected_share(verdicts, np.full(4000, np.nan), tasks, 0.95) is None


def test_nobody_is_told_to_label_more_than_would_help():
    """If labels of all records would not halve the interval, none of their numbers can."""
    rng, promised = np.random.default_rng(6), 0
    for records, labels in ((12, 10), (60, 20), (100, 20), (300, 20)) * 20:
        verdicts, truth, tasks = drawn(rng, records, records, right=(0.8, 0.7))
        order = rng.permutation(records)

        def width(n, verdicts=verdicts, truth=truth, tasks=tasks, order=order):
            given = np.full(len(truth), np.nan)
            given[order[:n]] = truth[order[:n]]
            found = corrected_share(verdicts, given, tasks, 0.95)
            return found.interval[1] - found.interval[0], found.to_halve

        before, more = width(labels)
        if more is not None:
            promised += 1
            assert width(labels + more)[0] / before < 0.75
    assert 20 < promised < 70
    all_right = np.where(np.arange(12) < 10, 1.0, np.nan)
    verdicts = (np.arange(12) < 5).astype(float)
    assert corrected_share(verdicts, all_right, np.arange(12), 0.95).to_halve is None
