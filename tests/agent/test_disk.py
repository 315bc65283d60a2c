"""Disks of limited size: what an agent writes beyond its cap fails at once, and nothing is lost."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import services
from agent.trying import alive, attempt, in_workspaces, script
from pennyweight.agent import disk, sandbox
from pennyweight.agent.disk import MemoryDisk, needed
from pennyweight.suite.values import Agent, Caps, Workspace


@pytest.fixture
def _limited():
    if not sandbox.can_limit_disk(Agent(("true",))):
        services.unavailable("a disk of limited size")


@pytest.mark.usefixtures("_bubblewrap", "_limited")
class TestLimited:
    def test_a_file_larger_than_the_cap_is_refused(self, tmp_path):
        code = """
            import os
            try:
                os.posix_fallocate(os.open("big", os.O_WRONLY | os.O_CREAT), 0, 338_000_000)
            except OSError as error:
                print(error.strerror)
        """
        reply = attempt(script(tmp_path, code, caps=Caps(disk_mb=20)))
        refused = (reply.text, reply.work["ended"]) == ("No space left on device", "exit")
        assert refused or reply.work["ended"] == "it wrote more than 20 MB"  # while it was tried
        assert reply.work["disk_limit"] == "enforced"

    def test_many_files_together_do_not_exceed_the_cap(self, tmp_path):
        code = """
            import os
            room = os.statvfs(".")
            print(room.f_blocks * room.f_frsize, flush=True)
            for folder in (".", os.environ["TMPDIR"], os.environ["HOME"]):
                for n in range(40):
                    with open(f"{folder}/{n}", "wb") as file:
                        file.write(bytes(1_000_000))
        """
        reply = attempt(script(tmp_path, code, caps=Caps(disk_mb=20)))
        assert int(reply.text) <= 20_000_000 + disk.SPARE_BYTES + disk.PAGE
        assert (reply.status, reply.work["ended"]) == ("budget", "it wrote more than 20 MB")

    def test_a_full_disk_ends_the_attempt(self, tmp_path):
        code = """
            import os, time
            file = open("big", "wb", buffering=0)
            try:
                while True:
                    file.write(bytes(100_000))
            except OSError:
                time.sleep(60)
        """
        reply = attempt(script(tmp_path, code, caps=Caps(disk_mb=20), timeout=30))
        assert (reply.status, reply.work["ended"]) == ("budget", "it wrote more than 20 MB")
        assert reply.latency_ms < 20_000

    def test_the_number_of_files_is_limited(self, tmp_path):
        code = """
            made = 0
            try:
                for made in range(10_000):
                    open(str(made), "wb").close()
            except OSError as error:
                print(made, error.strerror)
        """
        reply = attempt(script(tmp_path, code, caps=Caps(files=100)))
        assert reply.work["ended"] == "it created more than 100 files"
        made, _, why = reply.text.partition(" ")
        assert int(made) <= 100 + disk.SPARE_FILES
        assert why == "No space left on device"

    def test_the_answer_reaches_the_checks_from_another_disk(self, tmp_path):
        """Files, links, folders, permissions and removals; and a file too large to be copied."""
        code = """
            import os
            os.makedirs("made/deep")
            open("made/deep/tool", "w").write("#!/bin/sh\\necho ran\\n")
            os.chmod("made/deep/tool", 0o755)
            os.symlink("made/deep/tool", "link")
            os.mkdir("empty")
            os.remove("old")
            os.truncate(os.open("sparse", os.O_WRONLY | os.O_CREAT), 1 << 30)
        """
        verify = "test -d empty && test ! -e old && test -L link && test ! -e sparse && ./link"
        work = Workspace(files={"old": b"x", "same": b"y"}, verify=(("sh", "-c", verify),))
        reply = attempt(script(tmp_path, code, caps=Caps(disk_mb=5)), work=work)
        assert reply.passed, reply.work
        assert reply.work["files"] == {"added": 3, "changed": 0, "removed": 1}
        [left_out] = reply.work["left_out"]
        assert left_out == {
            "path": "sparse",
            "why": "cannot be copied (no space left on device)",
        }

    def test_only_memory_that_can_be_spared_is_used(self, tmp_path, monkeypatch):
        monkeypatch.setattr(disk, "total_memory", lambda: 400_000_000)
        reply = attempt(script(tmp_path, "print(1)", caps=Caps(disk_mb=90)))
        assert (reply.text, reply.work["disk_limit"]) == ("1", "enforced")
        reply = attempt(script(tmp_path, "print(1)", caps=Caps(disk_mb=110)))
        assert (reply.text, reply.work["disk_limit"]) == ("1", "polled")
        assert disk._MEMORY._reserved == 0

    def test_a_killed_run_leaves_no_disk_behind(self, tmp_path):
        code = """
            import sys
            from agent.trying import attempt, script
            code = "import time; print(1, file=open('begun', 'w')); time.sleep(60)"
            attempt(script(sys.argv[1], code))
        """
        folder = tmp_path / "workspaces"
        tests = str(Path(__file__).parents[1])
        run = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
            env={**os.environ, "PYTHONPATH": tests},
        )
        try:
            until(lambda: in_workspaces(folder))
        finally:
            run.kill()
            run.wait()
        until(lambda: not alive(str(folder)))


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.usefixtures("_limited")
def test_a_copy_takes_what_was_foreseen(tmp_path):
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "a").write_bytes(bytes(5000))
    (folder / "b").write_bytes(b"x")
    (folder / "link").symlink_to("b")
    (folder / "long").symlink_to("x" * 200)
    size, count = needed(folder)
    mount = tmp_path / "mount"
    mount.mkdir()
    made = MemoryDisk(mount, size, count, {})
    empty = made.used()
    subprocess.run(["cp", "-a", f"{folder}/.", made.root], check=True)
    used = made.used()
    made.close()
    assert (used[0] - empty[0], used[1] - empty[1]) == (size, count)


def test_a_disk_that_cannot_be_mounted_is_an_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        MemoryDisk(tmp_path / "missing", 1000, 10, {})
    assert disk._MEMORY._reserved == 0
