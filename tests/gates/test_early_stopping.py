"""Gates of a run under way: the same way up as fixed ones, in every round, in a fresh order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.samples import gate, share, verdict
from pennyweight.errors import UsageError
from pennyweight.gates.early_stopping import EarlyStopPlan, PlannedTask


def plan(rows, runs=1):
    return EarlyStopPlan(
        tuple(PlannedTask(t) for t in dict.fromkeys(r["task_id"] for r in rows)), runs
    )


def corrected(hits, total):
    """Give records of which the first so many correct themselves; neither way is the better one."""
    return [
        {"task_id": f"t{i}", "cot": "wait, actually it is 4" if i < hits else "it is 4"}
        for i in range(total)
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        [
            (share, "pass_rate", ">="),
            (share, "pass_rate", ">"),
            (corrected, "self_correction_rate", "<="),
            (corrected, "self_correction_rate", "<"),
            (corrected, "self_correction_rate", ">="),
        ]
    ),
    st.integers(1, 99),
    st.integers(20, 200),
    st.floats(0, 1),
)
def test_sequential_and_fixed_gates_never_contradict(kind, limit, total, part):
    make, metric, sign = kind
    rows = make(round(part * total), total)
    rows = [rows[i * 97 % 211 % total] for i in range(211)]  # spread, as a random order would be
    rows = list({row["task_id"]: row for row in rows}.values())
    given = {"gates": [{"metric": metric, "threshold": f"{sign} {limit}%", "on": "confident"}]}
    words = {verdict(given, rows).verdict, verdict(given, rows, plan=plan(rows)).verdict}
    assert words != {"pass", "fail"}


@pytest.mark.parametrize(("hits", "word"), [(0, "pass"), (100, "fail")])
def test_the_thresholds_sign_says_what_is_better(hits, word):
    given = {"gates": [{"metric": "self_correction_rate", "threshold": "<= 20%",
                        "on": "confident"}]}  # fmt: skip
    rows = corrected(hits, 100)
    found = verdict(given, rows, plan=plan(rows))
    assert (found.verdict, verdict(given, rows).verdict) == (word, word)
    only = found.deciding[0] if word == "fail" else found.gates[0]
    assert only.low <= only.value <= only.high
    assert "(indifference zone 20.0 to 25.0 %)" in only.why


CLOSE = {"gates": [{"metric": "accuracy", "threshold": ">= 55%", "on": "confident",
                    "indifference": "10%"}]}  # fmt: skip


def rounds(total):
    """Give a first round in which every second answer is right, and three in which all are."""
    right = [{"task_id": f"a{i}", "answer": "4", "target": "4"} for i in range(total)]
    first = [dict(row, attempt=1, answer="45"[i % 2]) for i, row in enumerate(right)]
    return first, [dict(row, attempt=a) for a in (2, 3, 4) for row in right]


def test_a_task_without_a_value_does_not_keep_later_rounds_from_being_looked_at():
    first, later = rounds(50)
    assert verdict(CLOSE, first, plan=plan(first, 4)).verdict == "inconclusive"
    whole = verdict(CLOSE, [*first, *later], plan=plan(first, 4))
    assert whole.verdict == "pass"
    nothing = [{"task_id": "none", "attempt": a, "answer": "4"} for a in (1, 2, 3, 4)]
    rows = [*first[:20], *nothing, *first[20:], *later]
    found = verdict(CLOSE, rows, plan=plan(rows, 4))
    assert (found.verdict, found.gates[0].tasks) == ("pass", whole.gates[0].tasks)


def test_a_round_that_is_not_whole_leaves_the_next_one_for_later():
    first, later = rounds(50)
    rows = [row for row in [*first, *later] if row["task_id"] != "a49"]
    found = verdict(CLOSE, rows, plan=plan(first, 4))
    assert (found.verdict, found.gates[0].tasks) == ("inconclusive", 49)


@pytest.mark.parametrize("threshold", [">= 0%", "> 0%", "<= 100%", "< 100%"])
def test_what_any_rate_meets_is_no_division_by_zero(threshold):
    metric = "pass_rate" if threshold[0] == ">" else "self_correction_rate"
    rows = share(3, 40) if threshold[0] == ">" else corrected(37, 40)
    given = {"gates": [{"metric": metric, "threshold": threshold, "on": "confident"}]}
    assert verdict(given, rows, plan=plan(rows)).verdict == "pass"
    if threshold == "> 0%":
        none = share(0, 40)
        assert verdict(given, none, plan=plan(none)).verdict == "inconclusive"


def test_a_plan_is_narrowed_as_the_records_are():
    tasks = [PlannedTask(f"t{i}", "Core " if i % 2 else "other") for i in range(200)]
    some = EarlyStopPlan(tuple(tasks), 1).where({"category": "core", "tier": "T0"})
    assert [task.id for task in some.tasks][:2] == ["t1", "t3"]
    assert len(some.tasks) == 100
    assert [t.id for t in EarlyStopPlan(tuple(tasks), 1).where({"task_id": "t7"}).tasks] == ["t7"]
    with pytest.raises(UsageError, match="its plan does not have the column 'difficulty'"):
        some.where({"difficulty": "hard"})


def test_how_many_tasks_were_taken_is_kept():
    rows = share(100, 100)
    given = {"on": "confident", "thresholds": {"pass_rate": 90}}
    only = gate(verdict(given, rows, plan=plan(rows)), "pass_rate")
    assert f"after {only.tasks} of 100 tasks" in only.why
    assert 20 < only.tasks < 100


def test_a_decision_names_its_test_and_the_indifference_zone():
    plan = EarlyStopPlan(tuple(PlannedTask(f"t{i}") for i in range(100)), 1)
    given = {"gates": [{"metric": "pass_rate", "threshold": 0.8, "on": "confident"}]}
    (decided,) = verdict(given, share(60, 60), plan=plan).gates
    assert (decided.verdict, decided.test, decided.planned_tasks) == ("pass", "sequential", 100)
    assert decided.indifference == pytest.approx((0.75, 0.8))
    assert decided.evidence >= 20
    assert decided.tasks <= 60
    (open_,) = verdict(given, share(5, 5), plan=plan).gates
    assert (open_.verdict, open_.evidence) == ("inconclusive", None)
    (whole,) = verdict(given, share(100, 100)).gates
    assert (whole.test, whole.indifference, whole.planned_tasks) == ("interval", None, None)
