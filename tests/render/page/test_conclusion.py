"""The conclusion: who is best, by how much, at what price; what it would take if nothing shows."""

import random

import numpy as np
import pytest

from pennyweight.api.pages.digest import digest
from pennyweight.api.sources import resolve
from pennyweight.render.page.conclusion import conclusion
from pennyweight.render.page.leaderboard import leaderboard
from pennyweight.stats.ranks import rank_ranges

from .test_leaderboard import rows


def concluded(given, by=""):
    return conclusion(digest(resolve(given)), by)


def test_a_clear_winner_with_its_price():
    found = concluded(rows({"giga": 0.98, "mini": 0.3, "tiny": 0.1}, ("T0",), 60))
    assert found.shown
    assert str(found).startswith("giga is best: ")
    assert "points (95 %: " in str(found)
    assert "above mini, " in str(found)
    assert " per pass: $" in str(found)
    assert [part.text for part in found.parts if part.name] == ["giga", "mini"]


def test_a_tie_names_the_cheapest_and_what_it_would_take():
    found = concluded(rows({"giga": 0.95, "mini": 0.85, "tiny": 0.1}, ("T0",), 40))
    assert not found.shown
    assert "giga and mini may be the best. " in str(found)
    assert "mini, with 87.5 %, is not shown to be worse and costs" in str(found)
    assert "would be found in 80 % of such runs" in found.notes[0]
    assert "one of 5 points takes about" in found.notes[0]


def test_two_sides_without_a_difference():
    found = concluded(rows({"one": 0.5, "other": 0.52}, ("T0",)))
    assert str(found).startswith("No difference in pass rate is shown between ")


def test_one_side_and_one_task():
    only = concluded(rows({"only": 0.5}, ("T0",)))
    assert str(only).startswith("Pass rate: ")
    assert " on 40 tasks; a pass costs $" in str(only)
    single = concluded(rows({"only": 1.0}, ("T0",), 1, 1))
    assert single.notes == ("One task shows nothing about others.",)


def test_one_side_says_what_it_does_not_rest_on():
    given = [{"task_id": f"t{n}", "passed": n < 1 if n < 2 else None} for n in range(6)]
    found = concluded(given)
    assert " on 2 attempts" in str(found)
    assert found.notes == ("4 of 6 attempts have no verdict and are left out.",)
    failed = [{"task_id": f"e{n}", "status": "error", "error": "x"} for n in range(3)]
    assert concluded([*given[:2], *failed]).notes == (
        "Left out because they ended in an error: 3 of 5 attempts.",
    )


def test_errors_only_and_nothing_to_rank():
    failed = [{"task_id": "a", "subject": s, "status": "error", "error": "x"} for s in "ab"]
    assert str(concluded(failed)) == "Nothing was measured: all 2 attempts ended in an error."
    unknown = concluded([{"task_id": "a", "latency_ms": 3}])
    assert str(unknown).startswith("Nothing says which attempts are right")
    assert unknown.notes[0].startswith("A target or checks of the tasks, ")


def test_sides_that_tried_one_task_are_not_ranked_for_that_reason():
    said = concluded(rows({"a": 0.9, "b": 0.5, "c": 0.2}, ("T0",), 1, 20))
    assert said.notes == ("One task shows nothing about others, so the sides are not ranked.",)


def test_a_board_whose_sides_hold_several_of_the_run_says_so():
    said = concluded(rows({"a": 0.9, "b": 0.2}), "subject")
    assert said.notes[-1] == "Each value is that of all tiers together."
    assert "together" not in " ".join(concluded(rows({"a": 0.9, "b": 0.2})).notes)


def test_sides_without_common_tasks_are_not_tested():
    given = [r for r in rows() if (r["subject"] == "large") == (r["category"] == "even")]
    given = [r for r in given if r["subject"] != "small" and r["tier"] == "T0"]
    found = concluded(given)
    assert "no tasks in common" in found.notes[0]
    of_tasks = concluded(rows(), "category")
    assert "has the highest pass rate" in str(of_tasks)
    assert "not tested" in of_tasks.notes[0]


@pytest.mark.parametrize("sides", [3, 12])
def test_equal_sides_are_rarely_called_best(sides):
    """The claim rests on all pairs at once, so the choice of the best does not bias it."""
    claims, worlds = 0, 120
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        hard = rng.beta(2, 1, (40, 1))
        values = (rng.random((40, sides)) < hard).astype(float)
        claims += 1 in rank_ranges(values, 0.95, seed, np.ones_like(values)).high
    assert claims <= 12, "5 % of 120 is 6; 12 or more is unlikely (0.5 %) if the level holds"


