"""Workspaces as a person writes them become work: folders found, commits named, files read."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pennyweight.suite.agent_declaration import WORKSPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pennyweight.suite.values import Workspace

    Tell = Callable[[str, str], None]
    """Tells a mistake: the key it belongs to, and what is wrong."""

NAMES = ("workspace", "files", "verify", "keep", "verify_files")
LARGEST = 20_000_000
"""Bytes of files that are placed in a workspace; more belongs into the folder it begins with."""


def has_work(suite: Mapping[str, Any]) -> bool:
    """Whether a suite as it was read has an agent, or says something about workspaces."""
    subjects = [s for s in suite.get("subjects", ()) if isinstance(s, dict)]
    tiers = (suite.get("tiers") or {}).values()
    tables = [suite, *(tier for tier in tiers if tier)]
    return any("command" in s for s in subjects) or any(t.get(n) for t in tables for n in NAMES)


@dataclass(slots=True)
class WorkspaceReader:
    """Reads what suites, tiers and tasks say about workspaces; a folder is hashed once."""

    folder: Path
    _marks: dict[tuple[str, ...], tuple[str, str]] = field(default_factory=dict)

    def read(self, given: Mapping[str, Any], below: Workspace, tell: Tell) -> Workspace:
        """Lay what is given over what is below it.

        A workspace takes the place of another, files come beside others, and checks after them.
        """
        plain = {name: _parsed(given[name]) for name in NAMES if name in given}
        work = below
        if "workspace" in plain:
            work = self._workspace(plain["workspace"], work, tell)
        if plain.get("files"):
            work = replace(work, files=self._files(plain["files"], work.files, tell, "files"))
        if plain.get("verify_files"):
            said, below_ = plain["verify_files"], work.verify_files
            work = replace(work, verify_files=self._files(said, below_, tell, "verify_files"))
        if plain.get("verify"):
            more = _commands(plain["verify"], "verify", tell)
            work = replace(work, verify=(*work.verify, *more))
        if plain.get("keep"):
            work = replace(work, keep=(*work.keep, *_commands(plain["keep"], "keep", tell)))
        return work

    def _workspace(self, given: Any, work: Workspace, tell: Tell) -> Workspace:
        none = replace(work, copy=None, git=None, mark="")
        if given is None:
            return none
        table = {"copy": given} if isinstance(given, str) else given
        known = [f.name for f in WORKSPACE.fields]
        if not isinstance(table, dict) or any(
            key not in known or not isinstance(value, str) for key, value in table.items()
        ):
            tell("workspace", f"a workspace is a folder, or a mapping of {', '.join(known)}.")
            return none
        if ("copy" in table) == ("git" in table):
            tell("workspace", "a workspace is either 'copy' (a folder) or 'git' (a repository).")
            return none
        kind = "copy" if "copy" in table else "git"
        at = (self.folder / table[kind]).absolute()
        if not at.is_dir():
            tell("workspace", f"the folder {table[kind]!r} is not there ({at}).")
            return none
        key = (kind, str(at), table.get("commit", "HEAD"))
        if key not in self._marks:
            self._marks[key] = (tree_mark(at), "") if kind == "copy" else _commit(at, key[2])
        mark, wrong = self._marks[key]
        if wrong:
            tell("workspace", wrong)
        place = str(at)
        return (
            replace(none, copy=place, mark=mark)
            if kind == "copy"
            else replace(none, git=place, mark=mark)
        )

    def _files(
        self, given: Any, below: Mapping[str, bytes], tell: Tell, key: str
    ) -> dict[str, bytes]:
        if not isinstance(given, dict):
            tell(key, f"{key} is a mapping: a path in the workspace, and its text.")
            return dict(below)
        files = dict(below)
        for name, content in given.items():
            path = _inside(name)
            if path is None:
                what = "it must lead into the workspace, and not into its .git."
                tell(key, f"the path {name!r} cannot be used: {what}")
            elif content is None:
                files = {k: v for k, v in files.items() if not _under(k, path)}
            elif isinstance(content, str):
                files[path] = content.encode("utf-8", "replace")
            elif isinstance(content, dict) and isinstance(content.get("from"), str):
                files |= self._from(path, content["from"], tell, key)
            else:
                tell(key, f"{name!r} must be text, or a mapping with 'from'.")
        if sum(map(len, files.values())) > LARGEST:
            tell(key, f"more than {LARGEST / 1e6:g} MB; put them into the workspace's folder.")
        return files

    def _from(self, path: str, source: str, tell: Tell, key: str) -> dict[str, bytes]:
        at = self.folder / source
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


def _parsed(value: Any) -> Any:
    """Read what a table of text holds as JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _commands(given: Any, key: str, tell: Tell) -> tuple[tuple[str, ...], ...]:
    """Read commands: a line for the shell, or a list of lines and of lists of words."""
    found = []
    for one in [given] if isinstance(given, str) else given if isinstance(given, list) else [None]:
        if isinstance(one, str) and one.strip():
            found.append(("sh", "-c", one))
        elif isinstance(one, list) and one and all(isinstance(w, str) for w in one):
            found.append(tuple(one))
        else:
            tell(key, f"{key} is a line for the shell, or a list of commands.")
    return tuple(found)


def _inside(name: str) -> str | None:
    """Give a path as it stands inside a workspace; None if it leads out of it."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or "\0" in name or path.parts[0] == ".git":
        return None
    return None if ".." in path.parts else str(path)


def _under(name: str, folder: str) -> bool:
    return name == folder or name.startswith(f"{folder}/")


def tree(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """List what is in a folder, links not followed, in one order everywhere."""
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


def tree_mark(folder: Path) -> str:
    """Hash the files of a folder: their paths, what they hold, and whether they can be run."""
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
    """Find a commit; gives its hash, or what is wrong."""
    asked = ["git", "-C", str(repository), "rev-parse", "--verify", "--end-of-options"]
    own = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603
            [*asked, f"{name}^{{commit}}"], capture_output=True, text=True, env=own, check=False
        )
    except FileNotFoundError:
        return "", "git is not installed; it is needed for a workspace of a commit."
    found = done.stdout.split()
    if done.returncode or not found:
        said = (done.stderr.strip().splitlines() or ["no such commit"])[-1]
        return "", f"the commit {name!r} is not in {repository}: {said}."
    return found[-1], ""
