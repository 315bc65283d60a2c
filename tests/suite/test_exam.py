"""The digests of a suite's tasks: they change with the exam, and with nothing else."""

import copy

import pytest

from pennyweight.suite.exam import TaskDigests, grading_settings
from pennyweight.suite.loader import load_suite
from pennyweight.text.exam import changed_parts

TASK = {
    "id": "capital",
    "input": [{"role": "user", "content": "Hi."}, {"role": "user", "content": "Which is it?"}],
    "target": "Paris",
    "choices": ["Paris", "Oslo"],
    "context": {"of": "France", "by": "population"},
    "code": "print(1)",
    "note": "easy",
    "expected_behaviors": [{"contains": "Paris"}, {"contains": "France"}],
    "must_not": [{"contains": "Oslo"}],
    "checks": [{"name": "short", "length": {"max": 30}}, {"python": "rules:holds"}],
    "turns": [{"say": "Are you sure?", "if": {"contains": "Paris"}}],
    "tool_results": {"look_up": "It is Paris."},
}
SUITE = {
    "suite": "s",
    "tasks": [TASK, {"id": "other", "input": "2 + 2?", "target": "4"}],
    "prompt": "{{ input }} {% if choices is defined %}{{ choices }}{% endif %}"
    "{% if code is defined %}{{ code }}{% endif %}",
    "settings": {"tools": [{"name": "look_up", "parameters": {"type": "object"}}]},
    "subjects": ["python:rules:agent"],
    "tiers": {"T0": {}, "T1": {"system": "Think."}},
}
RULES = "def holds(row):\n    return True\n\n\ndef agent(text):\n    return 'Paris'\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "a.txt").write_text("one")
    return tmp_path


def digests(given):
    suite = load_suite(given)
    made = TaskDigests(suite)
    return {task.id: made.of(task) for task in suite.tasks}


def edited(change, base=SUITE):
    given = copy.deepcopy(base)
    change(given, given["tasks"][0])
    return given


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("input", lambda s, t: t["input"][1].update(content="Which city?")),
        ("turns", lambda s, t: t["input"][0].update(content="Hello.")),
        ("turns", lambda s, t: t["turns"][0].update(say="Really?")),
        ("turns", lambda s, t: t["tool_results"].update(look_up="It is Oslo.")),
        ("target", lambda s, t: t.update(target="Oslo")),
        ("choices", lambda s, t: t.update(choices=["Paris", "Bergen"])),
        ("choices", lambda s, t: t.update(choices=["Paris", "Oslo", "Rome"])),
        ("context", lambda s, t: t["context"].update(of="Norway")),
        ("column:code", lambda s, t: t.update(code="print(2)")),
        ("behaviors", lambda s, t: t["expected_behaviors"].pop()),
        ("behaviors", lambda s, t: t["must_not"][0].update(contains="Bergen")),
        ("checks", lambda s, t: t["checks"][0]["length"].update(max=31)),
        ("checks", lambda s, t: t["checks"].pop()),
        ("pass_score", lambda s, t: t.update(pass_score=0.5)),
        ("tools", lambda s, t: s["settings"]["tools"].append({"name": "b", "parameters": {}})),
    ],
)
def test_an_edit_of_the_exam_changes_the_part_it_is_in(folder, part, change):
    before, after = digests(SUITE), digests(edited(change))
    found = changed_parts(before["capital"], after["capital"])
    assert part in found
    if part != "tools":  # the suite's tools are those of all its tasks
        assert before["other"] == after["other"]


@pytest.mark.parametrize(
    "change",
    [
        lambda s, t: s["tasks"].reverse(),
        lambda s, t: s.update(tasks=[dict(reversed(one.items())) for one in s["tasks"]]),
        lambda s, t: s.update(prompt="Think first. " + s["prompt"]),
        lambda s, t: s.update(system="You are careful."),
        lambda s, t: s.update(tiers={"base": {}, "better": {"examples": []}}),
        lambda s, t: s["tiers"]["T1"].update(tools=[{"name": "mine", "parameters": {}}]),
        lambda s, t: s.update(subjects=[{"model": "python:rules:agent", "temperature": 1}]),
        lambda s, t: s["settings"].update(temperature=0.3),
        lambda s, t: s.update(runs=3, seed=2, suite="renamed"),
        lambda s, t: t.update(note="hard", category="edge_case", name="A title", weight=2),
        lambda s, t: t.update(question=t.pop("input")),
        lambda s, t: t["expected_behaviors"].reverse(),
        lambda s, t: t["checks"][0].update(name="brief"),
        lambda s, t: t.update(context={"by": "population", "of": "France"}),
        lambda s, t: s["tasks"].append({"id": "more", "input": "3 + 3?", "target": "6"}),
    ],
)
def test_what_is_compared_and_the_order_of_things_change_nothing(folder, change):
    before, after = digests(SUITE), digests(edited(change))
    assert before == {task: after[task] for task in before}


def test_the_code_of_a_check_is_part_of_its_task(folder):
    before = digests(SUITE)
    (folder / "rules.py").write_text(RULES.replace("True", "False"))
    after = digests(SUITE)
    assert changed_parts(before["capital"], after["capital"]) == ("checks",)
    assert before["other"] == after["other"]


AGENT = {
    "suite": "s",
    "tasks": [
        {"id": "fix", "input": "Fix it.", "verify_files": {"test.sh": "exit 0"}},
        {"id": "add", "input": "Add it.", "files": {"b.txt": "b"}, "verify": "test -f c"},
    ],
    "workspace": "box",
    "verify_files": {"more.sh": "true"},
    "verify": "sh test.sh",
    "subjects": [{"name": "a", "command": "true", "sandbox": "none"}],
    "tiers": {"T0": {}, "T1": {"files": {"AGENTS.md": "Be careful."}}},
}


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("verify", lambda s, t: t["verify_files"].update({"test.sh": "exit 1"})),
        ("verify", lambda s, t: t.update(verify="true")),
        ("verify", lambda s, t: s.update(verify="bash test.sh")),
        ("verify", lambda s, t: s.update(answer_paths=["*.py"])),
        ("files", lambda s, t: t.update(files={"d.txt": "d"})),
        ("verify", lambda s, t: s["verify_files"].update({"more.sh": "false"})),
    ],
)
def test_workspaces_and_hidden_tests_are_part_of_a_task(folder, part, change):
    before, after = digests(AGENT), digests(edited(change, AGENT))
    assert changed_parts(before["fix"], after["fix"]) == (part,)


def test_the_folder_of_a_suite_is_part_of_its_tasks_and_the_files_of_a_tier_are_not(folder):
    before = digests(AGENT)
    assert digests(edited(lambda s, t: s["tiers"]["T1"].pop("files"), AGENT)) == before
    (folder / "box" / "a.txt").write_text("two")
    assert changed_parts(before["fix"], digests(AGENT)["fix"]) == ("files",)


def test_only_judges_that_are_asked_about_sentences_or_questions_are_stored(folder):
    judge = {"judge": {"model": "python:rules:agent", "rubric": "default"}}
    assert grading_settings(load_suite({**SUITE, **judge}))["asked"] == []
    sentence = edited(lambda s, t: t["checks"].append("It is polite."), {**SUITE, **judge})
    assert grading_settings(load_suite(sentence))["asked"] == [["python:rules:agent", None, {}]]
