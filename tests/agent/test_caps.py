"""What agents may use: output, disk, files and processes are bounded, however they go about it."""

import json
import os
import secrets
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from agent.trying import PYTHON, alive, attempt, script
from pennyweight.agent import supervisor as supervise
from pennyweight.suite.values import Caps

GIGABYTE = """
    import resource, sys
    from agent.trying import attempt, script
    from pennyweight.suite.values import Caps
    folder, sandbox = sys.argv[1:]
    code = (
        'import os\\nprint("first line", flush=True)\\nblock = b"x" * (1 << 20)\\n'
        'for _ in range(1000): os.write(1, block)\\nprint("\\\\nlast line", flush=True)\\n'
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reply = attempt(script(folder, code, sandbox=sandbox, caps=Caps(output_kb=64)))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 64_000, (before, after)
    assert reply.work["stdout_bytes"] == 1000 * (1 << 20) + len("first line\\n\\nlast line\\n")
    assert len(reply.work["stdout"]) < 65_000
    assert reply.text.startswith("first line"), reply.text[:100]
    assert reply.text.endswith("last line"), reply.text[-100:]
    assert "bytes are left out" in reply.text
    print("counted")
"""


def test_a_gigabyte_of_output_is_counted_not_kept(tmp_path, sandbox):
    """The peak is that of a process of its own: this one may have had a higher one before."""
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(GIGABYTE), str(tmp_path), sandbox],
        env={**os.environ, "PYTHONPATH": tests},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "counted\n", done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "import os\nf = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20))",
        """
        import os
        n = 0
        while True:
            n += 1
            with open(f"{os.environ['TMPDIR']}/{n}", "wb") as f:
                f.write(bytes(1 << 20))
        """,
        """
        import os, time
        n = 0
        while True:
            n += 1
            os.mkdir(f"{os.environ['HOME']}/{n}")
            time.sleep(0.001)
        """,
    ],
    ids=["one file", "many files in tmp", "folders at home"],
)
def test_a_disk_is_not_filled(tmp_path, code, sandbox):
    agent = script(tmp_path, code, sandbox=sandbox, caps=Caps(disk_mb=50, files=300), timeout=60)
    reply = attempt(agent)
    assert reply.passed is False
    assert reply.status == "budget" or reply.work["exit_code"] != 0
    assert list((tmp_path / "workspaces").iterdir()) == []


@pytest.mark.parametrize(
    ("code", "most"),
    [
        ("for i in range(20): open(str(i), 'wb').write(bytes(900_000))", Caps(disk_mb=1)),
        ("for i in range(30): open(str(i), 'wb')", Caps(files=10)),
        (
            """
            import os
            for _ in range(40):
                os.mkdir("d" * 200)
                os.chdir("d" * 200)
            for i in range(20):
                open(str(i), "wb").write(bytes(900_000))
            """,
            Caps(disk_mb=1),
        ),
    ],
    ids=["bytes", "files", "too deep to name"],
)
def test_an_agent_that_is_quick_is_still_looked_at(tmp_path, code, most, sandbox):
    reply = attempt(script(tmp_path, code, sandbox=sandbox, caps=most))
    assert (reply.status, reply.passed) == ("budget", False)
    assert reply.work["ended"].startswith(
        ("it wrote more than 1 MB", "it created more than 10 files")
    )


def test_files_without_a_name_count(tmp_path, sandbox):
    agent = script(
        tmp_path,
        """
        import os, time
        held = []
        try:
            for i in range(40):
                held.append(open(str(i), "wb", buffering=0))
                os.unlink(str(i))
                held[-1].write(bytes(990_000))
        except OSError:  # the disk is full
            pass
        time.sleep(600)
        """,
        sandbox=sandbox,
        caps=Caps(disk_mb=2),
        timeout=60,
    )
    reply = attempt(agent)
    assert reply.status == "budget"
    assert reply.work["ended"] == "it wrote more than 2 MB"


