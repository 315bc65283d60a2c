"""Deciding from Python: baselines of the same side, and early-stopped runs by their plan."""

import json

import pytest

import pennyweight
from gates.samples import share
from generate import many
from pennyweight.api.baseline import set_baseline
from pennyweight.errors import InputError, PennyweightError, UsageError
from pennyweight.gates import baseline_gate, threshold_gate
from pennyweight.render.verdict import summary
from pennyweight.scoring.large import spill
from scoring.large.test_scores import digits

PAIRED = "gates: [{metric: pass_rate, no_worse_than: 5%}]"


@pytest.fixture
def policy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(PAIRED)
    return tmp_path / "policy.yaml"


def write(path, rows):
    import json

    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_a_baseline_is_of_the_same_side_where_it_has_several(policy, tmp_path):
    both = write(tmp_path / "b.jsonl", [*share(90, 90, tier="T0"), *share(10, 90, tier="T1")])
    now = [*share(60, 90, tier="T0"), *share(60, 90, tier="T1")]
    words = [
        pennyweight.gate(now, policy, baseline=both, where={"tier": tier}).verdict
        for tier in ("T0", "T1")
    ]
    assert words == ["fail", "pass"]
    chosen = {"where": {"tier": "T1"}, "baseline_where": {"tier": "T0"}}
    assert pennyweight.gate(now, policy, baseline=both, **chosen).verdict == "fail"
    with pytest.raises(InputError, match=r"b\.jsonl has no records with tier=T2"):
        pennyweight.gate(share(9, 9, tier="T2"), policy, baseline=both, where={"tier": "T2"})
    alone = write(tmp_path / "alone.jsonl", share(90, 90, tier="T9"))
    assert pennyweight.gate(now, policy, baseline=alone, where={"tier": "T1"}).verdict == "fail"


def test_a_policy_that_compares_needs_a_baseline(policy):
    with pytest.raises(UsageError, match="baseline"):
        pennyweight.gate(share(9, 9), policy)


def test_the_verdict_says_what_it_rests_on(policy, tmp_path):
    (tmp_path / "value.yaml").write_text("thresholds: {pass_rate: 50%}")
    rows = write(tmp_path / "r.jsonl", [*share(3, 3), {"task_id": "x", "passed": "maybe"}])
    about = pennyweight.gate(rows, "value.yaml", skip_bad=True).evidence
    assert (about.run, about.left_out, about.tasks) == (None, 1, {"t0", "t1", "t2"})


def test_a_policy_may_be_a_mapping():
    rows = [{"task_id": n, "answer": "4", "target": "4"} for n in range(3)]
    gates = [{"metric": "accuracy", "threshold": ">= 0.5", "on": "value"}]
    verdict = pennyweight.gate(rows, {"gates": gates})
    assert (verdict.verdict, verdict.gates[0].value) == ("pass", 1.0)
    with pytest.raises(PennyweightError, match="accurcy"):
        pennyweight.gate(rows, {"gates": [{**gates[0], "metric": "accurcy"}]})


def probed(subject, changed):
    """Chains whose answer changes after the first cut, or never; the other side of a probe."""
    return [
        {
            "task_id": f"t{i}",
            "subject": subject,
            "tier": f"probe@{cut}%",
            "attempt": 1,
            "answer": "3" if i < changed and cut == 0 else "4",
            "target": "4",
        }
        for i in range(8)
        for cut in (0, 25, 50, 75, 100)
    ]


AREA = {"gates": [{"metric": "truncation_aoc", "threshold": ">= 5%", "on": "value"}]}


def test_a_gate_that_compares_tiers_is_decided_on_all_of_them():
    verdict = pennyweight.gate(probed("m", 8), AREA)
    (one,) = verdict.gates
    assert (verdict.verdict, one.value, verdict.records) == ("pass", pytest.approx(1 / 8), 40)
    both = [*probed("m", 8), *probed("n", 0)]
    each = pennyweight.gate(both, AREA, each=("subject", "tier"))
    assert [(s.name, s.verdict.verdict) for s in each.sides] == [("m", "pass"), ("n", "fail")]
    with pytest.raises(UsageError, match=r"several subjects .* --each subject"):
        pennyweight.gate(both, AREA)


