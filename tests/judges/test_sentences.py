"""Sentences as behaviours: put to the suite's judge once, kept, and counted like every check."""

import json
from contextlib import closing

import pytest

from pennyweight.store.store import Store
from pennyweight.store.verdicts import verdicts_of
from pennyweight.stored_runs.source import RunSource
from stored_runs.test_observations import pennyweight

AGENT = """\
import json, re

def answer(text):
    return "Hello! " + text

def judge(request):
    with open("asked.txt", "a") as log:
        log.write("x")
    rules = request.messages[0].content
    items = re.findall(r'- ("[^"]+") \\(0 to 1 points\\): (.*)', rules)
    scores = {"rude": "0", "unclear": "N/A", "half": "0.5"}
    marks = {}
    for name, text in items:
        score = next((s for word, s in scores.items() if word in text), "1")
        marks[json.loads(name)] = {"evidence": "It begins with Hello.", "score": score}
    return json.dumps({"items": marks, "confidence": "0.9"})
"""
SUITE = """\
suite: sentences
subjects: [{name: me, model: "python:agent:answer"}]
judge:
  models: "python:agent:judge"
  rubric: {categories: {whole: {items: [It is good.]}}}
tasks:
  - id: KIND
    input: a
    expected_behaviors: [It greets., {contains: hello}]
    must_not: [It is rude.]
  - {id: LOW, input: b, expected_behaviors: [It is rude., It greets.], pass_score: 0.5}
  - {id: BAD, input: c, must_not: [{name: greets, judge: It greets.}]}
  - {id: UNCLEAR, input: d, expected_behaviors: [It is unclear.], checks: [It is half done.]}
  - {id: SCORE, input: e, checks: [{judge_score: 0.9}]}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sentences")
    (folder / "agent.py").write_text(AGENT)
    (folder / "suite.yaml").write_text(SUITE)
    return folder, pennyweight(folder, "run", "suite.yaml")


def rows(folder):
    store = Store(str(folder / "store.db"))
    source = RunSource(store.find("latest"), store)
    return {row["task_id"]: row for frame in source.frames() for row in frame.to_dicts()}


def test_a_judge_decides_sentences(made):
    folder, _ = made
    found = rows(folder)
    assert {task: row["passed"] for task, row in found.items()} == {
        "KIND": True, "LOW": True, "BAD": False, "UNCLEAR": None, "SCORE": True,
    }  # fmt: skip
    assert found["BAD"]["violated"] == ["greets"]
    assert found["UNCLEAR"]["undecided"] == ["It is unclear.", "It is half done."]
    said = json.loads(found["KIND"]["checks"])[0]
    assert said["why"] == "python:agent:judge: yes"
    assert said["evidence"][0]["text"] == "It begins with Hello."


def test_what_was_asked_is_not_asked_again(made):
    folder, _ = made
    before, asked = rows(folder), (folder / "asked.txt").read_text()
    pennyweight(folder, "run", "--resume")
    assert rows(folder) == before
    assert (folder / "asked.txt").read_text() == asked


def test_the_ledger_has_every_call_and_the_rubric_its_own_judgments(made):
    folder, _ = made
    store = Store(str(folder / "store.db"))
    run = store.find("latest").id
    judges = store.judgments(run)["judge"].to_list()
    assert judges.count("python:agent:judge") == 5
    assert judges.count("python:agent:judge on behaviours") == 4
    assert store.spent(run)["calls"] == 5 + 9
    assert {g.who for g in verdicts_of(store, run)} == {"python:agent:judge"}


PRICED = """\
suite: priced
subjects: [{name: me, model: "python:agent:answer"}]
judge: {models: [{name: critic, model: "python:agent:paid", max_tokens: 10}]}
prices: {critic: {input: 0, output: 1000}, me: {input: 0, output: 0}}
tasks:
TASKS
limits: {concurrency: 1, usd: 0.035}
"""
PAID = """
def paid(request):
    return {"text": judge(request), "usage": {"prompt_tokens": 100, "completion_tokens": 10}}
"""


def test_a_judge_of_sentences_costs_what_the_suite_says_of_its_name(tmp_path):
    tasks = "\n".join(f"  - {{input: t{i}, checks: [It greets.]}}" for i in range(6))
    (tmp_path / "agent.py").write_text(AGENT + PAID)
    (tmp_path / "suite.yaml").write_text(PRICED.replace("TASKS", tasks))
    done = pennyweight(tmp_path, "run", "suite.yaml", code=4)
    assert "Cost limit reached" in done.stderr
    assert (tmp_path / "asked.txt").read_text() == "xxx"
    with closing(Store(str(tmp_path / "store.db"))) as store:
        run = store.find("latest").id
        assert store.judgments(run)["cost_usd"].to_list() == [pytest.approx(0.01)] * 3
        assert store.spent(run)["usd"] == pytest.approx(0.03)


def test_a_reply_that_could_not_be_read_is_said_to_be_unreadable(tmp_path):
    (tmp_path / "agent.py").write_text(
        "def answer(text):\n    return 'Hello!'\n\ndef judge(request):\n    return 'Well.'\n"
    )
    (tmp_path / "suite.yaml").write_text(
        "suite: s\nsubjects: ['python:agent:answer']\njudge: 'python:agent:judge'\n"
        "tasks: [{id: KIND, input: a, expected_behaviors: [It greets.]}]\n"
    )
    pennyweight(tmp_path, "run", "suite.yaml", code=4)
    row = rows(tmp_path)["KIND"]
    (check,) = json.loads(row["checks"])
    assert "reply could not be read" in check["why"]
    assert row["undecided"] == ["It greets."]
    agent = AGENT.replace('return "Hello! " + text', "return 'Hello!'")
    (tmp_path / "agent.py").write_text(agent)
    pennyweight(tmp_path, "run", "--resume")
    assert rows(tmp_path)["KIND"]["observed_behaviors"] == ["It greets."]
