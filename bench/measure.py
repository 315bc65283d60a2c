"""Time and memory of child processes, and results with their bounds."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

PENNYWEIGHT = [str(Path(sys.executable).with_name("pennyweight"))]


@dataclass(frozen=True)
class Result:
    """A figure and its bound."""

    what: str
    value: float
    bound: float
    unit: str
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{self.what}: {self.value:.2f}{self.unit} ({sign} {self.bound:g}{self.unit})"


@dataclass(frozen=True)
class Spent:
    seconds: float
    mebibytes: float
    cpu: float
    """CPU time in seconds."""


def spend(command: list[str], stdout: IO[str] | None = None) -> Spent:
    """Run a command to its end and measure it; what it prints goes to `stdout`."""
    start = time.perf_counter()
    with TemporaryFile("w+") as stderr:
        process = subprocess.Popen(command, stdout=stdout or subprocess.DEVNULL, stderr=stderr)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            stderr.seek(0)
            raise SystemExit(f"{stderr.read()}{' '.join(command)} exited with {process.returncode}")
    return Spent(seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def fastest(command: list[str], times: int) -> Spent:
    """Run a command several times and return the fastest: the others were disturbed."""
    return min((spend(command) for _ in range(times)), key=lambda s: s.seconds)
