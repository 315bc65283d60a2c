"""Checks that cannot do their work: a harness that is broken says nothing about an agent.

A check may fail in the initial workspace only for something that the agent has to provide. What is
missing is the agent's if it belongs into the workspace and the task names it: in the prompt, under
`answer_paths`, or in a Markdown file of `files`. Everything else that keeps a command from starting
is a fault of the suite or of the machine: a command or module that is not there, a hidden test with
a syntax error, options that pytest refuses.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path, PurePosixPath

from pennyweight.agent.answer_files import MODULES, installed
from pennyweight.agent.verification import WorkspaceCheck, WorkspaceCheckResult
from pennyweight.suite.values import Workspace

SHOWN_LINES = 6
"""The last lines of a command's output that a message shows."""
_ROOTS = ("", "src", "lib", "python")
"""Folders of a workspace from which modules are usually imported."""
_RUNS_PYTEST = re.compile(r"(?<![\w.-])(?:pytest|py\.test)(?![\w.-])")
_MISSING = re.compile(
    r"ModuleNotFoundError: No module named '([\w.]+)'|^\S*python[\d.]*: No module named ([\w.]+)",
    re.MULTILINE,
)
_FOREIGN_IMPORT = re.compile(
    r"ImportError: cannot import name '([\w.]+)' from '([\w.]+)' "
    r"\((/[^()\n]*/(?:site-packages|dist-packages|lib/python[\d.]+)/[^()\n]*)\)"
)
_FILE = re.compile(r'File "([^"]+)", line \d+')
_SYNTAX = re.compile(r"^(?:E\s+)?(?:SyntaxError|IndentationError|TabError): ")
_NOT_THERE = re.compile(r"^ERROR: (?:file or directory )?not found: (\S+)", re.MULTILINE)
_NAMES_A_TEST = re.compile(r"(?<![a-z])tests?[_/]|_test(?![a-z])", re.IGNORECASE)


_STAND_IN = b"""def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})
"""
"""A package that has every name, in place of one that the agent has to write."""


class FaultKind(StrEnum):
    """Why a check cannot do its work."""

    NOT_FOUND = "not_found"
    NOT_EXECUTABLE = "not_executable"
    SHELL = "shell"
    MODULE = "module"
    NOT_IMPORTABLE = "not_importable"
    IMPORT = "import"
    SYNTAX = "syntax"
    USAGE = "usage"
    NO_TESTS = "no_tests"
    INTERNAL = "internal"
    TIMEOUT = "timeout"
    LIMIT = "limit"
    SOLVED = "solved"
    """It succeeds before any agent has begun."""


