"""The steps of the GitHub Action, run here with bash as the runner would."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gates.samples import share

ACTION = yaml.safe_load((Path(__file__).parent.parent / "action.yml").read_text("utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "run" in step}
GH = """\
#!/bin/sh
echo "$@" >> gh.log
case "$*" in *jq*) cat known.txt 2>/dev/null ;; esac
exit 0
"""

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="bash is missing")


@pytest.fixture
def job(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "gh").write_text(GH)
    (tools / "gh").chmod(0o755)
    (tmp_path / "policy.yaml").write_text("thresholds: {pass_rate: 85}")
    write(tmp_path, share(9, 10))
    return tmp_path


def write(folder, rows):
    (folder / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))


def step(folder, name, outputs=None, **inputs):
    """Run one step in bash, its expressions replaced, as the runner does."""
    given = {n: str(i.get("default", "")) for n, i in ACTION["inputs"].items()} | inputs
    known = {
        **{f"inputs.{n}": v for n, v in given.items()},
        **{f"steps.gate.outputs.{n}": v for n, v in (outputs or {}).items()},
        "steps.run.outputs.run": (outputs or {}).get("run", ""),
        "github.event.pull_request.number": "7",
        "github.repository": "owner/name",
        "github.action_path": str(folder),
    }

    def value(text):
        return re.sub(r"\$\{\{\s*(.+?)\s*\}\}", lambda m: known.get(m[1], m[0]), str(text))

    path = os.pathsep.join(
        [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    )
    out = folder / "output.txt"
    environment = {
        **{n: v for n, v in os.environ.items() if n != "PENNYWEIGHT_STORE"},
        **{n: value(v) for n, v in STEPS[name].get("env", {}).items()},
        "PATH": path,
        "GITHUB_ACTIONS": "true",
        "GITHUB_OUTPUT": str(out),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "RUNNER_TEMP": str(folder / "temp"),
    }
    script = folder / "step.sh"
    script.write_text(STEPS[name]["run"])
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = out.read_text().splitlines() if out.exists() else []
    return done, dict(line.split("=", 1) for line in lines)


RECORDS = {"source": "records.jsonl", "policy": "policy.yaml"}


def test_every_expression_and_input_is_known():
    text = json.dumps(ACTION["runs"])
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == set(ACTION["inputs"])
    assert all(step.get("shell") == "bash" for step in STEPS.values())
    assert not any("${{" in step["run"] for step in STEPS.values())  # no way in for an injection


def test_a_pass_and_a_failure(job):
    done, outputs = step(job, "Decide", **RECORDS)
    assert (done.returncode, outputs["verdict"]) == (0, "pass"), done.stderr
    assert {p.name for p in Path(outputs["report"]).iterdir()} == {
        "gate.md",
        "gate.json",
        "gate.xml",
    }
    assert "## ✓ Pennyweight: passed" in (job / "summary.md").read_text()
    write(job, share(8, 10))
    done, outputs = step(job, "Decide", **RECORDS)
    assert (done.returncode, outputs["verdict"]) == (1, "fail")
    assert "::error file=policy.yaml,line=1" in done.stderr


def test_what_is_open_fails_the_job_unless_told(job):
    (job / "policy.yaml").write_text("thresholds: {pass_rate: {threshold: 88, on: confident}}")
    done, outputs = step(job, "Decide", **RECORDS)
    assert (done.returncode, outputs["verdict"]) == (3, "inconclusive")
    done, _ = step(job, "Decide", **RECORDS, inconclusive="pass")
    assert done.returncode == 0


def test_mistakes_stop_the_job_without_a_verdict(job):
    done, outputs = step(job, "Decide", source="none.jsonl", policy="policy.yaml")
    assert (done.returncode, outputs) == (2, {})


def test_inputs_are_data_and_never_code(job):
    nasty = "records.jsonl; touch owned; $(touch owned)"
    done, _ = step(job, "Decide", source=nasty, policy="policy.yaml\n`touch owned`")
    assert done.returncode == 2
    assert not (job / "owned").exists()


def test_several_policies_a_baseline_and_a_version(job):
    (job / "more.yaml").write_text("progressive_thresholds: {pass_rate: {v1: 80, v2: 95}}")
    (job / "base.yaml").write_text("gates: [{metric: pass_rate, no_worse_than: 60%}]")
    given = {"policy": "policy.yaml\nmore.yaml\nbase.yaml\n", "source": "records.jsonl"}
    given |= {"baseline": "records.jsonl", "where": "\n"}
    assert step(job, "Decide", **given, version="v1.2")[0].returncode == 0
    assert step(job, "Decide", **given, version="v2.0")[0].returncode == 1


@pytest.mark.parametrize("until", ["false", "true"])
def test_a_suite_is_run_and_decided_on(job, until):
    tasks = [{"id": f"t{i}", "input": f"{i}?", "target": "4"} for i in range(40)]
    suite = {"suite": "sums", "tasks": tasks, "subjects": ["python:answers:right"]}
    (job / "suite.json").write_text(json.dumps(suite))
    (job / "answers.py").write_text('def right(prompt):\n    return "FINAL_ANSWER: 4"\n')
    (job / "policy.yaml").write_text(
        "on: confident\nthresholds: {accuracy: {threshold: 85, indifference: 15%}}"
    )
    given = {"suite": "suite.json", "policy": "policy.yaml", "until-decided": until}
    ran = {}
    if until == "false":
        done, ran = step(job, "Run the suite", **given)
        assert done.returncode == 0, done.stderr
    done, outputs = step(job, "Decide", ran, **given)
    assert (done.returncode, outputs["verdict"]) == (0, "pass"), done.stderr
    made = json.loads((Path(outputs["report"]) / "gate.json").read_text())["records"]
    assert made == 40 if until == "false" else made < 40


@pytest.mark.parametrize("until", ["false", "true"])
def test_a_run_that_stopped_at_its_budget_is_not_green(job, until):
    tasks = [{"id": f"t{i}", "input": f"{i}?", "target": "4"} for i in range(40)]
    subject = {"model": "python:answers:right", "max_tokens": 5}
    limits = {"tokens": 400, "concurrency": 1}
    suite = {"suite": "sums", "tasks": tasks, "subjects": [subject], "limits": limits}
    (job / "suite.json").write_text(json.dumps(suite))
    (job / "answers.py").write_text('def right(prompt):\n    return "FINAL_ANSWER: 4"\n')
    (job / "policy.yaml").write_text(
        "thresholds: {pass_rate: 85, accuracy: {threshold: 85, on: confident}}"
    )
    given = {"suite": "suite.json", "policy": "policy.yaml", "until-decided": until}
    ran = {}
    if until == "false":
        done, ran = step(job, "Run the suite", **given)
        assert done.returncode == 0, done.stderr
    done, outputs = step(job, "Decide", ran, **given)
    assert (done.returncode, outputs["verdict"]) == (3, "inconclusive"), done.stderr
    assert "attempts have not been made yet" in (Path(outputs["report"]) / "gate.md").read_text()


def test_no_run_but_the_one_that_was_made_here_is_decided_on(job):
    (job / "suite.json").write_text('{"suite": "sums", "tasks": [], "subjects": []}')
    given = {"suite": "suite.json", "policy": "policy.yaml"}
    assert step(job, "Run the suite", **given)[0].returncode == 2
    done, outputs = step(job, "Decide", **given)
    assert (done.returncode > 0, outputs) == (True, {})
    assert "no run was made" in done.stderr


def test_a_version_reaches_a_run_until_it_is_decided(job):
    tasks = [{"id": f"t{i}", "input": f"{i}?", "target": "4"} for i in range(50)]
    suite = {"suite": "sums", "tasks": tasks, "subjects": ["python:answers:right"]}
    (job / "suite.json").write_text(json.dumps(suite))
    (job / "answers.py").write_text('def right(prompt):\n    return "FINAL_ANSWER: 4"\n')
    steps = {"v1": "≥ 60%", "v2": "≥ 99.9%"}
    given = {"on": "confident", "progressive_thresholds": {"accuracy": steps}}
    (job / "policy.yaml").write_text(json.dumps(given))
    chosen = {"suite": "suite.json", "policy": "policy.yaml", "until-decided": "true"}
    for version, verdict in (("v1.5", "pass"), ("v2", "inconclusive")):
        _, outputs = step(job, "Decide", **chosen, version=version)
        made = json.loads((Path(outputs["report"]) / "gate.json").read_text())["records"]
        assert (outputs["verdict"], made == 50) == (verdict, verdict == "inconclusive")


def test_one_comment_is_written_and_then_kept_up_to_date(job):
    _, outputs = step(job, "Decide", **RECORDS)
    done, _ = step(job, "Comment", outputs, **RECORDS)
    assert done.returncode == 0, done.stderr
    assert "-X POST repos/owner/name/issues/7/comments" in (job / "gh.log").read_text()
    (job / "known.txt").write_text("12\n34\n")
    step(job, "Comment", outputs, **RECORDS)
    last = (job / "gh.log").read_text().splitlines()[-1]
    assert "-X PATCH repos/owner/name/issues/comments/12 -F body=@" in last
