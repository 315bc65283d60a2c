"""What checks say of an initial workspace is kept until the exam or the machine changes."""

import pytest

import pennyweight
from agent.coding import suite


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PENNYWEIGHT_WORKSPACES", str(tmp_path / "workspaces"))
    monkeypatch.setenv("PENNYWEIGHT_STORE", str(tmp_path / "store.db"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_checks_are_tried_once_and_not_again_by_the_next_run(folder):
    count = folder / "count"
    line = f"echo x >> {count}; test -e calc.py"
    path = suite(folder, verify=line)
    pennyweight.run(path)
    assert len(count.read_text().split()) == 2, "once before, and once after the attempt"
    pennyweight.run(path)
    assert len(count.read_text().split()) == 3
    path.write_text(path.read_text() + "runs: 2\n")
    assert pennyweight.resume(suite=path).made == 1
    assert len(count.read_text().split()) == 4
    pennyweight.run(suite(folder, verify=line, keep="true"))
    assert len(count.read_text().split()) == 6, "another exam is tried"
