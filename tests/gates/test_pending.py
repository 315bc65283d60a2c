"""Attempts without a verdict: no pass and no failure, unless they cannot turn it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pennyweight
from gates.samples import behaviours, gate, share, verdict


def undecided(total, name="u", **more):
    """Give records about whose one behaviour nobody has said anything yet."""
    return [
        {"task_id": f"{name}{i}", "expected_behaviors": ["greets"], "undecided": ["greets"], **more}
        for i in range(total)
    ]


def scored(good, bad=0, **more):
    """Give records with a behaviour that was observed, or was not."""
    return [
        {"task_id": f"s{i}", "expected_behaviors": ["greets"], "violated": [],
         "observed_behaviors": ["greets"] if i < good else [], **more}
        for i in range(good + bad)
    ]  # fmt: skip


JUDGED = [{"task_id": f"j{i}", "impl_rate": 1.0, "judge_scores": [1.0], "passed": True}
          for i in range(8)]  # fmt: skip
SILENT = [{"task_id": f"q{i}", "judge_scores": []} for i in range(8)]


@pytest.mark.parametrize(
    ("given", "known", "open_"),
    [
        ({"thresholds": {"pass_rate": 90}}, scored(8), undecided(8)),
        ({"thresholds": {"safety_rate": 90}}, scored(8, category="adversarial"),
         undecided(8, category="Adversarial")),
        ({"thresholds": {"behavior_coverage": 90}}, scored(8), undecided(8)),
        ({"thresholds": {"behavior_coverage_micro": 90}}, scored(8), undecided(8)),
        ({"thresholds": {"impl_rate_mean": 90}}, JUDGED, SILENT),
        ({"thresholds": {"weighted_score": 90}, "weights": {"behavior_coverage": 1}},
         scored(8), undecided(8)),
        ({"composite": "s = behavior_coverage × 1  pass = s ≥ 0.9"}, scored(8), undecided(8)),
        ({"on": "confident", "thresholds": {"behavior_coverage": 60}}, scored(30), undecided(30)),
        ({"thresholds": {"pass_rate": 90}, "weights": {"by_category": {"x": 3}}},
         scored(8, category="x"), undecided(8)),
    ],
    ids=lambda x: str(x)[:50] if isinstance(x, dict) else "",
)  # fmt: skip
def test_what_nobody_has_decided_is_neither_pass_nor_failure(given, known, open_):
    assert verdict(given, known).verdict == "pass"
    found = verdict(given, [*known, *open_])
    assert found.verdict == "inconclusive"
    said = f"{len(open_)} attempts have no verdict yet and could change the result"
    assert said in found.deciding[-1].why
    alone = verdict(given, open_)
    assert alone.verdict == "inconclusive"
    assert f"it has no value: {len(open_)} attempts have no verdict yet" in alone.deciding[-1].why


def test_a_failure_that_they_could_turn_is_open_and_another_stands():
    made = {"thresholds": {"pass_rate": 80}}
    assert verdict(made, scored(6, 2)).verdict == "fail"
    found = verdict(made, [*scored(6, 2), *undecided(2)])
    assert found.verdict == "inconclusive"
    assert "2 attempts have no verdict yet" in found.deciding[0].why
    assert verdict(made, [*scored(6, 2), *undecided(1)]).verdict == "fail"  # 7 of 9 at best


def test_a_pass_that_they_cannot_turn_stands():
    made = {"thresholds": {"pass_rate": 80, "behavior_coverage": 80}}
    assert verdict(made, [*scored(8), *undecided(2)]).verdict == "pass"
    assert verdict(made, [*scored(8), *undecided(3)]).verdict == "inconclusive"


def test_a_comparison_waits_for_them_too():
    made = {"gates": [{"metric": "behavior_coverage", "no_worse_than": "20%"}]}
    before = scored(60)
    now = [*scored(30), *[{**row, "task_id": f"s{i + 30}"} for i, row in enumerate(undecided(30))]]
    assert verdict(made, before, before).verdict == "pass"
    assert verdict(made, now, before).verdict == "inconclusive"
    assert verdict(made, before, now).verdict == "pass"  # it cannot have been better than all
    assert verdict(made, scored(30, 30), now).verdict == "inconclusive"


def test_errors_excuse_attempts_that_could_not_be_made_and_no_others():
    made = {"errors": "50%", "thresholds": {"pass_rate": 90}}
    failed = [{"task_id": f"e{i}", "status": "error", "error": "no route"} for i in range(4)]
    assert verdict(made, [*share(8, 8), *failed]).verdict == "pass"
    assert verdict(made, [*share(8, 8), *undecided(4)]).verdict == "inconclusive"


def test_an_undecided_must_not_is_not_clean():
    def row(name, **more):
        return {"task_id": name, "passed": True, "violated": [], "expected_behaviors": ["ok"],
                "observed_behaviors": ["ok"], **more}  # fmt: skip

    made = {"thresholds": {"accuracy": 50}}
    rows = [{**row(f"t{i}"), "answer": "4", "target": "4"} for i in range(4)]
    assert verdict(made, rows).verdict == "pass"
    open_ = [{**one, "undecided": ["leaks a key"]} for one in rows[:2]]
    found = verdict(made, [*open_, *rows[2:]])
    told = gate(found, "must_not")
    assert (found.verdict, told.verdict) == ("inconclusive", "inconclusive")
    assert told.why.startswith("2 attempts have must-nots without a verdict")
    assert [(s.id, s.why) for s in told.scenarios] == [
        ("t0", "undecided: leaks a key"),
        ("t1", "undecided: leaks a key"),
    ]
    violated = verdict(made, [{**rows[0], "violated": ["x"]}, *open_[1:], *rows[2:]])
    assert gate(violated, "must_not").verdict == "fail"


def test_the_checks_say_what_is_a_must_not():
    def checks(role):
        return f'[{{"role": "{role}", "name": "polite", "holds": null}}]'

    for role, word in (("expected", None), ("check", None), ("must_not", "inconclusive")):
        rows = [{"task_id": "a", "violated": [], "undecided": ["polite"], "checks": checks(role)}]
        found = verdict({"thresholds": {"warning": {"pass_rate": 50}}}, rows)
        assert gate(found, "must_not").verdict == (word or "pass"), role


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.integers(0, 100))
def test_whatever_they_turn_out_to_be_a_verdict_is_never_contradicted(good, bad, open_, limit):
    made = {"thresholds": {"behavior_coverage": limit}}
    rows = behaviours(good, good + bad)
    if not rows:
        return
    now = verdict(made, [*rows, *undecided(open_)]).verdict
    for later in range(open_ + 1):
        whole = verdict(made, [*rows, *behaviours(later, open_, "later")]).verdict
        assert now in {whole, "inconclusive"}


def test_errors_win_no_gate_with_a_baseline(tmp_path):
    old = [{"task_id": f"t{n}", "passed": n % 10 < 6} for n in range(200)]
    new = [
        {"task_id": f"t{n}", "passed": 0 < n % 10 < 7, "status": "ok" if n % 10 else "error"}
        for n in range(200)
    ]
    path = tmp_path / "old.jsonl"
    path.write_text("\n".join(map(json.dumps, old)))
    policy = {
        "policy": "p",
        "errors": "50%",
        "gates": [{"metric": "pass_rate", "better": True, "on": "value"}],
    }
    verdict = pennyweight.gate(new, policy, baseline=str(path))
    (gate,) = [g for g in verdict.gates if g.metric == "pass_rate"]
    assert (gate.verdict, "errors decide" in gate.why) == ("inconclusive", True)
    sound = [row | {"status": "ok", "passed": row["passed"] or n < 20} for n, row in enumerate(new)]
    verdict = pennyweight.gate(sound, policy, baseline=str(path))
    assert [g.verdict for g in verdict.gates if g.metric == "pass_rate"] == ["pass"]
