"""`python -m bench.readers [NAME…]`: install other tools, each into an environment of its own.

The benchmarks compare their readers with ours, and tests have them read what we export. They stay
in the cache of this user; nothing else installs them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PINNED = {
    "inspect-ai": "0.3.285",
    "pydantic-evals": "2.62.0",
    "deepeval": "4.3.1",
    "every_eval_ever": "0.3.0",
    "harbor": "0.24.0",
}
_PYTHONS = ("python3.13", "python3.12", "python3")
"""Some need a newer Python than we do."""


def place() -> Path:
    """Return the folder of the environments."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "pennyweight", "readers")


def interpreter(name: str) -> Path | None:
    """Return the interpreter that has a tool installed; None if there is none."""
    folder = "Scripts" if os.name == "nt" else "bin"
    found = place() / f"{name}-{PINNED[name]}" / folder / "python"
    return found if found.exists() else None


def install(name: str) -> bool:
    """Install a tool with the newest Python that can run it; return whether that worked."""
    folder = place() / f"{name}-{PINNED[name]}"
    for python in filter(None, map(shutil.which, _PYTHONS)):
        made = subprocess.run([python, "-m", "venv", str(folder)], capture_output=True, check=False)
        inside = interpreter(name)
        if made.returncode or inside is None:
            continue
        command = [str(inside), "-m", "pip", "install", "-q", f"{name}=={PINNED[name]}"]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return True
        shutil.rmtree(folder, ignore_errors=True)
    return False


def main() -> None:
    """Install the tools that are named, by default all."""
    for name in sys.argv[1:] or PINNED:
        there = interpreter(name) is not None or install(name)
        print(f"{name} {PINNED[name]}: {'installed' if there else 'cannot be installed here'}")


if __name__ == "__main__":
    main()
