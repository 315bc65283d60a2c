"""The tools that read what is exported, each in an environment of its own."""

import subprocess
from pathlib import Path

import pytest
from bench.readers import interpreter


def ask(tool: str, code: str, *arguments: Path | str) -> str:
    """Run code with the Python that has a tool, and return what it prints; skip without one."""
    python = interpreter(tool)
    if python is None:
        pytest.skip("tools that read exports are not installed: python -m bench.readers")
    command = [str(python), "-P", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr[-2_000:]
    return done.stdout
