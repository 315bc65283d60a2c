"""Options of `pennyweight run` that narrow or change a suite."""

import pytest

from cli.command import pennyweight, refused

MODEL = "def answer(text):\n    return 'FINAL_ANSWER: 4'\n"
SUITE = """\
suite: s
tasks: [{id: a, input: x}, {id: b, input: y}]
subjects: [local/smollm2-135m]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SUITE)
    return tmp_path


def plan(*options):
    result = pennyweight("run", "s.yaml", "--dry-run", *options)
    assert result.code == 0, result.err
    return result.out


def test_options_narrow_and_change_a_suite():
    out = plan("--limit", "1", "-m", "ollama/x", "-m", "ollama/y", "--runs", "3")
    assert "s: 6 attempts" in out
    assert "1 task × 2 subjects × 1 tier × 3 runs" in out
    assert "ollama/y, tier T0" in out
    out = plan("--task", "b", "--set", "tiers.T1.system=Note: be {{ id }}", "--concurrency", "2")
    assert "Note: be b" in out
    assert "s: 1 attempt" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--concurrency", "many"), "--concurrency many: it must be a whole number, or auto."),
        (("--set", "runs"), "--set 'runs': it must have the form NAME=VALUE."),
        (("--set", "rnus=3"), "Key 'rnus' is not known. Did you mean 'runs'?"),
        (("--set", "runs=x"), "s.yaml: runs must be a whole number of at least 1, not 'x'."),
        (("--task", "c"), "Task 'c' is not known."),
        (("--seed", "1"), "'seed' is the seed of 'sample'."),
    ],
)
def test_mistakes_are_told_before_the_first_call(options, message):
    assert message in refused("run", "s.yaml", "--dry-run", *options)


def test_a_narrowed_run_says_so_wherever_its_numbers_are_shown(folder):
    (folder / "m.py").write_text(MODEL)
    (folder / "p.yaml").write_text("gates: [{metric: pass_rate, threshold: '>= 0'}]")
    (folder / "s.yaml").write_text(SUITE.replace("input: x", "input: x, target: '4'"))
    started = pennyweight("run", "s.yaml", "--limit", "1", "-m", "python:m:answer")
    assert "1 attempt of s (the first 1 of 2 tasks; model python:m:answer)." in started.err
    part = "the first 1 of 2 tasks"
    assert "the first 1 of 2" in pennyweight("runs").out  # the rest is on the next line
    assert part in pennyweight("runs", "--format", "csv").out
    shown = pennyweight("show").out
    assert f"narrowed   {part}" in shown
    assert "changed    model python:m:answer" in shown
    assert f"has {part}." in pennyweight("score", "latest").err
    assert f"has {part}." in pennyweight("baseline", "set", "b", "latest").err
    for name in ("r.html", "r.md"):
        pennyweight("report", "latest", "-o", name)
        said = f"This run has {part}; its numbers are not those of the whole suite."
        assert said in (folder / name).read_text()
    verdict = pennyweight("gate", "latest", "--policy", "p.yaml")
    assert verdict.code == 3
    assert f"The run has {part}; a policy is decided on the whole suite." in verdict.out


def test_a_gate_on_a_run_of_other_tasks_is_open(folder):
    (folder / "m.py").write_text(MODEL)
    (folder / "p.yaml").write_text("gates: [{metric: pass_rate, threshold: '>= 0'}]")
    (folder / "s.yaml").write_text(SUITE)
    options = ("--set", "tasks=[{id: a, input: x, target: '4'}]", "-m", "python:m:answer")
    assert pennyweight("run", "s.yaml", *options).code == 0
    verdict = pennyweight("gate", "latest", "--policy", "p.yaml")
    assert (verdict.code, "other tasks than its suite's file" in verdict.out) == (3, True)


def test_a_run_of_some_sides_is_whole_for_a_gate(folder):
    (folder / "m.py").write_text(MODEL)
    (folder / "p.yaml").write_text("gates: [{metric: pass_rate, threshold: '>= 0'}]")
    target = SUITE.replace("input: x", "input: x, target: '4'")
    (folder / "s.yaml").write_text(target + "tiers: {T0: {}, T1: {system: hi}}\n")
    options = ("--tier", "T1", "-m", "python:m:answer", "--runs", "2")
    assert pennyweight("run", "s.yaml", *options).code == 0
    assert "only tier T1" in pennyweight("runs").out
    assert pennyweight("gate", "latest", "--policy", "p.yaml").code == 0