def test_of_equal_sides_none_is_ahead():
    given = [
        {"subject": name, "task_id": f"t{n}", "passed": n > 0 or name == "\u202ed"}
        for name in ("a", "b", "c", "\u202ed")
        for n in range(8)
    ]
    said = str(concluded(given[:24]))
    assert "All have 87.5 %" in said
    assert "ahead" not in said
    other = str(concluded([*given, *({**row, "subject": "e"} for row in given[24:])]))
    assert "e and ⟨U+202E⟩d are ahead with 100.0 %" in other


def test_of_two_equal_sides_neither_is_ahead():
    given = [
        {"subject": name, "task_id": f"t{n}", "passed": True, "cost_usd": 0.01}
        for name in ("a", "b")
        for n in range(4)
    ]
    said = str(concluded(given))
    assert said.startswith(
        "No difference in pass rate is shown between a and b: 0.0 points (95 %: "
    )
    assert "ahead" not in said


def test_names_are_kept_apart_from_words():
    random.seed(1)
    found = concluded(rows({"\u202eevil": 0.98, "b": 0.1}, ("T0",), 60))
    assert any(part.name and "evil" in part.text for part in found.parts)
    assert not any("evil" in part.text for part in found.parts if not part.name)


@pytest.mark.parametrize("others", [(), ("tiny",)])
def test_a_side_with_easy_tasks_of_its_own_is_not_the_best(others):
    def record(subject, task, right):
        return {"subject": subject, "task_id": task, "passed": right}

    given = [record("easy", f"easy-{n}", True) for n in range(200)]
    for n in range(60):
        given += [record("easy", f"t{n}", n < 15), record("best", f"t{n}", n < 45)]
        given += [record(name, f"t{n}", n < 3) for name in others]
    found = concluded(given)
    assert found.shown
    assert str(found).startswith("best is best: 50.0 points (95 %: ")
    assert " above easy" in str(found)
    assert found.notes[0] == (
        "Another side has 82.7 % over all its attempts, but less on what both tried."
    )


def test_no_side_is_the_best_while_its_difference_from_another_is_not_shown():
    """All tasks that two sides share do not show what those that every side tried do."""

    def tried(subject, task, right):
        return {"subject": subject, "task_id": task, "passed": right}

    given = []
    for n in range(30):
        given += [tried("a", f"all-{n}", n < 25), tried("b", f"all-{n}", n < 5)]
        given.append(tried("c", f"all-{n}", n < 4))
    given += [tried(name, f"two-{n}", n % 2 > 0) for name in "ab" for n in range(60)]
    for n in range(60, 80):
        given += [tried("a", f"two-{n}", n % 5 == 0), tried("b", f"two-{n}", n % 5 > 0)]
    found = digest(resolve(given))
    board = leaderboard(found)
    (second,) = (row for row in board.rows if row.name == "b")
    assert not second.gap.shown
    assert [row.rank for row in board.rows] == ["1–2", "1–3", "2–3"]
    assert board.leaders == 2
    assert str(conclusion(found)).startswith("a and b may be the best")
    assert "a is best" not in " ".join(found["comparison"]["words"])


@pytest.mark.parametrize(("common", "told"), [(12, True), (30, False)])
def test_few_tasks_that_every_side_tried_are_the_reason_that_is_given(common, told):
    given = [r for r in rows(dict.fromkeys("abc", 0.5), ("T0",)) if r["task_id"] != "t0"]
    given = [r for r in given if r["subject"] != "c" or int(r["task_id"][1:]) <= common]
    said = f"the others: only {common} of 39 tasks have a result on every side."
    assert (said in str(concluded(given))) is told


def test_what_is_said_of_a_higher_value_is_true_of_the_tasks_it_names():
    """Two tried 90 tasks, on which one is ahead; all sides tried 30, on which the other is."""

    def record(subject, task, right):
        return {"subject": subject, "task_id": task, "passed": right}

    given = []
    for n in range(30):
        given += [record("a", f"all-{n}", n < 25), record("b", f"all-{n}", n < 5)]
        given.append(record("c", f"all-{n}", n % 2 > 0))
    for n in range(60):
        given += [record("a", f"two-{n}", n < 20), record("b", f"two-{n}", n < 45)]
    found = concluded(given)
    said = "only 30 of 90 tasks have a result on every side."
    assert str(found) == f"b and a may be the best: {said} b is ahead with 55.6 %."
    assert not any("all its attempts" in note for note in found.notes)


