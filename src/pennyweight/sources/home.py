"""The folder `.pennyweight`, in which stores and baselines are kept."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

NAME = ".pennyweight"
IGNORED = """\
# Runs stay on this machine. Baselines are small and can be committed.
*
!.gitignore
!baselines/
!baselines/**
"""


def create_folder(place: Path) -> None:
    """Create a folder that only this user can read; `.pennyweight` with its `.gitignore`."""
    place.mkdir(mode=0o700, exist_ok=True)
    ignore = place / ".gitignore"
    if place.name == NAME and not ignore.exists():
        with suppress(OSError):  # nothing depends on it
            ignore.write_text(IGNORED, encoding="utf-8")
