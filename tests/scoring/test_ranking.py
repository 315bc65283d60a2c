"""Ranks of sides and effects of tasks, as `compare` gives them."""

import pytest

import pennyweight
from pennyweight.scoring.large import spill


def rows(table, cost=(1.0, 2.0, 3.0)):
    """Records of sides A, B, C from a mapping of tasks to their passes."""
    return [
        {"task_id": task, "subject": side, "passed": bool(passed), "cost_usd": paid}
        for task, row in table.items()
        for side, passed, paid in zip("ABC", row, cost, strict=False)
    ]


CLEAR = {f"t{i:02}": (1, i % 2, 0) for i in range(40)}


def test_three_sides_are_ranked_with_the_ranks_that_the_data_leave_open():
    ranking = pennyweight.compare(rows(CLEAR), by="subject").ranking
    assert (ranking.metric, ranking.tasks) == ("pass_rate", 40)
    assert [(s.name, s.rank, s.low, s.high) for s in ranking.sides] == [
        ("A", 1, 1, 1), ("B", 2, 2, 2), ("C", 3, 3, 3)
    ]  # fmt: skip
    assert [s.frontier for s in ranking.sides] == [1.0, 0.0, 0.0]
    assert ranking.groups == (("A",), ("B",), ("C",))


def test_two_sides_are_not_ranked_and_tasks_of_one_side_do_not_count():
    both = [row for row in rows(CLEAR) if row["subject"] != "C"]
    assert pennyweight.compare(both, by="subject").ranking is None
    more = [*rows(CLEAR), {"task_id": "extra", "subject": "A", "passed": True}]
    assert pennyweight.compare(more, by="subject").ranking.tasks == 40


def test_the_influence_of_a_task_is_the_difference_with_it_minus_that_without_it():
    table = {"a": (1, 0, 0), "b": (1, 1, 0), "c": (0, 1, 0), "d": (1, 1, 1)}
    found = pennyweight.compare(rows(table), by="subject")
    effects = {e.task: e for e in found.common.effects("A")}
    for task, effect in effects.items():
        rest = [row for row in rows(table) if row["task_id"] != task]
        with_it = found.pair(effect.side, "pass_rate").difference
        without = pennyweight.compare(rest, by="subject").pair(effect.side, "pass_rate").difference
        assert effect.influence == pytest.approx(with_it - without)
    assert (found.common.solved_by_all, found.common.solved_by_none) == (1, 0)
    assert effects["d"].discrimination is None
    assert all(e.difficulty is None for e in effects.values())
    ranked = [abs(e.influence) for e in found.common.effects("A")]
    assert ranked == sorted(ranked, reverse=True)
    assert len(found.to_dict()["tasks"]["most_influential"]) == 4


def test_from_eight_sides_on_tasks_have_a_difficulty():
    made = [
        {"task_id": f"t{t}", "subject": f"m{s}", "passed": s > t}
        for t in range(6)
        for s in range(8)
    ]
    effects = pennyweight.compare(made, by="subject").common.effects("m0")
    by_task = {e.task: e.difficulty for e in effects}
    assert [by_task[f"t{t}"] for t in range(6)] == sorted(by_task.values())


def test_a_lower_value_can_be_better():
    made = [{**row, "correct": row.pop("passed")} for row in rows(CLEAR)]
    ranking = pennyweight.compare(made, by="subject", metrics="error_rate").ranking
    assert [s.rank for s in ranking.sides] == [1, 2, 3]


@pytest.mark.parametrize("large", [False, True])
def test_sides_that_have_only_scores_are_ranked_by_them(large, monkeypatch):
    if large:
        monkeypatch.setattr(spill, "IN_MEMORY", 0)
    made = [{"impl_rate": 0.8 * row.pop("passed"), **row} for row in rows(CLEAR)]
    found = pennyweight.compare(made, by="subject")
    assert found.ranking.metric == "impl_rate_mean"
    assert [(s.low, s.high) for s in found.ranking.sides] == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("large", [False, True])
def test_tiers_of_some_sides_alone_do_not_rank_the_sides(large, monkeypatch):
    """Otherwise a side without the hardest tier is best of all."""
    if large:
        monkeypatch.setattr(spill, "IN_MEMORY", 0)
    made = [
        {"task_id": f"t{task:02}", "subject": name, "tier": tier, "passed": passed(task)}
        for name, tier, passed in (
            ("A", "easy", lambda task: task % 5 < 3),
            ("B", "easy", lambda task: task % 5 < 4),
            ("B", "hard", lambda task: task == 0),
            ("C", "easy", lambda task: task % 5 < 3),
            ("C", "hard", lambda task: task == 1),
        )
        for task in range(60)
    ]
    found = pennyweight.compare(made, by="subject")
    assert [(s.name, s.rank, s.low, s.high) for s in found.ranking.sides] == [
        ("A", 2, 2, 3), ("B", 1, 1, 1), ("C", 2, 2, 3)
    ]  # fmt: skip
    assert found.ranking.tests.means == pytest.approx([0.6, 0.8, 0.6])
    assert found.pair("B", "pass_rate", "A").difference == pytest.approx(0.2)


@pytest.mark.parametrize("large", [False, True])
def test_a_single_pass_of_each_task_is_not_better_than_several_tries_of_which_most_passed(
    large, monkeypatch
):
    if large:
        monkeypatch.setattr(spill, "IN_MEMORY", 0)
    made = [
        {"task_id": f"t{task}", "subject": name, "attempt": attempt,
         "passed": not (tries > 1 and attempt == 1 and task % 3)}
        for name, tries in (("A", 1), ("B", 5), ("C", 5))
        for task in range(12)
        for attempt in range(1, tries + 1)
    ]  # fmt: skip
    found = pennyweight.compare(made, by="subject")
    assert found.pair("B", "pass_rate", "A").p > 0.05
    assert [(s.name, s.rank, s.low, s.high) for s in found.ranking.sides] == [
        ("A", 1, 1, 3), ("B", 2, 1, 3), ("C", 2, 1, 3)
    ]  # fmt: skip
