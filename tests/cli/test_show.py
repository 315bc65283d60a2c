"""`pennyweight show RUN TASK` for any run."""

from pathlib import Path

import pytest

from cli.command import pennyweight, refused

SUITE = """
suite: s
tasks: [{id: t1, input: "2 + 2?", target: "4"}, {id: t2, input: "3 + 3?"}]
subjects: ["python:shown_model:answer"]
system: Be short.
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("PENNYWEIGHT_STORE", raising=False)
    Path("shown_model.py").write_text("def answer(request):\n    return 'FINAL_ANSWER: 5'\n")
    Path("s.yaml").write_text(SUITE)
    assert pennyweight("run", "s.yaml").code == 0


@pytest.mark.usefixtures("made")
def test_a_task_without_checks_is_shown_in_full() -> None:
    shown = pennyweight("show", "latest", "t1").out
    assert shown.startswith("t1 (python:shown_model:answer, T0, attempt 1): wrong\n")
    assert "Asked:\nsystem: Be short.\nuser: 2 + 2?\n" in shown
    assert "Replied:\nFINAL_ANSWER: 5\n" in shown
    assert "answer: 5; target: 4" in shown
    assert "no target" in pennyweight("show", "latest", "t2").out


@pytest.mark.usefixtures("made")
def test_it_comes_as_json_too() -> None:
    (one,) = pennyweight("show", "latest", "t1", "--format", "json").json["attempts"]
    assert (one["answer"], one["correct"], one["error"], one["checks"]) == ("5", False, None, [])


@pytest.mark.usefixtures("made")
def test_a_task_that_is_not_there_is_told() -> None:
    assert "Task 't11' is not known. Did you mean 't1'?" in refused("show", "latest", "t11")


@pytest.mark.usefixtures("made")
def test_settings_are_readable() -> None:
    shown = " ".join(pennyweight("show", "latest").out.split())
    assert "subjects python:shown_model:answer; tiers T0;" in shown
    assert "{" not in shown
