"""Precision, recall and F1 against scikit-learn, with choices; how often intervals hold."""

import json
import random

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import f1_score, precision_score, recall_score

from pennyweight import score
from pennyweight.define import evaluate
from pennyweight.metrics.answer import f1, precision, recall

LABELS = ["cat", "dog", "owl"]


def labels(seed):
    rng = random.Random(seed)
    target = [rng.choice(LABELS) for _ in range(200)]
    return target, [t if rng.random() < 0.7 else rng.choice(LABELS) for t in target]


@pytest.mark.parametrize(
    ("metric", "sklearn"), [(precision, precision_score), (recall, recall_score), (f1, f1_score)]
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


def test_repeats_that_agree_by_chance_do_not_narrow_the_interval_of_a_macro_average():
    label = ["cat"] * 40 + ["dog"] * 10
    rows = [
        {
            "task_id": f"{task}",
            "attempt": i + 1,
            "target": name,
            "answer": name if i < 14 else "owl",
        }
        for task, name in enumerate(label)
        for i in range(20)
    ]
    alone = [row | {"task_id": f"{row['task_id']}/{row['attempt']}", "attempt": 1} for row in rows]
    repeated, independent = (score(r, metrics="recall")["recall"] for r in (rows, alone))
    assert repeated.value == independent.value == pytest.approx(0.7)
    assert repeated.low <= independent.low
    assert repeated.high >= independent.high


def test_the_interval_of_a_macro_average_holds_with_few_tasks_of_a_rare_label():
    rng = np.random.default_rng(5)
    sets, tasks, tries = 120, 40, 10
    kind = np.repeat(rng.choice(3, (sets, tasks, 1), p=[0.6, 0.3, 0.1]), tries, axis=2)
    hit = rng.random(kind.shape) < np.array([0.9, 0.8, 0.7])[kind]
    names = np.array([*LABELS, "none"])
    frame = pl.DataFrame(
        {
            "subject": np.repeat(np.arange(sets), tasks * tries).astype(str),
            "task_id": np.tile(np.repeat(np.arange(tasks), tries), sets).astype(str),
            "attempt": np.tile(np.arange(1, tries + 1), sets * tasks),
            "target": names[kind].ravel(),
            "answer": names[np.where(hit, kind, 3)].ravel(),
        }
    )
    groups = score(frame, by="subject", metrics="recall").groups
    held = [g["recall"].low <= 0.8 <= g["recall"].high for g in groups]
    assert np.mean(held) > 0.9  # 85 % if the attempts of five tasks alone show how alike they are


def test_the_interval_of_f1_is_about_that_of_a_bootstrap():
    target, answer = map(np.array, labels(1))
    rows = [{"target": str(t), "answer": str(a)} for t, a in zip(target, answer, strict=True)]
    found = score(rows, metrics="f1")["f1"]
    picks = np.random.default_rng(1).integers(0, 200, (300, 200))
    drawn = [f1_score(target[i], answer[i], average="macro") for i in picks]
    low, high = np.quantile(drawn, (0.025, 0.975))
    assert (found.low, found.high) == (pytest.approx(low, abs=0.02), pytest.approx(high, abs=0.02))


def test_labels_follow_the_match_rule():
    target = ["Yes", "Yes", "No", "No", "No"]
    answer = ["yes", "Yes", "No", "no", "Yes"]
    rows = [
        {"task_id": n, "answer": a, "target": t}
        for n, (a, t) in enumerate(zip(answer, target, strict=True))
    ]
    names = {"precision": precision_score, "recall": recall_score, "f1": f1_score}
    for positive in (None, "Yes", "No"):
        options = {} if positive is None else {"positive": positive}
        found = score(rows, match="text", metrics=list(names), **options).groups[0]
        for name, sklearn in names.items():
            asked = sorted(set(answer)) if name == "precision" else ["No", "Yes"]
            over = asked if positive is None else [positive]
            expected = sklearn(target, answer, labels=over, average="macro", zero_division=0)
            assert found[name].value == pytest.approx(expected), (name, positive)
            if positive is None:
                assert found[name].low <= found[name].value <= found[name].high


def test_a_wrong_answer_is_not_its_targets_label_even_if_it_reads_the_same():
    rows = [{"task_id": n, "answer": "a+b", "target": "a+b"} for n in range(2)]
    found = score(rows, match="regex", metrics=["accuracy", "precision", "recall", "f1"])
    assert {value.value for value in found.groups[0].estimates.values()} == {0.0}


def test_labels_of_choices_are_letters_not_the_texts_of_one_task():
    rng = random.Random(1)
    rows, letters = [], ([], [])
    for n in range(80):
        choices = [f"city {n} {k}" for k in range(4)]
        target = rng.randrange(4)
        answer = target if rng.random() < 0.26 else rng.randrange(4)
        row = {"task_id": n, "choices": json.dumps(choices), "matched_by": "choice"}
        right = {"correct": answer == target, "answer": f"({'ABCD'[answer]})"}
        rows.append({**row, **right, "target": f"{'ABCD'[target]}. {choices[target]}"})
        letters[0].append("abcd"[target])
        letters[1].append("abcd"[answer])
    found = score(rows)
    for name, metric in (
        ("precision", precision_score),
        ("recall", recall_score),
        ("f1", f1_score),
    ):
        assert found[name].value == pytest.approx(metric(*letters, average="macro"))
    assert score(rows, positive="B")["f1"].value == pytest.approx(
        f1_score(*letters, labels=["b"], average="macro")
    )


def test_what_is_no_choice_is_no_label():
    row = {"choices": '["Oslo", "Rome"]', "target": "Rome"}
    rows = [{**row, "answer": answer} for answer in ("Rome", "Paris", None, "A")]
    assert score(rows)["precision"].value == 0.5
    assert score([{**row, "target": "Bonn", "answer": "Bonn"}])["recall"].value is None


@pytest.mark.parametrize(
    ("tasks", "rare", "found", "false", "attempts"),
    [(100, 0.05, 0.6, 0.02, 1), (400, 0.02, 0.7, 0.005, 1), (60, 0.1, 0.7, 0.05, 3)],
)
@pytest.mark.parametrize("positive", ["y", None])
def test_intervals_of_f1_of_a_rare_label_hold(tasks, rare, found, false, attempts, positive):
    tp, fp, fn = rare * found, (1 - rare) * false, rare * (1 - found)
    tn = (1 - rare) * (1 - false)
    one, other = 2 * tp / (2 * tp + fp + fn), 2 * tn / (2 * tn + fp + fn)
    truth = one if positive else (one + other) / 2
    rng = np.random.default_rng(7)
    inside = []
    for _ in range(60):
        asked = rng.random(tasks) < rare
        chance = np.where(asked, found, false)
        if attempts > 1:
            chance = rng.beta(2 * chance, 2 * (1 - chance))
        frames = [
            pl.DataFrame(
                {
                    "task_id": [str(n) for n in range(tasks)],
                    "attempt": [attempt + 1] * tasks,
                    "target": np.where(asked, "y", "n"),
                    "answer": np.where(rng.random(tasks) < chance, "y", "n"),
                }
            )
            for attempt in range(attempts)
        ]
        estimate = score(pl.concat(frames), metrics="f1", positive=positive)["f1"]
        if estimate.low is not None:
            inside.append(estimate.low <= truth <= estimate.high)
    assert np.mean(inside) >= 0.9
