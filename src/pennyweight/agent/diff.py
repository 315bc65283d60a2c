"""The changes that an agent made in its workspace, as a unified diff of bounded length."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pennyweight.agent.line_diff import Change, Effort, changes

MAX_DIFF_CHARACTERS = 256_000
MAX_COMPARED_BYTES = 1_000_000
"""Larger files are not compared line by line."""
CONTEXT = 3
IGNORED = ".git"
"""The folder whose files a diff does not show."""


@dataclass(frozen=True, slots=True)
class Diff:
    """The changes in a workspace. `text` may show fewer than there are."""

    text: str
    added: int
    changed: int
    removed: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a workspace: each file's inode and the time of its last status change.

    No program can set that time, so a file for which both are unchanged has not changed.
    """

    marks: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, folder: Path) -> Snapshot:
        """Take a snapshot of every file in a folder."""
        return cls({name: _mark(kind) for name, kind in _files(folder)})

    def changed(self, after: Path) -> Iterator[tuple[str, os.stat_result | None, bool]]:
        """Yield the files that changed, their state (None: removed), and whether it is known.

        It is unknown for a folder that cannot be read; the files in it are not listed.
        """
        now = dict(_files(after))
        closed = tuple("" if n == "." else f"{n}/" for n, kind in now.items() if kind is None)
        for name in sorted({*self.marks, *now}):
            if name not in now and closed and name.startswith(closed):
                continue  # it may still be in the folder that cannot be read
            kind = now.get(name)
            if name not in now or self.marks.get(name) != _mark(kind):
                yield name, kind, name not in now or kind is not None


def _mark(kind: os.stat_result | None) -> tuple[int, int]:
    return (0, 0) if kind is None else (kind.st_ino, kind.st_ctime_ns)


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result | None]]:
    """List the files of a folder without following links; None marks an unreadable folder."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            if (folder / below).is_symlink():
                raise OSError(errno.ELOOP, below)
            with os.scandir(folder / below) as entries:
                found = [(e.name, e.stat(follow_symlinks=False)) for e in entries]
        except OSError:
            yield below or ".", None
            continue
        for own, kind in found:
            name = f"{below}/{own}" if below else own
            if stat.S_ISDIR(kind.st_mode):
                waiting.append(name)
            else:
                yield name, kind


def compare(before: Path, snapshot: Snapshot, after: Path) -> Diff:
    """Compare a workspace with a folder that holds its initial state."""
    shown: list[str] = []
    effort = Effort()
    length = left_out = added = changed = removed = 0
    for name, old, new in _changed(before, snapshot, after):
        added += old is None
        removed += new is None
        changed += old is not None and new is not None
        if length > MAX_DIFF_CHARACTERS:
            left_out += 1
            continue
        text = "\n".join(_file(_safe(name), old, new, effort))
        if length + len(text) > MAX_DIFF_CHARACTERS:
            room = max(0, MAX_DIFF_CHARACTERS - length)
            text = text[:room] + "\n[… the rest of this file is left out …]"
        shown.append(text)
        length += len(text) + 1
    if left_out:
        shown.append(f"[… {left_out:,} more files are left out …]")
    return Diff("\n".join(shown), added, changed, removed)


@dataclass(frozen=True, slots=True)
class _Opaque:
    """A file that is not compared line by line."""

    text: str
    changed_at: int = 0
    """The time of its last change, if only that shows a change."""


_Content = bytes | _Opaque | None
CLOSED = _Opaque("a folder that cannot be read")


def _changed(
    before: Path, snapshot: Snapshot, after: Path
) -> Iterator[tuple[str, _Content, _Content]]:
    """Yield the files that changed, with their content before and after.

    Only names that were found without following a link are read. Through a link, an agent could
    lead to files that it cannot read itself.
    """
    for name, kind, readable in snapshot.changed(after):
        if name.partition("/")[0] == IGNORED:
            continue
        old = content_of(before / name) if name in snapshot.marks else None
        new = None if kind is None else content_of(after / name)
        if not readable:
            held = name == "." or any(n.startswith(f"{name}/") for n in snapshot.marks)
            old, new = _Opaque("a folder") if held else old, CLOSED
        if old != new:
            yield name, old, new


def _safe(name: str) -> str:
    """Return a name on one line, with unprintable characters escaped."""
    clean = name.encode("utf-8", "replace").decode()
    return clean if clean.isprintable() else ascii(clean)[1:-1]


def content_of(path: Path) -> _Content:
    """Read a file; None if it does not exist."""
    try:
        kind = path.lstat()
        if stat.S_ISLNK(kind.st_mode):
            return _Opaque(f"a link to {_safe(str(path.readlink()))}")
        if not stat.S_ISREG(kind.st_mode):
            return _Opaque("a special file")
        if kind.st_size > MAX_COMPARED_BYTES:
            return _Opaque(f"a file of {kind.st_size:,} bytes", kind.st_mtime_ns)
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return file.read(MAX_COMPARED_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _Opaque(f"a file that cannot be read ({error.strerror})")


def _file(name: str, old: _Content, new: _Content, effort: Effort) -> Iterator[str]:
    yield f"--- {'/dev/null' if old is None else f'a/{name}'}"
    yield f"+++ {'/dev/null' if new is None else f'b/{name}'}"
    for sign, content in (("-", old), ("+", new)):
        if isinstance(content, _Opaque):
            yield f"{sign}[{content.text}]"
    if isinstance(old, _Opaque) or isinstance(new, _Opaque):
        return
    a, b = _lines(old), _lines(new)
    if a is None or b is None:
        yield f"[binary: {len(old or b''):,} bytes before, {len(new or b''):,} after]"
    else:
        yield from _unified(a, b, effort)


def _lines(content: bytes | None) -> list[str] | None:
    """Split text into lines; None for binary content."""
    if content is None:
        return []
    if b"\0" in content:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, last + "\n\\ No newline at end of file"] if last else lines


def _unified(a: Sequence[str], b: Sequence[str], effort: Effort) -> Iterator[str]:
    for group in _groups(changes(a, b, effort), len(a)):
        (_, a0, _, b0, _), (_, _, a1, _, b1) = group[0], group[-1]
        yield f"@@ -{_range(a0, a1)} +{_range(b0, b1)} @@"
        for same, i0, i1, j0, j1 in group:
            if same:
                yield from (f" {line}" for line in a[i0:i1])
            else:
                yield from (f"-{line}" for line in a[i0:i1])
                yield from (f"+{line}" for line in b[j0:j1])


def _range(start: int, end: int) -> str:
    length = end - start
    return f"{start + 1 if length else start},{length}"


_Block = tuple[bool, int, int, int, int]


def _groups(found: Iterator[Change], length: int) -> Iterator[list[_Block]]:
    """Group changes that are close to each other, with the lines around them."""
    group: list[_Block] = []
    for i0, i1, j0, j1 in found:
        if group and i0 - group[-1][2] <= 2 * CONTEXT:
            group.append((True, group[-1][2], i0, group[-1][4], j0))
        else:
            if group:
                yield _closed(group, length)
            lead = min(CONTEXT, i0)
            group = [(True, i0 - lead, i0, j0 - lead, j0)] if lead else []
        group.append((False, i0, i1, j0, j1))
    if group:
        yield _closed(group, length)


def _closed(group: list[_Block], length: int) -> list[_Block]:
    _, _, i1, _, j1 = group[-1]
    trail = min(CONTEXT, length - i1)
    return [*group, (True, i1, i1 + trail, j1, j1 + trail)] if trail else group
