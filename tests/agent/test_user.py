"""Agents of a normal user, who has no privileges: the sandbox and its limits are the same."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
from pathlib import Path

import pytest

import services

NOBODY = "nobody"
TESTS = Path(__file__).parents[1]
PATHS = (TESTS, TESTS.parent / "src", sysconfig.get_path("purelib"))

AGENT = """
    import ctypes, os, resource, time
    libc = ctypes.CDLL(None, use_errno=True)
    print(libc.ptrace(16, 1, 0, 0))
    try:
        print(os.open("/proc/1/mem", os.O_RDWR))
    except PermissionError:
        print("refused")
    try:
        os.posix_fallocate(os.open("big", os.O_WRONLY | os.O_CREAT), 0, 338_000_000)
    except OSError as error:
        print(error.strerror)
    print(resource.getrlimit(resource.RLIMIT_NPROC)[0] < 100_000)
"""
TRIAL = """
    import json, os, sys
    from agent.trying import attempt, script
    from pennyweight.suite.values import Caps, Workspace
    from pennyweight.agent.sandbox import bubblewrap_problem
    folder, sandbox, code, verify = sys.argv[1:]
    problem = bubblewrap_problem() if sandbox == "bubblewrap" else None
    if problem:
        print(json.dumps({"problem": problem}))
        sys.exit()
    work = Workspace(verify=(("sh", "-c", verify),)) if verify else None
    caps = Caps(disk_mb=20, processes=100, memory_mb=500)
    reply = attempt(script(folder, code, sandbox=sandbox, caps=caps, timeout=60), work=work)
    left = os.listdir(os.environ["PENNYWEIGHT_WORKSPACES"])
    print(json.dumps({
        "user": os.getuid(), "text": reply.text, "status": reply.status, "passed": reply.passed,
        "left": left, **reply.work,
    }))
"""


@pytest.fixture
def own():
    """A folder of the user, outside of root's."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="pennyweight-user-"))
    if os.getuid() == 0:
        user = pwd.getpwnam(NOBODY)
        os.chown(folder, user.pw_uid, user.pw_gid)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def as_user():
    """An interpreter that a normal user can run, and how to become one."""
    if os.getuid() != 0:
        return sys.executable, {}
    try:
        user = pwd.getpwnam(NOBODY)
    except KeyError:
        pytest.skip("there is no user 'nobody'")
    become = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    imports = "import sys, pennyweight.agent.command; print(*sys.version_info[:2])"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            done = subprocess.run([python, "-c", imports], check=False, **options("/", become))
        except OSError:
            continue
        if done.stdout.split() == [str(part) for part in sys.version_info[:2]]:
            return python, become
    pytest.skip("no Python with the packages of the tests can be run by the user 'nobody'")


def options(folder, become):
    path = os.pathsep.join(map(str, PATHS))
    own = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(folder)}
    own["PENNYWEIGHT_WORKSPACES"] = f"{folder}/workspaces"
    environment = {"PATH": os.environ["PATH"], **own}
    plain = {"capture_output": True, "text": True, "timeout": 120}
    return {"cwd": folder, "env": environment, **plain, **become}


def tried(as_user, own, sandbox, code, verify=""):
    python, become = as_user
    words = [python, "-c", textwrap.dedent(TRIAL), str(own), sandbox, textwrap.dedent(code), verify]
    done = subprocess.run(words, check=False, **options(own, become))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if "problem" in found:
        services.unavailable(found["problem"])
    assert found["user"] != 0
    assert found["left"] == []
    return found


def test_the_sandbox_of_a_user_has_the_same_walls(as_user, own):
    found = tried(as_user, own, "bubblewrap", AGENT, verify="test -e big")
    assert found["passed"], found
    if found["disk_limit"] == "enforced":
        expected = ["-1", "refused", "No space left on device", "True"]
        assert found["text"].splitlines() == expected
        assert "+++ b/big" in found["diff"]


@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
def test_a_fork_bomb_of_a_user_ends_its_attempt(as_user, own, sandbox):
    """The kernel refuses more threads than four times the cap; 2^9 processes are tried."""
    code = """
        import os, time
        for _ in range(9):
            try:
                os.fork()
            except BlockingIOError:
                break
        time.sleep(30)
    """
    found = tried(as_user, own, sandbox, code)
    assert (found["status"], found["ended"]) == ("budget", "it ran more than 100 processes")


@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
def test_a_memory_bomb_of_a_user_ends_its_attempt(as_user, own, sandbox):
    code = """
        import os, time
        for _ in range(4):
            if not os.fork():
                held = bytearray(os.urandom(1)) * 200_000_000
                time.sleep(30)
        time.sleep(30)
    """
    found = tried(as_user, own, sandbox, code)
    assert (found["status"], found["ended"]) == ("budget", "it used more than 500 MB of memory")


def test_without_a_sandbox_the_disk_of_a_user_is_looked_at(as_user, own):
    code = """
        import time
        for n in range(4):
            open(str(n), "wb").write(bytes(19_000_000))
        time.sleep(30)
    """
    found = tried(as_user, own, "none", code)
    assert (found["status"], found["ended"]) == ("budget", "it wrote more than 20 MB")
    assert found["disk_limit"] == "polled"
