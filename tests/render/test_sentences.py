import re

import numpy as np
import pytest

import pennyweight
from pennyweight.render.comparison import as_table, words
from pennyweight.render.sentences import sentences


def rows(**sides):
    """Make records of tiers with so many passes, each at its tasks in order, at a cost."""
    return [
        {"tier": tier, "task_id": k, "passed": k < passes, "cost_usd": cost}
        for tier, (passes, tasks, cost) in sides.items()
        for k in range(tasks)
    ]


def said(**sides):
    return sentences(pennyweight.compare(rows(**sides)))


def test_a_difference_that_is_shown():
    first, last = said(T0=(20, 50, 0.1), T1=(40, 50, 0.3))
    assert first == (
        "T1 passes 40.0 points more often than T0 (95 %: 27.6 to 53.8 points) and costs 3.0 times "
        "as much per attempt; a pass costs $0.375 against $0.25 (intervals overlap)."
    )
    assert last == (
        "A pass costs $0.25 to $0.375; no side is shown to cost least. "
        "Going from T0 to T1 buys more passes at $0.50 each."
    )


def test_a_difference_the_other_way():
    first, last = said(T0=(40, 50, 0.3), T1=(20, 50, 0.24))
    assert first.startswith("T1 passes 40.0 points less often than T0 (95 %: 27.6 to 53.8 points)")
    assert "and costs 20.0 % less per attempt; a pass costs $0.60 against $0.375" in first
    assert "Going from T1 to T0 buys more passes at $0.15 each." in last


def test_the_interval_of_a_cost_is_written_as_the_cost_is():
    data = [
        {"tier": tier, "task_id": k, "passed": True, "cost_usd": factor * (1 + k % 5)}
        for tier, factor in (("T0", 1.0), ("T1", 0.25), ("T2", 1.2), ("T3", 4.0))
        for k in range(30)
    ]
    for row in data:
        row["cost_usd"] *= 1 + row["task_id"] % 3 / 100 * (row["tier"] != "T0")
    less, more, much, *_ = sentences(pennyweight.compare(data))
    assert re.search(r"costs 74\.8 % less per attempt \(95 %: 74\.[67] to 74\.8 %\)", less)
    assert re.search(r"costs 21\.\d % more per attempt \(95 %: 2[01]\.\d to 21\.\d %\)", more)
    assert re.search(r"costs 4\.0 times as much per attempt \(95 %: 4\.0\d to 4\.0\d times\)", much)


def test_a_difference_that_is_not_shown_says_what_would_be():
    (first, *_) = said(T0=(20, 40, 0.1), T1=(22, 40, 0.1))
    assert first.startswith("No difference in pass rate was shown between T1 and T0 (+5.0 points;")
    assert "With 40 tasks, a true difference of" in first
    assert "finding one of 5 points takes about" in first
    assert first.endswith("; a pass costs $0.182 against $0.20 (intervals overlap).")


def test_a_difference_that_may_be_chance_among_many():
    tiers = {f"T{k}": (12 + 6 * (k == 3), 40, 0.1) for k in range(5)}
    third = said(**tiers)[2]
    assert third.startswith("T3 passes 15.0 points more often than T0 (95 %:")
    assert "can be chance" not in third, "all pairs were tested at once already"


def test_many_sides_have_one_ranking_and_the_frontier_instead_of_a_paragraph_for_each_pair():
    tiers = {f"T{k}": (4 + 5 * k, 40, 0.1 * 2**k) for k in range(8)} | {"worse": (2, 40, 20.0)}
    ranked, last = words(pennyweight.compare(rows(**tiers), metrics=["pass_rate", "cost_usd_mean"]))
    assert ranked == (
        "Ranked by pass rate, the best is one of T7 and T6. Of the 40 common tasks, every side "
        "always solves 2 and no side ever solves 1. Only the other 37 can tell the sides apart."
    )
    assert last == (
        "A pass costs $0.889 to $400; no side is shown to cost least. "
        "The cost frontier of these values: T0, T1, T2, T3, T4, T5 and 2 others."
    )


def test_sides_that_share_nothing():
    data = [{"tier": t, "task_id": f"{t}{k}", "passed": True} for t in ("T0", "T1") for k in "ab"]
    (line,) = sentences(pennyweight.compare(data))
    assert line == (
        "T1 and T0 have no tasks in common, so they are not compared task by task "
        "(T1 tried 2 tasks, T0 2)."
    )
    nothing = [{"tier": t, "task_id": k} for t in ("T0", "T1") for k in "ab"]
    assert sentences(pennyweight.compare(nothing)) == [
        "No task has a result on two sides, so they are not compared task by task."
    ]


def test_records_without_a_side_are_told():
    found = pennyweight.compare(
        [*rows(T0=(1, 2, 0.1), T1=(2, 2, 0.1)), {"task_id": 9, "passed": True}]
    )
    assert sentences(found)[-1] == "1 record has no tier and belongs to no side."


