"""Suites of stored runs. A store is shared: the text in it is of unknown origin.

A suite's file that a person named on the command line, or that belongs to them, may do anything.
The text in a store gets the rules of uploads, unless a person confirms what else it uses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pennyweight.api.pages.suite_preview import read_tree, write_tree
from pennyweight.api.suite_rules import uses, uses_of_models
from pennyweight.api.suites import is_own_file
from pennyweight.engine.execution import check_subject, open_suite
from pennyweight.engine.preflight import mistakes
from pennyweight.errors import UntrustedError, UsageError
from pennyweight.schema.audit import audited
from pennyweight.store.store import StoredRun
from pennyweight.suite.loader import load_judging, load_suite
from pennyweight.suite.values import Judging, Limits, LoadedSuite, Price, Subject

Trust = Callable[[StoredRun, Sequence[str]], bool]
"""Returns whether a person lets the suite of a run do all of this."""


def open_stored(
    run: StoredRun,
    by: Sequence[str] = (),
    *,
    trust: Trust,
    file: str | Path | None = None,
    as_stored: bool = False,
) -> LoadedSuite:
    """Open the suite of a run: its file if that is trusted, else the text in the store.

    `file` is the suite's file if a person named it. With `as_stored` the text in the store is
    opened even if its file has changed; it may then use everything that the file uses.
    """
    path = file or run.path
    allowed: list[str] = []
    if file or is_own_file(path):
        if not as_stored or Path(path).read_bytes().decode("utf-8-sig", "replace") == run.text:
            return open_suite(path, None, by)
        allowed = _audited(path, None, by)[1]
    suite, needed = _audited(run.path, run.text, by)
    _confirm(run, [use for use in needed if use not in allowed], trust, f"run --resume {run.id}")
    for subject in suite.subjects:  # its function was not loaded yet
        if problem := check_subject(subject):
            raise UsageError(problem)
    return suite


def stored_judging(
    run: StoredRun,
    *,
    trust: Trust,
    file: str | Path | None = None,
    models: Sequence[str] = (),
    rubric: str | Path | None = None,
) -> tuple[Judging | None, Limits, dict[str, Price]]:
    """Read the judges of a run's suite; `models` and `rubric` replace what the suite names."""
    path = file or run.path
    if file or is_own_file(path):
        return load_judging(path)
    is_json = run.path.lower().endswith(".json")
    tree = read_tree(run.text, is_json=is_json)
    judge = tree.get("judge")
    if judge is not None:
        judge = dict(judge) if isinstance(judge, dict) else {"models": judge}
        if models:
            judge = {**{k: v for k, v in judge.items() if k != "model"}, "models": list(models)}
        tree["judge"] = {**judge, "rubric": "default"} if rubric else judge
    text = json.dumps(tree, ensure_ascii=False) if is_json else write_tree(tree)
    with audited() as noted:
        found = load_judging(run.path, text if models or rubric else run.text)
    judges = (*found[0].judges, *found[0].more) if found[0] else ()
    foreign = [j for j in judges if j.base_url or j.key_env or j.model not in models]
    needed = _lines([*uses_of_models(foreign), *noted])
    _confirm(run, needed, trust, f"judge {run.id}")
    return found


def _audited(
    path: str | Path, text: str | None, by: Sequence[str]
) -> tuple[LoadedSuite, list[str]]:
    """Open a suite without loading its functions; also return what it would do."""
    with audited() as noted:
        suite = load_suite(path, text, _problem, lambda suite: mistakes(suite, by))
    return suite, _lines([*uses(suite), *noted])


def _lines(found: Iterable[str]) -> list[str]:
    """Write each use once and on one line, so that none can pass for several."""
    return ["\\n".join(use.splitlines()) for use in dict.fromkeys(found)]


def _problem(subject: Subject) -> str | None:
    """Return what is wrong with a known model; others are looked for once they are trusted."""
    return None if any(uses_of_models([subject])) else check_subject(subject)


def _confirm(run: StoredRun, needed: Sequence[str], trust: Trust, command: str) -> None:
    if needed and not trust(run, needed):
        lines = "".join(f"\n  - {use}" for use in needed)
        problem = (
            f"The suite of run {run.id} comes from the store. Whoever can write to the store may "
            f"have written it. It would:{lines}\n"
            "Nothing was called. To allow this, confirm it in a terminal or on the page, or name "
            f"the suite's file: pennyweight {command} --suite FILE"
        )
        raise UntrustedError(problem, needed)
