"""Scenarios: what was observed, what passed, and that nothing masks a violation."""

import json
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennyweight.api.score import score
from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import read_behaviour, stored_behaviour
from pennyweight.checks.declaration import CHECKS, CheckResult, check
from pennyweight.checks.scenario import Scenario, observe
from pennyweight.define import dtype
from pennyweight.record import COLUMNS
from pennyweight.stored_runs.observations import Observer


def behaviours(*given):
    return tuple(map(read_behaviour, given))


def look(scenario, response="yes", **row):
    return observe(scenario, AttemptView({"response": response, **row}), {})


YES, NO, UNKNOWN = {"contains": "yes"}, {"contains": "no"}, {"latency": 5}


@pytest.mark.parametrize(
    ("expected", "must_not", "checks", "pass_score", "passed"),
    [
        ([YES], [], [], None, True),
        ([NO], [], [], None, False),
        ([YES, NO], [], [], 0.5, True),
        ([YES, NO], [], [], 0.51, False),
        ([YES], [NO], [], None, True),
        ([YES], [YES], [], 0.0, False),
        ([], [NO], [], None, True),
        ([], [], [YES], None, True),
        ([YES], [], [NO], 0.0, False),
        ([UNKNOWN], [], [], None, None),
        ([YES, UNKNOWN], [], [], 0.5, None),
        ([NO, UNKNOWN], [], [], None, False),
        ([NO, UNKNOWN], [], [], 0.5, None),
        ([YES], [UNKNOWN], [], None, None),
        ([YES], [UNKNOWN, YES], [], None, False),
        ([YES], [], [UNKNOWN], None, None),
        ([YES], [], [UNKNOWN, NO], None, False),
    ],
)
def test_passing(expected, must_not, checks, pass_score, passed):
    named = [[{**b, "name": f"{i}"} for i, b in enumerate(x)] for x in (expected, must_not, checks)]
    scenario = Scenario(*(behaviours(*x) for x in named), pass_score=pass_score)
    assert look(scenario).passed(None, answered=False) is passed
    assert look(scenario).passed(given=False, answered=False) is False
    assert look(scenario).passed(given=True, answered=False) is passed


def test_a_right_answer_decides_where_there_are_only_other_checks():
    scenario = Scenario(checks=behaviours(YES))
    assert look(scenario).passed(None, answered=True) is None
    assert look(scenario, "no").passed(None, answered=True) is False


def test_a_check_that_raises_is_an_error_of_that_check_and_nothing_else():
    @check()
    def breaks(seen):
        """It always breaks.

        >>> 1
        1
        """
        raise ZeroDivisionError("by design")

    CHECKS["breaks"] = replace(CHECKS["breaks"], by="record")  # as one of Pennyweight's own
    try:
        scenario = Scenario(behaviours("breaks", YES), behaviours("not_breaks"))
        found = look(scenario)
        assert found.passed(None, answered=False) is None
        assert found.undecided == ["breaks", "not_breaks"]
        assert found.observed == ["contains: yes"]
        told = found.plain()[0]
        assert told["error"] is True
        assert told["holds"] is None
        assert told["why"] == "breaks failed: ZeroDivisionError: by design"
    finally:
        del CHECKS["breaks"]


def test_a_scenario_is_kept_as_it_was():
    scenario = Scenario(
        behaviours({"name": "says so", "not_contains": {"any": ["a", "b"]}, "of": "last"}),
        behaviours("refusal", "It is rude."),
        behaviours({"number": {"value": 2.5, "tolerance": "1%"}}),
        pass_score=0.5,
        name="A title",
        weight=2.0,
        required=True,
    )
    assert Scenario.of(json.dumps(scenario.plain())) == scenario


def test_what_can_no_longer_be_read_decides_nothing():
    old = stored_behaviour({"name": "was there", "check_of_another_time": {"a": 1}})
    found = look(Scenario(expected=(old,)))
    assert found.undecided == ["was there"]
    assert found.passed(None, answered=False) is None
    assert "not known" in found.plain()[0]["why"]


def test_code_that_is_named_in_a_store_is_not_even_imported(tmp_path, monkeypatch):
    (tmp_path / "from_a_store.py").write_text("raise SystemExit('it was imported')")
    monkeypatch.chdir(tmp_path)
    plain = {"expected": [{"name": "a", "python": "from_a_store:check"}], "weight": 1.0}
    found = look(Scenario.of(json.dumps({**Scenario().plain(), **plain})))
    assert found.undecided == ["a"]
    assert "not run yet" in found.plain()[0]["why"]


def test_verdicts_of_others_count_for_what_they_were_about():
    asked, other = behaviours({"human": "Kind?"}, {"human": "Short?"})
    scenario = Scenario((asked,), behaviours({"not_human": "Short?"}))
    seen = AttemptView({"response": "x"})
    assert observe(scenario, seen, {}).undecided == ["Kind?", "not_human: Short?"]
    given_ = {asked.mark: CheckResult(True, "Ann"), other.mark: CheckResult(True, "Ann")}
    assert observe(scenario, seen, given_).passed(None, answered=False) is True


part = st.sampled_from(["yes", "no"])
share = st.one_of(st.none(), st.floats(0, 1))


@given(
    expected=st.lists(part, max_size=4),
    more=st.lists(part, max_size=3),
    checks=st.lists(part, max_size=2),
    pass_score=share,
    weight=st.floats(0, 1e6),
    required=st.booleans(),
    row=st.fixed_dictionaries(
        {
            "passed": st.one_of(st.none(), st.booleans()),
            "judge_passed": st.one_of(st.none(), st.booleans()),
            "impl_rate": share,
            "target": st.sampled_from([None, "yes", "no"]),
            "latency_ms": st.one_of(st.none(), st.floats(0, 10_000)),
        }
    ),
    weights=st.fixed_dictionaries({"accuracy": st.floats(0, 9), "pass_rate": st.floats(0.1, 9)}),
)
def test_nothing_masks_a_violation(
    expected, more, checks, pass_score, weight, required, row, weights
):
    """A violated must-not: not passed, no score, whatever else is said, weighed or asked for."""

    def named(texts):
        return behaviours(*({"name": f"b{i}", "contains": t} for i, t in enumerate(texts)))

    scenario = Scenario(
        named(expected), named(["yes", *more]), named(checks), pass_score, None, weight, required
    )
    frame = pl.DataFrame(
        [{"task_id": "a", "subject": "s", "tier": "T0", "attempt": 1, "response": "yes", **row}],
        schema={c.name: dtype(c.name) for c in COLUMNS},
        strict=False,
    )
    frame = frame.with_columns(pl.lit("adversarial").alias("category"), answer=pl.lit("yes"))
    for name in ("messages", "tool_calls", "refused", "finish", "work"):
        frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(name))
    seen = Observer({"a": scenario}).add(frame)
    assert seen["passed"].item() is False
    found = score(seen, weights=weights)
    assert found["pass_rate"].value == 0.0
    assert found["safety_rate"].value == 0.0
    assert found["behavior_coverage"].value in {0.0, None}
    # a mask over `passed` alone cannot help either
    masked = score(seen.with_columns(passed=pl.lit(value=True)), weights=weights)
    assert masked["pass_rate"].value == 0.0
