"""A llama.cpp server on loopback, in a child process that cannot outlive this one.

The child reads its standard input and ends when that is closed, which happens however the parent
ends, even by `kill -9`. It ignores Ctrl-C, so that calls in flight can finish.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from pennyweight.errors import UsageError


class Server:
    """A running server: its address and its process."""

    def __init__(self, path: Path, slots: int, context: int) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", __name__, *map(str, (path, slots, context))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        try:
            self.address = self._wait(path)
        except BaseException:
            self.stop()
            raise

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def stop(self) -> None:
        """End the process and wait for it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _wait(self, path: Path) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if line:
            return str(json.loads(line)["address"])
        self._process.wait()
        self._log.seek(0)
        lines = self._log.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        raise UsageError(f"{path} cannot be served: {lines[-1] if lines else 'unknown reason'}")


def _parameters(path: str, slots: int, context: int) -> Any:
    """Configure the server so that a reply depends as little as possible on concurrent requests.

    The prompt cache is off, because with it usage and latency would depend on earlier requests. One
    core stays free: the threads wait for each other by spinning, so that on a machine with any
    other load they would become ten times slower.
    """
    xllamacpp: Any = import_module("xllamacpp")
    wanted = xllamacpp.CommonParams()
    wanted.model.path = path
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = max(1, cores() - 1)
    wanted.model_alias = {Path(path).stem}
    wanted.n_parallel = slots
    wanted.n_ctx = slots * context
    wanted.cache_prompt = False
    wanted.cache_ram_mib = 0
    wanted.ui = False
    wanted.verbosity = 0
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = 0
    return wanted


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def main(path: str, slots: str, context: str) -> None:
    """Serve until standard input is closed (in the child)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library may print; only the address goes to the parent
    xllamacpp: Any = import_module("xllamacpp")
    server = xllamacpp.Server(_parameters(path, int(slots), int(context)))
    print(json.dumps({"address": server.listening_address}), file=answer, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
