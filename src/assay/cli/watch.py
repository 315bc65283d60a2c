"""`assay run --watch`: run again whenever a file of the suite changes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import click

EVERY = 0.5
HIDDEN = "."


def watch(suite: str) -> None:
    """Run the command as it was given, but for --watch, now and after every change."""
    again = [word for word in sys.argv[1:] if word != "--watch"]
    folder = Path(suite).resolve().parent
    while True:
        seen = changes(folder)
        subprocess.run([sys.executable, "-m", "assay", *again], check=False)  # noqa: S603
        click.echo("Waiting for a change; Ctrl-C ends.", err=True)
        while changes(folder) == seen:
            time.sleep(EVERY)


def changes(folder: Path) -> dict[str, tuple[int, int]]:
    """Give the size and time of every file in a folder, but for hidden ones."""
    found = {}
    for path in folder.rglob("*"):
        if not any(part.startswith(HIDDEN) for part in path.relative_to(folder).parts):
            try:
                about = path.stat()
            except OSError:
                continue
            if path.is_file():
                found[str(path)] = about.st_mtime_ns, about.st_size
    return found
