"""The changes of an agent that count as its answer.

Checks run in a fresh copy of the initial workspace to which these changes are applied. Files that
configure interpreters and test runners are left out: they could decide a check instead of the work.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import stat
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path
from typing import Any

from pennyweight.agent.diff import Snapshot, content_of
from pennyweight.agent.makefiles import MAKEFILES, make_inputs
from pennyweight.suite.values import Workspace

PROTECTED = {
    "configures a test runner": (
        *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini"),
        *("setup.cfg", "noxfile.py", "jest.config.*", "vitest.config.*", ".mocharc.*", ".rspec"),
        *("karma.conf.*", "playwright.config.*", "phpunit.xml*", ".proverc", ".cargo/config*"),
        *("vite.config.*", "vitest.workspace.*", "babel.config.*", ".babelrc*", "bunfig.toml"),
        *("ava.config.*", "cypress.config.*", ".nycrc*", ".coveragerc", "mypy.ini", ".mypy.ini"),
    ),
    "changes how an interpreter starts": (
        *("sitecustomize.*", "usercustomize.*", "*.pth", "*.egg-link", "pyvenv.cfg", ".npmrc"),
        *(".venv/bin/*", "venv/bin/*", "node_modules/.bin/*"),
    ),
    "declares plugins": ("*.dist-info/*", "*.egg-info/*"),
    "is compiled Python": ("__pycache__/*", "*.pyc", "*.pyo"),
    "changes what git runs": (
        *(".git", ".git/hooks/*", ".git/config*", ".git/commondir", ".git/modules/*"),
        ".git/worktrees/*",
    ),
}
"""Why a file is left out, and the patterns of such files, in any folder."""
FOLDERS = {
    why: tuple("/".join(p.split("/")[:n]) for p in patterns for n in range(1, p.count("/") + 1))
    for why, patterns in PROTECTED.items()
}
"""The same for the folders of such files: a link of that name could stand for one."""
CALLED = {
    "make": MAKEFILES,
    "just": ("justfile", "Justfile", ".justfile"),
    "rake": ("Rakefile", "rakefile"),
    "task": ("Taskfile.*",),
}
"""Programs that do what a file of the workspace says, with the patterns of such files."""
PARTS: dict[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
    "pyproject.toml": (tomllib.loads, ("tool",)),
    "package.json": (json.loads, ("scripts", "jest", "mocha", "ava", "nyc", "vitest", "babel")),
}
"""Files of which only some keys configure test runners."""
MODULES = sys.stdlib_module_names | {
    *("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments", "exceptiongroup"),
    *("tomli", "coverage", "hypothesis", "nose2", "xdist", "execnet", "tox", "nox", "attr"),
    *("mypy", "ruff", "flake8", "pylint", "black", "isort", "pyright", "behave", "pip", "build"),
    *(
        "anyio",
        "sniffio",
        "idna",
        "typing_extensions",
        "sortedcontainers",
        "schemathesis",
        "syrupy",
    ),
    *("respx", "_hypothesis_globals", "_hypothesis_ftz_detector"),
}
"""Modules of Python, test runners and their plugins, which a file of that name would replace."""
NOT_INSTALLED = frozenset({"tests", "test", "docs", "doc", "examples", "scripts", "tools", "bench"})
"""Names that packages install by mistake; a file of such a name replaces nothing."""


@cache
def installed(folders: tuple[Path, ...] = ()) -> frozenset[str]:
    """Return the top-level modules next to Pennyweight and in other folders of packages.

    pytest loads plugins by itself.
    """
    names = (one.name.partition(".")[0] for folder in folders for one in folder.iterdir())
    return frozenset((*packages_distributions(), *names)) - NOT_INSTALLED


UNREADABLE = "cannot be read"
MAX_LISTED = 100
"""Files left out that a record lists."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A change that is not applied before the checks, and why."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """Decides which files of an agent reach its checks."""

    initial: Path
    """The initial state of the workspace."""
    after: Path
    """The workspace as the agent left it."""
    work: Workspace
    packages: tuple[Path, ...] = ()
    """The folders from which the checks import packages."""

    def why_left_out(self, path: str) -> str | None:
        """Return why a changed file is left out; None if it is part of the answer."""
        allowed = self.work.answer_paths
        if allowed is None:
            return self._protected(path)
        if path in allowed:
            return None
        if not any(_is_below(path, pattern) for pattern in allowed):
            return "is not in answer_paths"
        return self._protected(path)

    def _protected(self, path: str) -> str | None:
        if _matches(path, (".git/hooks/*.sample",)):  # git never runs them
            return None
        for why, patterns in PROTECTED.items():
            if _matches(path, patterns):
                return why
            if self._is_link(path) and _matches(path, FOLDERS[why]):
                return why
        if self._is_link(path) and self._was_folder(path):
            return "is a link in place of a folder"
        if program := self._told_by(path):
            return f"tells {program} what to do"
        if self._replaces_a_module(path):
            return "replaces a module of Python or of a test runner"
        read, keys = PARTS.get(path.rpartition("/")[2], (json.loads, ()))
        before, after = (_parts(read, folder / path, keys) for folder in (self.initial, self.after))
        if before != after:
            return f"changes {' or '.join(map(repr, keys[:2]))}, which can configure a test runner"
        return None

    def _told_by(self, path: str) -> str | None:
        """Return the program that a check calls and that does what a file says."""
        commands = " ".join(chain.from_iterable((*self.work.verify, *self.work.keep)))
        for program, patterns in CALLED.items():
            if re.search(rf"(?<![\w.-])g?{program}(?![\w.-])", commands):
                hidden = self.work.verify_files
                is_make = program == "make"
                more = make_inputs(self.initial, hidden, path, commands) if is_make else ()
                if _matches(path, (*patterns, *more)):
                    return program
        return None

    def _is_link(self, path: str) -> bool:
        return (self.after / path).is_symlink()

    def _was_folder(self, path: str) -> bool:
        """Return whether the initial workspace or the hidden files have this folder."""
        hidden = any(file.startswith(f"{path}/") for file in self.work.verify_files)
        return hidden or (self.initial / path).is_dir()

    def _replaces_a_module(self, path: str) -> bool:
        """Return whether Python could import a file in place of one of its own modules.

        A module inside of a package cannot be: its name is longer. A folder that was there before
        may be searched for modules, even if the agent made a package of it.
        """
        *above, name = path.split("/")
        module, _, suffix = name.partition(".")
        is_package = not suffix and self._is_link(path)
        if suffix.rpartition(".")[2] not in {"py", "so", "pyd"} and not is_package:
            return False
        if module == "__init__" and above:
            module = above.pop()
        new = not (self.initial / path).exists()
        if not (
            module in MODULES or "pytest" in module or (new and module in installed(self.packages))
        ):
            return False
        folder = "/".join(above)
        hidden = [file for file in self.work.verify_files if file.startswith(f"{folder}/")]
        package = f"{folder}/__init__.py"
        if (self.initial / folder).is_dir() or hidden:
            return not ((self.initial / package).is_file() or package in hidden)
        return not (self.after / package).is_file()


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(f"/{path}", f"*/{pattern}") for pattern in patterns)


