"""Find the scorers that a suite or a command names: in a file, ready-made, or installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from pennyweight.catalogue import MEASURES
from pennyweight.checks import Check
from pennyweight.define import Declaration
from pennyweight.errors import DeclarationError, UsageError, unknown
from pennyweight.record import BY_NAME, EXPORTED
from pennyweight.schema.audit import is_audited
from pennyweight.schema.user_code import load_file, load_function
from pennyweight.scorers.declaration import RECORD, Scorer, as_scorer, scorers_in
from pennyweight.scorers.judged import judged_scorer, with_pairing
from pennyweight.scorers.rule import RULES, rule_scorer

GROUP = "pennyweight.scorers"
"""The entry point under which installed packages offer scorers: one, or a module of them."""

Named = str | Path | Scorer | Callable[..., Any]


def find_scorers(named: Iterable[Any], folder: Path | None = None) -> tuple[Scorer, ...]:
    """Return the scorers that are named, each once; raise UsageError for what is none.

    A name that ends in `.py` is a file, whose scorers are all meant; `module:function` is one
    scorer; another is a scorer of Pennyweight or of an installed package. A mapping gives a scorer
    settings, or puts a question to the judges. In Python, a function is a scorer too.
    """
    found: dict[str, Scorer] = {}
    for one in named:
        for scorer in _found(one, folder or Path.cwd()):
            before = found.setdefault(scorer.name, scorer)
            if before is not scorer:
                raise UsageError(f"two scorers are called {scorer.name!r}; rename one of them.")
    return tuple(found.values())


def _found(named: Any, folder: Path) -> Sequence[Scorer]:
    if isinstance(named, dict):
        return [_with_options(name, options) for name, options in named.items()]
    if callable(named):
        try:
            return [as_scorer(named)]
        except DeclarationError as error:
            raise UsageError(str(error)) from None
    if str(named).endswith(".py"):
        return _in_file(folder / named)
    if ":" in str(named):
        function = load_function(str(named), folder)
        return () if is_audited() else [as_scorer(function)]
    return [_known(str(named))]


def _in_file(path: Path) -> Sequence[Scorer]:
    module = load_file(path, "the scorers")
    if module is None:  # it is only read what the suite would use
        return ()
    scorers = list(scorers_in(module))
    declared = vars(module).values()
    if not scorers and not any(isinstance(one, Declaration | Check) for one in declared):
        raise UsageError(
            f"{path.name} has no scorer: write @scorer before a function, or @measure, @metric or "
            "@check."
        )
    return scorers


def _known(name: str) -> Scorer:
    from pennyweight import scorers  # noqa: PLC0415 - it imports this package's files

    ready = {one.name: one for one in scorers_in(scorers)}
    if name in ready:
        return ready[name]
    installed = entry_points(group=GROUP)
    for point in installed:
        loaded = point.load() if point.name == name else None
        if isinstance(loaded, Scorer):
            return loaded
        if callable(loaded):
            return as_scorer(loaded)
    for point in installed:
        loaded = point.load()
        inside = scorers_in(loaded) if isinstance(loaded, ModuleType) else ()
        for one in inside:
            if one.name == name:
                return one
    known = [*ready, *(point.name for point in installed)]
    hint = "Name a file such as scorers.py for your own."
    raise UsageError(unknown("Scorer", name, known, hint))


def _with_options(name: str, options: Any) -> Scorer:
    if isinstance(options, dict) and options.keys() & {"prompt", "criteria"}:
        return judged_scorer(str(name), options)
    if isinstance(options, dict) and options.keys() & {*RULES}:
        return rule_scorer(str(name), options)
    scorer = _known(str(name))
    given = options or {}
    if not isinstance(given, dict):
        raise UsageError(f"{name} takes settings, such as {{{name}: {{setting: value}}}}.")
    if scorer.question and scorer.question.pair:
        return with_pairing(scorer, given)
    for one in given:
        if one not in scorer.options:
            raise UsageError(unknown(f"Setting of {name}", str(one), scorer.options))
    return scorer.with_options(given)


def unknown_input(scorer: Scorer, columns: Iterable[str]) -> str:
    """Return which column a scorer reads that no record can have; empty if there is none."""
    known = {*BY_NAME, *MEASURES, *EXPORTED, *columns, *scorer.defaults, RECORD}
    for name in scorer.inputs:
        if name not in known:
            hint = "It must be a column of the record or of the tasks, or a measure."
            return f"{scorer.name}: {unknown('Its input', name, known, hint)}"
    return ""
