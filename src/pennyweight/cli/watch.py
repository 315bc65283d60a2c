"""`pennyweight run --watch`: run again whenever a file that the suite reads changes.

Files that a run writes (a log, a store, an output) must not start the next run, so they are not
watched. Later runs resume the first one, so only changed attempts are repeated.
"""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

POLL_SECONDS = 0.5
MAX_FILE_BYTES = 5_000_000
"""Larger files are not searched for names of other files and functions."""
MAX_FILES = 5_000
"""How many files of one folder are watched."""
_TABLES = {".json", ".jsonl", ".csv", ".yaml", ".yml"}
_WRITTEN = {"--record", "--store"}
_QUOTED = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[^\s,\[\]{}\"']+")
_FUNCTION = re.compile(r"(?:python:)?([A-Za-z_][\w.]*):[A-Za-z_]\w*")

Seen = dict[Path, tuple[int, int]]


def watch(suite: str) -> None:
    """Run the command without --watch, now and after every change."""
    words = [word for word in sys.argv[1:] if word != "--watch"]
    path, again = Path(suite), False
    moved, noisy = set[Path](), set[Path]()
    while True:
        sources, others = read_files(path, words)
        before = stamps(sources)
        command = resumed(words, suite) if again else words
        ended = subprocess.run([sys.executable, "-m", "pennyweight", *command], check=False)  # noqa: S603
        again = again or ended.returncode not in {2, -2, 130}
        click.echo("Waiting for changes. Press Ctrl-C to stop.", err=True)
        now, rest = stamps(sources), stamps(others)
        last, moved = moved, {one for one in before if now.get(one) != before[one]}
        noisy |= moved & last  # a file that changes in every run is written by the run
        before |= {one: now[one] for one in noisy & now.keys()}
        while stamps(sources) == before and stamps(others) == rest:
            time.sleep(POLL_SECONDS)
            sources, others = read_files(path, words)
            before |= {one: at for one, at in stamps(sources).items() if one not in before}
            rest |= {one: at for one, at in stamps(others).items() if one not in rest}


def resumed(words: list[str], suite: str) -> list[str]:
    """Return the command that resumes the latest run of the suite.

    >>> resumed(["run", "s.yaml", "--by", "tier"], "s.yaml")
    ['run', 's.yaml', '--by', 'tier', '--resume', '--yes']
    """
    asked = [word for word in ("--resume", "--yes") if word not in words]
    return [*words, *asked] if suite in words else list(words)


def stamps(files: Iterable[Path]) -> Seen:
    """Return the modification time and the size of the files that exist."""
    found: Seen = {}
    for path in files:
        with contextlib.suppress(OSError):
            about = path.stat()
            found[path] = about.st_mtime_ns, about.st_size
    return found


def read_files(suite: Path, words: Iterable[str] = ()) -> tuple[set[Path], set[Path]]:
    """Find the files that a suite reads: sources, and what agents work on.

    The first are the suite, tables, rubrics, policies and Python modules with what they import; the
    second the files of workspaces and other files that a command names. Nothing is imported.
    """
    folder = suite.resolve().parent
    sources, others = {suite.resolve()}, set[Path]()
    named = {w for before, w in pairwise(["", *words]) if before not in _WRITTEN}
    sources |= {Path(w).resolve() for w in named if Path(w).suffix in {".yaml", ".yml", ".json"}}
    waiting = list(sources)
    while waiting:
        for name in _names(waiting.pop()):
            for found, source in _found(name, folder):
                if source and found not in sources:
                    sources.add(found)
                    waiting += [found] if found.suffix in {*_TABLES, ".py"} else []
                elif not source:
                    others.add(found)
    return {one for one in sources if one.is_file()}, others - sources


def _names(path: Path) -> Iterator[str]:
    """Yield possible file names: words and quoted texts; of Python files, their imports."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    if path.suffix == ".py":
        yield from (f"{module}:import" for module in _imports(text))
        return
    words = (found[0].strip("\"'") for found in _QUOTED.finditer(text))
    yield from dict.fromkeys(filter(None, words))


def _imports(text: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def _found(name: str, folder: Path) -> Iterator[tuple[Path, bool]]:
    """Find the files that a word names, and whether each is a source."""
    if function := _FUNCTION.fullmatch(name):
        module = function[1].replace(".", "/")
        for place in (folder, Path.cwd()):
            for file in (place / f"{module}.py", place / module / "__init__.py"):
                if file.is_file():
                    yield file.resolve(), True
                    return
    try:
        parts = shlex.split(name)
    except ValueError:
        parts = [name]
    for part in dict.fromkeys((name, *parts)):
        yield from _path(part, folder, alone=part == name)


def _path(part: str, folder: Path, *, alone: bool) -> Iterator[tuple[Path, bool]]:
    path = folder / part.partition("#")[0].removeprefix("replay:")
    try:
        if path.is_file():
            own = path.suffix in {*_TABLES, ".py"} and alone
            yield path.resolve(), own or path.suffix == ".py"
        elif path.is_dir() and part.strip("./") and path.resolve() != folder:
            for number, below in enumerate(path.rglob("*")):
                if number < MAX_FILES and below.is_file():
                    yield below.resolve(), False
    except OSError:
        return
