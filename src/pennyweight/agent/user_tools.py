"""The tools of whoever runs a suite: the PATH and the Python environment that checks keep.

An agent gets the system's PATH. A command that checks its work is the suite's own, and is run with
the tools with which its author tried it: `python3 -m pytest` finds the pytest of the virtual
environment. A sandbox shows the programs and packages of that environment, read-only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pennyweight.agent import sandbox
from pennyweight.suite.values import Agent

_ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX")
_PARTS = ("bin", "lib", "lib64", "include", "pyvenv.cfg")
"""What a sandbox shows of an environment. The folder around it may be a project, or a home."""
_TOOL_MARKS = ("pipx_metadata.json", "uv-receipt.toml")
"""Files of an environment in which pipx or uv keeps a single program: nobody's tools are there."""


@dataclass(frozen=True, slots=True)
class UserTools:
    """What checks keep of the environment of whoever runs the suite."""

    path: str
    """The PATH."""
    variables: tuple[tuple[str, str], ...] = ()
    """The variable that names the environment."""
    read: tuple[str, ...] = ()
    """The files and folders that a sandbox has to show."""
    packages: tuple[Path, ...] = ()
    """The folders from which Python imports packages."""

    @classmethod
    def of(cls, agent: Agent) -> UserTools:
        """Find the tools; an image has its own."""
        if agent.sandbox == "container":
            return cls(sandbox.PATH)
        name, prefix = _environment()
        read = tuple(dict.fromkeys(_parts(prefix))) if prefix else ()
        given = os.environ.get("PATH", "").split(":")
        folders = [folder for folder in given if folder.startswith("/")]
        if prefix and str(prefix / "bin") not in folders:
            folders.insert(0, str(prefix / "bin"))
        if agent.sandbox == "bubblewrap":
            folders = [folder for folder in folders if _is_shown(folder, (*read, *agent.read))]
        path = ":".join(dict.fromkeys((*folders, *sandbox.path_of(agent).split(":"))))
        packages = prefix.glob("lib/python*/site-packages") if prefix else ()
        return cls(path, ((name, str(prefix)),) if name else (), read, tuple(packages))


def _environment() -> tuple[str | None, Path | None]:
    """Return the active environment, else the one in which Pennyweight is installed.

    The first value is the variable that names it, if one does.
    """
    for name in _ENVIRONMENTS:
        if (value := os.environ.get(name)) and (Path(value) / "bin").is_dir():
            return name, Path(value).absolute()
    prefix = Path(sys.prefix)
    if any((prefix / mark).exists() for mark in _TOOL_MARKS):
        return None, None
    return ("VIRTUAL_ENV" if sys.prefix != sys.base_prefix else None), prefix


def _parts(prefix: Path) -> Iterator[str]:
    """Yield what a sandbox shows of an environment, and of the Python that it was made from."""
    folders = [prefix]
    config = prefix / "pyvenv.cfg"
    for line in config.read_text(errors="replace").splitlines() if config.is_file() else ():
        key, _, value = line.partition("=")
        if key.strip() == "home":
            folders.append(Path(value.strip()).parent)
    for folder in (*folders, *(one.resolve() for one in folders)):
        for part in (folder / name for name in _PARTS):
            if part.exists() and not _is_shown(str(part)):
                yield str(part)
    own = str(Path(__file__).parent.parent)
    if prefix == Path(sys.prefix) and not _is_shown(own, [str(prefix)]):
        yield own  # an editable installation, whose plugin pytest loads


def _is_shown(path: str, read: Sequence[str] = ()) -> bool:
    """Whether a sandbox shows a path: it belongs to the system, or to what is read."""
    return any(Path(path).is_relative_to(folder) for folder in (*sandbox.SYSTEM, *read))
