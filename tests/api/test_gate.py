"""Deciding from Python: baselines of the same side, and early-stopped runs by their plan."""

import pytest

import pennyweight
from gates.samples import share
from pennyweight.errors import InputError, PennyweightError, UsageError

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
