"""`pennyweight run --watch`: which files start the next run, and what that run makes."""

import os
import subprocess
import sys

import pytest

from pennyweight.cli.watch import read_files, resumed

SUITE = """\
suite: watched
subjects: ["python:bot:answer"]
tasks: tasks.jsonl
"""
BOT = """\
import helper

def answer(text):
    with open("calls.txt", "a") as log:
        log.write("x")
    return "yes"
"""
CHECK = '{"id": "a", "input": "q", "checks": [{"python": "rules:ok"}]}\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "tasks.jsonl").write_text(CHECK)
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "rules.py").write_text("def ok(record): return False\n")
    for name in ("w.log", "runs.db", "calls.txt", "unused.py"):
        (tmp_path / name).write_text("")
    return tmp_path


def names(files):
    return {one.name for one in files}


def test_only_what_the_suite_reads_is_watched(folder):
    (folder / "office").mkdir()
    (folder / "office" / "plan.txt").write_text("a")
    (folder / "policy.yaml").write_text("thresholds: {pass_rate: 0.5}")
    with (folder / "suite.yaml").open("a") as file:
        file.write("workspace: office\n")
    words = ["run", "suite.yaml", "--store", "runs.json", "--until-decided"]
    sources, others = read_files(folder / "suite.yaml", [*words, str(folder / "policy.yaml")])
    own = {"suite.yaml", "tasks.jsonl", "bot.py", "helper.py", "rules.py", "policy.yaml"}
    assert names(sources) == own
    assert names(others) == {"plan.txt"}


def test_the_second_run_goes_on_with_the_first():
    words = ["run", "s.yaml", "--yes"]
    assert resumed(words, "s.yaml") == ["run", "s.yaml", "--yes", "--resume"]


def test_what_a_run_writes_starts_no_other_and_a_changed_check_calls_nobody(folder):
    with (folder / "w.log").open("w") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pennyweight",
                "run",
                "suite.yaml",
                "--watch",
                "--store",
                "runs.db",
            ],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            stdout=log,
            stderr=subprocess.PIPE,
            text=True,
        )
    lines = []
    try:
        waits = (n for n, line in enumerate(lined(process, lines)) if line.startswith("Waiting"))
        next(waits)
        (folder / "w.log").write_text("more")
        (folder / "rules.py").write_text("def ok(record): return True, 'better'\n")
        next(waits)
        (folder / "rules.py").write_text("def ok(record): return False, 'worse again'\n")
        next(waits)
    finally:
        process.terminate()
        process.wait(10)
        process.stderr.close()
    assert (folder / "calls.txt").read_text() == "x", "one attempt, one call"
    assert sum(line.startswith("Run ") for line in lines) == 3, "one run for each change"
    shown = subprocess.run(
        [sys.executable, "-m", "pennyweight", "show", "latest", "a", "--store", "runs.db"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "worse again" in shown.stdout


def lined(process, kept):
    for line in process.stderr:
        kept.append(line)
        yield line
