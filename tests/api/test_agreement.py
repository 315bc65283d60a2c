"""One policy on one run has one verdict: by command, Python, report, page and pytest."""

import json
import re
from pathlib import Path

import pytest

from cli.command import pennyweight

MODEL = """\
import hashlib

def answer(prompt):
    drawn = int(hashlib.md5(prompt.encode()).hexdigest(), 16) % 100
    return "FINAL_ANSWER: 4" if drawn < 95 else "FINAL_ANSWER: 5"
"""
SUITE = {
    "suite": "sums",
    "tasks": [{"id": f"t{i}", "input": f"2 + 2, variant {i}?", "target": "4"} for i in range(200)],
    "subjects": ["python:answers:answer"],
    "seed": 1,
}
POLICIES = {
    "early": "on: confident\nthresholds: {accuracy: {threshold: '≥ 85%', indifference: 10%}}\n",
    "value": "thresholds: {accuracy: 50%}\n",
    "strict": "thresholds: {accuracy: 99.9%}\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENNYWEIGHT_STORE", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "answers.py").write_text(MODEL)
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    for name, text in POLICIES.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


WORDS = {"Passed": "pass", "Failed": "fail", "Inconclusive": "inconclusive"}


def by_command(policy, run="latest", *options):
    done = pennyweight("gate", run, "--policy", f"{policy}.yaml", "--format", "json", *options)
    return done.json["verdict"]


def by_report(policy, run="latest", *options):
    done = pennyweight("report", run, "-o", "report.md", "--policy", f"{policy}.yaml", *options)
    assert done.code == 0, done.err
    return WORDS[re.search("|".join(WORDS), Path("report.md").read_text())[0]]


def test_an_early_stopped_run(folder):
    done = pennyweight("run", "suite.json", "--until-decided", "early.yaml")
    assert done.code == 0, done.err
    words = [by_command(policy) for policy in POLICIES]
    assert words == ["pass", "inconclusive", "fail"]
    assert [by_report(policy) for policy in POLICIES] == words
