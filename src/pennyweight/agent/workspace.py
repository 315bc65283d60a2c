"""The initial state of a workspace: a copied folder or a commit, with files added to it."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from pathlib import Path

from pennyweight.suite.values import Workspace

_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "pennyweight",
    "GIT_AUTHOR_EMAIL": "pennyweight@localhost",
    "GIT_COMMITTER_NAME": "pennyweight",
    "GIT_COMMITTER_EMAIL": "pennyweight@localhost",
    "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
    "PATH": os.environ.get("PATH", os.defpath),
}


def make(work: Workspace, target: Path) -> None:
    """Create a workspace in a folder that does not exist yet."""
    if work.copy:
        copy(Path(work.copy), target)
    elif work.git:
        _checkout(Path(work.git), work.mark, target)
    else:
        target.mkdir()
    for name, held in work.files.items():
        place(target, name, held)


def place(folder: Path, name: str, held: bytes) -> None:
    """Write a file; a script becomes executable."""
    path = folder / name
    if not path.parent.resolve().is_relative_to(folder.resolve()):
        raise OSError(f"{name} leads out of the workspace through a link")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(held)
    if held.startswith(b"#!"):
        path.chmod(0o755)


def copy(source: Path, target: Path) -> None:
    """Copy a folder, with links as links and without sockets, pipes and devices."""

    def special(folder: str, names: list[str]) -> list[str]:
        kinds = {name: os.lstat(Path(folder, name)).st_mode for name in names}
        return [
            name
            for name, mode in kinds.items()
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode))
        ]

    shutil.copytree(source, target, symlinks=True, ignore=special)


def _checkout(repository: Path, commit: str, target: Path) -> None:
    """Check the files of a commit out into a repository of their own, which has no other commit.

    So an agent can use git freely, cannot change the original repository, and does not find the
    solution in a later commit.
    """
    target.mkdir()
    index = {**_GIT, "GIT_INDEX_FILE": str(target) + ".index"}
    _git(["-C", str(repository), "read-tree", commit], index)
    _git(["-C", str(repository), "checkout-index", "--all", f"--prefix={target}/"], index)
    Path(index["GIT_INDEX_FILE"]).unlink()
    for words in (
        ["init", "--quiet", "--initial-branch=main", "--template="],
        ["add", "--all", "--force"],
        ["commit", "--quiet", "--allow-empty", "--message", f"The files of {commit}"],
    ):
        _git(["-C", str(target), *words], _GIT)


def _git(words: list[str], environment: dict[str, str]) -> None:
    subprocess.run(["git", *words], env=environment, check=True, capture_output=True)  # noqa: S603, S607


def remove(folder: Path) -> None:
    """Remove a folder, even if its permissions make that difficult."""
    if folder.is_symlink():
        folder.unlink(missing_ok=True)
        return
    if not folder.exists():
        return
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
        return
    for words in (["chmod", "-R", "u+rwX", str(folder)], ["rm", "-rf", "--", str(folder)]):
        subprocess.run(words, capture_output=True, check=False)  # noqa: S603
