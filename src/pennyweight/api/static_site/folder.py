"""The folder of a site: it knows which files are its own, and touches no others."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pennyweight.errors import UsageError

MANIFEST = ".pennyweight-site"
"""Lists the files of a site, one in a line."""
_FIRST = "pennyweight site 1"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*")
MAX_MANIFEST_BYTES = 500_000_000


class SiteFolder:
    """Writes the files of a site, and removes those of an earlier one that are not written again.

    A file is listed before it is written, so that nothing is left behind after a crash.
    """

    def __init__(self, path: Path) -> None:
        """Refuse a folder with other things in it, unless a site was written there before."""
        self.path = path
        self.bytes = 0
        self._earlier = self._listed()
        self._written: set[str] = set()

    @property
    def files(self) -> int:
        """How many files were written."""
        return len(self._written)

    def _listed(self) -> set[str]:
        listed = self.path / MANIFEST
        if not os.path.lexists(self.path):
            return set()
        if not self.path.is_dir():
            raise UsageError(f"{self.path}: this is a file, and a site needs a folder.")
        if not os.path.lexists(listed):
            if any(self.path.iterdir()):
                raise UsageError(
                    f"{self.path}: the folder has other files in it. A site is written to a new "
                    "or empty folder, or to one that 'pennyweight report' wrote before."
                )
            return set()
        if listed.is_symlink() or not listed.is_file():
            raise self._damaged()
        if listed.stat().st_size > MAX_MANIFEST_BYTES:
            raise self._damaged()
        lines = listed.read_text(encoding="utf-8", errors="replace").splitlines()
        if lines[:1] != [_FIRST] or not all(map(_NAME.fullmatch, lines[1:-1])):
            raise self._damaged()
        return {line for line in lines[1:] if _NAME.fullmatch(line)}  # the last may be cut

    def _damaged(self) -> UsageError:
        return UsageError(
            f"{self.path}: {MANIFEST} in it does not list a site. Use another folder."
        )

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file; one that somebody else put there is refused."""
        if not _NAME.fullmatch(name) or name in self._written:
            raise ValueError(name)
        target = self.path / name
        self._refuse_foreign(name, target)
        data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        try:
            self._put(name, target, data)
        except OSError as error:
            raise UsageError(
                f"{error.filename or target}: {error.strerror or error}. The site is incomplete; "
                "writing it again replaces it."
            ) from error
        self._written.add(name)
        self.bytes += len(data)

    def _put(self, name: str, target: Path, data: bytes) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        fresh = not os.path.lexists(self.path / MANIFEST)
        with (self.path / MANIFEST).open("a", encoding="utf-8") as listed:
            listed.write(f"{_FIRST}\n{name}\n" if fresh else f"{name}\n")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        with target.open("xb") as file:  # never through a link
            file.write(data)

    def _refuse_foreign(self, name: str, target: Path) -> None:
        for folder in (target.parent, *target.parent.parents):
            if folder in {self.path, folder.parent}:
                break
            if folder.is_symlink():
                raise UsageError(f"{folder} is a link: a site is written to real folders only.")
        if name not in self._earlier and os.path.lexists(target):
            raise UsageError(
                f"{target} was not written by 'pennyweight report'. Move it, or use another folder."
            )

    def finish(self) -> None:
        """Remove the files of the earlier site that were not written again."""
        folders = set()
        for name in self._earlier - self._written:
            target = self.path / name
            if any(one.is_symlink() for one in self._folders(target)):
                continue
            target.unlink(missing_ok=True)
            folders |= set(self._folders(target))
        for folder in sorted(folders, key=lambda one: -len(one.parts)):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        part = self.path / f"{MANIFEST}.part"
        part.unlink(missing_ok=True)
        with part.open("x", encoding="utf-8") as listed:
            listed.write("\n".join([_FIRST, *sorted(self._written)]) + "\n")
        part.replace(self.path / MANIFEST)

    def _folders(self, target: Path) -> list[Path]:
        """List the folders between a file and the folder of the site."""
        return [one for one in target.parents if self.path in one.parents]