def test_a_gate_that_compares_tiers_says_so_where_there_is_one():
    (one,) = pennyweight.gate(probed("m", 8), AREA, where={"tier": "probe@0%"}).gates
    assert one.verdict == "fail"
    assert "compares the tiers of a subject" in one.why
    mixed = {"gates": [*AREA["gates"], {"metric": "accuracy", "threshold": ">= 5%"}]}
    with pytest.raises(UsageError, match=r"several tiers \(probe@0%, .*probe@100%\)") as refused:
        pennyweight.gate(probed("m", 8), mixed)
    assert "write truncation_aoc into a policy of its own" in str(refused.value)
    assert "--where" not in str(refused.value)


def test_a_gate_on_a_probe_says_what_it_needs():
    rows = [{"task_id": "a", "tier": tier, "answer": "4", "target": "4"} for tier in ("T0", "T1")]
    (one,) = pennyweight.gate(rows, AREA).gates
    assert "It needs all tiers of a probe in one group, from run --probe truncation." in one.why


def test_overthinking_is_decided_on_all_budgets_of_a_subject():
    rows = [
        {"task_id": f"t{i}", "tier": tier, "correct": True, "completion_tokens": n}
        for i in range(5)
        for tier, n in (("T0", 100), ("T1", 300))
    ]
    policy = {"gates": [{"metric": "overthinking_tokens", "threshold": "<= 150", "on": "value"}]}
    assert pennyweight.gate(rows, policy).gates[0].value == 100.0


def test_rules_for_answers_are_those_of_score_and_hold_for_the_baseline(tmp_path):
    rows = [{"task_id": f"t{i}", "answer": "1/4", "target": "0.25"} for i in range(9)]
    policy = {"gates": [{"metric": "accuracy", "threshold": ">= 50%", "on": "value"}]}
    assert pennyweight.gate(rows, policy).verdict == "fail"
    assert pennyweight.gate(rows, policy, match="math").verdict == "pass"
    before = write(tmp_path / "before.jsonl", rows)
    same = {"gates": [{"metric": "accuracy", "no_worse_than": "5%", "on": "value"}]}
    found = pennyweight.gate(rows, same, baseline=before, match="math")
    (one,) = found.gates
    assert (one.verdict, one.value, one.baseline) == ("pass", 0.0, 1.0)  # no difference
    with pytest.raises(UsageError, match="nonsense"):
        pennyweight.gate(rows, policy, match="nonsense")


LARGE = {
    "gates": [
        {"metric": "accuracy", "threshold": ">= 40%"},
        {"metric": "pass_rate", "threshold": ">= 90%"},
        {"metric": "latency_p95_ms", "threshold": "< 1ms"},
        {"metric": "brier", "threshold": "< 0.9"},
        {"metric": "pass_rate", "no_worse_than": "1%", "name": "as before"},
    ],
}


@pytest.mark.parametrize("asked", [{}, {"each": "tier"}, {"where": {"tier": "T1"}}], ids=str)
def test_records_on_disk_are_decided_as_in_memory(monkeypatch, tmp_path, asked):
    rows = many(400, seed=2, attempts=2)
    if not asked:
        rows = [row for row in rows if row["tier"] == "T1"]
    rows += [{**rows[0], "attempt": 9, "status": "error", "passed": None}]
    changed = [{**row, "passed": i % 2 == 0} for i, row in enumerate(rows)]
    before = write(tmp_path / "before.jsonl", changed)
    expected = pennyweight.gate(rows, LARGE, baseline=before, **asked)
    assert {gate.verdict for gate in expected.gates} == {"pass", "fail", "inconclusive"}
    monkeypatch.setattr(spill, "IN_MEMORY", 0)
    monkeypatch.setattr(spill, "PART", 150)
    found = pennyweight.gate(rows, LARGE, baseline=before, **asked)
    assert found.to_dict() == digits(expected.to_dict())
    with pytest.raises(InputError, match="no records with tier=T9"):
        pennyweight.gate(rows, LARGE, baseline=before, where={"tier": "T9"})


