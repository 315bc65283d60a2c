"""What a suite of unknown origin may do: an upload, or the text that a store holds.

A suite can run commands, call functions, read files, and send keys to addresses. A suite of unknown
origin may only call models of known providers at their own addresses, and known local models. For
the rest a person names the suite's file or confirms, having been shown all of it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pennyweight.engine.execution import check_subject
from pennyweight.errors import UsageError
from pennyweight.models.gguf import KNOWN
from pennyweight.models.providers import PROVIDERS
from pennyweight.schema.user_code import functions_forbidden
from pennyweight.suite.loader import load_suite
from pennyweight.suite.narrowing import Narrowing
from pennyweight.suite.values import Agent, LoadedSuite, Subject, Task

FORBIDDEN_KEYS = {
    *("command", "workspace", "verify", "keep", "files", "base_url", "key_env", "env", "network"),
    *("from", "copy", "git", "python", "function"),
}
"""Keys with access beyond the data: only suites on the server's disk may contain them."""
UNCHECKED_KEYS = {"tasks", "settings", "tools", "response_format", "prices"}
"""Keys whose content may have any name; tasks are checked when they are read."""
INSTEAD = "put the suite on the server's disk and pass its folder: pennyweight serve FOLDER."


def open_upload(
    path: Path, tree: Mapping[str, Any], text: str, narrowing: Narrowing, *, data: bool
) -> LoadedSuite:
    """Read an uploaded suite; `data` says that it was made here for a data set next to it."""
    refuse(tree)
    if not data and not isinstance(tree.get("tasks"), list):
        raise UsageError(
            "An uploaded suite contains its tasks as a list. To upload a file of tasks, choose it "
            "instead of the suite."
        )
    with functions_forbidden():
        suite = load_suite(path, text, _problem, narrowing=narrowing)
    for task in suite.tasks:
        if task.work or next(_uses_of_checks(task), None):
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


def _problem(subject: Subject) -> str | None:
    """Return what is wrong with a model, before anything looks for it."""
    if next(uses_of_models([subject]), None):
        local = ", ".join(f"local/{known_model}" for known_model in KNOWN)
        return (
            f"an uploaded suite may not name {subject.model[:80]!r}, only models of known "
            f"providers (such as openai/…) and {local}. For others, {INSTEAD}"
        )
    return check_subject(subject)


def uses(suite: LoadedSuite) -> Iterator[str]:
    """Yield what a suite uses beyond known models, besides its files and functions."""
    judges = (*suite.judge.judges, *suite.judge.more) if suite.judge else ()
    yield from uses_of_models((*suite.subjects, *judges))
    works = (*(tier.work for tier in suite.tiers), *(task.work for task in suite.tasks))
    for work in filter(None, works):
        for words in (*work.verify, *work.keep):
            line = words[2] if words[:2] == ("sh", "-c") else shlex.join(words)
            yield f"run the command {line}"
    for task in suite.tasks:
        yield from _uses_of_checks(task)


def uses_of_models(subjects: Iterable[Subject]) -> Iterator[str]:
    """Yield which commands, functions, addresses and keys these subjects or judges use."""
    for subject in subjects:
        provider, _, name = subject.model.partition("/")
        known = provider in PROVIDERS or (provider == "local" and name in KNOWN)
        if subject.agent:
            yield _use_of_agent(subject.agent)
        elif not known or subject.base_url or subject.key_env:
            name = subject.model
            if name.startswith("python:"):
                name = f"the function {name.removeprefix('python:')}"
            urls = ", ".join(filter(None, (subject.base_url, *subject.more_urls)))
            address = f" at {urls}" if urls else ""
            key = f" with the key in {subject.key_env}" if subject.key_env else ""
            yield f"call {name}{address}{key}"


def _use_of_agent(agent: Agent) -> str:
    where = {"none": "without a sandbox", "container": f"in a container of {agent.image}"}
    parts = [where.get(agent.sandbox, ""), "with network access" if agent.network else ""]
    parts.append(f"seeing the variables {', '.join(agent.env)}" if agent.env else "")
    parts.append(f"reading {', '.join(agent.read)}" if agent.read else "")
    line = agent.command[0] if agent.shell else shlex.join(agent.command)
    return ", ".join([f"run the command {line}", *filter(None, parts)])


def _uses_of_checks(task: Task) -> Iterator[str]:
    for _, behaviour in task.scenario.leaves() if task.scenario else ():
        if behaviour.check.by == "code":
            yield f"run the check {behaviour.key}: {json.dumps(behaviour.value)}"
