"""Whether two formulas are mathematically equal, decided by math-verify in a child process.

It takes seconds to import, its time limit works only in a main thread, and there are formulas
(9^9^9^9) for which no limit inside Python works. A process can be killed.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import subprocess
import sys
import threading
from importlib.util import find_spec
from typing import Self

from pennyweight.errors import UsageError

SECONDS = 10.0
START = 120.0
_CODE = "from pennyweight.text.symbolic import serve; serve()"


def serve() -> None:
    """Answer pairs of formulas, one JSON line each, from standard input to standard output."""
    math = importlib.import_module("math_verify")
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415

        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    sys.stdout.write("ready\n")
    for line in sys.stdin:
        sys.stdout.flush()
        answer, target = json.loads(line)
        try:
            right = bool(math.verify(math.parse(_formula(target)), math.parse(_formula(answer))))
        except Exception:  # its parsers raise anything
            right = False
        sys.stdout.write(json.dumps(right) + "\n")
        sys.stdout.flush()


def _formula(text: str) -> str:
    return text if "$" in text or "\\boxed" in text else f"${text}$"


class Verifier:
    """A process that compares formulas, started when first needed and again after it was ended."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self.process: subprocess.Popen[str] | None = None
        self.known: dict[tuple[str, str], bool] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def same(self, answer: str, target: str) -> bool:
        """Return whether two formulas are equal. One that takes too long counts as different."""
        pair = (answer, target)
        if pair not in self.known:
            self.known[pair] = self._ask(json.dumps(pair)) == "true"
        return self.known[pair]

    def stop(self) -> None:
        """End the process."""
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def _start(self) -> subprocess.Popen[str]:
        if find_spec("math_verify") is None:
            raise UsageError(
                "match: math needs the package math-verify: pip install 'pennyweight[math]'."
            )
        command = [sys.executable, "-c", _CODE]
        pipe, none = subprocess.PIPE, subprocess.DEVNULL
        process = subprocess.Popen(  # noqa: S603
            command, stdin=pipe, stdout=pipe, stderr=none, text=True, encoding="utf-8"
        )
        self.process = process
        return process

    def _ask(self, line: str) -> str:
        fresh = self.process is None
        process = self.process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(self.seconds + (START if fresh else 0), process.kill)
        timer.start()
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            if fresh and process.stdout.readline() != "ready\n":
                raise UsageError("math-verify could not be started; match: math needs it.")
            reply = process.stdout.readline().strip()
        except OSError:
            reply = ""
        finally:
            timer.cancel()
        if not reply:
            self.stop()
        return reply
