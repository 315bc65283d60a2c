"""The workspaces of agents: folders and commits are looked up, files are read."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from pennyweight.schema.audit import note_file
from pennyweight.suite.agents import FILES, WORK
from pennyweight.suite.values import Solution, Workspace

Tell = Callable[[str, str], None]
"""Reports a problem: the key it belongs to, and a message."""
NAMES = tuple(f.name for f in (*WORK, FILES))
MAX_FILES_SIZE = 20_000_000
"""Bytes of the files placed in a workspace; larger ones belong in the folder that is copied."""


def has_work(suite: Mapping[str, Any]) -> bool:
    """Return whether a suite has agents or workspaces."""
    subjects = [s for s in suite.get("subjects", ()) if isinstance(s, dict)]
    tiers = (suite.get("tiers") or {}).values()
    tables = [suite, *(tier for tier in tiers if tier)]
    return any("command" in s for s in subjects) or any(t.get(n) for t in tables for n in NAMES)


@dataclass(slots=True)
class WorkspaceReader:
    """Finds the folders, commits and files that suites, tiers and tasks name for workspaces."""

    folder: Path
    _hashes: dict[tuple[str, ...], tuple[str, str]] = field(default_factory=dict)

    def read(self, given: Mapping[str, Any], base: Workspace, tell: Tell) -> Workspace:
        """Add the given keys to a workspace.

        A workspace replaces the one in `base`; files and commands are added to those of `base`.
        """
        changed = base
        if "workspace" in given:
            changed = self._workspace(given["workspace"], base, tell)
        return replace(
            changed,
            files=self._files(given, base.files, tell, "files"),
            verify_files=self._files(given, base.verify_files, tell, "verify_files"),
            verify=(*base.verify, *_commands(given.get("verify"))),
            keep=(*base.keep, *_commands(given.get("keep"))),
            answer_paths=self._answer_paths(given, base, tell),
            verify_in=given.get("verify_in", base.verify_in),
            verify_before=given.get("verify_before", base.verify_before),
        )

    def solution(self, given: Mapping[str, Any], tell: Tell) -> Solution:
        """Read what solves a task in its workspace."""
        patch = given.get("patch")
        if patch is not None and "\n" not in patch.strip():
            patch = self._patch(patch.strip(), tell)
        files = self._files(given, {}, tell, "files")
        return Solution(given.get("reply"), files, patch, _commands(given.get("command")))

    def _patch(self, name: str, tell: Tell) -> str | None:
        at = self.folder / name
        if not note_file(f"read the file {at}", at):
            return None
        try:
            return at.read_text("utf-8", "replace")
        except OSError as error:
            tell("patch", f"{name!r} cannot be read: {(error.strerror or str(error)).lower()}.")
            return None

    @staticmethod
    def _answer_paths(
        given: Mapping[str, Any], base: Workspace, tell: Tell
    ) -> tuple[str, ...] | None:
        if "answer_paths" not in given:
            return base.answer_paths
        if given.get("verify_in", base.verify_in) == "workspace":
            tell("answer_paths", "it has no effect together with 'verify_in: workspace'.")
        for path in given["answer_paths"] or ():
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                tell("answer_paths", f"{path!r} must be a path inside the workspace.")
        return None if given["answer_paths"] is None else tuple(given["answer_paths"])

    def _workspace(self, given: Any, base: Workspace, tell: Tell) -> Workspace:
        empty = replace(base, copy=None, git=None, mark="")
        table = {"copy": given} if isinstance(given, str) else given or {}
        if "copy" in table and "git" in table:
            tell("workspace", "use either 'copy' (a folder) or 'git' (a repository), not both.")
        kind = next((kind for kind in ("copy", "git") if kind in table), None)
        if kind is None:
            return empty
        at = (self.folder / table[kind]).absolute()
        if not note_file(f"copy {at} for the agent", at):
            return empty
        if not at.is_dir():
            tell("workspace", f"the folder {table[kind]!r} does not exist ({at}).")
            return empty
        key = (kind, str(at), table.get("commit", "HEAD"))
        if key not in self._hashes:
            self._hashes[key] = (tree_hash(at), "") if kind == "copy" else _commit(at, key[2])
        mark, problem = self._hashes[key]
        if problem:
            tell("workspace", problem)
        if kind == "copy":
            return replace(empty, copy=str(at), mark=mark)
        return replace(empty, git=str(at), mark=mark)

    def _files(
        self, given: Mapping[str, Any], base: Mapping[str, bytes], tell: Tell, key: str
    ) -> dict[str, bytes]:
        files = dict(base)
        for name, content in (given.get(key) or {}).items():
            path = _inside(name)
            if path is None:
                what = "a path must stay inside the workspace, and outside of its .git folder."
                tell(key, f"{name!r} cannot be used: {what}")
            elif content is None:
                below = f"{path}/"
                files = {k: v for k, v in files.items() if not f"{k}/".startswith(below)}
            elif isinstance(content, str):
                files[path] = content.encode("utf-8", "replace")
            elif "from" in content:
                files |= self._from(path, content["from"], tell, key)
        if sum(map(len, files.values())) > MAX_FILES_SIZE:
            limit = f"{MAX_FILES_SIZE / 1e6:g} MB"
            tell(key, f"the files exceed {limit}; put them in the folder that is copied.")
        return files

    def _from(self, path: str, source: str, tell: Tell, key: str) -> dict[str, bytes]:
        at = self.folder / source
        if not note_file(f"copy {at} for the agent", at):
            return {}
        try:
            if at.is_dir():
                inside = [name for name, _ in tree(at) if (at / name).is_file()]
                found = [(f"{path}/{name}", at / name) for name in inside]
            else:
                found = [(path, at)]
            return {name: one.read_bytes() for name, one in found}
        except OSError as error:
            tell(key, f"{source!r} cannot be read: {(error.strerror or str(error)).lower()}.")
            return {}


def _commands(given: str | list[str | list[str]] | None) -> tuple[tuple[str, ...], ...]:
    """Return commands as lists of words; a line is run by the shell."""
    lines = [given] if isinstance(given, str) else given or ()
    return tuple(("sh", "-c", one) if isinstance(one, str) else tuple(one) for one in lines)


def _inside(name: str) -> str | None:
    """Return a path inside a workspace in its normal form; None if it leads outside."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or "\0" in name or path.parts[0] == ".git":
        return None
    return None if ".." in path.parts else str(path)


