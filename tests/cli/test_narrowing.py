"""Options of `pennyweight run` that narrow or change a suite."""

import pytest

from cli.command import pennyweight, refused

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
