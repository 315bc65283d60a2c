"""Suites of stored runs. A store is shared: the text in it is of unknown origin.

A suite's file that a person named on the command line, or that belongs to them, may do anything.
The text in a store gets the rules of uploads, unless a person confirms what else it uses.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pennyweight.api.pages.suite_preview import read_tree, write_tree
from pennyweight.api.suite_rules import uses, uses_of_models
from pennyweight.api.suites import is_own_file
from pennyweight.engine.execution import check_subject, located, open_suite
from pennyweight.engine.preflight import mistakes
from pennyweight.errors import InputError, UntrustedError, UsageError
from pennyweight.models.gguf import KNOWN
from pennyweight.schema.audit import audited
from pennyweight.store.store import StoredRun
from pennyweight.stored_runs.imported import is_imported
from pennyweight.suite.definition import GivenSuite, document_of
from pennyweight.suite.loader import load_judging, load_outline, load_suite
from pennyweight.suite.narrowing import Narrowing, option_words
from pennyweight.suite.scorers import confirmed_scorers
from pennyweight.suite.values import Judging, Limits, LoadedSuite, Price, Subject

Trust = Callable[[StoredRun, Sequence[str]], bool]
"""Returns whether a person lets the suite of a run do all of this."""
_HARMLESS = f"local/{next(iter(KNOWN))}"


def open_stored(
    run: StoredRun,
    by: Sequence[str] = (),
    *,
    trust: Trust,
    file: GivenSuite | None = None,
    as_stored: bool = False,
    asked: Narrowing | None = None,
    command: str = "run --resume",
    keyless: bool = False,
) -> LoadedSuite:
    """Open the suite of a run: its file if that is trusted, else the text in the store.

    `file` is the suite's file if a person named it. With `as_stored` the text in the store is
    opened even if its file has changed; it may then use everything that the file uses.
    The options that the run stores hold again, with the limits that a person `asked` for. What
    they use beyond the file has to be confirmed too, unless the person repeated them. `command` is
    what the person typed, for the advice of an error. If `keyless`, no key has to be set.
    """
    _refuse_imported(run, file)
    asked, stored = asked or Narrowing(), Narrowing.stored(run.settings)
    chosen = stored.with_limits(asked)
    path = file or run.path
    own = file is not None or is_own_file(run.path)
    from_file = own and (not as_stored or _read(path) == run.text)
    if from_file and (stored.is_repeated_by(asked) or not stored.alters):
        return open_suite(path, None, by, chosen, keyless=keyless)
    allowed = _uses_of_file(path, by) if own else []
    text = None if from_file else run.text
    given = path if from_file else run.path
    options = shlex.join(option_words(stored.alterations)) if from_file else "--suite FILE"
    confirm = _Confirmation(run, trust, f"{command} {run.id} {options}", allowed)
    with audited(reads=False) as noted:
        outline = load_outline(given, text, chosen)
    confirm([*uses(outline), *noted])
    suite, needed = _audited(given, text, by, chosen, keyless=keyless)
    confirm(needed)
    suite = replace(suite, scorers=confirmed_scorers(suite))  # they were not loaded yet
    for subject in suite.subjects:  # its function was not loaded yet
        if problem := check_subject(subject, keyless=keyless):
            raise UsageError(problem)
    return located(suite)


def _refuse_imported(run: StoredRun, file: object) -> None:
    """Refuse to look for a suite where there is none: the path of such a run is that of a log."""
    if is_imported(run.settings) and file is None:
        raise UsageError(f"Run {run.id} was imported from a log, so it has no suite.")


def _read(path: GivenSuite) -> str:
    if not isinstance(path, str | Path):
        return document_of(path).text
    return Path(path).read_bytes().decode("utf-8-sig", "replace")


def _uses_of_file(path: GivenSuite, by: Sequence[str]) -> list[str]:
    """Return what a person lets a suite do by having its file; it may have no subjects yet."""
    for options in (Narrowing(), Narrowing(models=(_HARMLESS,))):
        with suppress(InputError, UsageError):
            return _audited(path, None, by, options)[1]
    return []


def stored_judging(
    run: StoredRun,
    *,
    trust: Trust,
    file: str | Path | None = None,
    models: Sequence[str] = (),
    rubric: str | Path | None = None,
) -> tuple[Judging | None, Limits, dict[str, Price]]:
    """Read the judges of a run's suite; `models` and `rubric` replace what the suite names."""
    _refuse_imported(run, file)
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
    confirm = _Confirmation(run, trust, f"judge {run.id} --suite FILE")
    for reads in (False, True):
        with audited(reads=reads) as noted:
            found = load_judging(run.path, text if models or rubric else run.text)
        judges = (*found[0].judges, *found[0].more) if found[0] else ()
        foreign = [j for j in judges if j.base_url or j.key_env or j.model not in models]
        confirm([*uses_of_models(foreign), *noted])
    return found


def _audited(
    path: GivenSuite,
    text: str | None,
    by: Sequence[str],
    narrowing: Narrowing,
    *,
    keyless: bool = False,
) -> tuple[LoadedSuite, list[str]]:
    """Open a suite without loading its functions; also return what it would do."""

    def problem(subject: Subject) -> str | None:
        """Return what is wrong with a known model; others are looked for once trusted."""
        known = not any(uses_of_models([subject]))
        return check_subject(subject, keyless=keyless) if known else None

    with audited(reads=True) as noted:
        suite = load_suite(path, text, problem, lambda suite: mistakes(suite, by), narrowing)
    return suite, [*uses(suite), *noted]


def _lines(found: Iterable[str]) -> list[str]:
    """Write each use once and on one line, so that none can pass for several."""
    return ["\\n".join(use.splitlines()) for use in dict.fromkeys(found)]


class _Confirmation:
    """Asks a person about what a stored suite uses: once, and again for what its files add."""

    def __init__(
        self, run: StoredRun, trust: Trust, command: str, allowed: Sequence[str] = ()
    ) -> None:
        self.run, self.trust, self.command = run, trust, command
        self.allowed = set(_lines(allowed))
        self.confirmed: list[list[str]] = []

    def __call__(self, found: Iterable[str]) -> None:
        """Raise UntrustedError unless everything is allowed or confirmed."""
        needed = [use for use in _lines(found) if use not in self.allowed]
        if needed and not self.trust(self.run, needed):
            raise UntrustedError(self._problem(needed), needed, self.confirmed)
        self.allowed.update(needed)
        self.confirmed += [needed] if needed else []

    def _problem(self, needed: Sequence[str]) -> str:
        lines = "".join(f"\n  - {use}" for use in needed)
        whole = self.command.endswith("FILE")
        named = "name the suite's file" if whole else "repeat its options"
        what = "The suite" if whole else "What an option changed in the suite"
        return (
            f"{what} of run {self.run.id} comes from the store. Whoever can write to the store may "
            f"have written it. It would:{lines}\n"
            f"Nothing was called. To allow this, confirm it in a terminal or on the page, or "
            f"{named}: pennyweight {self.command}"
        )
