"""Workspaces: fresh for each attempt, and taken away, also those of a run that was killed."""

import os
import secrets
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from agent.trying import alive, in_workspaces, needs_bubblewrap
from pennyweight.agent.folders import RunFolder, clean
from pennyweight.models.failure import CallError
from pennyweight.suite.values import Workspace


def git(folder, *words):
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "PATH": os.environ["PATH"], "HOME": str(folder)}
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env=own, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / ".gitattributes").write_text("hidden export-ignore\n")
    (folder / ".gitignore").write_text("ignored\n")
    (folder / "hidden").write_text("x\n")
    (folder / "code.py").write_text("first\n")
    git(folder, "add", ".")
    (folder / "ignored").write_text("forced\n")
    git(folder, "add", "-f", "ignored")
    git(folder, "commit", "-qm", "one")
    first = git(folder, "rev-parse", "HEAD")
    (folder / "code.py").write_text("the solution\n")
    git(folder, "commit", "-qam", "two")
    return folder, first


def test_a_commit_with_a_history_of_its_own(repository):
    folder, first = repository
    run_folder = RunFolder()
    try:
        folders = run_folder.attempt(
            Workspace(git=str(folder), mark=first, files={"code.py": b"tier\n"})
        )
        plain = run_folder.attempt(Workspace(git=str(folder), mark=first))
        names = {".git", ".gitattributes", ".gitignore", "hidden", "ignored", "code.py"}
        assert {p.name for p in plain.work.iterdir()} == names
        assert (plain.work / "code.py").read_text() == "first\n"
        assert (folders.work / "code.py").read_text() == "tier\n"
        assert git(plain.work, "status", "--porcelain") == ""
        assert "solution" not in git(plain.work, "log", "--all", "-p")
        assert git(plain.work, "remote") == ""
        (plain.work / "code.py").write_text("mine\n")
        git(plain.work, "commit", "-qam", "three")
    finally:
        run_folder.close()
    assert git(folder, "log", "--format=%s") == "two\none"
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "worktree", "list").count("\n") == 0


def test_a_folder_that_changes_meanwhile_does_not_change_attempts(tmp_path):
    begin = tmp_path / "begin"
    begin.mkdir()
    (begin / "a").write_text("one")
    os.mkfifo(begin / "pipe")
    (begin / "link").symlink_to("a")
    run_folder = RunFolder()
    try:
        first = run_folder.attempt(Workspace(str(begin)))
        (begin / "a").write_text("two")
        second = run_folder.attempt(Workspace(str(begin)))
        assert (first.work / "a").read_text() == (second.work / "a").read_text() == "one"
        assert (second.work / "link").is_symlink()
        assert not (second.work / "pipe").exists()
    finally:
        run_folder.close()


def test_files_replace_links_instead_of_following_them(tmp_path):
    begin = tmp_path / "begin"
    begin.mkdir()
    (tmp_path / "mine").write_text("mine")
    (begin / "notes").symlink_to(tmp_path / "mine")
    (begin / "folder").symlink_to(tmp_path)
    run_folder = RunFolder()
    try:
        folders = run_folder.attempt(
            Workspace(str(begin), files={"notes": b"tier", "run.sh": b"#!/bin/sh\n"})
        )
        assert (folders.work / "notes").read_text() == "tier"
        assert os.access(folders.work / "run.sh", os.X_OK)
        assert (tmp_path / "mine").read_text() == "mine"
        with pytest.raises(CallError, match="leads out of the workspace"):
            run_folder.attempt(Workspace(str(begin), files={"folder/mine": b"tier"}))
        assert (tmp_path / "mine").read_text() == "mine"
    finally:
        run_folder.close()


KILLED = """
    import asyncio, sys
    from pennyweight.agent.command import CommandAgent
    from pennyweight.models.model import Message, Request
    from pennyweight.suite.values import Agent
    mark, sandbox = sys.argv[1:]
    line = 'setsid sh -c "sleep 600; echo {0}" & echo {0} > begun; sleep 600; :'.format(mark)
    agent = Agent((line,), shell=True, sandbox=sandbox)
    asyncio.run(CommandAgent("a", agent).call(Request((Message("user", mark),))))
"""


@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
def test_what_a_killed_run_leaves_is_cleaned_at_the_next_start(tmp_path, sandbox):
    if sandbox == "bubblewrap":
        needs_bubblewrap()
    mark = secrets.token_hex(8)
    above = tmp_path / "workspaces"
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(KILLED), mark, sandbox])
    try:
        _wait_for(lambda: in_workspaces(above))
        own = RunFolder()  # another run at the same time takes nothing away
        own.close()
        assert in_workspaces(above)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert list(above.iterdir())
    run_folder = RunFolder()
    assert [p.name for p in above.iterdir()] == [run_folder.root.name]
    run_folder.close()
    _wait_for(lambda: not alive(mark))


def _left(above, lock):
    """Make the folder of a run whose process is gone."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    folder = above / f"{gone.pid}-{secrets.token_hex(4)}"
    (folder / "1-abc" / "work").mkdir(parents=True)
    if lock:
        (folder / "lock").touch()
    return folder


def test_a_folder_whose_lock_is_gone_is_a_leftover_too(tmp_path):
    folder = _left(tmp_path, lock=False)
    mine = tmp_path / f"{os.getpid()}-{secrets.token_hex(4)}"
    mine.mkdir()
    (tmp_path / "notes").mkdir()
    assert clean(tmp_path) == 1
    assert not folder.exists()
    assert mine.exists()
    assert (tmp_path / "notes").exists()


def test_the_lock_goes_last(tmp_path, monkeypatch):
    folder = _left(tmp_path, lock=True)
    removed = []
    monkeypatch.setattr("pennyweight.agent.folders.remove", lambda path: removed.append(path.name))
    clean(tmp_path)
    assert removed == ["1-abc", folder.name]


def test_only_processes_of_the_run_are_ended(tmp_path):
    folder = _left(tmp_path, lock=True)
    path = {"PATH": os.environ["PATH"]}
    theirs = [
        subprocess.Popen(["sleep", "600"], cwd=folder / "1-abc", env=path),
        subprocess.Popen(["sleep", "600"], env={**path, "OLDPWD": f"{folder}/1-abc"}),
        subprocess.Popen(
            ["sleep", "600"], env={**path, "PENNYWEIGHT_ATTEMPT": f"{folder.name}x/1"}
        ),
    ]
    own = subprocess.Popen(
        ["sleep", "600"], env={**path, "PENNYWEIGHT_ATTEMPT": f"{folder.name}/1-abc"}
    )
    try:
        assert clean(tmp_path) == 1
        assert own.wait(30) == -signal.SIGKILL
        assert [process.poll() for process in theirs] == [None] * 3
    finally:
        for process in (*theirs, own):
            process.kill()
            process.wait()


def test_a_run_inside_an_attempt_does_not_end_itself(tmp_path):
    folder = _left(tmp_path, lock=True)
    code = (
        "import subprocess, sys; from pathlib import Path\n"
        "from pennyweight.agent.folders import clean\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "print(clean(Path(sys.argv[1])), child.poll()); child.kill()"
    )
    done = subprocess.run(
        ["sh", "-c", '"$@"; echo above', "sh", sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PENNYWEIGHT_ATTEMPT": f"{folder.name}/1-abc"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "1 None\nabove\n", done.stderr


def _wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")