def failed(name, tasks=40):
    return [
        {"subject": name, "tier": "T0", "task_id": f"t{n}", "status": "error", "error": "x"}
        for n in range(tasks)
    ]


def test_a_side_of_errors_only_leaves_the_others_their_ranks():
    good = rows({"giga": 0.98, "mini": 0.3, "tiny": 0.1}, ("T0",))
    whole = digest(resolve([*good, *failed("down"), *failed("lost")]))
    alone, found = concluded(good), conclusion(whole)
    assert str(found) == str(alone)
    assert found.notes == (*alone.notes, "2 sides have no pass rate and are not compared.")
    ranks = [(row.name, row.rank) for row in leaderboard(whole).rows]
    assert ranks == [("giga", "1"), ("mini", "2"), ("tiny", "3"), ("down", ""), ("lost", "")]
    two = digest(resolve([*rows({"giga": 0.98, "mini": 0.3}, ("T0",)), *failed("down")]))
    assert str(conclusion(two)).startswith("giga is best: ")
    board = leaderboard(two, address=lambda changed: f"?{changed}")
    assert [row.rank for row in board.rows] == ["1", "2", ""]
    chosen = [bool(row.choose) for row in board.rows]
    assert chosen == [False, True, False], "nothing can be compared with errors"


def test_sides_that_are_not_compared_are_told_why():
    only = concluded([*rows({"only": 1.0}, ("T0",)), *failed("down")])
    assert str(only) == "only is the only side with a value; its pass rate is 100.0 %."
    assert only.notes == ("1 side has no pass rate and is not compared.",)
    many = concluded(rows({f"m{n:03}": n / 100 for n in range(101)}, ("T0",), 2, 1))
    assert many.notes == ("There are more than 100 sides, so their differences are not tested.",)
    own = [{**row, "task_id": f"own-{row['task_id']}"} for row in rows({"best": 1.0}, ("T0",))]
    apart = concluded([*own, *rows({"b": 0.5, "c": 0.1}, ("T0",))])
    assert apart.notes == (
        "The first side has no tasks in common with the others, "
        "so their differences are not tested.",
    )


def test_records_without_a_side_are_not_compared():
    given = rows({"": 1.0, "x": 0.9, "y": 0.2}, ("T0",))
    for row in given:
        row["style"] = row.pop("subject") or None
    found = digest(resolve(given), by=["style"])
    assert [(row.name, row.rank) for row in leaderboard(found).rows] == [
        ("x", "1"), ("y", "2"), ("—", "")
    ]  # fmt: skip
    said = conclusion(found)
    assert str(said).startswith("x is best: ")
    assert said.notes == ("Records without a style are not compared.",)


def test_a_board_of_categories_says_that_sides_are_together():
    two = concluded(rows({"one": 0.9, "other": 0.2}, ("T0",)), "category")
    assert two.notes[-1] == "Each value is that of all 2 sides together."
    only = concluded(rows({"only": 0.5}, ("T0",)), "category")
    assert only.notes == (
        "Each category has tasks of its own, so their differences are not tested.",
    )


def test_sides_of_a_board_say_which_of_the_run_they_hold():
    own = [{**r, "task_id": f"{r['subject']}-{r['task_id']}"} for r in rows({"a": 0.9, "b": 0.2})]
    assert concluded(own, "subject").notes[-1] == "Each value is that of all tiers together."
    assert "together" not in " ".join(concluded(own).notes)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ((50, 75), "60.0 % after 50 % of the chain of thought and 40.0 % after 75 % of it."),
        ((25, 100), "60.0 % after 25 % of the chain of thought and 40.0 % after all of it."),
        ((0,), "60.0 % before the chain of thought."),
    ],
)
def test_a_probe_names_the_points_that_have_a_value(points, said):
    given = [
        {"tier": f"probe@{point}%", "task_id": f"t{n}", "passed": n < 6 - 2 * place}
        for place, point in enumerate(points)
        for n in range(10)
    ]
    given.append({"tier": "probe@90%", "task_id": "t0", "status": "error", "error": "x"})
    assert str(concluded(given)) == f"Pass rate is {said}"
