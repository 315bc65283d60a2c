"""Cgroups: the files that are written, in a plain folder; moving and removing, in a real tree.

A kernel whose version 2 has the controllers for memory and processes is not needed for these tests,
and they do not show that such a kernel enforces the limits.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.trying import PYTHON, attempt, script
from pennyweight.agent import command, supervisor
from pennyweight.agent.cgroups import Groups
from pennyweight.suite.values import Caps


@pytest.fixture
def tree(tmp_path):
    """A plain folder in the form of a tree of cgroups."""
    top = tmp_path / "cgroup"
    for group, enabled in (("", "cpu memory pids"), ("user", "memory pids"), ("user/session", "")):
        (top / group).mkdir(exist_ok=True)
        (top / group / "cgroup.subtree_control").write_text(enabled)
        (top / group / "cgroup.procs").touch()
    (tmp_path / "own").write_text("4:memory:/old\n0::/user/session\n")
    return top


def found(tree):
    return Groups.found(tree, tree.parent / "own")


def test_the_nearest_group_with_the_controllers_is_used(tree):
    assert found(tree) == Groups(tree / "user" / "session", tree / "user")
    (tree / "user" / "cgroup.subtree_control").write_text("pids")
    assert found(tree).parent == tree
    (tree / "cgroup.subtree_control").write_text("hugetlb")
    assert found(tree) is None


def test_without_version_2_there_is_none(tree, tmp_path):
    (tmp_path / "own").write_text("4:memory:/old\n")
    assert found(tree) is None
    assert Groups.found(tmp_path / "missing", tmp_path / "missing") is None


def test_limits_are_written(tree):
    group = found(tree).create("one", 5_000_000, 400)
    files = {file.name: file.read_text() for file in group.iterdir()}
    limits = {"memory.max": "5000000", "memory.swap.max": "0", "memory.oom.group": "1"}
    assert files == {**limits, "pids.max": "400"}


def test_a_group_that_cannot_be_made_is_none(tree):
    (tree / "user" / "one").write_text("")
    assert found(tree).create("one", 5_000_000, 400) is None


@pytest.mark.parametrize(
    ("file", "text", "ended"),
    [
        ("memory.events", "low 0\noom_kill 1\n", "it used more than 300 MB of memory"),
        ("pids.events", "max 7\n", "it ran more than 50 processes"),
        ("memory.events", "oom 0\noom_kill 0\n", "exit"),
    ],
)
def test_events_of_the_kernel_end_the_attempt(tree, tmp_path, monkeypatch, file, text, ended):
    """A plain folder stands for the group; the agent writes what the kernel would."""
    made = []

    def create(self, name, memory, threads):
        group = tree / "user" / name
        group.mkdir()
        (group / "cgroup.procs").touch()
        (group / file).write_text(text)
        made.append((name, memory, threads))
        return group

    monkeypatch.setattr(Groups, "create", create)
    monkeypatch.setattr(command.Groups, "found", lambda: Groups(tree / "user", tree / "user"))
    caps = Caps(memory_mb=300, processes=50)
    reply = attempt(script(tmp_path, "print(1)", sandbox="none", caps=caps))
    assert reply.work["ended"] == ended
    assert reply.status == ("ok" if ended == "exit" else "budget")
    [(_, memory, threads)] = made
    assert (memory, threads) == (300_000_000, 200)
    assert (tree / "user" / "cgroup.procs").read_text() == "0"


def mounted():
    """Return where version 2 is mounted."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(where)
    return None


def test_a_command_is_in_its_group_and_its_supervisor_is_not():
    """In a real tree, with or without controllers: nothing is limited here."""
    top = mounted()
    if top is None or not os.access(top, os.W_OK):
        pytest.skip("there are no cgroups of version 2 that this user may create")
    own = next(x for x in Path("/proc/self/cgroup").read_text().splitlines() if x[:3] == "0::")[3:]
    home = top / own.lstrip("/")
    group = home / f"pennyweight-test-{os.getpid()}"
    group.mkdir()
    reading, writing = os.pipe()
    groups = (str(group), str(home))
    orders = supervisor.Orders(writing, os.getpid(), 1, -1, 1 << 30, 1024, groups=groups)
    told = json.dumps(orders._asdict())
    code = (
        "import os; print([open(f'/proc/{p}/cgroup').read().strip().splitlines()[-1] for p in "
        "(os.getpid(), os.getppid())])"
    )
    code = f"import time; time.sleep(0.1); {code}"  # until the supervisor has left the group
    done = subprocess.run(
        [sys.executable, "-I", "-S", supervisor.__file__, told, PYTHON, "-c", code],
        pass_fds=[writing],
        capture_output=True,
        text=True,
        check=True,
    )
    os.close(writing)
    with os.fdopen(reading) as report:
        assert json.load(report)["exceeded"] is None
    inside = "0::" + str(Path(own, group.name))
    assert done.stdout == f"{[inside, '0::' + own]}\n"
    assert not group.exists()
