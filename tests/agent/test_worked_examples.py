"""The worked examples of specification 003, each through a whole run: agent, checks and judge."""

import json
from statistics import pvariance

import pytest

from agent.test_run import pennyweight

AGENT = """
import json, pathlib, sys
tier, log = sys.argv[1], pathlib.Path(sys.argv[2])
told = json.loads(pathlib.Path("plan.json").read_text())[tier]
made = log.read_text().split() if log.exists() else []
log.write_text(" ".join([*made, tier]))
passed, score = told[made.count(tier)]
if passed:
    pathlib.Path("passed").touch()
print(json.dumps({"text": f"score {score}", "cost": 0.5}))
"""

JUDGE = """
import json, re

def judge(request):
    score = float(re.search(r"score ([0-9.]+)", request.text)[1])
    items = {"done": {"evidence": "It says so.", "score": score}}
    return json.dumps({"items": items, "confidence": 1, "weighted_score": score, "passed": True})
"""

SUITE = """
suite: worked
tasks: [{{id: only, input: Do it.}}]
verify: test -f passed
subjects:
  - name: agent
    command: [python3, ./agent.py, "{{tier}}", "{log}"]
    sandbox: none
    output: {{text: $.text, cost_usd: $.cost}}
tiers: {tiers}
judge:
  models: [{{name: judge, model: "python:told:judge"}}]
  rubric: {{categories: {{all: {{items: [{{id: done, text: Was it done?}}]}}}}}}
limits: {{concurrency: 1}}
runs: {runs}
"""


def run(folder, told):
    """Run a suite in which each tier has its passes and scores, one for each run."""
    (folder / "agent.py").write_text(AGENT)
    (folder / "told.py").write_text(JUDGE)
    plan = json.dumps(told)
    tiers = {t: {"settings": {"tier": t}, "files": {"plan.json": plan}} for t in told}
    runs = max(map(len, told.values()))
    text = SUITE.format(tiers=json.dumps(tiers), log=folder / "log", runs=runs)
    (folder / "suite.yaml").write_text(text)
    done = pennyweight(folder, "run", "suite.yaml", "--format", "json", PYTHONPATH=str(folder))
    assert done.returncode == 0, done.stderr
    return {g["group"].get("tier", "T0"): g for g in json.loads(done.stdout)["groups"]}


def test_a_single_run(tmp_path):
    metrics = run(tmp_path, {"T0": [(True, 0.85)]})["T0"]["metrics"]
    assert metrics["pass_rate"] == 1.0
    assert metrics["impl_rate_mean"] == pytest.approx(0.85)
    assert metrics["cost_of_pass"] == pytest.approx(0.50)
    assert metrics["composite_median"] == pytest.approx(0.925)
    assert metrics["grade"] == "B"


def test_ten_runs(tmp_path):
    passes = [True, True, False, True, True, True, False, True, True, True]
    group = run(tmp_path, {"T0": [(passed, 1.0) for passed in passes]})["T0"]
    assert group["statistics"]["passed"] == pytest.approx(
        {
            "median": 1.0,
            "mean": 0.8,
            "mode": 1.0,
            "min": 0.0,
            "max": 1.0,
            "std_dev": 0.4,
            "count": 10,
        }
    )
    assert group["metrics"]["cost_of_pass"] == pytest.approx(10 * 0.50 / 8)


def test_four_tiers(tmp_path):
    scores = {"T0": 0.40, "T1": 0.60, "T2": 0.70, "T3": 0.80}
    groups = run(tmp_path, {tier: [(True, score)] for tier, score in scores.items()})
    medians = [group["statistics"]["composite_score"]["median"] for group in groups.values()]
    assert medians == pytest.approx([0.70, 0.80, 0.85, 0.90])
    assert pvariance(medians) == pytest.approx(0.00547, abs=5e-6)
    done = pennyweight(tmp_path, "compare", "latest", "--by", "tier", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    uplifts = {side["name"]: side["tier_uplift"] for side in found["sides"]}
    assert uplifts["T1"] == pytest.approx(0.143, abs=5e-4)
    assert uplifts["T2"] == pytest.approx(0.214, abs=5e-4)
    assert uplifts["T3"] == pytest.approx(0.286, abs=5e-4)
    assert found["across"]["pass_rate_variance"] == 0.0
    assert found["across"]["cost_delta"] == 0.0
