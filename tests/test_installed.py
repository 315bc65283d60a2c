"""Metrics, measures and checks of an installed package are everywhere."""

import json
import os
import subprocess
import sys

import pytest

PACKAGE = """\
import polars as pl

from pennyweight import CheckResult, check, measure, metric


@measure(unit="characters")
def their_chars(response: pl.Expr) -> pl.Expr:
    \"\"\"How long the reply is.\"\"\"
    return response.str.len_chars()


@metric(formula="(1/N) Σ their_chars_i", unit="characters", range=(0, None), better="lower")
def their_chars_mean(their_chars: pl.Expr) -> pl.Expr:
    \"\"\"Mean length of the replies.\"\"\"
    return their_chars.mean()


@check(of_text=True)
def shouting(attempt) -> CheckResult:
    \"\"\"The reply is in capital letters.

    >>> shouting("HELLO").holds
    True
    \"\"\"
    return CheckResult(attempt.said.isupper(), "Capital letters were counted.")
"""
SUITE = """\
suite: s
tasks: [{id: a, input: q, checks: [shouting]}]
subjects: ["python:bot:answer"]
"""
POLICY = 'gates:\n  - {metric: their_chars_mean, threshold: "<= 2"}\n'


@pytest.fixture
def folder(tmp_path):
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Name: theirs\nVersion: 1.0\n")
    points = "[pennyweight.metrics]\na = theirs\nb = not_there\n[pennyweight.checks]\na = theirs\n"
    info.joinpath("entry_points.txt").write_text(points)
    tmp_path.joinpath("theirs.py").write_text(PACKAGE)
    tmp_path.joinpath("bot.py").write_text("def answer(text):\n    return 'YES'\n")
    tmp_path.joinpath("suite.yaml").write_text(SUITE)
    tmp_path.joinpath("policy.yaml").write_text(POLICY)
    return tmp_path


def test_they_are_in_tables_gates_and_reports(folder):
    def pennyweight(*arguments):
        env = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "80"}
        command = [sys.executable, "-m", "pennyweight", *arguments]
        return subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, check=False
        )

    done = pennyweight("run", "suite.yaml")
    assert done.returncode == 0, done.stderr
    assert "The entry point b of pennyweight.metrics is left out (ModuleNotFound" in done.stderr
    assert "their_chars_mean" in done.stdout
    found = json.loads(pennyweight("score", "latest", "--format", "json").stdout)
    metrics = found["groups"][0]["metrics"]
    assert (metrics["their_chars_mean"], metrics["pass_rate"]) == (3.0, 1.0)
    gate = pennyweight("gate", "latest", "--policy", "policy.yaml")
    assert (gate.returncode, "their_chars_mean" in gate.stdout) == (1, True)
    pennyweight("report", "latest", "-o", "report.html")
    assert "Mean length of the replies" in folder.joinpath("report.html").read_text("utf-8")
