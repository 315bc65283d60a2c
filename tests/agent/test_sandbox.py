"""Sandboxes: what goes into a command line, and what stays out of it."""

from pathlib import Path

import pytest

from agent.trying import attempt, needs_bubblewrap
from pennyweight.agent import sandbox
from pennyweight.agent.diff import Snapshot
from pennyweight.agent.folders import AttemptFolders, end_container
from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError
from pennyweight.suite.values import Agent, Workspace


@pytest.fixture
def folders(tmp_path):
    made = AttemptFolders(tmp_path / "run" / "1", tmp_path, Snapshot({}), 0, 0)
    made.root.mkdir(parents=True)
    return made


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """Put a podman on the path that writes down what it is told."""
    path = tmp_path / "bin" / "podman"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/told\n')
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")
    return path


def test_a_container_gets_the_workspace_and_no_value_of_a_variable(
    tmp_path, folders, engine, monkeypatch
):
    monkeypatch.setenv("SOME_KEY", "sk-secret-123456")
    agent = Agent(("tool",), sandbox="container", image="an/image", env=("SOME_KEY",))
    words = sandbox.wrapped(agent, ["tool", "x"], folders, ["HOME", "SOME_KEY"])
    assert words[0] == str(engine)
    assert words[-3:] == ["an/image", "tool", "x"]
    line = " ".join(words)
    assert "--network none" in line
    assert f"--volume {folders.work}:/workspace" in line
    assert "--env SOME_KEY" in line
    assert "sk-secret" not in line
    assert "--read-only" in words
    end_container(folders.root)
    name = words[words.index("--name") + 1]
    assert Path(tmp_path, "told").read_text() == f"rm --force {name}\n"


def test_a_container_has_an_engine(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="podman or docker"):
        sandbox.check(Agent(("tool",), sandbox="container", image="x"))


def test_a_container_that_cannot_be_run_is_no_result(engine):
    engine.write_text("#!/bin/sh\necho 'no such image' >&2\nexit 125\n")
    with pytest.raises(CallError, match="no such image"):
        attempt(Agent(("tool",), sandbox="container", image="x"))


ENGINE = """#!/bin/sh
case "$1" in
    inspect) echo '{started}'; exit 0;;
    rm) exit 0;;
esac
while [ "$1" != --cidfile ]; do shift; done
test ! -e "$2" || exit 99
echo abc > "$2"
echo 'sh: pytest: not found' >&2
exit 127
"""


def test_an_agent_that_ends_as_an_engine_does_has_a_result(engine):
    engine.write_text(ENGINE.format(started="2026-01-02T03:04:05Z"))
    work = Workspace(verify=(("check",), ("check",)), verify_before="any")
    reply = attempt(Agent(("tool",), sandbox="container", image="x"), work=work)
    assert (reply.status, reply.passed, reply.work["exit_code"]) == ("ok", False, 127)
    assert [c["after"] for c in reply.work["checks"]] == [127, 127]


def test_a_container_that_was_made_but_not_begun_is_no_result(engine):
    engine.write_text(ENGINE.format(started="0001-01-01 00:00:00 +0000 UTC"))
    with pytest.raises(CallError, match="container could not be started"):
        attempt(Agent(("tool",), sandbox="container", image="x"))


def test_a_check_whose_container_cannot_be_run_is_no_result(engine):
    engine.write_text(
        """#!/bin/sh
case "$*" in *check*) echo "Error: storage is locked" >&2; exit 125;; esac
echo done
"""
    )
    agent = Agent(("tool",), sandbox="container", image="x")
    with pytest.raises(CallError, match=r"A check could not be run.*storage is locked"):
        attempt(agent, work=Workspace(verify=(("check",),)))


def test_a_served_model_needs_the_network():
    needs_bubblewrap()
    with pytest.raises(UsageError, match="network: true"):
        sandbox.check(Agent(("true",), serves="local/m"))


def test_a_program_below_ones_home_is_found_and_shown(tmp_path, monkeypatch):
    needs_bubblewrap()
    real = tmp_path / "share" / "tool-1.0"
    real.mkdir(parents=True)
    (real / "tool").write_text('#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/part"\n')
    (real / "tool").chmod(0o755)
    (real / "part").write_text("whole\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").symlink_to(real / "tool")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    assert attempt(Agent(("tool",))).text == "whole"


def test_a_link_to_a_program_may_be_in_a_folder_that_is_read(tmp_path):
    needs_bubblewrap()
    real = tmp_path / "real"
    (tmp_path / "bin").mkdir()
    real.mkdir()
    (real / "tool").write_text("#!/bin/sh\necho found\n")
    (real / "tool").chmod(0o755)
    (tmp_path / "bin" / "tool").symlink_to(real / "tool")
    command = (str(tmp_path / "bin" / "tool"),)
    for read in ("bin", "."):
        agent = Agent(command=command, read=(str((tmp_path / read).resolve()),))
        assert attempt(agent).text.strip() == "found"


def test_a_command_beside_a_suite_shows_nothing_else_of_its_folder(tmp_path):
    needs_bubblewrap()
    (tmp_path / "targets.jsonl").write_text("42")
    tool = tmp_path / "tool"
    tool.write_text('#!/bin/sh\nls "$(dirname "$0")"\n')
    tool.chmod(0o755)
    for read in ((), (str(tool),)):
        assert attempt(Agent((str(tool),), read=read)).text == "tool"
