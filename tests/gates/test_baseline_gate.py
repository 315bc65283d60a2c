"""Gates against a baseline: task by task, no worse than so much, or better."""

import numpy as np
import pytest

from gates.samples import gate, share, verdict

NO_WORSE = {"gates": [{"metric": "pass_rate", "no_worse_than": "2%"}]}
BETTER = {"gates": [{"metric": "pass_rate", "better": True}]}


def moved(rows, fewer):
    """Give the same records, of which so many that passed now fail."""
    now = [dict(row) for row in rows]
    for row in [r for r in now if r["passed"]][:fewer]:
        row["passed"] = False
    return now


def test_no_worse_than_passes_fails_or_is_open():
    before = share(450, 500)
    assert verdict(NO_WORSE, before, before).verdict == "pass"
    assert verdict(NO_WORSE, moved(before, 40), before).verdict == "fail"
    found = verdict(NO_WORSE, moved(before, 10), before)
    assert found.verdict == "inconclusive"
    only = found.gates[0]
    assert only.value == pytest.approx(-0.02)
    assert (only.threshold, only.baseline) == (-0.02, 0.9)


def test_a_failure_names_the_tasks_that_became_worse():
    before = share(90, 100)
    found = verdict(NO_WORSE, moved(before, 30), before)
    only = found.deciding[0]
    assert only.why.startswith("30.0 points worse (90.0 % → 60.0 %), at best")
    assert (only.scenarios[0].id, only.scenarios[0].why) == ("t0", "100.0 % → 0.0 %")


def test_better_has_to_be_shown():
    before = share(300, 500)
    assert verdict(BETTER, share(350, 500), before).verdict == "pass"
    assert verdict(BETTER, share(302, 500), before).verdict == "inconclusive"
    assert verdict(BETTER, before, share(350, 500)).verdict == "fail"


def test_tasks_count_and_not_their_repeats():
    def often(hits, total, times):
        return [dict(row, attempt=a) for row in share(hits, total) for a in range(1, times + 1)]

    few = verdict(NO_WORSE, often(19, 20, 50), often(18, 20, 50))
    assert few.verdict == "inconclusive"
    assert few.gates[0].tasks == 20


def test_a_baseline_without_common_tasks_decides_nothing():
    other = [dict(row, task_id="other " + row["task_id"]) for row in share(9, 9)]
    found = verdict(NO_WORSE, share(9, 9), other)
    assert (found.verdict, found.gates[0].why) == (
        "inconclusive",
        "no task is in the baseline and in these records.",
    )


def test_leaving_out_tasks_of_the_baseline_does_not_make_a_pass():
    before = share(450, 500)
    found = verdict(NO_WORSE, before[:450], before)
    assert found.verdict == "inconclusive"
    assert "50 tasks of the baseline were not tried now (t450" in found.gates[0].why
    more = verdict(NO_WORSE, [*before, *share(0, 50, "new")], before)
    assert more.verdict == "pass"  # new tasks have nothing to compare with


def test_lower_is_better_for_some_and_other_metrics_take_a_share_or_an_amount():
    rng = np.random.default_rng(0)
    times = rng.normal(1000, 100, 300)

    def rows(factor):
        return [{"task_id": str(i), "latency_ms": t * factor} for i, t in enumerate(times)]

    for margin in ("10%", "100ms", "0.1s"):
        made = {"gates": [{"metric": "latency_mean_ms", "no_worse_than": margin}]}
        assert verdict(made, rows(1.05), rows(1)).verdict == "pass", margin
        assert verdict(made, rows(1.2), rows(1)).verdict == "fail", margin
    errors = {"gates": [{"metric": "error_rate", "no_worse_than": "2%"}]}
    right, wrong = ({"answer": x, "target": "4"} for x in "45")
    good = [{"task_id": str(i), **right} for i in range(300)]
    bad = [{"task_id": str(i), **(wrong if i < 60 else right)} for i in range(300)]
    assert verdict(errors, good, bad).verdict == "pass"
    found = verdict(errors, bad, good)
    assert (found.verdict, found.gates[0].scenarios[0].why) == ("fail", "0.0 % → 100.0 %")