def tree(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files in a folder in a fixed order, without following links."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(folder / below) as entries:
            found = sorted(entries, key=lambda e: e.name)
        for entry in found:
            name = f"{below}/{entry.name}" if below else entry.name
            kind = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(kind.st_mode):
                waiting.append(name)
            else:
                yield name, kind


def tree_hash(folder: Path) -> str:
    """Hash the files of a folder: their paths, contents and executable bits."""
    digest = hashlib.sha256()
    for name, kind in sorted(tree(folder), key=lambda found: found[0]):
        path = folder / name
        digest.update(os.fsencode(name) + b"\0%d\0" % (kind.st_mode & 0o111))
        if stat.S_ISLNK(kind.st_mode):
            digest.update(os.fsencode(path.readlink()))
        elif stat.S_ISREG(kind.st_mode):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]


def _commit(repository: Path, name: str) -> tuple[str, str]:
    """Return the hash of a commit, or a problem."""
    words = ["git", "-C", str(repository), "rev-parse", "--verify", "--end-of-options"]
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603
            [*words, f"{name}^{{commit}}"], capture_output=True, text=True, env=env, check=False
        )
    except FileNotFoundError:
        return "", "git is not installed; a workspace of a commit needs it."
    hashes = done.stdout.split()
    if done.returncode or not hashes:
        reason = (done.stderr.strip().splitlines() or ["no such commit"])[-1]
        return "", f"the commit {name!r} is not in {repository}: {reason}."
    return hashes[-1], ""
