"""Agents in a suite: what may be written, and every mistake at once with its line."""

import json
import subprocess

import jsonschema
import pytest

from pennyweight.schema.problems import DocumentError
from pennyweight.suite import plan
from pennyweight.suite.declaration import json_schema
from pennyweight.suite.loader import load_suite
from pennyweight.suite.values import Caps

VALIDATOR = jsonschema.Draft202012Validator(json_schema())

GOOD = """\
suite: fixing
tasks: tasks.jsonl
workspace: {copy: project}
verify: make test
keep: [make lint, [python3, -m, compileall, .]]
subjects:
  - name: fixer
    command: [python3, ./agent.py, --model, "{model}", "{prompt}"]
    model: anthropic/claude-sonnet-4-5
    env: [HOME_KEY]
    timeout: 30
    sandbox: none
    output: claude-code
    caps: {disk_mb: 5}
    settings: {model: sonnet}
  - {command: "cat ./agent.py | sh", sandbox: none, prompt: stdin, read: [project]}
tiers:
  T0: {}
  T1: {files: {CLAUDE.md: Be careful., skills/a.md: {from: guide.md}}, system: Think.}
  T2: {extends: T1, files: {CLAUDE.md: null, more: {from: project}}}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "main.py").write_text("print(1)\n")
    (tmp_path / "agent.py").write_text("")
    (tmp_path / "guide.md").write_text("Guide.")
    tasks = [
        {"id": "a", "input": "Fix it.", "verify": "test -f a", "files": {"a.txt": "A"}},
        {"id": "b", "input": "Fix that.", "workspace": {"copy": "."}, "keep": ["true", ["a", "b"]]},
    ]
    lines = "".join(json.dumps(task) + "\n" for task in tasks)
    (tmp_path / "tasks.jsonl").write_text(lines)
    (tmp_path / "suite.yaml").write_text(GOOD)
    return tmp_path


def mistakes(path):
    with pytest.raises(DocumentError) as caught:
        load_suite(path)
    return [p.replace(str(path.parent) + "/", "") for p in caught.value.problems]


def test_agents_as_a_person_writes_them(folder):
    suite = load_suite(folder / "suite.yaml")
    fixer, other = suite.subjects
    assert fixer.name == "fixer"
    assert fixer.model == "anthropic/claude-sonnet-4-5"
    agent = fixer.agent
    assert agent.command[:2] == ("python3", str(folder / "agent.py"))
    assert agent.read == (str(folder / "agent.py"),)
    assert agent.caps == Caps(disk_mb=5)
    assert (agent.env, agent.timeout, agent.output) == (("HOME_KEY",), 30.0, "claude-code")
    assert other.name == "cat"
    assert other.agent.shell
    assert other.agent.read == (str(folder / "agent.py"), str(folder / "project"))
    t0, t1, t2 = (tier.work for tier in suite.tiers)
    assert t0.files == {}
    assert t1.files == {"CLAUDE.md": b"Be careful.", "skills/a.md": b"Guide."}
    assert t2.files == {"skills/a.md": b"Guide.", "more/main.py": b"print(1)\n"}
    assert t2.copy == str(folder / "project")
    assert t2.verify == (("sh", "-c", "make test"),)
    assert t2.keep == (("sh", "-c", "make lint"), ("python3", "-m", "compileall", "."))


def test_a_task_adds_to_what_its_tier_says(folder):
    suite = load_suite(folder / "suite.yaml")
    made = {(a.task.id, a.tier.name): plan.work_of(a) for a in plan.attempts(suite)}
    a, b = made["a", "T1"], made["b", "T1"]
    assert a.files == {"a.txt": b"A", "CLAUDE.md": b"Be careful.", "skills/a.md": b"Guide."}
    assert a.verify == (("sh", "-c", "make test"), ("sh", "-c", "test -f a"))
    assert a.copy == str(folder / "project")
    assert b.copy == str(folder)
    assert b.keep[2:] == (("sh", "-c", "true"), ("a", "b"))
    assert (a.task, a.target) == ("a", None)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("project/main.py", "print(2)\n"),
        ("guide.md", "Another guide."),
        ("suite.yaml", GOOD.replace("timeout: 30", "timeout: 31")),
        ("suite.yaml", GOOD.replace("verify: make test", "verify: make tests")),
        ("tasks.jsonl", '{"id": "a", "input": "Fix it.", "verify": "test -f b"}\n'),
    ],
)
def test_what_an_agent_meets_is_part_of_the_fingerprint(folder, file, text):
    def fingerprints():
        suite = load_suite(folder / "suite.yaml")
        return {
            plan.fingerprint(suite, a)
            for a in plan.attempts(suite)
            if (a.subject.name, a.tier.name, a.task.id) == ("fixer", "T1", "a")
        }

    before = fingerprints()
    assert fingerprints() == before
    (folder / file).write_text(text)
    assert fingerprints() != before


BAD = """\
suite: fixing
tasks:
  - {id: a, input: x, workspace: nowhere}
  - {id: b, input: x, verify: [1, 2, {}]}
  - {id: c, input: x, files: {../x: y}}
workspace: {git: ., commit: no-such-thing}
subjects:
  - {name: one, command: [tool, "{modle}"], key_env: KEY, env: ["KEY=secret"]}
  - {name: two, command: "", workspace: x}
  - {name: three, model: openai/x, timeout: 5}
  - {name: four}
  - {name: five, comand: x}
  - {name: six, command: x, sandbox: jail, output: {cost: $.x}}
  - {name: seven, command: x, sandbox: container, output: {text: "$..x"}, read: [nowhere]}
  - {name: eight, command: [x], output: claude, prompt: args, network: "yes"}
