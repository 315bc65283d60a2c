"""Files that a suite names."""

from __future__ import annotations

from pathlib import Path


def beside(folder: Path | None, name: str) -> Path:
    """Return a file that a suite names: in the suite's folder if it exists there, else as it is."""
    path = Path(name).expanduser()
    there = folder / path if folder else path
    return there if there.exists() else path