def test_numbers_that_do_not_vary_need_more_than_a_few_tasks():
    def rows(total, ms=5.0):
        return [{"task_id": str(i), "latency_ms": ms} for i in range(total)]

    for margin in ("10%", "0%", "1ms"):
        made = {"gates": [{"metric": "latency_mean_ms", "no_worse_than": margin}]}
        few = verdict(made, rows(2), rows(2))
        assert few.verdict == "inconclusive"
        assert few.gates[0].low is None
        assert "About 27 more tasks would decide it" in few.gates[0].why
        assert verdict(made, rows(29), rows(29)).verdict == "pass"
        assert verdict(made, rows(29, 9.0), rows(29)).verdict == "fail"


def test_a_margin_of_nothing_can_be_kept():
    made = {"gates": [{"metric": "pass_rate", "no_worse_than": "0%", "on": "value"}]}
    assert verdict(made, share(9, 10), share(9, 10)).verdict == "pass"
    assert verdict(made, share(8, 10), share(9, 10)).verdict == "fail"


def test_tasks_count_by_their_weight():
    def rows(core, edge):
        return [*share(core, 20, "c", category="core"), *share(edge, 180, "e", category="edge")]

    before, now = rows(20, 90), rows(2, 126)  # core fell by 90 points, the rest rose by 20
    plain = {"gates": [{"metric": "pass_rate", "no_worse_than": "5%"}]}
    heavy = {**plain, "weights": {"by_category": {"core": 9}}}
    assert verdict(plain, now, before).verdict == "pass"
    found = verdict(heavy, now, before)
    only = found.gates[0]
    assert (found.verdict, only.weighted) == ("fail", True)
    assert only.value == pytest.approx((-0.9 + 0.2) / 2)
    assert only.baseline == pytest.approx(0.75)
    assert only.why.startswith("35.0 points worse (75.0 % → 40.0 %)")
    assert verdict(heavy, before, before).verdict == "pass"


def test_one_task_that_outweighs_the_others_decides_nothing():
    rows = [{**row, "weight": 1000 if i == 0 else 1} for i, row in enumerate(share(60, 60))]
    made = {"gates": [{"metric": "pass_rate", "no_worse_than": "10%"}]}
    assert verdict(made, share(60, 60), share(60, 60)).verdict == "pass"
    assert verdict(made, rows, rows).verdict == "inconclusive"
    nothing = [{**row, "weight": 0 if i else 0.0} for i, row in enumerate(share(5, 5))]
    other = [*nothing, {"task_id": "x", "passed": True, "weight": 1}]
    found = verdict(made, other, nothing)
    assert (found.verdict, found.gates[0].why) == (
        "inconclusive",
        "all tasks of both sides have weight 0.",
    )


def test_on_value_compares_points():
    made = {"gates": [{"metric": "pass_rate", "no_worse_than": "2%", "on": "value"}]}
    before = share(90, 100)
    assert verdict(made, moved(before, 2), before).verdict == "pass"
    assert verdict(made, moved(before, 3), before).verdict == "fail"


def test_a_category_is_compared_with_the_same_category():
    made = {"gates": [{"metric": "pass_rate", "category": "x", "no_worse_than": "5%"}]}
    rest = share(0, 200, "r", category="y")
    before = [*share(190, 200, category="x"), *rest]
    now = [*share(190, 200, category="x"), *[dict(r, passed=True) for r in rest]]
    found = verdict(made, now, before)
    assert (found.verdict, gate(found, found.gates[0].name).tasks) == ("pass", 200)


@pytest.mark.parametrize(("better", "word"), [(60, "pass"), (0, "fail"), (-60, "fail")])
def test_a_margin_below_0_asks_for_an_improvement(better, word):
    def records(right):
        return [{"task_id": f"t{n}", "passed": n < right} for n in range(400)]

    made = {"gates": [{"metric": "pass_rate", "no_worse_than": "-1%", "on": "confident"}]}
    found = verdict(made, records(200 + better), records(200))
    assert found.verdict == word
    (one,) = found.gates
    assert one.threshold == 0.01
    assert word == "pass" or "at least 1 point better is asked" in one.why
