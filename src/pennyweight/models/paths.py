"""Files that a suite names."""

from __future__ import annotations

from pathlib import Path


def beside(folder: Path | None, name: str) -> Path:
    """Find a file by what a suite calls it: in the suite's folder if it is there, else here."""
    path = Path(name).expanduser()
    there = folder / path if folder else path
    return there if there.exists() else path
