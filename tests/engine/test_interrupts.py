"""Ending a run from outside: in good order at first, at once the second time, losing nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.test_hostile import suite
from models.hostile import in_a_thread, response
from pennyweight.engine.interrupts import SAME, Stopping
from pennyweight.engine.tally import Tally
from pennyweight.store.store import Store

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
        [sys.executable, "-m", "pennyweight", "run", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PENNYWEIGHT_STORE": str(folder / "store.db")},
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


def ledger(folder: Path) -> dict[str, Any]:
    store = Store(str(folder / "store.db"))
    try:
        return store.spent(store.find("latest").id)
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
        assert "Interrupted. Continue with: pennyweight run --resume" in said
        assert "Traceback" not in said
        assert len(seen) == ANSWERED + 4  # nothing was begun after the first signal
        assert made(tmp_path) == ANSWERED
        spent = ledger(tmp_path)
        assert spent["calls"] == ANSWERED + 4  # what was cut may be charged, and counts
        assert spent["held_usd"] == pytest.approx(4 * (len("2 + 2?") + 16 + 4096) / 1e6)
        tiring.left = 1000
        resumed = start(tmp_path, "--resume")
        _, said = resumed.communicate(timeout=60)
        assert resumed.returncode == 0, said
        assert len(seen) == ANSWERED + 4 + 30  # what was answered is not asked again
        assert made(tmp_path) == 40


@pytest.mark.parametrize("numbers", [[signal.SIGTERM], [signal.SIGHUP, signal.SIGHUP]])
def test_a_termination_ends_in_good_order(tmp_path: Path, numbers: list[signal.Signals]) -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        await response()(writer)

    with in_a_thread({"m": slow}) as served:
        address, seen = served["m"]
        running = start(tmp_path, suite(tmp_path, {"m": address}, tasks=400))
        try:
            until(lambda: len(seen) > 12)
            for number in numbers:  # a closed terminal may be told twice
                running.send_signal(number)
                time.sleep(0.02)
            _, said = running.communicate(timeout=60)
        finally:
            running.kill()
        assert running.returncode == 130, said
        assert "Interrupted. Continue with: pennyweight run --resume" in said
        assert made(tmp_path) == len(seen)
        assert len(seen) < 400


def test_a_hang_up_that_is_ignored_stays_so(tmp_path: Path) -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        await response()(writer)

    with in_a_thread({"m": slow}) as served:
        address, seen = served["m"]
        path = suite(tmp_path, {"m": address}, tasks=40)
        running = subprocess.Popen(
            ["nohup", sys.executable, "-m", "pennyweight", "run", str(path)],
            cwd=tmp_path,
            env={**os.environ, "PENNYWEIGHT_STORE": str(tmp_path / "store.db")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until(lambda: len(seen) > 4)
            running.send_signal(signal.SIGHUP)
            _, said = running.communicate(timeout=60)
        finally:
            running.kill()
        assert running.returncode == 0, said
    assert made(tmp_path) == 40


def test_an_answer_that_has_come_is_taken_before_the_end() -> None:
    async def main() -> list[str]:
        loop, taken = asyncio.get_running_loop(), []
        answers = [loop.create_future() for _ in range(3)]

        async def call(number: int) -> None:
            taken.append(await answers[number])
            await asyncio.sleep(300)

        tasks = [asyncio.ensure_future(call(number)) for number in range(3)]
        await asyncio.sleep(0)
        stopping = Stopping(Tally(3), lambda: None, lambda: tasks)
        stopping.press()
        stopping.press()  # the same one: `timeout` tells a process twice at once
        assert (stopping.signals, stopping.is_cut) == (1, False)
        await asyncio.sleep(2 * SAME)
        answers[1].set_result("answer")
        stopping.press()
        await asyncio.wait(tasks, timeout=60)
        assert all(task.cancelled() for task in tasks)
        return taken

    assert asyncio.run(main()) == ["answer"]
