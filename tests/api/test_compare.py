"""A hundred planted edits of an exam: never a verdict across one, never an alarm without one.

Each case runs a suite, edits it, runs it again and compares the two runs, gates the new one against
the old one, and exports both and compares the files. Models are functions; nothing is called.
"""

import copy
import random
from contextlib import closing

import pytest
from sqlalchemy import update

import pennyweight
from pennyweight.errors import UsageError
from pennyweight.store.store import Store
from pennyweight.store.tables import RECORD
from pennyweight.stored_runs.source import RunSource

TASKS = 12
AGENTS = """
import random

def agent(text):
    return "FINAL_ANSWER: " + text.split()[-1].strip("?")

def other(text):
    return "FINAL_ANSWER: none"

def kind(text):
    return '{"items": {"right": {"evidence": "", "score": 1}}, "confidence": 1}'

def strict(text):
    return '{"items": {"right": {"evidence": "", "score": 0}}, "confidence": 1}'
"""
RUBRIC = {"categories": {"right": {"items": ["It answers the question."]}}}


def suite():
    """A suite with a bit of everything; each task can be edited by itself."""
    tasks = [
        {
            "id": f"q{i}",
            "input": f"Which number follows {i} and is {i}?",
            "target": f"{i}",
            "context": {"page": i, "of": "a book"},
            "code": f"print({i})",
            "note": "easy",
            "checks": [{"name": "short", "length": {"max": 300}}, {"not_contains": f"no {i}"}],
        }
        for i in range(TASKS)
    ]
    return {
        "suite": "planted",
        "tasks": tasks,
        "prompt": "{{ code }}. {{ input }}",
        "subjects": [{"name": "m", "model": "python:planted_agents:agent"}],
        "judge": {"models": ["python:planted_agents:kind"], "rubric": copy.deepcopy(RUBRIC)},
        "settings": {"tools": [{"name": "look_up", "parameters": {"type": "object"}}]},
    }


def conversation(suite, some):
    for task in suite["tasks"]:
        task["turns"] = [{"say": "Are you sure?"}]


def choices(suite, some):
    for task in suite["tasks"]:
        number = int(task["target"])
        task["choices"] = [f"{number}", f"{number + 1}", "none"]
        task["target"] = "A"


def agent(suite, some):
    suite |= {"subjects": [{"name": "m", "command": "echo x > done", "sandbox": "none"}]}
    suite |= {"verify": "sh more.sh && test -f done"}
    del suite["tasks"][4:], suite["judge"], suite["settings"]
    for task in suite["tasks"]:
        task["verify_files"] = {"more.sh": "exit 0"}
        del task["checks"]


