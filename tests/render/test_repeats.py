"""What is said about repeated attempts."""

import pytest

from pennyweight.render.repeats import repeat_lines, variance_sentence

SPLIT = {
    "task": 0.22,
    "attempt": 0.03,
    "judge": None,
    "icc": 0.88,
    "icc_interval": [0.8, 0.93],
    "from_repeats": 0.04,
    "advice": "tasks",
}
REPEATS = {"k": 3, "tasks": 40, "attempts": [3, 5], "variance": {}}


def test_a_small_share_of_repeats_says_to_add_tasks():
    assert variance_sentence("passed", SPLIT) == (
        "Repeats explain 12.0 % of the variance of passes: add tasks, not repeats. Endless repeats "
        "would narrow the interval by 2.0 % (intraclass correlation 0.88, 0.80 to 0.93)."
    )


@pytest.mark.parametrize(
    ("advice", "words"),
    [("both", "add tasks first"), ("either", "more repeats help nearly as much as more tasks")],
)
def test_other_shares_say_so(advice, words):
    assert words in variance_sentence("passed", {**SPLIT, "advice": advice})


def test_judges_have_their_part():
    found = variance_sentence("judge_scores", {**SPLIT, "judge": 0.25, "icc_interval": None})
    assert found.startswith("Repeats explain 6.0 % and judges 50.0 % of the variance of judges' s")


def test_equal_values_have_no_sentence():
    assert variance_sentence("passed", {**SPLIT, "icc": None}) == ""


def test_one_group_says_which_k_it_uses():
    assert list(repeat_lines([("all", REPEATS)])) == ["3 to 5 attempts at each task; k is 3."]
    assert list(repeat_lines([("all", None)])) == []


def test_several_groups_are_described_once_and_by_their_first_value():
    found = {**REPEATS, "variance": {"passed": SPLIT, "impl_rate": SPLIT}}
    lines = list(repeat_lines([("T0", found), ("T1", found)]))
    assert lines[0] == "3 to 5 attempts at each task; k is 3."
    assert [line[:21] for line in lines[1:]] == ["T0: Repeats explain 1", "T1: Repeats explain 1"]
    assert all("passes" in line for line in lines[1:])
    assert len(list(repeat_lines([("all", found)]))) == 3


def test_groups_with_another_k_are_not_comparable():
    other = {**REPEATS, "k": 2, "attempts": [2, 2]}
    assert list(repeat_lines([("T0", REPEATS), ("T1", other), ("T2", None)])) == [
        "T0: 3 to 5 attempts at each task; k is 3.",
        "T1: 2 attempts at each task; k is 2.",
        "k differs between the groups; --k 2 makes them comparable.",
    ]
