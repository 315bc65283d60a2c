"""The rules of an uploaded suite: it is data and has access to nothing else.

It may name models of known providers and known local models, but no command, function, file,
address or environment variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pennyweight.engine.execution import check_subject
from pennyweight.errors import UsageError
from pennyweight.models.gguf import KNOWN
from pennyweight.models.providers import PROVIDERS
from pennyweight.schema.user_code import functions_forbidden
from pennyweight.suite.loader import load_suite
from pennyweight.suite.values import Subject, Suite

FORBIDDEN_KEYS = {
    *("command", "workspace", "verify", "keep", "files", "base_url", "key_env", "env", "network"),
    *("from", "copy", "git", "python", "function"),
}
"""Keys with access beyond the data: only suites on the server's disk may contain them."""
UNCHECKED_KEYS = {"tasks", "settings", "tools", "response_format", "prices"}
"""Keys whose content may have any name; tasks are checked when they are read."""
CODE_CHECKS = {"command", "python"}
"""Checks that run code."""
INSTEAD = "put the suite on the server's disk and pass its folder: pennyweight serve FOLDER."


def open_upload(path: Path, tree: Mapping[str, Any], text: str, *, data: bool) -> Suite:
    """Read an uploaded suite; `data` says that it was made here for a data set next to it."""
    refuse(tree)
    if not data and not isinstance(tree.get("tasks"), list):
        raise UsageError(
            "An uploaded suite contains its tasks as a list. To upload a file of tasks, choose it "
            "instead of the suite."
        )
    with functions_forbidden():
        suite = load_suite(path, text, _subject)
    for task in suite.tasks:
        named = [b.check.name for _, b in task.scenario.all()] if task.scenario else []
        if task.work or CODE_CHECKS & set(named):
            raise UsageError(f"{task.id}: an uploaded task must not run commands or code.")
    return suite


def refuse(tree: Any, place: str = "") -> None:
    """Refuse the keys that an upload must not contain."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        where = f"{place}.{key}" if place else str(key)
        file = isinstance(value, str) and (
            key == "examples" or (key == "rubric" and value != "default")
        )
        if key in FORBIDDEN_KEYS or file:
            raise UsageError(f"{where}: not allowed in an uploaded suite; {INSTEAD}")
        if key not in UNCHECKED_KEYS and isinstance(value, dict | list):
            refuse(value, where)


def _subject(subject: Subject) -> str | None:
    """Return what is wrong with a model, before anything looks for it."""
    provider, _, name = subject.model.partition("/")
    known = provider in PROVIDERS or (provider == "local" and name in KNOWN)
    if not known or subject.agent or subject.base_url or subject.key_env:
        local = ", ".join(f"local/{known_model}" for known_model in KNOWN)
        return (
            f"an uploaded suite may not name {subject.model[:80]!r}, only models of known "
            f"providers (such as openai/…) and {local}. For others, {INSTEAD}"
        )
    return check_subject(subject)
