"""Files of an agent: those it created or changed, as far as the diff shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.declaration import CheckResult, Excerpt, check
from pennyweight.checks.parameters import Flag, Part, Pattern, Text
from pennyweight.checks.search import search, search_text

_LEFT_OUT = "[… "
_NOTHING = "/dev/null"
_HUNK = re.compile(r"@@ -[0-9]+(?:,([0-9]+))? \+[0-9]+(?:,([0-9]+))? @@")


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A changed file, as far as the diff shows its new content."""

    path: str
    removed: bool
    whole: bool
    """Whether the diff shows all of it, as of a new file."""
    text: str


def changed_files(diff: str) -> Iterator[ChangedFile]:
    r"""Read the files of a unified diff: a header of two lines, then hunks of counted lines.

    Only lines outside of hunks are headers, even if a file contains lines that look like one.

    >>> [f.path for f in changed_files("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+hello")]
    ['a.txt']
    """
    lines = diff.split("\n")
    at = 0
    while at + 1 < len(lines):
        if not _is_head(lines[at], lines[at + 1]):
            at += 1
            continue
        old, new = lines[at][4:], lines[at + 1][4:]
        kept, cut, at = _body(lines, at + 2)
        path = (new if new != _NOTHING else old).removeprefix("a/").removeprefix("b/")
        yield ChangedFile(path, new == _NOTHING, old == _NOTHING and not cut, "\n".join(kept))


def _body(lines: list[str], at: int) -> tuple[list[str], bool, int]:
    """Read the hunks of a file: its new lines, whether some are missing, and where it ends.

    A file whose lines could not be shown has a remark in brackets instead.
    """
    kept: list[str] = []
    cut = False
    while at < len(lines):
        hunk = _HUNK.match(lines[at])
        if hunk:
            before, after = (1 if n is None else int(n) for n in hunk.groups())
            at += 1
            while at < len(lines) and (before > 0 or after > 0):
                sign = lines[at][:1] or " "
                if sign not in {"+", "-", " ", "\\"}:
                    break
                before -= sign in {"-", " "}
                after -= sign in {"+", " "}
                kept += [lines[at][1:]] if sign in {"+", " "} else []
                at += 1
            cut |= before > 0 or after > 0
        elif at + 1 < len(lines) and _is_head(lines[at], lines[at + 1]):
            break
        else:
            cut |= lines[at].startswith(("[", "+[", "-["))
            at += 1
    return kept, cut, at


def _is_head(first: str, second: str) -> bool:
    return first.startswith(("--- a/", f"--- {_NOTHING}")) and second.startswith(
        ("+++ b/", f"+++ {_NOTHING}")
    )


_NO_WORKSPACE = CheckResult(None, "The record has no workspace; only agents have one.")


@check()
def file_exists(attempt: AttemptView, path: Text) -> CheckResult:
    r"""An agent created or changed a file; * in the path matches any characters.

    The record has only what the agent changed, so a file that it did not touch does not count.

    >>> diff = "--- /dev/null\n+++ b/notes.md\n@@ -0,0 +1 @@\n+hello"
    >>> file_exists({"work": {"diff": diff}}, "notes.md").holds
    True
    """
    diff = attempt.work.get("diff")
    if not isinstance(diff, str):
        return _NO_WORKSPACE
    own = [f for f in changed_files(diff) if fnmatchcase(f.path, path)]
    there = tuple(Excerpt("work.diff", f.path) for f in own if not f.removed)
    if there:
        return CheckResult(True, f"{there[0].text} exists.", there)
    if own:
        return CheckResult(False, f"{own[0].path} was deleted.")
    if _LEFT_OUT in diff:
        return CheckResult(None, f"The record does not show every change, so {path} may exist.")
    return CheckResult(False, f"The agent did not create {path}.")


@check(one_of=("text", "pattern"))
def file_contains(
    attempt: AttemptView,
    path: Text,
    *,
    text: Part | None = None,
    pattern: Pattern | None = None,
    case: Flag = True,
) -> CheckResult:
    r"""A file that an agent created or changed contains a text or matches a pattern.

    The record has only the changed parts of a file. If the text is not in them it may still be
    elsewhere in the file, and the check is undecided.

    >>> diff = "--- /dev/null\n+++ b/notes.md\n@@ -0,0 +1 @@\n+hello"
    >>> file_contains({"work": {"diff": diff}}, "notes.md", text="hello").holds
    True
    """
    diff = attempt.work.get("diff")
    if not isinstance(diff, str):
        return _NO_WORKSPACE
    own = [f for f in changed_files(diff) if fnmatchcase(f.path, path) and not f.removed]
    for file in own:
        where = f"work.diff: {file.path}"
        if pattern is not None:
            found = search(pattern, file.text, where)
        else:
            found = search_text(text or "", file.text, where, case=case)
        if found:
            return CheckResult(True, f"It is in {file.path}.", (found,))
    if (own and not all(f.whole for f in own)) or (not own and _LEFT_OUT in diff):
        return CheckResult(None, f"The record does not show all of {path}.")
    why = f"It is not in {path}." if own else f"The agent did not create {path}."
    return CheckResult(holds=False, why=why)
