"""What judges are asked after a run: a rubric only where it is wanted, sentences always."""

import json
import subprocess
import sys

import pytest

from pennyweight.engine.budget import Budget
from pennyweight.store.store import Store
from pennyweight.suite.loader import load_suite
from stored_runs.test_observations import here, pennyweight

AGENT = """\
import json, re

def answer(text):
    return "Hello! " + text

def judge(request):
    items = re.findall(r'- ("[^"]+") \\(0 to ', request.messages[0].content)
    with open("asked.txt", "a") as log:
        log.write(str(len(items)) + " ")
    marks = {json.loads(name): {"evidence": "seen", "score": "1"} for name in items}
    return {"text": json.dumps({"items": marks, "confidence": "0.9"}),
            "usage": {"prompt_tokens": 100, "completion_tokens": 10}}

def mute(request):
    if "whole" in request.messages[0].content:
        return "I would rather not."
    return judge(request)
"""
SUITE = """\
suite: phases
subjects: [{name: me, model: "python:agent:answer"}]
prices: {"python:agent:judge": {input: 1000, output: 1000}, me: {input: 0, output: 0}}
judge: {models: "python:agent:JUDGE"RUBRIC}
runs: 2
tasks:
  - {id: KIND, input: a, expected_behaviors: [It greets., {contains: hello}], checks: [It is brief]}
  - {id: PLAIN, input: b, checks: [{contains: hello}]}
"""


@pytest.fixture
def write(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)

    def written(rubric="", judge="judge", more=""):
        text = SUITE.replace("RUBRIC", rubric).replace("JUDGE", judge) + more
        if judge != "judge":
            text = text.replace('{"python:agent:judge"', f'{{"python:agent:{judge}"')
        (tmp_path / "suite.yaml").write_text(text)
        return tmp_path

    return written


def asked(folder):
    return sorted(map(int, (folder / "asked.txt").read_text().split()))


def test_a_judge_for_sentences_is_asked_about_these_alone(write):
    folder = write()
    plan = json.loads(
        pennyweight(folder, "run", "suite.yaml", "--dry-run", "--format", "json").stdout
    )
    assert plan["judging"]["judgments"] == 0
    assert plan["judging"]["sentences"]["judgments"] == 2
    assert plan["judging"]["sentences"]["behaviors"] == 2
    told = pennyweight(folder, "run", "suite.yaml", "--dry-run").stdout
    assert "2 judgments by python:agent:judge: 2 sentences of scenarios" in told
    assert "rubric" not in told
    done = pennyweight(folder, "run", "suite.yaml", "--format", "json")
    assert asked(folder) == [2, 2], "two attempts with two sentences each"
    found = json.loads(done.stdout)["groups"][0]["metrics"]
    assert found["judge_alpha"] is None
    assert found["judge_cost_usd_total"] == pytest.approx(0.22), "what they cost is counted"
    assert found["behavior_coverage"] == 1.0


@pytest.mark.parametrize(
    ("rubric", "items"),
    [
        (", rubric: default", [2, 2, 10, 10, 10, 10]),
        (", rubric: {categories: {whole: {items: [It is good.]}}}", [1, 1, 1, 1, 2, 2]),
    ],
)
def test_a_rubric_is_judged_by_where_it_is_named(write, rubric, items):
    folder = write(rubric)
    pennyweight(folder, "run", "suite.yaml")
    assert asked(folder) == items


@pytest.mark.parametrize(
    ("tasks", "scores"),
    [
        ("{input: a, target: b}", True),
        ("{input: a, checks: [{judge_score: 0.5}, It greets.]}", True),
        ("{input: a, checks: [It greets.]}", False),
    ],
)
def test_without_a_rubric_it_depends_on_the_tasks(tmp_path, tasks, scores):
    path = tmp_path / "s.yaml"
    path.write_text(f"suite: s\nsubjects: [a/b]\njudge: c/d\ntasks: [{tasks}]\n")
    assert load_suite(path).judge.scores is scores


def test_the_sentences_are_asked_also_where_no_score_can_be_read(write):
    folder = write(", rubric: {categories: {whole: {items: [It is good.]}}}", "mute")
    done = pennyweight(folder, "run", "suite.yaml", code=4)
    assert "could not be read" in done.stderr
    assert asked(folder) == [2, 2]
    assert "It greets." in here(folder, "show", "latest", "KIND").out