def test_a_side_that_another_beats_in_both_is_named():
    last = said(T0=(50, 100, 0.1), T1=(30, 100, 0.2), T2=(70, 100, 0.3))[-1]
    assert last == (
        "T0 costs least: $0.20 per pass, the others $0.429 to $0.667. "
        "Going from T0 to T2 buys more passes at $1.00 each. "
        "T0 beats T1 on both: better, and it costs less."
    )


def test_what_is_no_mean_is_said_to_be_none():
    found = pennyweight.compare(rows(T0=(2, 4, 0.1), T1=(3, 4, 0.1)), metrics="cost_of_pass")
    assert sentences(found)[0] == (
        "None of the chosen metrics is a mean over records, so none is compared task by task."
    )


def test_numbers_that_differ_alike_everywhere_have_no_interval():
    found = pennyweight.compare(rows(T0=(2, 9, 0.1), T1=(3, 9, 0.3)), metrics="cost_usd_mean")
    (pair,) = found.pairs
    assert (pair.low, pair.high, pair.detectable) == (None, None, None)
    found = pennyweight.compare(rows(T0=(2, 9, 0.1), T1=(3, 9, 0.3)), metrics="total_tokens_mean")
    assert sentences(found)[0] == (
        "No task has a result on two sides, so they are not compared task by task."
    )
    tokens = [
        dict(r, input_tokens=5 + 5 * (r["tier"] == "T1")) for r in rows(T0=(2, 9, 0), T1=(3, 9, 0))
    ]
    found = pennyweight.compare(tokens, metrics="prompt_tokens_mean")
    assert (
        "is 5.00 higher in T1 than in T0, by the same amount at every task." in sentences(found)[0]
    )
    assert "nothing varied" in as_table(found)


def test_what_the_primary_question_would_show_depends_on_no_other_metric():
    alone = pennyweight.compare(rows(T0=(20, 40, 0.1), T1=(22, 40, 0.1)), metrics="pass_rate")
    both = pennyweight.compare(rows(T0=(20, 40, 0.1), T1=(22, 40, 0.1)))
    one, two = alone.pair("T1", "pass_rate"), both.pair("T1", "pass_rate")
    assert one.detectable == two.detectable
    assert one.tasks_for_5_points == two.tasks_for_5_points


def test_costs_of_a_pair_are_those_of_the_tasks_of_both():
    """On the five common tasks T1 passes more often; on its own ones it is dear and fails."""
    data = rows(T0=(2, 5, 0.1), T1=(4, 5, 0.2))
    data += [{"tier": "T0", "task_id": f"a{k}", "passed": True, "cost_usd": 0.1} for k in range(9)]
    data += [{"tier": "T1", "task_id": f"b{k}", "passed": False, "cost_usd": 9} for k in range(9)]
    first, last = sentences(pennyweight.compare(data))
    assert "a pass costs $0.25 on both sides" in first
    assert "(5 tasks tried by both. Left out: 9 tried only by T0 and 9 tried only by T1.)" in first
    assert last == (
        "A pass costs $0.127 to $20.5; no side is shown to cost least (each over its own tasks)."
    )


def test_a_side_that_never_passed_on_the_tasks_of_both():
    data = rows(T0=(2, 5, 0.1), T1=(0, 5, 0.2))
    data += [{"tier": "T1", "task_id": "b", "passed": True, "cost_usd": 0.2}]
    first, _ = sentences(pennyweight.compare(data))
    assert "it never passed on the tasks that both tried; a pass of T0 costs $0.25." in first


def test_attempts_without_a_cost_are_told():
    data = rows(T0=(10, 10, 0.1), T1=(5, 10, 0.05))
    data = [dict(r, cost_usd=None) if not r["passed"] else r for r in data]
    first, last = sentences(pennyweight.compare(data))
    assert "a pass costs $0.05 against $0.10" in first
    assert last == (
        "A pass costs $0.05 to $0.10; no side is shown to cost least, as far as costs are known. "
        "5 of 10 attempts of T1 have no cost and are not part of these figures."
    )


def test_subjects_of_one_side_only_are_told():
    data = [
        {"batch": b, "subject": s, "task_id": k, "passed": k < 3, "cost_usd": 0.1}
        for b, subjects in (("one", "XY"), ("two", "XZ"))
        for s in subjects
        for k in range(6)
    ]
    first, last = sentences(pennyweight.compare(data, by="batch"))
    assert first.endswith(
        "(Compared: subject X. Left out: Y (6 records of one) and Z (6 records of two).)"
    )
    assert last == "A pass costs $0.20 (each over its own tasks)."


def test_a_further_pass_has_a_price_only_if_there_is_a_difference():
    last = said(T0=(2, 6, 0.1), T1=(4, 6, 0.3))[-1]
    assert last == "A pass costs $0.30 to $0.45; no side is shown to cost least."
    apart = rows(T0=(2, 6, 0.1)) + [dict(r, task_id=f"b{r['task_id']}") for r in rows(T1=(4, 6, 1))]
    assert sentences(pennyweight.compare(apart))[-1] == (
        "A pass costs $0.30 to $1.50; no side is shown to cost least (each over its own tasks)."
    )


