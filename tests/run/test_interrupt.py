"""Ending a run from outside: in good order at first, at once the second time, losing nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.store.store import Store
from models.hostile import in_a_thread, response
from run.test_hostile import suite

ANSWERED = 10


class Tiring:
    """Answers some requests, and lets the others wait until it is rested."""

    def __init__(self) -> None:
        self.left = ANSWERED

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        self.left -= 1
        await (response()(writer) if self.left >= 0 else asyncio.sleep(300))


def start(folder: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "assay", "run", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "ASSAY_STORE": str(folder / "store.db")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def made(folder: Path) -> int:
    store = Store(str(folder / "store.db"))
    try:
        return sum(frame.height for frame in store.records(store.find("latest").id))
    finally:
        store.close()


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


LIMITS = "{concurrency: 4, timeout: 300}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_stops_at_once_and_loses_no_answer(
    number: signal.Signals, tmp_path: Path
) -> None:
    tiring = Tiring()
    with in_a_thread({"m": tiring}) as served:
        address, seen = served["m"]
        running = start(tmp_path, suite(tmp_path, {"m": address}, tasks=40, limits=LIMITS))
        try:
            until(lambda: len(seen) == ANSWERED + 4)
            running.send_signal(number)
            time.sleep(1)
            assert running.poll() is None  # it waits for what is under way
            running.send_signal(number)
            _, said = running.communicate(timeout=60)
        finally:
            running.kill()
        assert running.returncode == 130, said
        assert "Interrupted; go on with: assay run --resume" in said
        assert "Traceback" not in said
        assert len(seen) == ANSWERED + 4  # nothing was begun after the first signal
        assert made(tmp_path) == ANSWERED
        tiring.left = 1000
        resumed = start(tmp_path, "--resume")
        _, said = resumed.communicate(timeout=60)
        assert resumed.returncode == 0, said
        assert len(seen) == ANSWERED + 4 + 30  # what was answered is not asked again
        assert made(tmp_path) == 40


def test_a_termination_ends_in_good_order(tmp_path: Path) -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        await response()(writer)

    with in_a_thread({"m": slow}) as served:
        address, seen = served["m"]
        running = start(tmp_path, suite(tmp_path, {"m": address}, tasks=400))
        try:
            until(lambda: len(seen) > 12)
            running.send_signal(signal.SIGTERM)
            _, said = running.communicate(timeout=60)
        finally:
            running.kill()
        assert running.returncode == 130, said
        assert "Interrupted; go on with: assay run --resume" in said
        assert made(tmp_path) == len(seen)
        assert len(seen) < 400
