"""Charts of each side by itself: the numbers are those of its records alone."""

import random
import re
from html import unescape

import pytest

from pennyweight.api.pages.digest import digest
from pennyweight.api.score import score
from pennyweight.api.sources import resolve
from pennyweight.render.charts.catalogue import charts


def rows():
    dice = random.Random(11)
    return [
        {
            "task_id": f"t{task}", "subject": subject, "attempt": attempt, "target": "4",
            "answer": "4" if dice.random() < rate else "5", "category": f"kind {task % 3}",
            "prob_correct": dice.choice((0.1, 0.55, 0.92, 1.0)),
            "cot": "word " * dice.randint(1, 90), "latency_ms": dice.lognormvariate(6, 1),
            "prompt_tokens": 10, "completion_tokens": dice.randint(5, 50),
            "cost_usd": 0.01 * rate, "status": "error" if task == 29 else "ok",
        }
        for subject, rate in (("a", 0.9), ("b", 0.4))
        for task in range(30)
        for attempt in (1, 2)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def made():
    return digest(resolve(rows()))


def of(side, **more):
    known = [r for r in rows() if r["subject"] == side and r["status"] == "ok"]
    return [r for r in known if all(r[n] == v for n, v in more.items())]


def right(records):
    return sum(r["answer"] == r["target"] for r in records) / len(records)


def test_bins_are_those_of_one_side(made):
    each = made["charts"]["each"]
    assert [side["name"] for side in each["reliability"]] == ["a", "b"]
    for side in each["reliability"]:
        for one in side["bins"]:
            top = 1.1 if one["high"] is None else one["high"]
            inside = [r for r in of(side["name"]) if one["low"] <= r["prob_correct"] < top]
            assert one["n"] == len(inside)
            assert one["right"] == pytest.approx(right(inside))
            assert one["ends"][0] <= one["right"] <= one["ends"][1]
    for side in each["thinking"]:
        assert sum(one["n"] for one in side["bins"]) == len(of(side["name"]))


def test_spreads_and_categories_are_those_of_one_side(made):
    each = made["charts"]["each"]
    for side in each["latency"]:
        values = sorted(r["latency_ms"] for r in of(side["name"]))
        nearest = [values[max(0, -int(-q * len(values) // 1) - 1)] for q in (0.05, 0.5, 0.95)]
        assert side["quantiles"][::2] == pytest.approx(nearest)
    for cell in each["categories"]:
        assert cell["value"] == pytest.approx(right(of(cell["name"], category=cell["category"])))
    assert len(each["categories"]) == 6


def test_curves_are_those_of_one_side(made):
    for side in made["charts"]["each"]["repeats"]:
        alone = [r for r in rows() if r["subject"] == side["name"]]
        for point in side["points"]:
            assert point["pass_at_k"][0] == pytest.approx(
                score(alone, k=point["k"])["pass_at_k"].value
            )


def test_a_side_without_repeats_of_each_task_costs_the_others_no_curve():
    given = [r for r in rows() if (r["subject"], r["task_id"], r["attempt"]) != ("b", "t3", 2)]
    (only,) = digest(resolve(given))["charts"]["each"]["repeats"]
    assert only["name"] == "a"
    assert [point["k"] for point in only["points"]] == [1, 2]


def test_every_mark_names_its_side_and_leads_to_it(made):
    drawn = {c.name: c for c in charts(made, lambda wanted: f"/{sorted(wanted.items())}")}
    for name in ("reliability", "thought", "latency", "tokens", "categories", "repeats"):
        links = re.findall(r'<a href="([^"]+)"[^>]*><title>([^<]+)<', drawn[name].svg)
        assert links, name
        for href, label in links:
            side = "a" if label.startswith("a") else "b"
            assert f"('subject', '{side}')" in unescape(href), (name, label)
        assert set(drawn[name].links.values()) == {unescape(href) for href, _ in links}


def test_one_side_has_no_charts_of_sides():
    assert digest(resolve([r for r in rows() if r["subject"] == "a"]))["charts"]["each"] is None


def test_of_many_sides_the_charts_show_the_best():
    many = [
        {"task_id": f"t{task}", "subject": f"s{n:03}", "passed": task * 4 < n, "cost_usd": n / 1e3}
        for n in range(104)
        for task in range(26)
    ]
    found = digest(resolve(many))["charts"]
    for name in ("sides", "frontier"):
        shown = {row["name"] for row in found[name]["rows"]}
        assert len(shown) == 100, name
        assert {"s103", "s050"} <= shown, name
        assert "s000" not in shown, name