def _is_below(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern, or is in a folder that does."""
    pattern = pattern.rstrip("/")
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}/*")


def _parts(read: Callable[[str], Any], path: Path, keys: tuple[str, ...]) -> Any:
    """Return some keys of a file; where a link leads; all content that cannot be parsed."""
    if not keys or not (path.is_symlink() or path.is_file()):
        return {}
    if path.is_symlink():
        return path.readlink()
    content = path.read_bytes()
    try:
        table = read(content.decode())
        return {key: table[key] for key in keys if key in table}
    except (ValueError, TypeError, RecursionError):
        return content


def apply_answer(rules: AnswerRules, snapshot: Snapshot, target: Path) -> list[LeftOut]:
    """Move the files that an agent changed to a fresh workspace; return those left out."""
    changes = [
        (path, kind, rules.why_left_out(path) if readable else UNREADABLE)
        for path, kind, readable in snapshot.changed(rules.after)
    ]
    left_out = []
    for path, kind, why in sorted(changes, key=lambda change: change[1] is not None):
        problem = why or _apply(path, kind, rules.after, target)
        same = content_of(rules.initial / path) == content_of(rules.after / path)
        if problem and (problem == UNREADABLE or not same):
            left_out.append(LeftOut(path, problem))
    if not rules.after.is_symlink():
        _make_empty_folders(rules, target)
    return left_out


def _apply(path: str, kind: os.stat_result | None, after: Path, target: Path) -> str | None:
    """Apply one change; return why that is not possible."""
    try:
        if kind is None:
            _remove(path, after, target)
        else:
            _move(path, kind, after, target)
    except OSError as error:
        return f"cannot be copied ({(error.strerror or str(error)).lower()})"
    return None


def _remove(path: str, after: Path, target: Path) -> None:
    """Remove a file, and the folders that the agent removed with it."""
    _inside(target, path).unlink(missing_ok=True)
    for folder in list(Path(path).parents)[:-1]:
        gone = not (after / folder).is_dir() or (after / folder).is_symlink()
        if gone and (target / folder).is_dir() and not any((target / folder).iterdir()):
            (target / folder).rmdir()


def _move(path: str, kind: os.stat_result, after: Path, target: Path) -> None:
    if not (stat.S_ISREG(kind.st_mode) or stat.S_ISLNK(kind.st_mode)):
        raise OSError("not a file")
    file = _inside(target, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        (after / path).rename(file)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EACCES, errno.EPERM}:
            raise
        _copy(after / path, file)  # it is on another disk, or its folder cannot be written


def _copy(source: Path, target: Path) -> None:
    if target.is_symlink() or target.exists():
        target.unlink()
    try:
        shutil.copy2(source, target, follow_symlinks=False)
    except OSError:
        target.unlink(missing_ok=True)  # a part of it is no answer
        raise


def _inside(target: Path, path: str) -> Path:
    """Return a path in a folder. Links are not followed: they could lead out of it."""
    if any((target / folder).is_symlink() for folder in Path(path).parents):
        raise OSError("it leads through a link")
    return target / path


def _make_empty_folders(rules: AnswerRules, target: Path) -> None:
    for folder, folders, files in os.walk(rules.after):
        name = os.path.relpath(folder, rules.after)
        if folders or files or rules.why_left_out(f"{name}/file"):
            continue
        with contextlib.suppress(OSError):
            _inside(target, name).mkdir(parents=True, exist_ok=True)


def as_plain(left_out: Sequence[LeftOut]) -> list[dict[str, str]]:
    """Return the files left out as plain data, of which a record lists the first hundred."""
    more = len(left_out) - MAX_LISTED
    listed = [{"path": one.path, "why": one.why} for one in left_out[:MAX_LISTED]]
    return [*listed, {"path": "…", "why": f"and {more:,} more files"}] if more > 0 else listed
