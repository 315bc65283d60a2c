"""All formats of foreign suites: those of this package, and those of installed packages."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from pennyweight.errors import InputError, UsageError
from pennyweight.schema.tree import Node, TreeError, parse
from pennyweight.suite.foreign.suite_format import SuiteFormat, read_text

MODULES = ("promptfoo", "lm_eval", "openai_evals", "inspect_ai")
"""The modules with formats. The first format that recognises a file converts it."""
ENTRY_POINTS = "pennyweight.suites"


@cache
def formats() -> tuple[SuiteFormat, ...]:
    """Return all formats; those of other packages first, so that they can replace ours."""
    modules = (import_module(f"pennyweight.suite.foreign.{name}") for name in MODULES)
    own = [v for m in modules for v in vars(m).values() if isinstance(v, SuiteFormat)]
    return (*_installed(), *own)


def _installed() -> list[SuiteFormat]:
    found = []
    for point in entry_points(group=ENTRY_POINTS):
        value = point.load()
        if not isinstance(value, SuiteFormat):
            raise UsageError(f"The format {point.name!r} ({point.value}) is not a SuiteFormat.")
        found.append(value)
    return found


def format_of(path: Path) -> SuiteFormat:
    """Return the format of a file, told by its content; raise InputError if it is not known."""
    if path.is_dir():
        raise InputError([f"{path}: is a folder; name the file of the suite."])
    text = read_text(path)
    root = _tree(text, path)
    found = next((one for one in formats() if one.recognise(root, text, path)), None)
    if found is None:
        titles = ", ".join(one.title for one in formats())
        raise InputError(
            [f"{path}: not recognised as a suite of another tool."],
            hint=f"init --from reads suites of: {titles}.",
        )
    return found


def _tree(text: str, path: Path) -> Node | None:
    """Return the content as a tree; None if it is neither YAML nor JSON."""
    if path.suffix.lower() in {".jsonl", ".csv", ".tsv"}:
        return None
    try:
        return parse(text, is_json=path.suffix.lower() == ".json")[0]
    except TreeError:
        return None
