"""What a reply is compared with, and what is made of two answers."""

import pytest

from pennyweight.errors import UsageError
from pennyweight.record import AttemptKey
from pennyweight.scorers.loader import find_scorers
from pennyweight.scorers.pairing import Pairing, preference

SIDES = {"subject": ["a", "b"], "tier": ["T1", "T0"]}
KEY = AttemptKey("r", "b", "T1", "t", 2)


def test_the_baseline_is_a_tier_else_the_first_subject():
    assert Pairing().resolved(SIDES) == Pairing(tier="T0")
    assert Pairing().resolved({**SIDES, "tier": ["T1"]}) == Pairing(subject="a")
    assert Pairing().resolved({"subject": ["a"], "tier": ["T1"]}) is None
    assert Pairing(tier="T0").other(KEY) == KEY._replace(tier="T0")
    assert Pairing(subject="b").other(KEY) is None


def test_the_share_of_attempts_that_are_compared():
    assert Pairing().share(SIDES) == 0.5
    assert Pairing(subject="a").share({**SIDES, "subject": ["a", "b", "c", "d"]}) == 0.75
    assert Pairing(column="target").share(SIDES) == 1
    assert Pairing().share({"subject": ["a"], "tier": ["T0"]}) == 0


@pytest.mark.parametrize("given", [False, None, 1, "", {}, {"tier": 1}, {"run": "x"}, ["T0"]])
def test_what_names_no_side_is_refused(given):
    with pytest.raises(UsageError, match="'pairwise' is true for the baseline"):
        Pairing.of(given)


def test_what_is_not_there_is_told():
    assert "Tier 'T2' is not known" in Pairing(tier="T2").problem(SIDES)
    assert "nothing to compare with" in Pairing().problem({"subject": ["a"], "tier": ["T0"]})
    assert Pairing(column="target").problem({"subject": ["a"], "tier": ["T0"]}) == ""


@pytest.mark.parametrize("first", [1, 2, 3, None])
@pytest.mark.parametrize("second", [1, 2, 3, None])
def test_only_a_preference_in_both_orders_counts(first, second):
    found = preference(first, second)
    if first is None or second is None:
        assert found is None
        return
    own = {1: 1, 2: -1, 3: 0}[first] + {1: -1, 2: 1, 3: 0}[second]
    assert found == {2: 1.0, -2: 0.0}.get(own, 0.5)


def test_the_ready_made_comparison_takes_another_side():
    (usual,) = find_scorers(["preference"])
    (other,) = find_scorers([{"preference": {"pairwise": "target"}}])
    assert usual.question.pair == Pairing()
    assert (other.question.pair, other.inputs) == (
        Pairing(column="target"),
        ("input", "response", "target"),
    )
    assert usual.mark != other.mark
    with pytest.raises(UsageError, match="Setting of preference 'rubric' is not known"):
        find_scorers([{"preference": {"rubric": "1-5"}}])
