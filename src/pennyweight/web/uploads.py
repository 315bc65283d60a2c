"""What an uploaded suite may say: it is data, and reaches nothing beyond itself.

It may name models of known providers and known local models, but no command, no function, no
file, no address and no environment variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pennyweight.engine.execution import check_subject
from pennyweight.errors import UsageError
from pennyweight.models.gguf import KNOWN
from pennyweight.models.providers import PROVIDERS
from pennyweight.schema.user_code import REFUSED
from pennyweight.suite.loader import load_suite

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pennyweight.suite.values import Subject, Suite

LOCKED = {
    *("command", "workspace", "verify", "keep", "files", "base_url", "key_env", "env", "network"),
    *("from", "copy", "git", "python", "function"),
}
"""Keys that reach beyond the data: they stand only in suites that lie on the server's disk."""
FREE = {"tasks", "settings", "tools", "response_format", "prices"}
"""Keys below which anything may have any name; tasks are looked at when they are read."""
CODE = {"command", "python"}
"""Checks that run something."""
INSTEAD = "put the suite on the server's disk and name its folder: pennyweight serve FOLDER."


def open_upload(path: Path, tree: Mapping[str, Any], text: str, *, data: bool) -> Suite:
    """Read an uploaded suite; `data` is a suite made here for the data set that lies beside it."""
    refuse(tree)
    if not data and not isinstance(tree.get("tasks"), list):
        raise UsageError(
            "An uploaded suite holds its tasks in itself, as a list; or upload the data set."
        )
    token = REFUSED.set(True)
    try:
        suite = load_suite(path, text, _subject)
    finally:
        REFUSED.reset(token)
    for task in suite.tasks:
        named = [b.check.name for _, b in task.scenario.all()] if task.scenario else []
        if task.work or CODE & set(named):
            raise UsageError(f"{task.id}: an uploaded task may run no command and no code.")
    return suite


def refuse(tree: Any, place: str = "") -> None:
    """Refuse what an upload may not say."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        where = f"{place}.{key}" if place else str(key)
        file = isinstance(value, str) and (
            key == "examples" or (key == "rubric" and value != "default")
        )
        if key in LOCKED or file:
            raise UsageError(f"{where}: an uploaded suite may not say this; {INSTEAD}")
        if key not in FREE and isinstance(value, dict | list):
            refuse(value, where)


def _subject(subject: Subject) -> str | None:
    """Say what is wrong with a model, before anything looks for it."""
    provider, _, name = subject.model.partition("/")
    known = provider in PROVIDERS or (provider == "local" and name in KNOWN)
    if not known or subject.agent or subject.base_url or subject.key_env:
        local = ", ".join(f"local/{one}" for one in KNOWN)
        return (
            f"an uploaded suite may not name {subject.model[:80]!r}, only models of known "
            f"providers (such as openai/…) and {local}; else {INSTEAD}"
        )
    return check_subject(subject)
