"""Code of a suite's writer runs once for each attempt, and again after it changes."""

import os

import pytest

from stored_runs.test_observations import pennyweight

SUITE = """\
suite: settled
subjects: ["python:bot:answer"]
tasks: [{id: a, input: q, checks: [{python: "rules:ok"}]}]
"""
RULES = """\
def ok(record):
    with open("ran.txt", "a") as log:
        log.write("x")
    %s
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bot.py").write_text("def answer(text):\n    return 'yes'\n")
    (tmp_path / "suite.yaml").write_text(SUITE)
    return tmp_path


def rules(folder, body, age=0):
    path = folder / "rules.py"
    path.write_text(RULES % body)
    os.utime(path, (path.stat().st_mtime - age,) * 2)


def ran(folder):
    return len((folder / "ran.txt").read_text())


def test_a_check_that_breaks_runs_once_in_a_run(folder):
    rules(folder, "raise RuntimeError('no')")
    done = pennyweight(folder, "run", "suite.yaml")
    assert "1 check failed to run" in done.stderr
    assert ran(folder) == 1
    pennyweight(folder, "run", "--resume")
    assert ran(folder) == 2, "what broke is tried again when a run is gone on with"


def test_what_was_said_stands_until_the_code_is_written_again(folder):
    rules(folder, "return False, 'first'", age=60)
    pennyweight(folder, "run", "suite.yaml")
    pennyweight(folder, "run", "--resume")
    assert ran(folder) == 1
    rules(folder, "return True, 'second'")
    os.utime(folder / "rules.py", None)
    pennyweight(folder, "run", "--resume")
    assert ran(folder) == 2
    assert "second" in pennyweight(folder, "show", "latest", "a").stdout