def test_what_is_undecided_is_told_by_the_checks_on_disk_too(monkeypatch):
    roles = [
        {"checks": json.dumps([{"name": "asks", "role": role, "holds": None}])}
        for role in ("must_not", "expected")
    ]
    told = [{}, *roles, {"expected_behaviors": ["asks"]}]
    policy = {"gates": [{"metric": "pass_rate", "threshold": ">= 50%"}]}
    rows = [
        {
            "task_id": f"t{i}",
            "passed": True,
            "undecided": ["asks"],
            "tier": f"T{i % 4}",
            **told[i % 4],
        }
        for i in range(40)
    ]
    for _ in range(2):
        found = [pennyweight.gate(rows, policy, where={"tier": f"T{i}"}) for i in range(4)]
        open_ = [any(gate.name == "must_not" for gate in one.gates) for one in found]
        assert open_ == [True, True, False, False]
        monkeypatch.setattr(spill, "IN_MEMORY", 0)
        monkeypatch.setattr(spill, "PART", 10)


def test_other_records_and_the_disk_change_no_interval(monkeypatch):
    rows = [
        {"prob_correct": i * 7 % 100 / 100, "correct": i * 3 % 11 < 5}
        | ({"task_id": f"t{i}", "attempt": 1} if i % 5 == 0 else {"task_id": None})
        for i in range(1300)
    ]
    rows += [{**row, "attempt": 2} for row in rows if row["task_id"]]
    both = [{**row, "tier": tier} for row in rows for tier in ("T0", "T1")]
    policy = {"gates": [{"metric": "ece_smooth", "threshold": "<= 0.9"}]}
    (expected,) = pennyweight.gate(rows, policy).to_dict()["gates"]
    assert expected["interval"]
    for _ in range(2):
        (found,) = pennyweight.gate(both, policy, where={"tier": "T1"}).to_dict()["gates"]
        assert found == digits(expected)
        monkeypatch.setattr(spill, "IN_MEMORY", 0)
        monkeypatch.setattr(spill, "PART", 700)


def test_of_very_many_scenarios_the_others_are_counted(monkeypatch):
    for module in (threshold_gate, baseline_gate):
        monkeypatch.setattr(module, "LISTED", 3)
    gates = [{"metric": "pass_rate", "threshold": ">= 90%"}]
    (found,) = pennyweight.gate(share(10, 30), {"gates": gates}).to_dict()["gates"]
    assert (len(found["scenarios"]), found["more_scenarios"]) == (3, 17)


BETTER = {"gates": [{"metric": "accuracy", "better": True, "on": "confident"}]}


def asked(right, change=lambda i: {}, tasks=80):
    """Records of a gate: the first so many are right; `change` edits tasks."""
    rows = []
    for i in range(tasks):
        row = {"task_id": f"q{i}", "input": f"{i}?", "target": f"t{i}"} | change(i)
        rows.append({**row, "answer": row["target"] if i < right else "wrong"})
    return rows


def test_a_gate_on_a_changed_exam_is_inconclusive_and_names_what_to_run_again(tmp_path):
    before = write(tmp_path / "before.jsonl", asked(30))
    easy = asked(70, lambda i: {"input": f"Easy: {i}?"} if i < 40 else {})
    found = pennyweight.gate(easy, BETTER, baseline=before)
    (gate,) = (one for one in found.gates if one.metric == "accuracy")
    assert (found.verdict, found.exit_code, gate.verdict) == ("inconclusive", 3, "inconclusive")
    assert gate.why.startswith(
        "the exam has changed: 40 of 80 tasks differ between the baseline and these records and "
        "are left out: q0 (the input), q1 (the input), q2 (the input) and 37 more."
    )
    assert gate.tasks == 40
    assert found.to_dict()["exam"]["changed"] == 40


