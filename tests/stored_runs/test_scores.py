"""Scorers run on the stored records of a run; everything else reads what they gave."""

import json
import sqlite3
from contextlib import closing

import pytest

from pennyweight.api.pages.records import detail
from pennyweight.record import AttemptKey
from pennyweight.store.store import Store
from stored_runs.test_observations import pennyweight

SUITE = """\
suite: greetings
answer: last_line
tasks:
  - {id: a, input: Hello, target: hi, mood: calm, context: {x: 1}}
  - {id: b, input: Bye, target: get lost, mood: cross}
subjects: ["python:bot:answer"]
scorers: [mine.py]
"""
BOT = "def answer(text):\n    return {'Hello': 'hi', 'Bye': 'get lost'}[text]\n"
SCORERS = """\
from pennyweight import scorer

@scorer
def words(response):
    log()
    return len(response.split())

@scorer(better="lower")
def rude(response) -> bool:
    return "lost" in response

@scorer
def tone(mood, target, context=None):
    return {"mood_of": mood, "exact": target == "hi", "x": context and context["x"]}

def log():
    with open("ran.txt", "a") as file:
        file.write("x")
"""


@pytest.fixture
def folder(tmp_path):
    tmp_path.joinpath("bot.py").write_text(BOT)
    tmp_path.joinpath("mine.py").write_text(SCORERS)
    tmp_path.joinpath("suite.yaml").write_text(SUITE)
    return tmp_path


def scores(folder, *more):
    done = pennyweight(folder, "score", "latest", "--format", "json", *more)
    return json.loads(done.stdout)["groups"][0]["metrics"]


def ran(folder):
    return len(folder.joinpath("ran.txt").read_text())


def test_scores_are_stored_with_the_run_and_read_without_the_code(folder):
    pennyweight(folder, "run", "suite.yaml")
    folder.joinpath("mine.py").unlink()
    found = scores(folder)
    assert (found["words"], found["rude"], found["exact"], found["x"]) == (1.5, 0.5, 0.5, 1.0)
    assert found["mood_of.calm"] == found["mood_of.cross"] == 0.5
    table = pennyweight(folder, "compare", "latest", "--by", "mood_of", "--metric", "words")
    assert "calm" in table.stdout


def test_one_attempt_is_shown_with_its_scores(folder):
    pennyweight(folder, "run", "suite.yaml")
    shown = pennyweight(folder, "show", "latest", "b").stdout
    assert {"words: 2.0", "rude: true", 'mood_of: "cross"'} <= set(shown.splitlines())
    with closing(Store(str(folder / "store.db"))) as store:
        run = store.find("latest")
        (row,) = (r for r in store.records(run.id) for r in r.to_dicts() if r["task_id"] == "b")
        found = detail(store, run, AttemptKey.of(row)).scores
    assert {one.name: one.value for one in found}["mood_of"] == "cross"


def test_a_policy_decides_on_scores(folder):
    pennyweight(folder, "run", "suite.yaml")
    policy = folder / "policy.yaml"
    policy.write_text('gates:\n  - {metric: words, threshold: ">= 100"}\n')
    done = pennyweight(folder, "gate", "latest", "--policy", "policy.yaml", code=1)
    assert "b: words 2.00" in done.stdout
    policy.write_text('gates:\n  - {metric: rude, threshold: ">= 10%"}\n')
    done = pennyweight(folder, "gate", "latest", "--policy", "policy.yaml", code=2)
    assert 'declare it with @scorer(better="higher")' in done.stderr


def test_scores_are_computed_once_and_again_after_a_change(folder):
    pennyweight(folder, "run", "suite.yaml")
    pennyweight(folder, "run", "--resume")
    assert ran(folder) == 2
    folder.joinpath("mine.py").write_text(SCORERS.replace("len(", "10 * len("))
    assert scores(folder)["words"] == 1.5, "scoring reads what is stored"
    assert scores(folder, "--checks", "suite.yaml")["words"] == 15, "unless a person names code"
    assert scores(folder, "--scorers", "mine.py")["words"] == 15
    pennyweight(folder, "run", "--resume")
    assert scores(folder)["words"] == 15


def test_a_corrected_target_is_scored_again(folder):
    pennyweight(folder, "run", "suite.yaml")
    folder.joinpath("suite.yaml").write_text(SUITE.replace("target: hi", "target: hey"))
    pennyweight(folder, "run", "--resume", "--yes")
    assert scores(folder)["exact"] == 0
    folder.joinpath("suite.yaml").write_text(SUITE.replace("scorers: [mine.py]\n", ""))
    pennyweight(folder, "run", "--resume", "--yes")
    assert "words" not in scores(folder)


def test_an_error_is_told_once_and_counted(folder):
    broken = SCORERS.replace("    return len(", "    raise ValueError('no idea')\n    return len(")
    folder.joinpath("mine.py").write_text(broken)
    done = pennyweight(folder, "run", "suite.yaml")
    assert done.stderr.count("The scorer words failed on 2 records") == 1
    assert "ValueError: no idea" in done.stderr
    assert scores(folder)["words"] is None


def test_an_unknown_input_is_told_before_the_first_call(folder):
    folder.joinpath("mine.py").write_text(SCORERS.replace("(mood, ", "(modo, "))
    done = pennyweight(folder, "run", "suite.yaml", code=2)
    assert "suite.yaml, line 7: scorers: tone: Its input 'modo' is not known" in done.stderr
    assert "Did you mean 'mood'" in done.stderr


def test_a_store_cannot_redefine_a_metric(folder):
    pennyweight(folder, "run", "suite.yaml")
    with sqlite3.connect(folder / "store.db") as store:
        (text,) = store.execute("SELECT settings FROM pennyweight_run").fetchone()
        settings = json.loads(text)
        settings["scores"] |= {"accuracy": settings["scores"]["words"]}
        settings["scores"] |= {"a b": settings["scores"]["words"]}
        store.execute("UPDATE pennyweight_run SET settings = ?", [json.dumps(settings)])
    found = scores(folder)
    assert found["accuracy"] == 1
    assert "a b" not in found


def test_a_suite_in_python_takes_functions_as_scorers(folder, monkeypatch):
    import pennyweight as pw

    monkeypatch.chdir(folder)

    @pw.scorer
    def words(response):
        return len(response.split())

    def length(response):
        return len(response)

    suite = pw.Suite(["one", "two"], [lambda prompt: f"{prompt} {prompt}"], scorers=[words, length])
    done = pw.run(suite)
    found = pw.score(done)
    assert (found["words"].value, found["length"].value) == (2.0, 7.0)