tiers:
  T0: {files: {/etc/passwd: x, .git/config: x, ok: {from: nowhere}}}
  T1: {files: [a]}
"""


def test_every_mistake_is_told_at_once_with_its_line(folder):
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    path = folder / "bad.yaml"
    path.write_text(BAD)
    told = "\n".join(mistakes(path))
    for line, words in (
        (3, "task 'a': workspace: the folder 'nowhere' does not exist"),
        (4, "task 'b': verify[3] must be a shell command or a list of words, not a mapping"),
        (5, "task 'c': files: '../x' cannot be used"),
        (6, "workspace: the commit 'no-such-thing' is not in"),
        (8, "key_env: a command calls its model itself; "),
        (8, "subjects[1].env: 'KEY=secret' is not the name of an environment variable"),
        (8, "{modle} is a setting that T0, T1 does not have. Set it there"),
        (9, "command must be a shell command, not ''"),
        (9, "Did you mean 'workspace, in the suite or a task'?"),
        (10, "'timeout', which requires 'command'"),
        (11, "subjects[4] needs 'model' or 'command'"),
        (12, "Key 'comand' is not known. Did you mean 'command'?"),
        (13, "sandbox must be 'bubblewrap', 'container' or 'none', not 'jail'"),
        (13, "Key 'cost' is not known in output. Did you mean 'cost_usd'?"),
        (14, "'sandbox: container' requires 'image'"),
        (14, "output: text: '$..x' is not a path into JSON"),
        (14, "read: "),
        (15, "output must be"),
        (15, "prompt must be 'argument', 'file' or 'stdin'"),
        (15, "network must be true or false"),
        (17, "tiers.T0.files: '/etc/passwd' cannot be used"),
        (17, "tiers.T0.files: '.git/config' cannot be used"),
        (17, "tiers.T0.files: 'nowhere' cannot be read"),
        (18, "files must be"),
    ):
        found = [t for t in told.splitlines() if t.startswith(f"bad.yaml, line {line}:")]
        assert any(words in t for t in found), (line, words, told)


def test_columns_of_a_plain_suite_stay_columns(folder):
    path = folder / "plain.yaml"
    path.write_text(
        "suite: s\nsubjects: [local/m]\nprompt: '{{ input }} {{ files }} {{ verify }}'\n"
        "tasks: [{input: x, files: [1, 2], verify: y, workspace: z}]\n"
    )
    suite = load_suite(path)
    assert suite.tasks[0].extra == {"files": [1, 2], "verify": "y", "workspace": "z"}
    assert suite.tiers[0].work is None
    assert plan.conversation(suite.tiers[0], suite.tasks[0])[0]["content"] == "x [1, 2] y"


BASE = {"suite": "s", "tasks": ["q"]}


@pytest.mark.parametrize(
    "more",
    [
        {"subjects": [{"command": ["true"]}]},
        {"subjects": [{"command": "true", "sandbox": "none", "network": True}]},
        {"subjects": [{"command": []}]},
        {"subjects": [{"model": "openai/x", "sandbox": "none"}]},
        {"subjects": [{"name": "x"}]},
        {"subjects": [{"command": "x", "output": {"text": "$.a"}}]},
        {"subjects": [{"command": "x", "output": "cluade-code"}]},
        {"subjects": [{"command": "x", "caps": {"disk_mb": 0}}]},
        {"subjects": [{"command": "x"}], "workspace": {"commit": "x"}},
        {"subjects": [{"command": "x"}], "workspace": "."},
        {"subjects": [{"command": "x"}], "verify": ["a", ["b", "c"]], "keep": "d"},
        {"subjects": [{"command": "x"}], "verify": {"a": 1}},
        {"subjects": [{"command": "x"}], "tiers": {"T0": {"files": {"a": "b", "c": None}}}},
        {"subjects": [{"command": "x"}], "tiers": {"T0": {"files": {"a": {"form": "b"}}}}},
        {"subjects": ["local/m"], "judge": {"models": [{"command": "x"}]}},
    ],
)
def test_editors_and_loading_agree(tmp_path, more):
    table = {**BASE, **more}
    path = tmp_path / "suite.json"
    path.write_text(json.dumps(table))
    try:
        load_suite(path)
        loads = True
    except DocumentError:
        loads = False
    assert VALIDATOR.is_valid(table) is loads


def test_a_task_says_which_of_its_files_are_the_answer(folder):
    path = folder / "suite.yaml"
    task = {"id": "c", "input": "Fix it.", "answer_paths": ["src/*.py"], "verify_in": "fresh"}
    (folder / "tasks.jsonl").write_text(json.dumps(task) + "\n" + json.dumps({"input": "x"}))
    path.write_text(GOOD + "answer_paths: [lib]\n")
    suite = load_suite(path)
    works = [plan.work_of(a) for a in plan.attempts(suite) if a.tier.name == "T0"]
    assert {work.answer_paths for work in works} == {("src/*.py",), ("lib",)}
    other = load_suite(path, GOOD)
    marks = [plan.fingerprint(one, next(plan.attempts(one))) for one in (suite, other)]
    assert marks[0] == marks[1], "the task's own paths win"
    path.write_text(GOOD + "answer_paths: [/etc, ../x]\nverify_in: workspace\n")
    assert mistakes(path) == [
        "suite.yaml, line 21: answer_paths: '../x' must be a path inside the workspace.",
        "suite.yaml, line 21: answer_paths: '/etc' must be a path inside the workspace.",
        "suite.yaml, line 21: answer_paths: it has no effect together with 'verify_in: workspace'.",
    ]