@dataclass(frozen=True, slots=True)
class CheckFault:
    """A check that cannot do its work, and why."""

    check: WorkspaceCheck
    kind: FaultKind
    name: str = ""
    """The module, file or option that it is about."""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What an agent is asked for, by which it can be told what it has to provide."""

    work: Workspace
    initial: Path
    """The initial state of the workspace."""
    prompt: str
    packages: tuple[Path, ...] = ()
    """The folders from which the checks import packages."""
    told: str = field(init=False, default="")

    def __post_init__(self) -> None:
        guides = (text.decode(errors="replace") for name, text in self.work.files.items()
                  if name.endswith(".md"))  # fmt: skip
        told = "\n".join((self.prompt, *(self.work.answer_paths or ()), *guides))
        object.__setattr__(self, "told", told)

    def names(self, word: str) -> bool:
        """Whether the task names something, as a whole word."""
        return bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.told, re.IGNORECASE))

    def has(self, path: str) -> bool:
        """Whether a path exists before the agent begins, for the checks at least."""
        hidden = any(f"{name}/".startswith(f"{path}/") for name in self.work.verify_files)
        return hidden or (self.initial / path).exists()

    def asks_for_file(self, path: str) -> bool:
        """Whether the agent has to provide this file."""
        inside = PurePosixPath(path)
        if inside.is_absolute() or ".." in inside.parts or self.has(str(inside)):
            return False
        return any(map(self.names, (str(inside), inside.name, inside.stem)))

    def has_module(self, module: str) -> bool:
        """Whether a module exists before the agent begins."""
        path = module.replace(".", "/")
        return any(
            self.has(str(PurePosixPath(root, path + end))) for root in _ROOTS for end in ("", ".py")
        )

    def asks_for_module(self, module: str) -> bool:
        """Whether the agent has to provide this module.

        A new module of a package in the workspace is the agent's, too.
        """
        top = module.partition(".")[0]
        if top in MODULES or "pytest" in top or top in installed(self.packages):
            return False
        if self.has_module(top):
            return module != top and not self.has_module(module)
        return self.names(top)

    def with_files(self, files: Mapping[str, bytes]) -> Assignment:
        """Return the assignment with files that exist when the checks run."""
        hidden = {**self.work.verify_files, **files}
        return replace(self, work=replace(self.work, verify_files=hidden))


def faults(
    checks: Sequence[WorkspaceCheck],
    results: Sequence[WorkspaceCheckResult],
    assignment: Assignment,
) -> list[CheckFault]:
    """List the checks that could not do their work."""
    found = (_fault(*pair, assignment) for pair in zip(checks, results, strict=True))
    return [fault for fault in found if fault]


def stand_ins(results: Sequence[WorkspaceCheckResult], assignment: Assignment) -> dict[str, bytes]:
    """Return files in place of the modules that the agent has to write.

    Until these exist, a check stops there, and does not show what else is missing. They are put
    where the task says, and into the folders from which modules are usually imported.
    """
    files: dict[str, bytes] = {}
    for result in results:
        for module in filter(assignment.asks_for_module, _missing(result)):
            parts = module.split(".")
            told = re.findall(rf"((?:[\w.-]+/)+){re.escape(parts[0])}(?:\.py|/)", assignment.told)
            roots = [root for root in _ROOTS if not root or (assignment.initial / root).is_dir()]
            for root in (*roots, *(path for path in told if ".." not in path)):
                for number in range(1, len(parts) + 1):
                    path = PurePosixPath(root, *parts[:number], "__init__.py")
                    if not assignment.has(str(path.parent)):
                        files[str(path)] = _STAND_IN
    return files


SHOWN_BY_STAND_INS = frozenset(
    {
        *(FaultKind.MODULE, FaultKind.NOT_IMPORTABLE, FaultKind.IMPORT, FaultKind.SYNTAX),
        *(FaultKind.USAGE, FaultKind.NO_TESTS, FaultKind.NOT_FOUND),
    }
)
"""The faults that are no fault of the stand-ins."""


def _missing(result: WorkspaceCheckResult) -> list[str]:
    """Return the modules that Python did not find."""
    return [] if result.good else [one or other for one, other in _MISSING.findall(result.text)]


def is_solved(checks: Sequence[WorkspaceCheck], results: Sequence[WorkspaceCheckResult]) -> bool:
    """Whether everything that the task asks for holds already."""
    verified = [r.good for c, r in zip(checks, results, strict=True) if c.kind == "verify"]
    return bool(verified) and all(verified)


def _fault(
    check: WorkspaceCheck, result: WorkspaceCheckResult, assignment: Assignment
) -> CheckFault | None:
    if result.good:
        return None
    reason = next(_reasons(check, result, assignment), None)
    return CheckFault(check, *reason, result.output) if reason else None


def _reasons(
    check: WorkspaceCheck, result: WorkspaceCheckResult, assignment: Assignment
) -> Iterator[tuple[FaultKind, str]]:
    """Yield why a failed check could not do its work, the first cause first."""
    if result.why != "exit":
        yield FaultKind.TIMEOUT if result.why == "timeout" else FaultKind.LIMIT, ""
        return
    problem = _shell_problem(check).rpartition(": ")[2]
    if problem and problem in result.text:
        yield FaultKind.SHELL, problem
    yield from _import_reasons(result, assignment)
    if _missing(result):
        return  # the agent has to provide the modules: what follows from that is no fault
    if result.exit_code == 126:
        yield FaultKind.NOT_EXECUTABLE, ""
    if result.exit_code == 127 and not _waits_for_a_file(check, result, assignment):
        yield FaultKind.NOT_FOUND, ""
    if _RUNS_PYTEST.search(check.shown):
        yield from _pytest_reasons(result, assignment)


def _import_reasons(
    result: WorkspaceCheckResult, assignment: Assignment
) -> Iterator[tuple[FaultKind, str]]:
    """Yield what Python could not import, or not read, and the agent cannot provide."""
    for module in _missing(result):
        if not assignment.asks_for_module(module):
            is_there = assignment.has_module(module)
            yield FaultKind.NOT_IMPORTABLE if is_there else FaultKind.MODULE, module
    for name, module, file in _FOREIGN_IMPORT.findall(result.text):
        yield FaultKind.IMPORT, f"{name} from {module} ({file})"
    for file in _broken_files(result.text, assignment.work):
        yield FaultKind.SYNTAX, file


def _pytest_reasons(
    result: WorkspaceCheckResult, assignment: Assignment
) -> Iterator[tuple[FaultKind, str]]:
    """Yield what the exit code of pytest says; 2 stands for tests that cannot be imported."""
    if result.exit_code == 2:
        for name, content in assignment.work.verify_files.items():
            if name.endswith(".py") and name in result.text and not _parses(content):
                yield FaultKind.SYNTAX, name
    if result.exit_code == 3:
        yield FaultKind.INTERNAL, ""
    if result.exit_code == 4 and "while loading conftest" not in result.text:
        absent = [path.partition("::")[0] for path in _NOT_THERE.findall(result.text)]
        if not absent or not all(map(assignment.asks_for_file, absent)):
            yield FaultKind.USAGE, ", ".join(absent)
    if result.exit_code == 5 and (
        assignment.work.verify_files or not _NAMES_A_TEST.search(assignment.told)
    ):
        yield FaultKind.NO_TESTS, ""


def _broken_files(text: str, work: Workspace) -> Iterator[str]:
    """Yield the hidden files in which Python reports a syntax error."""
    last = ""
    for line in text.splitlines():
        if found := _FILE.search(line):
            last = found[1]
        if _SYNTAX.match(line.strip()):
            yield from (name for name in work.verify_files if f"/{last}".endswith(f"/{name}"))
            if last == "<string>":
                yield "the command itself"


def _parses(content: bytes) -> bool:
    try:
        ast.parse(content)
    except (SyntaxError, ValueError):
        return False
    return True


def _waits_for_a_file(
    check: WorkspaceCheck, result: WorkspaceCheckResult, assignment: Assignment
) -> bool:
    """Whether a command was not found that the agent has to create in the workspace."""
    words = (word.removeprefix("./") for word in re.split(r"[\s;|&()<>'\"`$]+", check.shown))
    paths = [word for word in words if re.search(r"[/.]", word) or f"./{word}" in check.shown]
    return any(path and path in result.text and assignment.asks_for_file(path) for path in paths)


@lru_cache(maxsize=1000)
def _shell_problem(check: WorkspaceCheck) -> str:
    """Return why the shell cannot parse a line; nothing is run."""
    if check.words[:2] != ("sh", "-c"):
        return ""
    done = subprocess.run(  # noqa: S603
        ["sh", "-n", "-c", *check.words[2:]],  # noqa: S607
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stderr.strip() if done.returncode else ""


_INSTALL = "install it in the environment that the checks run in, or correct the name"
_AGENTS = (
    "if the agent has to create it, name it in the prompt or under 'answer_paths', or set "
    "'verify_before: any'"
)
_REASONS = {
    FaultKind.NOT_FOUND: ("the command is not found (exit code 127)", f"{_INSTALL}; {_AGENTS}"),
    FaultKind.NOT_EXECUTABLE: (
        "the command cannot be executed (exit code 126)",
        "make the file executable, or name the program that runs it",
    ),
    FaultKind.SHELL: ("the shell cannot read it: {name}", "correct the line"),
    FaultKind.MODULE: ("Python finds no module {name!r}", f"{_INSTALL}; {_AGENTS}"),
    FaultKind.NOT_IMPORTABLE: (
        "Python finds no module {name!r}, even if the workspace has it",
        "let the command find it: 'python3 -m pytest' imports from the workspace, plain 'pytest' "
        "does not",
    ),
    FaultKind.IMPORT: (
        "an installed package does not have what a test imports: {name}",
        "install the version that the test was written for",
    ),
    FaultKind.SYNTAX: ("{name} has a syntax error", "correct it"),
    FaultKind.USAGE: (
        "pytest refuses its arguments (exit code 4)",
        f"correct the paths and options; {_AGENTS}",
    ),
    FaultKind.NO_TESTS: (
        "pytest finds no tests (exit code 5)",
        f"correct the paths and the selection; {_AGENTS}",
    ),
    FaultKind.INTERNAL: ("pytest fails internally (exit code 3)", "correct what its output names"),
    FaultKind.TIMEOUT: (
        "it did not end in time",
        "let the command give up by itself, or raise the agent's 'timeout'",
    ),
    FaultKind.LIMIT: ("it exceeds a limit of the agent", "raise the limit under 'caps'"),
    FaultKind.SOLVED: (
        "it succeeds already, so the task is solved before any agent has begun",
        "let it fail until the work is done, or set 'verify_before: any'",
    ),
}


def reason_of(fault: CheckFault) -> str:
    """Say why a check cannot do its work."""
    text, _ = _REASONS[fault.kind]
    return text.format(name=fault.name)


def advice_of(fault: CheckFault) -> str:
    """Say what to do about it."""
    _, text = _REASONS[fault.kind]
    return f"{text[0].upper()}{text[1:]}."


def output_tail(fault: CheckFault) -> str:
    """Return the last lines of the command's output."""
    lines = [line for line in fault.output.splitlines() if line.strip()]
    return "\n".join(f"    {line}" for line in lines[-SHOWN_LINES:])
