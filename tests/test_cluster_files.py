"""The files for Slurm and Kubernetes in the docs: what they run makes a run, with two workers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from engine.command import ended, kept, run, start
from engine.serving import calls, server, suite

DOCS = Path(__file__).parent.parent / "docs"
TASKS = 40


def block(page, language, name):
    """The block of a page that follows the name of its file."""
    text = (DOCS / page).read_text("utf-8")
    found = re.search(rf"`{re.escape(name)}`[^`]*```{language}\n(.*?)```", text, re.DOTALL)
    assert found, f"{page} has no {name}"
    return found[1]


def put_up(address, path):
    """Create the run as the pages do; return its id."""
    code = [sys.executable, "-m", "pennyweight", "run", str(path), "--on", "workers"]
    environment = {**os.environ, "PENNYWEIGHT_STORE": address}
    return subprocess.run(code, env=environment, capture_output=True, check=True).stdout.decode()


def whole(address, served):
    rows, spent = kept(address)
    assert {row["status"] for row in rows} == {"ok"}
    assert len(rows) == spent["calls"] == calls(served) == TASKS


def test_the_scripts_of_slurm(postgresql, tmp_path):
    address, evals = postgresql.database(), tmp_path / "evals"
    activate = evals / ".venv/bin/activate"
    activate.parent.mkdir(parents=True)
    activate.write_text(f'export PATH="{Path(sys.executable).parent}:$PATH"\n')
    with server(0.05) as served:
        found = put_up(address, suite(evals, served, tasks=TASKS, limits="{concurrency: 4}"))
        started = []
        for name, array in (("workers", "1"), ("workers", "2"), ("finish", "")):
            script = tmp_path / f"{name}.sbatch"
            script.write_text(block("slurm.md", "bash", script.name))
            assert script.read_text().startswith("#!/bin/bash\n#SBATCH --job-name=pennyweight")
            environment = {
                **os.environ, "HOME": str(tmp_path), "PENNYWEIGHT_STORE": address,
                "RUN": found.strip(), "SLURM_ARRAY_TASK_ID": array,
            }  # fmt: skip
            if name == "finish":  # --dependency=afterany
                assert [process.wait(120) for process in started] == [0, 0]
            started.append(
                subprocess.Popen(["bash", script], env=environment, stdout=subprocess.PIPE)
            )
        out, _ = started[-1].communicate(timeout=120)
        for process in started:
            process.stdout.close()
        assert started[-1].returncode == 0
        assert b"accuracy" in out
        whole(address, served)


def test_the_job_of_kubernetes(postgresql, tmp_path):
    address = postgresql.database()
    job = yaml.safe_load(block("kubernetes.md", "yaml", "workers.yaml"))
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert job["spec"].keys() <= {
        "parallelism", "completions", "backoffLimit", "podFailurePolicy", "template",
    }  # fmt: skip
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"  # podFailurePolicy requires it
    (container,) = pod["containers"]
    assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    (rule,) = job["spec"]["podFailurePolicy"]["rules"]
    assert rule == {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2]}}
    with server(0.05) as served:
        path = suite(tmp_path, served, tasks=TASKS, limits="{concurrency: 4}")
        values = {"$(RUN)": put_up(address, path).strip(), "/suite/suite.yaml": str(path)}
        arguments = [values.get(word, word) for word in container["args"]]
        assert [a for a in arguments if a in values.values()] == list(values.values())
        said = [ended(one) for one in [start(address, *arguments) for _ in range(2)]]
        assert [code for code, _ in said] == [0, 0], said
        whole(address, served)
        code, text = run(address, *arguments)  # a pod that comes late finds nothing to do
        assert code == 0, text
        assert run(address, "work", values["$(RUN)"], "--suite", tmp_path / "none.yaml")[0] == 2
