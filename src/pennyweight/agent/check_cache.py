"""What checks said of initial workspaces, kept from one run to the next.

Only sound results are kept: a check that could not do its work is run again, because its command
may have been installed meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pennyweight import __version__
from pennyweight.agent.folders import home
from pennyweight.agent.user_tools import UserTools
from pennyweight.agent.verification import WorkspaceCheckResult
from pennyweight.suite.values import Agent, Workspace

FOLDER = ".checks"
LIFETIME = 30 * 86_400.0
"""Seconds after which a result is forgotten."""


class CheckCache:
    """The results of checks in initial workspaces, as files: one for each workspace."""

    def __init__(self, agent: Agent, tools: UserTools) -> None:
        self._folder = home() / FOLDER
        packages = [(str(one), one.stat().st_mtime_ns) for one in tools.packages if one.exists()]
        place = [agent.sandbox, agent.image, agent.network, agent.read, agent.timeout]
        self._place = [__version__, *place, asdict(agent.caps), tools.path, packages]

    def load(self, work: Workspace) -> list[WorkspaceCheckResult] | None:
        """Return the results, if they are known."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            file = self._file(work)
            if file.stat().st_mtime > time.time() - LIFETIME:
                return [WorkspaceCheckResult(*row) for row in json.loads(file.read_text("utf-8"))]
        return None

    def save(self, work: Workspace, results: Sequence[WorkspaceCheckResult]) -> None:
        """Keep sound results; a full disk only means that the checks are run again."""
        rows = [(result.exit_code, result.why, result.output) for result in results]
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = self._file(work)
            fresh = file.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps(rows), "utf-8")
            fresh.replace(file)

    def clean(self) -> None:
        """Remove the results that are too old."""
        with contextlib.suppress(OSError):
            for file in self._folder.iterdir():
                if file.stat().st_mtime < time.time() - LIFETIME:
                    file.unlink()

    def _file(self, work: Workspace) -> Path:
        key = json.dumps([*self._place, work.task, work.target, work.identity()])
        return self._folder / hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
