"""Every fragment of the specification, saved as a file, drives a gate: both sides of its limits."""

import json

import pytest

from gates.samples import DATA, answers, behaviours, gate, policy, share, verdict
from pennyweight.errors import InputError
from pennyweight.render.verdict import render


def latency(slowest):
    """Give twenty calls of which the 19th in order, the 95th percentile, takes so long."""
    times = [100.0] * 18 + [slowest, 60_000.0]
    return [{"task_id": f"l{i}", "latency_ms": t} for i, t in enumerate(times)]


def labels(hits, wrong, missed):
    """Give labels: true positives, false positives, false negatives; `no` is never the answer."""
    pairs = [("yes", "yes")] * hits + [("no", "yes")] * wrong + [("yes", "no")] * missed
    return [{"task_id": f"p{i}", "target": t, "answer": a} for i, (t, a) in enumerate(pairs)]


ADVERSARIAL = {"category": "adversarial"}
BOTH_SIDES = [
    ("pass_rate.json", share(17, 20), share(16, 20)),
    ("accuracy.json", answers(19, 20), answers(18, 20)),
    ("safety_rate.json", share(20, 20, **ADVERSARIAL), share(19, 20, **ADVERSARIAL)),
    ("behavior_coverage.json", behaviours(9, 10), behaviours(8, 10)),
    ("latency_p95.json", latency(4999.9), latency(5000.0)),
]


@pytest.mark.parametrize(("file", "good", "bad"), BOTH_SIDES, ids=lambda x: str(x)[:20])
def test_a_metric_with_its_typical_threshold(file, good, bad):
    assert verdict(file, good).verdict == "pass"
    assert verdict(file, bad).verdict == "fail"


def test_precision_and_recall_of_a_label():
    for file, good, bad in (
        ("precision.json", labels(9, 1, 3), labels(8, 1, 0)),
        ("recall.json", labels(17, 5, 3), labels(16, 0, 4)),
    ):
        text = json.loads((DATA / file).read_text())
        made = {**text, "positive": "yes"}
        assert verdict(made, good).verdict == "pass", file
        assert verdict(made, bad).verdict == "fail", file
        assert verdict(file, [{"task_id": "1", "answer": "a"}]).verdict == "fail"


def test_a_metric_without_a_threshold_is_shown_and_never_passes():
    rows = [{"task_id": "1", "correct": True, "prompt_tokens": 60, "completion_tokens": 40}]
    found = verdict("token_efficiency.json", rows)
    assert found.verdict == "inconclusive"
    assert found.gates[0].value == 0.01
    assert "no threshold" in found.gates[0].why


def four(accuracy=9, safety=10, coverage=17, slow=5000.0):
    return [
        *answers(accuracy, 10, latency_ms=slow),
        *share(safety, 10, category="adversarial"),
        *behaviours(coverage, 20),
    ]


def test_blocking_thresholds_decide_and_warnings_are_told():
    file = "blocking_and_warning.json"
    good = verdict(file, four())
    assert (good.verdict, good.warnings) == ("pass", ())
    assert verdict(file, four(accuracy=8)).verdict == "fail"
    assert verdict(file, four(safety=9)).verdict == "fail"
    for other, name in ((four(coverage=16), "behavior_coverage"), (four(slow=5000.1), "latency")):
        found = verdict(file, other)
        assert found.verdict == "pass"
        assert [w.name.startswith(name) for w in found.warnings] == [True]


def test_what_is_critical_or_high_blocks():
    file = "risk_based.json"
    best = {"accuracy": 10, "coverage": 17, "slow": 9999.9}
    assert (verdict(file, four(**best)).verdict, verdict(file, four(**best)).warnings) == (
        "pass",
        (),
    )
    nineteen = [*answers(19, 20), *share(10, 10, category="adversarial"), *behaviours(17, 20)]
    assert gate(verdict(file, nineteen), "accuracy").verdict == "pass"
    assert verdict(file, four(**{**best, "accuracy": 9})).verdict == "fail"
    assert verdict(file, four(**best, safety=9)).verdict == "fail"
    for worse in ({"coverage": 16}, {"slow": 10_000.0}):
        found = verdict(file, four(**{**best, **worse}))
        assert (found.verdict, len(found.warnings)) == ("pass", 1)


@pytest.mark.parametrize(
    ("version", "least"),
    [("v1.0", 16), ("1.9.3", 16), ("2.0", 17), ("v2.7-rc1", 17), ("3.0", 18), ("9", 18),
     ("Target", 19)],
)  # fmt: skip
def test_progressive_thresholds_follow_the_version(version, least):
    assert verdict("progressive.json", answers(least, 20), version=version).verdict == "pass"
    assert verdict("progressive.json", answers(least - 1, 20), version=version).verdict == "fail"


def test_a_version_below_all_has_no_threshold_and_none_must_be_named():
    found = verdict("progressive.json", answers(20, 20), version="0.9")
    assert found.verdict == "inconclusive"
    assert "version 0.9 is lower than all versions" in found.gates[0].why
    before = verdict("progressive.json", answers(20, 20), version="v1.0-rc1")
    assert before.verdict == "inconclusive"
    with pytest.raises(InputError, match="line 3: accuracy depends on the version"):
        policy("progressive.json")


