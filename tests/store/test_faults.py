"""Errors of the file system and loss of power, at any write or sync: what counted is kept.

`PENNYWEIGHT_FAULT_SEEDS=500` tries as many places as the documentation promises.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import services

HERE = Path(__file__).parent
SEEDS = int(os.environ.get("PENNYWEIGHT_FAULT_SEEDS", "20"))


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """The faults, compiled."""
    compiler = shutil.which("cc")
    if compiler is None:
        services.missing("compiler")
    if sys.platform != "linux":
        services.unavailable("the faults are loaded by Linux only")
    made = tmp_path_factory.mktemp("shim") / "faults.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", made, HERE / "faults.c", "-ldl"]
    subprocess.run(command, check=True)
    return made


def lines(shim, folder, seeds, *more):
    done = subprocess.run(
        [sys.executable, HERE / "faulty.py", folder, "0", str(seeds), *more],
        env={**os.environ, "LD_PRELOAD": str(shim), "PYTHONPATH": str(HERE.parent)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert int(first) > 500  # all of it goes through the shim
    assert len(rest) == seeds
    return rest


def test_what_counted_survives_every_fault(shim, tmp_path):
    assert [line for line in lines(shim, tmp_path, SEEDS) if not line.endswith(": ")] == []


def test_a_store_that_did_not_sync_would_be_noticed(shim, tmp_path):
    assert any(
        "lost" in line or "integrity" in line for line in lines(shim, tmp_path, 30, "unsafe")
    )