def test_such_a_run_can_be_judged_by_the_default_rubric_later(write):
    folder = write()
    pennyweight(folder, "run", "suite.yaml")
    pennyweight(folder, "judge", "latest")
    assert asked(folder) == [2, 2, 10, 10, 10, 10]


def test_the_page_asks_judges_as_the_command_does(write):
    folder = write(", rubric: {categories: {whole: {items: [It is good.]}}}")
    text = (folder / "suite.yaml").read_text()
    order = {"store": "store.db", "path": "suite.yaml", "text": text, "options": {}}
    done = subprocess.run(
        [sys.executable, "-m", "pennyweight.web.worker"],
        cwd=folder, input=json.dumps(order), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert asked(folder) == [1, 1, 1, 1, 2, 2]
    store = Store(str(folder / "store.db"))
    assert store.find(done.stdout.strip()).settings["judge"]["rubric"]["name"] == "inline"
    store.close()
    assert "✓ expected: It greets." in here(folder, "show", "latest", "KIND").out


def test_the_page_is_told_the_run_whatever_the_suites_code_prints(write):
    folder = write()
    path = folder / "agent.py"
    path.write_text(f"print('loaded')\n{path.read_text()}\nprint('x' * 1_000_000, flush=True)\n")
    text = (folder / "suite.yaml").read_text()
    order = {"store": "store.db", "path": "suite.yaml", "text": text, "options": {}}
    done = subprocess.run(
        [sys.executable, "-m", "pennyweight.web.worker"],
        cwd=folder, input=json.dumps(order), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    store = Store(str(folder / "store.db"))
    assert done.stdout == f"{store.find('latest').id}\n"
    store.close()


def test_a_judge_that_left_the_suite_no_longer_counts(write):
    folder = write(rubric=", rubric: default")
    pennyweight(folder, "run", "suite.yaml")
    store = Store(str(folder / "store.db"))
    run = store.find("latest")
    judge = run.settings["judge"]
    path = folder / "suite.yaml"
    lines = [line for line in path.read_text().splitlines() if "judge" not in line]
    lines = [line for line in lines if "It greets" not in line]
    path.write_text("\n".join(lines) + "\n")
    pennyweight(folder, "run", "--resume", "--yes")
    assert "judge" not in store.find(run.id).settings
    store.set_run(run.id, settings={**run.settings, "judge": judge})  # as 'pennyweight judge' does
    pennyweight(folder, "run", "--resume", "--yes")
    assert store.find(run.id).settings["judge"] == judge
    store.close()


WHOLE = ", rubric: {categories: {whole: {items: [It is good.]}}}"


def judges_cost(done):
    return json.loads(done.stdout)["groups"][0]["metrics"]["judge_cost_usd_total"]


def test_a_recorded_judge_costs_what_it_did(write):
    folder = write(WHOLE)
    first = pennyweight(folder, "run", "suite.yaml", "--record", "tape.jsonl", "--format", "json")
    lines = (folder / "tape.jsonl").read_text().splitlines(keepends=True)
    of_judge = [line for line in lines if json.loads(line)["model"] == "python:agent:judge"]
    (folder / "judge.jsonl").write_text("".join(of_judge))
    recorded = 'models: replay:judge.jsonl, more: ["python:agent:judge"]'
    text = (folder / "suite.yaml").read_text()
    (folder / "suite.yaml").write_text(text.replace('models: "python:agent:judge"', recorded))
    before = asked(folder)
    again = pennyweight(folder, "run", "suite.yaml", "--format", "json")
    assert asked(folder) == before
    assert judges_cost(again) == judges_cost(first) == pytest.approx(6 * 0.11)


def test_attempts_scores_and_sentences_have_one_clock(write, monkeypatch):
    folder = write(WHOLE, more="limits: {seconds: 600}\n")
    monkeypatch.chdir(folder)
    make, budgets = Budget.of.__func__, []

    def kept(*given):
        budgets.append(make(*given))
        return budgets[-1]

    monkeypatch.setattr(Budget, "of", classmethod(kept))
    assert here(folder, "run", "suite.yaml").code == 0
    assert len(budgets) == 3
    assert len({budget.started for budget in budgets}) == 1
