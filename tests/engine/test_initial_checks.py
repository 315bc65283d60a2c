"""A check that cannot do its work is a mistake of the suite, told before anything is paid for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pennyweight
from agent.coding import BAD, GOOD, rows, suite


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PENNYWEIGHT_WORKSPACES", str(tmp_path / "workspaces"))
    monkeypatch.setenv("PENNYWEIGHT_STORE", str(tmp_path / "store.db"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_good_agent_passes_and_a_bad_one_does_not(folder):
    (good,) = rows(pennyweight.run(suite(folder)))
    (bad,) = rows(pennyweight.run(suite(folder, BAD)))
    assert [(row["status"], row["passed"]) for row in (good, bad)] == [("ok", True), ("ok", False)]


def pennyweight_command(folder, *words):
    return subprocess.run(
        [sys.executable, "-m", "pennyweight", *words],
        cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip


def test_the_command_says_what_broke_and_what_to_do(folder):
    tasks = [{"id": f"t{n}", "input": "Write calc.py."} for n in range(5)]
    path = suite(folder, verify="python3 -m pytestt -q test_calc.py", tasks=tasks)
    done = pennyweight_command(folder, "run", path.name)
    assert (done.returncode, done.stdout) == (2, "")
    said = done.stderr
    assert "suite.yaml, task 't0': 'verify: python3 -m pytestt -q test_calc.py' cannot" in said
    assert "No module named pytestt" in said
    assert "Install it in the environment" in said
    assert "Nothing was called." in said
    assert "Traceback" not in said
    assert (
        "no run"
        in pennyweight_command(folder, "runs").stderr.lower()
        + pennyweight_command(folder, "runs").stdout.lower()
    )


def test_a_task_that_fails_for_several_agents_is_one_task(folder):
    agents = [{"name": name, "command": [name], "sandbox": "none"} for name in ("true", "false")]
    path = suite(folder, verify="pytestt -q", subjects=agents)
    said = pennyweight_command(folder, "run", path.name).stderr
    assert "suite.yaml, task 'add': 'verify: pytestt -q' cannot" in said


def test_tiers_and_subjects_share_what_is_tried(folder):
    count = folder / "count"
    one = {"command": ["python3", "./agent.py"], "sandbox": "none"}
    path = suite(
        folder,
        verify=f"echo x >> {count}; false",
        subjects=[{"name": "a", **one}, {"name": "b", **one}],
        tiers={"T0": {}, "T1": {"prompt": "Carefully: {{ input }}"}},
    )
    pennyweight.run(path)
    assert len(count.read_text().split()) == 1 + 4


def test_a_check_that_breaks_later_is_an_error_and_keeps_the_work(folder):
    """Somebody removes the tool while the agent works."""
    tool = folder / "bin" / "checker"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\ntest -f calc.py\n")
    tool.chmod(0o755)
    path = suite(folder, verify=f"PATH={tool.parent}:$PATH checker")
    code = (folder / "agent.py").read_text()
    (folder / "agent.py").write_text(f"{code}; import os; os.rename({str(tool)!r}, 'gone')")
    run = pennyweight.run(path)
    (row,) = rows(run)
    assert (row["status"], row["passed"], row["error_kind"]) == ("error", None, "verify")
    assert "not found (exit code 127)" in row["error"]
    assert "calc.py" in json.loads(row["work"])["diff"]
    assert run.exit_code == 4
    (group,) = run.scores().to_dict()["groups"]
    assert (group["errors"], group["metrics"]["pass_rate"]) == (1, None)


@pytest.mark.parametrize("code", [3, 4, 5, 126, 127])
def test_an_agent_cannot_break_the_check_to_leave_the_sample(folder, code):
    """Its module ends the test with an exit code that stands for a broken harness."""
    solution = f"import os; os._exit({code})"
    (row,) = rows(pennyweight.run(suite(folder, solution)))
    assert (row["status"], row["passed"]) == ("ok", False)


def test_a_package_that_only_the_agent_imports_is_its_own_mistake(folder):
    (row,) = rows(pennyweight.run(suite(folder, f"import numpyy\n{GOOD}")))
    assert (row["status"], row["passed"]) == ("ok", False)


def test_the_dry_run_tries_nothing(folder):
    count = folder / "count"
    path = suite(folder, verify=f"echo x >> {count}; false")
    assert pennyweight_command(folder, "run", path.name, "--dry-run").returncode == 0
    assert not Path(count).exists()