def test_processes_are_limited():
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NPROC)[1])"
    reading, writing = os.pipe()
    orders = supervise.Orders(writing, os.getpid(), 1, 1_000_000, 1_000_000_000, 1024)
    told = json.dumps(orders._asdict())
    done = subprocess.run(
        [sys.executable, "-I", "-S", supervise.__file__, told, PYTHON, "-c", code],
        pass_fds=[writing],
        capture_output=True,
        text=True,
        check=True,
    )
    os.close(writing)
    os.close(reading)
    most = supervise._threads(os.getuid()) + Caps().processes * supervise.THREADS
    assert 0 < int(done.stdout) < most + 1000


def test_what_is_hard_to_remove_is_removed(tmp_path, sandbox):
    agent = script(
        tmp_path,
        """
        import os
        for _ in range(1200):
            os.mkdir("d" * 50)
            os.chdir("d" * 50)
        os.mkdir("locked")
        os.chmod("locked", 0)
        print("deep")
        """,
        sandbox=sandbox,
    )
    assert attempt(agent).text == "deep"
    assert list((tmp_path / "workspaces").iterdir()) == []


def test_a_memory_bomb_ends_the_attempt(tmp_path, sandbox):
    one = "held = bytearray(400_000_000)\nprint('got it', flush=True)"
    caps = Caps(memory_mb=200)
    reply = attempt(script(tmp_path, one, sandbox=sandbox, caps=caps, timeout=60))
    assert "MemoryError" in reply.work["stderr"]
    assert reply.work["exit_code"] == 1
    several = """
        import os, time
        for _ in range(4):
            if not os.fork():
                held = bytearray(os.urandom(1)) * 90_000_000
                time.sleep(60)
        time.sleep(60)
    """
    reply = attempt(script(tmp_path, several, sandbox=sandbox, caps=caps, timeout=60))
    assert (reply.status, reply.passed) == ("budget", False)
    assert reply.work["ended"] == "it used more than 200 MB of memory"
    assert reply.latency_ms < 30_000


def test_too_many_processes_end_the_attempt(tmp_path, sandbox):
    code = """
        import os, time
        for _ in range(60):
            if not os.fork():
                time.sleep(60)
                os._exit(0)
        time.sleep(60)
    """
    agent = script(tmp_path, code, sandbox=sandbox, caps=Caps(processes=40), timeout=60)
    reply = attempt(agent)
    assert (reply.status, reply.work["ended"]) == ("budget", "it ran more than 40 processes")
    assert reply.latency_ms < 30_000


def test_memory_outside_of_processes_counts(tmp_path, sandbox):
    code = """
        import os, time
        held = [os.memfd_create(str(n)) for n in range(4)]
        for number in held:
            os.posix_fallocate(number, 0, 100_000_000)
        time.sleep(60)
    """
    agent = script(tmp_path, code, sandbox=sandbox, caps=Caps(memory_mb=300), timeout=20)
    reply = attempt(agent)
    assert (reply.status, reply.work["ended"]) == ("budget", "it used more than 300 MB of memory")


def test_the_cpu_time_of_all_processes_is_limited(tmp_path, sandbox):
    code = """
        import os
        os.fork()
        while True:
            pass
    """
    caps = Caps(cpu_seconds=1)
    reply = attempt(script(tmp_path, code, sandbox=sandbox, caps=caps, timeout=60))
    assert (reply.status, reply.work["ended"]) == ("budget", "it used more than 1 s of CPU time")


def test_a_fork_bomb_ends_the_attempt(tmp_path, sandbox):
    """It doubles eight times: 256 processes, for each of which there is room."""
    mark = secrets.token_hex(8)
    code = f"""
        import os, time
        for _ in range(8):
            os.fork()
        time.sleep(60)  # {mark}
    """
    agent = script(tmp_path, code, sandbox=sandbox, caps=Caps(processes=100), timeout=60)
    reply = attempt(replace(agent, command=(*agent.command, mark)))
    assert (reply.status, reply.work["ended"]) == ("budget", "it ran more than 100 processes")
    assert alive(mark) == []


@pytest.mark.usefixtures("_bubblewrap")
def test_an_agent_in_bubblewrap_cannot_make_user_namespaces(tmp_path):
    code = "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))"
    assert attempt(script(tmp_path, code)).text == "-1"
