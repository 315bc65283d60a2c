"""A suite whose subject and judges are functions in a file beside it, which count their calls."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from pennyweight.store.store import Store

MODULE = '''
import json, os, re, time

USAGE = {"prompt_tokens": 100, "completion_tokens": 50}
HERE = os.path.dirname(__file__)


def answer(text):
    return {"text": "Response to " + text, "usage": {"prompt_tokens": 10, "completion_tokens": 5}}


def note(name):
    with open(os.path.join(HERE, name + ".calls"), "a") as file:
        file.write("x")


def judgment(a, b, c, sure=None, **claims):
    items = {"a": {"evidence": "seen", "score": a}, "b": b, "c": {"score": c}}
    return json.dumps({"items": items, "confidence": sure, **claims})


def fixed(name, *marks, **claims):
    def judge(request):
        note(name)
        time.sleep(float(os.environ.get("SLOW", "0")))
        return {"text": "Well:\\n" + judgment(*marks, **claims), "usage": USAGE}
    return judge


good = fixed("good", 1, 0.75, 0, 0.9, weighted_score=0.7, passed=True)
fair = fixed("fair", 0.5, 0.75, 0, 0.5, weighted_score=0.9, passed=True)
poor = fixed("poor", 0, 0, 0, 0.1)
first = fixed("first", 0.8, 0.8, 0.8, 0.9)
second = fixed("second", 0.85, 0.85, 0.85, 0.7)
third = fixed("third", 0.75, 0.75, 0.75, 0.8)


def broken(text):
    note("broken")
    return {"text": "I would rather not.", "usage": USAGE}


def learns(request):
    note("learns")
    if len(request.messages) < 6 and "missing: b" not in request.text:
        return {"text": '{"items": {"a": 1, "c": 1}}', "usage": USAGE}
    return {"text": judgment(1, 1, 1), "usage": USAGE}


def obeys(request):
    """Follow every order that does not stand inside the fence."""
    token = re.search(r"<data-([0-9a-f]+)>", request.messages[0].content)[1]
    data = re.compile("<data-%s>.*?</data-%s>" % (token, token), re.DOTALL)
    heard = "".join(data.sub("", m.content) for m in request.messages)
    score = 1 if "give full marks" in heard else 0
    return {"text": judgment(score, score, score), "usage": USAGE}
'''

RUBRIC = """\
pass_mark: 0.6
categories:
  a: {weight: 2, items: [It is right.]}
  b: {weight: 2, items: [It is whole.]}
  c: {weight: 1, items: [It is short.]}
"""


def judged_suite(folder, judge, tasks=2, **more):
    """Write a suite of questions judged by functions; `judge` is YAML after `judge:`."""
    Path(folder, "m.py").write_text(MODULE)
    Path(folder, "rubric.yaml").write_text(RUBRIC)
    names = ("good", "fair", "poor", "broken", "learns", "obeys", "first", "second", "third")
    lines = ["suite: judged", "tasks:"]
    lines += [f'  - {{id: t{i}, input: "question {i}"}}' for i in range(tasks)]
    lines += ['subjects: [{name: s, model: "python:m:answer"}]', f"judge: {judge}"]
    lines += ["prices:", "  s: {input: 1.0, output: 2.0}"]
    lines += [f"  {n}: {{input: 1.0, output: 2.0}}" for n in names if f"name: {n}" in judge]
    settings = {"limits": "{concurrency: 4}", **more}
    lines += [f"{key}: {value}" for key, value in settings.items()]
    path = Path(folder, "suite.yaml")
    path.write_text("\n".join(lines) + "\n")
    return path


def judge(*names, **more):
    """Write who judges, as YAML in one line."""
    models = ", ".join(f'{{name: {n}, model: "python:m:{n}"}}' for n in names)
    rest = "".join(f", {key}: {value}" for key, value in more.items())
    return f"{{models: [{models}], rubric: rubric.yaml{rest}}}"


def pennyweight(folder, *arguments, **environment):
    variables = {**os.environ, "PENNYWEIGHT_STORE": str(Path(folder, "store.db")), "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, "-m", "pennyweight", *map(str, arguments)],
        cwd=folder,
        env={**variables, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def metrics(done):
    assert done.stdout, done.stderr
    (group,) = json.loads(done.stdout)["groups"]
    return group["metrics"]


def asked(folder, name):
    """How often a judge was called."""
    path = Path(folder, f"{name}.calls")
    return len(path.read_text()) if path.exists() else 0


def judgments(folder):
    at = Store(str(Path(folder, "store.db")))
    return at.judgments(at.find("latest").id).to_dicts()


def ledger(folder):
    """The calls of the latest run, by kind."""
    with sqlite3.connect(Path(folder, "store.db")) as connection:
        return dict(connection.execute("SELECT kind, count(*) FROM pennyweight_call GROUP BY kind"))
