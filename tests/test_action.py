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
case "$*" in *jq*) cat known.txt 2>/dev/null ;; *body=@*) cp "${*##*body=@}" body.md ;; esac
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


def step(folder, name, outputs=None, /, job="evals", index="0", total="1", **inputs):
    """Run one step in bash, its expressions replaced, as the runner does.

    `outputs` are those of earlier steps; a new file takes those of this one.
    """
    given = {n: str(i.get("default", "")) for n, i in ACTION["inputs"].items()} | inputs
    before = outputs or {}
    known = {
        **{f"inputs.{n}": v for n, v in given.items()},
        **{f"steps.{s}.outputs.{n}": "" for s in ("gate", "names") for n in ("name", "report")},
        **{f"steps.{s}.outputs.{n}": v for s in ("gate", "names") for n, v in before.items()},
        "steps.run.outputs.run": before.get("run", ""),
        "steps.gate.outputs.run || steps.run.outputs.run": before.get("run", ""),
        "github.job": job,
        "strategy.job-index": index,
        "strategy.job-total": total,
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
    out.unlink(missing_ok=True)
    assert not any("${{" in environment[n] for n in STEPS[name].get("env", {}) if n != "GH_TOKEN")
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
    made = {p.name for p in Path(outputs["report"]).iterdir()}
    assert made == {"gate.md", "gate.json", "gate.xml"}
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


NAMED = {**RECORDS, "name": "Answers of T1"}


def decided(job, **inputs):
    """Run the steps up to the verdict; gives the outputs of all of them."""
    _, names = step(job, "Choose names", **inputs)
    done, outputs = step(job, "Decide", names, **inputs)
    return done, names | outputs


def test_names_come_from_suite_and_policy_and_are_unique_for_each_use(job):
    given = {"suite": "evals/support bot.yaml", "policy": "a/release.yaml\nmore.yaml\n"}
    _, first = step(job, "Choose names", **given)
    assert first["name"] == "support-bot-release-more"
    assert first["artifact"] == "pennyweight-support-bot-release-more-evals"
    assert Path(first["report"]).is_dir()
    _, second = step(job, "Choose names", **given)
    assert second["artifact"] == f"{first['artifact']}-2"  # the same gate twice in a job
    assert second["name"] == first["name"]
    _, other = step(job, "Choose names", **given, job="nightly")
    in_matrix = [step(job, "Choose names", **given, index=str(i), total="2")[1] for i in range(2)]
    assert [found["name"] for found in in_matrix] == [f"{first['name']}-{i}" for i in range(2)]
    used = [found["artifact"] for found in (first, second, other, *in_matrix)]
    assert len({*used}) == 5
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in used)  # what GitHub takes


def test_a_name_is_data_and_never_code(job):
    nasty = '../x"; $(touch owned) -->\n`touch owned`'
    _, found = step(job, "Choose names", **{**RECORDS, "name": nasty})
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", found["name"])
    assert Path(found["report"]).parent == job / "temp"
    assert not (job / "owned").exists()


def test_extras_and_a_cache_key_that_follows_what_is_installed(job):
    (job / "bin" / "python").write_text('#!/bin/sh\necho "$@" >> pip.log\n')
    (job / "bin" / "python").chmod(0o755)
    assert step(job, "Install", extras="local,math")[0].returncode == 0
    step(job, "Install", install="pennyweight==1.0", extras="local")
    lines = (job / "pip.log").read_text().splitlines()
    assert [line.split()[-1] for line in lines] == [f"{job}[local,math]", "pennyweight==1.0"]
    keys = {
        step(job, "Choose names", **RECORDS, extras=extras)[1]["pip-key"]
        for extras in ("", "local", "local")
    }
    assert len(keys) == 2


def test_a_run_is_saved_with_its_replies(job):
    suite = {"tasks": [{"id": "a", "input": "?", "target": "4"}], "subjects": ["python:answers:no"]}
    (job / "suite.json").write_text(json.dumps({"suite": "sums", **suite}))
    (job / "answers.py").write_text('def no(prompt):\n    return "FINAL_ANSWER: five"\n')
    given = {"suite": "suite.json", "policy": "policy.yaml"}
    _, names = step(job, "Choose names", **given)
    _, ran = step(job, "Run the suite", names, **given)
    done, outputs = step(job, "Decide", names | ran, **given)
    assert (done.returncode, outputs["verdict"], outputs["run"]) == (1, "fail", ran["run"])
    done, _ = step(job, "Save the run", names | outputs, **given)
    assert done.returncode == 0, done.stderr
    kept = Path(names["report"])
    assert {p.name for p in kept.iterdir()} >= {"gate.md", "gate.xml", "records.jsonl", "run.html"}
    assert "FINAL_ANSWER: five" in (kept / "records.jsonl").read_text()
    assert outputs["report"] == names["report"]  # one artifact has all of it
    done, _ = step(job, "Save the run", {**names, "run": "nosuch"}, **given)
    assert (done.returncode, "::warning" in done.stdout) == (0, True)


def test_records_of_a_file_are_no_run(job):
    _, outputs = decided(job, **RECORDS)
    assert "run" not in outputs


def test_each_name_has_one_comment_that_is_kept_up_to_date(job):
    _, outputs = decided(job, **NAMED)
    done, _ = step(job, "Comment", outputs, **NAMED, token="t")
    assert done.returncode == 0, done.stderr
    log = (job / "gh.log").read_text()
    assert 'startswith("<!-- pennyweight gate: Answers-of-T1 -->")' in log
    assert "-X POST repos/owner/name/issues/7/comments" in log
    assert (
        (job / "body.md")
        .read_text()
        .startswith("<!-- pennyweight gate: Answers-of-T1 -->\n**Answers-of-T1**\n")
    )
    (job / "known.txt").write_text("12\n34\n")
    step(job, "Comment", outputs, **NAMED, token="t")
    last = (job / "gh.log").read_text().splitlines()[-1]
    assert "-X PATCH repos/owner/name/issues/comments/12 -F body=@" in last


@pytest.mark.parametrize("token", ["", "of a fork"])
def test_a_pull_request_of_a_fork_passes_and_has_a_summary(job, token):
    (job / "bin" / "gh").write_text('#!/bin/sh\necho "HTTP 403: not accessible" >&2\nexit 1\n')
    _, outputs = decided(job, **RECORDS)
    done, _ = step(job, "Comment", outputs, **RECORDS, token=token)
    assert done.returncode == 0
    assert "::notice title=Pennyweight::No comment could be written" in done.stdout
    summary = (job / "summary.md").read_text()
    assert summary.startswith("\n# records-policy\n")
    assert "## ✓ Pennyweight: passed" in summary


def test_the_artifact_has_the_name_of_its_use():
    (upload,) = [s for s in ACTION["runs"]["steps"] if "upload-artifact" in s.get("uses", "")]
    assert upload["with"]["name"] == "${{ steps.names.outputs.artifact }}"
    assert upload["if"].startswith("${{ always()")