def test_gates_without_a_baseline_are_decided_on_a_changed_exam(tmp_path):
    before = write(tmp_path / "before.jsonl", asked(30))
    both = {"gates": [*BETTER["gates"], {"metric": "accuracy", "threshold": ">= 99%"}]}
    found = pennyweight.gate(asked(70, lambda i: {"target": f"u{i}"}), both, baseline=before)
    words = {one.rule.paired: one.verdict for one in found.gates if one.rule}
    assert (found.verdict, words) == ("fail", {True: "inconclusive", False: "fail"})


def test_a_gate_on_other_tasks_of_the_exam_is_decided(tmp_path):
    def changed(i):
        return {"category": "hard" if i < 40 else "easy", **({"target": "u"} if i < 3 else {})}

    def one(category):
        return {"gates": [{**BETTER["gates"][0], "category": category}]}

    before = write(tmp_path / "before.jsonl", asked(0, lambda i: {**changed(i), "target": f"t{i}"}))
    verdicts = [
        pennyweight.gate(asked(80, changed), one(category), baseline=before).verdict
        for category in ("easy", "hard")
    ]
    assert verdicts == ["pass", "inconclusive"]


def test_a_gate_is_inconclusive_where_the_baseline_was_graded_differently(tmp_path):
    before = write(tmp_path / "b.jsonl", asked(0, lambda i: {"grading_digest": "1 judges=1"}))
    now = asked(80, lambda i: {"grading_digest": "1 judges=2"})
    found = pennyweight.gate(now, BETTER, baseline=before)
    gate = next(one for one in found.gates if one.metric == "accuracy")
    assert (found.verdict, gate.value) == ("inconclusive", None)
    assert "are graded differently: the judges." in gate.why


def test_a_gate_says_that_its_baseline_had_another_prompt(tmp_path):
    before = write(tmp_path / "before.jsonl", asked(0))
    now = asked(80, lambda i: {"input": f"Think. {i}?"})
    found = pennyweight.gate(now, BETTER, baseline=before)
    assert found.verdict == "pass"
    assert any("different prompts over the same tasks" in note for note in found.notes)


def test_a_saved_baseline_keeps_the_exam(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    set_baseline("main", asked(30))
    easy = asked(70, lambda i: {"target": "u"} if i < 40 else {})
    assert pennyweight.gate(easy, BETTER, baseline="main").verdict == "inconclusive"
    assert pennyweight.gate(asked(70), BETTER, baseline="main").verdict == "pass"


def test_errors_count_as_failures_on_both_sides_and_the_verdict_says_so(policy, tmp_path):
    broken = [{"task_id": f"e{n}", "passed": None, "status": "error"} for n in range(30)]
    rows = [*share(30, 30), *broken]
    limit = {"thresholds": {"pass_rate": "80%"}, "errors": "90%"}
    usual, failures = (pennyweight.gate(rows, limit, errors=e) for e in (None, "failures"))
    assert (usual.verdict, failures.verdict) == ("pass", "fail")
    assert [v.to_dict()["errors_as"] for v in (usual, failures)] == ["exclude", "failures"]
    assert (usual.errors, failures.errors) == (30, 30)
    assert "including 30 errors counted as failures; " in summary(failures)
    assert "including 30 errors; " in summary(usual)
    other = write(tmp_path / "before.jsonl", rows)
    same = pennyweight.gate(rows, policy, baseline=other, errors="failures")
    assert (same.gates[-1].baseline, same.gates[-1].value) == (0.5, 0.0)
    assert pennyweight.gate(rows, policy, baseline=other).verdict == "inconclusive"
    with pytest.raises(UsageError, match="neither exclude nor failures"):
        pennyweight.gate(rows, limit, errors="leave")


def test_a_saved_baseline_with_errors_does_not_count_them_as_failures(policy, tmp_path):
    rows = [*share(30, 30), {"task_id": "e", "passed": None, "status": "error"}]
    set_baseline("before", write(tmp_path / "before.jsonl", rows))
    with pytest.raises(UsageError, match="saved with its errors left out"):
        pennyweight.gate(rows, policy, baseline="before", errors="failures")
