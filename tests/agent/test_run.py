"""Agents through whole runs: tiers, repeated runs, costs, and what a person sees."""

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

from agent.trying import alive, in_workspaces, needs_bubblewrap
from pennyweight.engine.limiter import TRIES
from pennyweight.store.store import Store

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "agent"


PENNYWEIGHT = [sys.executable, "-m", "pennyweight"]
EAGER = (
    "import sys\nfrom pennyweight.engine import limiter\nlimiter.LONGEST_WAIT = 0.05\n"
    "from pennyweight.cli import main\nsys.argv = ['pennyweight', *sys.argv[1:]]\nmain()\n"
)
"""`pennyweight` that makes short pauses between tries."""


def pennyweight(folder, *arguments, command=PENNYWEIGHT, **more):
    environment = {
        **os.environ,
        "PENNYWEIGHT_STORE": str(Path(folder, "store.db")),
        "COLUMNS": "80",
    }
    return subprocess.run(
        [*command, *map(str, arguments)],
        cwd=folder,
        env=environment | more,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def records(folder):
    store = Store(str(Path(folder, "store.db")))
    try:
        frames = store.records(store.find("latest").id)
        return [row for frame in frames for row in frame.to_dicts()]
    finally:
        store.close()


@pytest.mark.usefixtures("local_model")
def test_a_real_agent_in_two_tiers_and_two_runs(tmp_path):
    needs_bubblewrap()
    shutil.copytree(EXAMPLES, tmp_path / "agent")
    done = pennyweight(tmp_path, "run", "agent/suite.yaml", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "clerk runs in this sandbox: bubblewrap" in done.stderr
    rows = records(tmp_path)
    made = sorted((r["tier"], r["task_id"], r["attempt"]) for r in rows)
    assert made == list(product(("T0", "T1"), ("cake", "day", "room"), (1, 2)))
    for row in rows:
        work = json.loads(row["work"])
        assert (row["status"], work["exit_code"]) == ("ok", 0)
        assert "+++ b/answer.txt" in work["diff"]
        assert work["files"] == {"added": 1, "changed": 0, "removed": 0}
        found = re.search(rf"\b{row['target']}\b", row["response"], re.IGNORECASE)
        assert row["passed"] is bool(found)
        assert row["prompt_tokens"] > 50
        price = (row["prompt_tokens"] * 0.05 + row["completion_tokens"] * 0.20) / 1e6
        assert row["cost_usd"] == pytest.approx(price)
    first = {r["tier"]: r["prompt_tokens"] for r in rows if r["task_id"] == "day"}
    assert first["T0"] != first["T1"]  # the tier's file reached the model
    groups = {g["group"]["tier"]: g for g in json.loads(done.stdout)["groups"]}
    for tier, group in groups.items():
        passed = [r["passed"] for r in rows if r["tier"] == tier]
        assert group["metrics"]["pass_rate"] == pytest.approx(sum(passed) / 6)
    again = pennyweight(tmp_path, "run", "--resume")
    assert again.returncode == 0, again.stderr
    assert "12 attempts reused" in again.stderr


SCRIPTED = """\
suite: scripted
tasks: [{{id: only, input: x}}]
workspace: project
{more}
subjects:
  - {{name: scripted, command: [python3, ./agent.py], sandbox: none, output: {{cost_usd: $.cost}}}}
"""


def scripted(folder, code, more=""):
    """Write a suite around an agent that is a piece of Python."""
    Path(folder, "project").mkdir()
    Path(folder, "agent.py").write_text(code)
    Path(folder, "suite.yaml").write_text(SCRIPTED.format(more=more))


def test_an_agent_that_fails_is_a_result_and_no_error(tmp_path):
    scripted(tmp_path, "import sys; sys.exit('I give up')")
    done = pennyweight(tmp_path, "run", "suite.yaml", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "runs in this sandbox: none" in done.stderr
    (group,) = json.loads(done.stdout)["groups"]
    assert (group["records"], group["errors"]) == (1, 0)
    assert group["metrics"]["pass_rate"] == 0.0
    (row,) = records(tmp_path)
    assert json.loads(row["work"])["stderr"] == "I give up\n"


def test_out_of_time_counts_as_not_passed_with_its_cost(tmp_path):
    code = """import time; print('{"cost": 0.5}', flush=True); time.sleep(600)"""
    scripted(tmp_path, code, "verify: test -e done")
    suite = tmp_path / "suite.yaml"
    suite.write_text(suite.read_text().replace("sandbox:", "timeout: 1, sandbox:"))
    done = pennyweight(tmp_path, "run", "suite.yaml", "--format", "json")
    assert done.returncode == 0, done.stderr
    (row,) = records(tmp_path)
    assert (row["status"], row["passed"], row["cost_usd"]) == ("timeout", False, 0.5)
    assert row["duration_seconds"] > 1
    metrics = json.loads(done.stdout)["groups"][0]["metrics"]
    assert (metrics["pass_rate"], metrics["cost_of_pass"]) == (0.0, "Infinity")


SOLVED = "import pathlib; pathlib.Path('out.txt').write_text('4'); print('I wrote it.')"


def metrics_of(done):
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["groups"][0]["metrics"]
    return found["pass_rate"], found["accuracy"]


def test_a_task_that_is_solved_in_the_workspace_is_never_wrong(tmp_path):
    scripted(tmp_path, SOLVED, "verify: grep -q 4 out.txt")
    suite = tmp_path / "suite.yaml"
    suite.write_text(suite.read_text().replace("input: x}", 'input: x, target: "4"}'))
    assert metrics_of(pennyweight(tmp_path, "run", "suite.yaml", "--format", "json")) == (1.0, None)
    shown = pennyweight(tmp_path, "score", "latest").stdout
    assert "pass_rate" in shown
    assert "accuracy" not in shown
    pennyweight(tmp_path, "export", "-o", "records.jsonl")
    again = ("score", "records.jsonl", "--format", "json")
    assert metrics_of(pennyweight(tmp_path, *again)) == (1.0, None)
    # a rule that is stated is applied: by an option, or by the suite
    for source in ("latest", "records.jsonl"):
        done = pennyweight(tmp_path, "score", source, "--match", "exact", "--format", "json")
        assert metrics_of(done) == (1.0, 0.0)
    suite.write_text(suite.read_text() + "match: exact\n")
    assert metrics_of(pennyweight(tmp_path, "run", "suite.yaml", "--format", "json")) == (1.0, 0.0)


def test_a_workspace_that_goes_away_is_an_error_and_resumes(tmp_path):
    scripted(tmp_path, "print(1)")
    suite = tmp_path / "suite.yaml"
    suite.write_text(suite.read_text().replace("id: only", "id: only, files: {project/x/y: z}"))
    (tmp_path / "project" / "project").write_text("a file where a folder should be")
    done = pennyweight(tmp_path, "run", "suite.yaml")
    assert done.returncode == 4
    assert "1 workspace" in done.stderr
    (row,) = records(tmp_path)
    assert row["status"] == "error"
    assert "The workspace cannot be created" in row["error"]
    assert "Traceback" not in done.stderr
    (tmp_path / "project" / "project").unlink()
    again = pennyweight(tmp_path, "run", "--resume", "--yes")
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
def test_a_second_ctrl_c_ends_the_agent_and_takes_its_workspace_away(tmp_path, sandbox):
    if sandbox == "bubblewrap":
        needs_bubblewrap()
    mark = secrets.token_hex(8)
    scripted(tmp_path, f"import time; open('begun', 'w'); time.sleep(600) # {mark}")
    suite = tmp_path / "suite.yaml"
    suite.write_text(suite.read_text().replace("sandbox: none", f"sandbox: {sandbox}"))
    suite.write_text(suite.read_text().replace("./agent.py", f"./agent.py, {mark}"))
    process = subprocess.Popen(
        [sys.executable, "-m", "pennyweight", "run", "suite.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PENNYWEIGHT_STORE": str(tmp_path / "store.db")},
        stderr=subprocess.PIPE,
        text=True,
    )
    above = tmp_path / "workspaces"
    while process.poll() is None and not in_workspaces(above):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    while process.poll() is None and alive(mark):
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert alive(mark) == []
    assert list(above.iterdir()) == []


def test_without_a_working_sandbox_nothing_is_run(tmp_path):
    scripted(tmp_path, "")
    suite = tmp_path / "suite.yaml"
    suite.write_text(suite.read_text().replace("sandbox: none, ", ""))
    tools = tmp_path / "bin"
    tools.mkdir()
    done = pennyweight(tmp_path, "run", "suite.yaml", PATH=str(tools))
    assert done.returncode == 2
    assert "bubblewrap is not installed" in done.stderr
    assert "'sandbox: none'" in done.stderr
    said = "No permissions to create namespace"
    (tools / "bwrap").write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    (tools / "bwrap").chmod(0o755)
    done = pennyweight(tmp_path, "run", "suite.yaml", PATH=str(tools))
    assert done.returncode == 2
    assert "installed but does not work here" in done.stderr
    assert said in done.stderr
    assert not list((tmp_path / "workspaces").glob("*"))


def test_a_person_sees_which_files_did_not_reach_the_checks(tmp_path):
    suite = {
        "suite": "cheating",
        "tasks": [{"id": "sum", "input": "Fix it."}],
        "verify": "cat conftest.py",
        "subjects": [{"name": "cheat", "command": "echo x > conftest.py", "sandbox": "none"}],
    }
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    assert pennyweight(tmp_path, "run", "suite.json").returncode == 0
    shown = pennyweight(tmp_path, "show", "latest", "sum").stdout
    assert "sum (cheat, T0, attempt 1): not passed" in shown
    assert "Left out of the checks: conftest.py configures a test runner." in shown


LIAR = """
import json, pathlib, sys
seen = pathlib.Path(sys.argv[1], sys.argv[2])
tries = len(seen.read_text()) if seen.exists() else 0
seen.write_text("x" * (tries + 1))
said = {"down": "API Error: 529 Overloaded", "key": "Invalid API key", "once": "API Error: 529"}
failed = sys.argv[2] in {"down", "key"} or (sys.argv[2] == "once" and not tries)
text = said[sys.argv[2]] if failed else "Done."
print(json.dumps({"type": "result", "subtype": "success", "is_error": failed, "result": text}))
"""


def test_an_agent_does_not_leave_the_sample_by_saying_that_its_api_failed(tmp_path):
    (tmp_path / "agent.py").write_text(LIAR)
    tasks = [{"id": name, "input": name} for name in ("once", "key", "down", "fine")]
    command = [sys.executable, "./agent.py", str(tmp_path), "{prompt}"]
    agent = {"name": "liar", "command": command, "sandbox": "none", "output": "claude-code"}
    suite = {"suite": "lies", "tasks": tasks, "subjects": [agent], "limits": {"concurrency": 1}}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    eager = [sys.executable, "-c", EAGER]
    assert pennyweight(tmp_path, "run", "suite.json", command=eager).returncode == 4
    rows = {row["task_id"]: row for row in records(tmp_path)}
    found = {name: (row["status"], row["error_kind"]) for name, row in rows.items()}
    assert found == {
        "once": ("ok", "reported_server"),
        "key": ("error", "reported_auth"),
        "down": ("error", "reported_server"),
        "fine": ("ok", None),
    }
    assert (rows["once"]["tries"], rows["key"]["tries"]) == (2, 1)
    assert rows["down"]["tries"] == len((tmp_path / "down").read_text()) == TRIES
    scored = pennyweight(tmp_path, "score", "latest", "--format", "json")
    metrics = json.loads(scored.stdout)["groups"][0]["metrics"]
    assert metrics["reported_failure_rate"] == 0.75
    assert metrics["attempt_error_rate"] == 0.5
    assert "reported_failure_rate" in pennyweight(tmp_path, "score", "latest").stdout