WEIGHTS = json.loads((DATA / "scenario_weights.json").read_text())
HALF = {"pass_criteria": {"overall": 50}}


def test_scenario_weights_count_by_category_and_capability():
    rows = [
        {"task_id": "1", "passed": True, "category": "adversarial", "capability": "core_function"},
        {"task_id": "2", "passed": False, "category": "Regression "},
        {"task_id": "3", "passed": True, "capability": "convenience_feature"},
        {"task_id": "4", "passed": False, "category": "happy_path", "weight": 3},
    ]
    found = verdict("scenario_weights.json", rows)
    assert found.verdict == "inconclusive"  # it sets no threshold
    assert gate(found, "pass_rate").value == pytest.approx((4 + 0.5) / (4 + 1.5 + 0.5 + 3))
    assert "pass_rate (weighted)" in render(verdict({**WEIGHTS, **HALF}, rows), "table")
    for limit, word in ((50, "pass"), (50.1, "fail")):
        made = {**WEIGHTS, "pass_criteria": {"overall": limit}}
        assert verdict(made, rows).verdict == word
    own = [{**row, "weight": 1} for row in rows]
    assert verdict(HALF, own).gates[-1].value == 0.5
    assert verdict(HALF, rows).gates[-1].value == pytest.approx(2 / 6)


def test_required_scenarios_must_pass_and_optional_ones_need_not():
    names = ("SEC-001", "SEC-002", "CORE-001", "EDGE-001", "PERF-001")

    def rows(*failed):
        return [{"task_id": name, "passed": name not in failed} for name in names]

    file = "required_and_optional.json"
    assert verdict(file, rows()).verdict == "pass"
    assert verdict(file, rows("EDGE-001", "PERF-001")).verdict == "pass"
    for name in names[:3]:
        found = verdict(file, rows(name))
        assert found.verdict == "fail"
        assert [s.id for s in found.deciding[0].scenarios] == [name]
        missing = verdict(file, [row for row in rows() if row["task_id"] != name])
        assert (missing.verdict, missing.deciding[0].why) == ("fail", f"{name} did not run.")


def test_pass_criteria_overall_and_by_category():
    def rows(adversarial=5, happy=18, edge=7, other=0):
        return [
            *share(adversarial, 5, "v", category="adversarial"),
            *share(happy, 20, "h", category="happy_path"),
            *share(edge, 10, "e", category="edge_case"),
            *share(0, other, "o"),
        ]

    file = "pass_criteria.json"
    assert verdict(file, rows()).verdict == "pass"
    sides = {
        "adversarial": {"adversarial": 4},
        "happy_path": {"happy": 17},
        "edge_case": {"edge": 6},
    }
    for name, worse in sides.items():
        found = verdict(file, rows(**worse))
        assert [g.name for g in found.deciding] == [f"pass_rate of {name}"]
    assert [g.name for g in verdict(file, rows(other=3)).deciding] == ["pass_rate"]  # 30 of 38
    assert verdict(file, rows(other=2)).verdict == "pass"  # 30 of 37
    for row in ("v", "h", "e"):
        left = [r for r in rows() if not r["task_id"].startswith(row)]
        assert verdict(file, left).verdict == "fail"  # a category that is missing


def test_weighted_aggregation_gives_the_value_of_the_specification():
    rows = [*answers(9, 10), *share(10, 10, category="adversarial"), *behaviours(17, 20)]
    found = verdict("weighted_aggregation.json", rows)
    assert gate(found, "weighted_score").value == pytest.approx(0.940909, abs=5e-7)
    weights = json.loads((DATA / "weighted_aggregation.json").read_text())
    for limit, word in (("94%", "pass"), ("≥ 0.941", "fail")):
        made = {**weights, "thresholds": {"weighted_score": limit}}
        assert verdict(made, rows).verdict == word


def composite_rows(right, safe=10, coverage=18, slow=2500.0):
    rows = [*answers(right, 20), *share(safe, 10, category="adversarial")]
    rows += behaviours(coverage, 20)
    return [{**row, "latency_ms": slow} for row in rows]


@pytest.mark.parametrize("file", ["composite.json", "composite.yaml"])
def test_the_composite_and_its_rule(file):
    found = verdict(file, composite_rows(19))
    assert gate(found, "final_score").value == pytest.approx(0.915)
    assert found.verdict == "pass"
    unsafe = verdict(file, composite_rows(20, safe=9, coverage=20, slow=0.0))
    assert gate(unsafe, "final_score").value == pytest.approx(0.96)
    assert [g.metric for g in unsafe.deciding] == ["safety_rate"]
    # .3·.9 + .4 + .2·.9 + .1·speed is .85 without any speed
    assert verdict(file, composite_rows(18, slow=5000.0)).verdict == "pass"
    assert verdict(file, composite_rows(18, slow=90_000.0)).verdict == "pass"
    assert verdict(file, composite_rows(17, slow=5000.0)).verdict == "fail"


def test_every_fragment_is_read_and_fits_the_schema():
    jsonschema = pytest.importorskip("jsonschema")
    from pennyweight.gates.declaration import json_schema

    check = jsonschema.Draft202012Validator(json_schema())
    for path in sorted(DATA.glob("*.json")):
        assert [e.message for e in check.iter_errors(json.loads(path.read_text()))] == [], path
        policy(path.name, version="v1.0")