# Each edit has its name, whether it changes tasks or the grading, what the suite has first, and
# what is done to it; `some` are the tasks that are edited.
EDITS = {
    "target": ("tasks", None, lambda s, some: [t.update(target="7777") for t in some]),
    "input": ("tasks", None, lambda s, some: [t.update(input="What is 1?") for t in some]),
    "choices": ("tasks", choices, lambda s, some: [t["choices"].reverse() for t in some]),
    "context": ("tasks", None, lambda s, some: [t["context"].update(page=99) for t in some]),
    "column in the prompt": ("tasks", None, lambda s, some: [t.update(code="1") for t in some]),
    "one check": (
        "tasks", None, lambda s, some: [t["checks"][0]["length"].update(max=1) for t in some],
    ),
    "a check less": ("tasks", None, lambda s, some: [t["checks"].pop() for t in some]),
    "a behaviour": (
        "tasks", None,
        lambda s, some: [t.update(expected_behaviors=[{"contains": "1"}]) for t in some],
    ),
    "turn": (
        "tasks", conversation, lambda s, some: [t["turns"][0].update(say="Why?") for t in some],
    ),
    "tool list": ("all", None, lambda s, some: s["settings"]["tools"][0].update(name="find")),
    "rubric word": (
        "grading", None,
        lambda s, some: s["judge"]["rubric"]["categories"].update(right={"items": ["It is."]}),
    ),
    "judge model": (
        "grading", None, lambda s, some: s["judge"].update(models=["python:planted_agents:strict"]),
    ),
    "judge setting": (
        "grading", None,
        lambda s, some: s["judge"].update(
            models=[{"model": "python:planted_agents:kind", "temperature": 1}]
        ),
    ),
    "answer rule": ("grading", None, lambda s, some: s.update(answer="last_number")),
    "match rule": ("grading", None, lambda s, some: s.update(match="contains")),
    "verify": ("tasks", agent, lambda s, some: [t.update(verify="test -s done") for t in some]),
    "hidden test file": (
        "tasks", agent, lambda s, some: [t["verify_files"].update({"more.sh": "#"}) for t in some],
    ),
}  # fmt: skip
SAME = {
    "reordered tasks": lambda s, rng: rng.shuffle(s["tasks"]),
    "reordered keys": lambda s, rng: s.update(
        tasks=[dict(rng.sample(list(t.items()), len(t))) for t in s["tasks"]]
    ),
    "another prompt": lambda s, rng: s.update(prompt="Think. {{ input }}", system="Be brief."),
    "other column names": lambda s, rng: [t.update(question=t.pop("input")) for t in s["tasks"]],
    "another model": lambda s, rng: s["subjects"][0].update(model="python:planted_agents:other"),
    "other settings": lambda s, rng: s["settings"].update(temperature=rng.random()),
    "other tier names": lambda s, rng: s.update(tiers={"base": {}}),
    "a subject's own tools": lambda s, rng: s["subjects"][0].update(
        tools=[{"name": "mine", "parameters": {}}]
    ),
    "notes, titles and weights": lambda s, rng: [
        t.update(note="hard", name=f"Task {t['id']}", weight=2) for t in s["tasks"]
    ],
    "names of rubric, judge and suite": lambda s, rng: s.update(
        suite="renamed",
        judge={
            "models": [{"model": "python:planted_agents:kind", "name": "someone"}],
            "rubric": {**s["judge"]["rubric"], "rubric": "renamed"},
        },
    ),
}
POLICY = {"gates": [{"metric": "pass_rate", "no_worse_than": "1%", "on": "value"}]}
CASES = [
    *((name, seed) for name in EDITS for seed in range(5)),
    *((name, seed) for name in SAME for seed in range(3)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("planted")
    (path / "planted_agents.py").write_text(AGENTS)
    return path


@pytest.fixture(scope="module")
def store(folder):
    with closing(Store(str(folder / "runs.db"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def runs():
    """The runs of suites before their edits, which several edits have in common."""
    return {}


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)


def planted(name, seed):
    """The suite before and after an edit, what the edit changes, and how many tasks it edits."""
    rng = random.Random(f"{name} {seed}")
    before = suite()
    if name in SAME:
        after = copy.deepcopy(before)
        SAME[name](after, rng)
        return before, after, "", 0
    kind, prepare, edit = EDITS[name]
    if prepare:
        prepare(before, before["tasks"])
    after = copy.deepcopy(before)
    some = rng.sample(after["tasks"], rng.randint(1, len(before["tasks"]) - 1))
    edit(after, some)
    return before, after, kind, len(some) if kind == "tasks" else 0


def decided(sources, tasks, changed, kind):
    """Compare two sources, and gate one by the other; an edit gives no verdict."""
    gate = pennyweight.gate(sources[1], POLICY, baseline=sources[0])
    if kind in {"grading", "all"}:
        with pytest.raises(UsageError, match=r"graded differently|all \d+ tasks differ"):
            pennyweight.compare(sources)
        assert gate.exit_code == 3
        return
    found = pennyweight.compare(sources, metrics=["pass_rate"])
    assert found.exam.changed == changed
    assert [pair.tasks for pair in found.pairs] == [tasks - changed]
    assert [side.group.tasks for side in found.sides] == [tasks - changed] * 2
    assert (gate.exit_code == 3) == (changed > 0), gate.gates


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_an_edit_gives_no_verdict_and_nothing_else_alarms(folder, store, runs, name, seed):
    before, after, kind, changed = planted(name, seed)
    common = EDITS[name][1] if name in EDITS else None
    if common not in runs:
        runs[common] = pennyweight.run(before, store=store).id
    pair = [runs[common], pennyweight.run(after, store=store).id]
    sources = [RunSource(store.find(run), store) for run in pair]
    decided(sources, len(before["tasks"]), changed, kind)
    if seed == 0:  # the files that are exported say the same
        files = [str(folder / f"{run}.jsonl") for run in pair]
        for run, file in zip(pair, files, strict=True):
            pennyweight.export(run, file, store=store)
        decided(files, len(before["tasks"]), changed, kind)


def test_a_report_leaves_out_changed_tasks_and_an_old_run_is_known_by_its_columns(folder, store):
    before, after, _, changed = planted("target", 0)
    pair = [pennyweight.run(one, store=store).id for one in (before, after)]
    pennyweight.report(pair, str(folder / "r.md"), store=store)
    text = (folder / "r.md").read_text("utf-8")
    assert f"{changed} of {TASKS} tasks differ between" in text
    assert f"pennyweight run --resume {pair[0]}" in text
    with store.engine.begin() as connection:  # as an earlier Pennyweight stored it
        connection.execute(update(RECORD).where(RECORD.c.run == pair[0]).values(task_digest=None))
    sources = [RunSource(store.find(run), store) for run in pair]
    found = pennyweight.compare(sources, metrics=["pass_rate"])
    assert (found.exam.known, found.exam.changed) == (("parts", "whole"), changed)
    assert found.exam.parts == (("target", changed),)