def test_the_cheapest_pass_is_not_claimed_over_what_is_not_known():
    assert said(T0=(2, 4, 0.1), T1=(2, 4, 0.1))[-1] == "A pass costs $0.20."
    assert said(T0=(2, 4, 0.1), T1=(2, 4, None))[-1] == (
        "A pass of T0 costs $0.20; not known for T1."
    )
    assert said(T0=(2, 4, 0.1), T1=(1, 4, 0.1), T2=(4, 4, None))[-1].startswith(
        "A pass costs $0.20 to $0.40; no side is shown to cost least; not known for T2."
    )
    assert said(T0=(0, 4, 0.1), T1=(2, 4, None))[-1] == (
        "The cost of a pass is not known for T1; nothing else passed."
    )


def test_tasks_without_a_verdict_were_tried_nevertheless():
    data = [dict(r, cost_usd=None) for r in rows(T0=(2, 6, 0), T1=(4, 6, 0))]
    data[-1] |= {"passed": None}
    data[-2] |= {"status": "error"}
    found = pennyweight.compare([*data, {"tier": "T1", "task_id": "x", "passed": True}])
    assert sentences(found)[0].endswith(
        "(6 tasks tried by both. Left out: 2 of these without a verdict on one side and 1 tried "
        "only by T1.)"
    )
    assert (found.pairs[0].only_a, found.pairs[0].only_b) == (0, 1)


def test_one_comparison_needs_no_correction():
    table = as_table(pennyweight.compare(rows(T0=(2, 6, 0.1), T1=(4, 6, 0.3)), metrics="pass_rate"))
    assert "pass_rate is one comparison, so nothing is adjusted." in " ".join(table.split())
    first = said(T0=(5, 10, 0.1), T1=(0, 10, 0.1))[0]
    assert (
        "it never passed, so a pass costs more than $0.324 (95 % confidence); a pass of T0 costs"
        in first
    )


def with_margin(margin, metric, worse=0, tasks=200):
    rows = [
        {"task_id": task, "tier": f"T{side}", "passed": task >= worse * side, "cost_usd": cost}
        for task in range(tasks)
        for side, cost in ((0, 1 + task % 3), (1, (1 + task % 3) * (1 + 0.01 * (task % 2))))
    ]
    return sentences(pennyweight.compare(rows, metrics=metric, margin=margin))


@pytest.mark.parametrize(
    ("margin", "metric", "worse", "sentence"),
    [
        ("4%", "pass_rate", 0, "T1 and T0 are equivalent in pass rate within ±4.0 points (p"),
        (
            "10%",
            "pass_rate",
            15,
            "It is not shown that T1 is no worse than T0 in pass rate",
        ),
        ("2%", "cost_usd_mean", 0, "T1 and T0 are equivalent in cost usd mean within ±2.0 % (p"),
    ],
)
def test_what_is_shown_about_a_margin_is_a_sentence(margin, metric, worse, sentence):
    told = with_margin(margin, metric, worse)
    assert any(line.startswith(sentence) for line in told)


def test_a_metric_without_a_value_is_named_with_its_reason() -> None:
    rows = [
        {"task_id": t, "tier": tier, "correct": True, "completion_tokens": 9}
        for t in "ab"
        for tier in ("T0", "T1")
    ]
    found = words(pennyweight.compare(rows, metrics=["overthinking_tokens", "accuracy"]))
    told = [line for line in found if line.startswith("overthinking_tokens has no value")]
    assert len(told) == 1
    assert "two correct attempts at a task" in told[0]


def test_many_sides_without_common_tasks_are_told():
    rows = [
        {"subject": f"s{side}", "task_id": f"{side // 6}-{task}", "passed": task % 2 > 0}
        for side in range(8)
        for task in range(6)
    ]
    by, why = ["subject"], "because no task has a result on both sides"
    told = words(pennyweight.compare(rows, by=by))
    assert told[-1] == f"Not compared with s0, {why}: s6 and s7."
    told = words(pennyweight.compare(rows, by=by, baseline="s7"))
    assert told[-1] == f"Not compared with s7, {why}: 6 sides."


def test_equal_sides_are_rarely_said_to_differ_in_money():
    """Of three equal sides, one was called cheapest always, and one worse in 91 of 100."""
    rng, worlds, false = np.random.default_rng(8), 60, 0
    for _ in range(worlds):
        hard = rng.beta(2, 1, 40)
        given = [
            {"tier": tier, "task_id": f"t{n}", "passed": bool(ease > rng.random()),
             "cost_usd": 0.02 * rng.lognormal(0, 0.5)}
            for n, ease in enumerate(hard)
            for tier in ("T0", "T1", "T2")
        ]  # fmt: skip
        text = " ".join(words(pennyweight.compare(given, metrics=["pass_rate", "cost_usd_mean"])))
        claims = ("cheapest", "costs least", "beats", "buys more", "instead of", "no less")
        false += any(claim in text for claim in claims)
    assert false <= 7, "5 % of 60 is 3; more than 7 is unlikely (1.2 %) if the level holds"
