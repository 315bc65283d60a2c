"""Suites that a server can run, and policies: found in folders, of earlier runs, and uploaded.

Requests name them by id, never by path.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import yaml

from pennyweight.api.pages.suite_preview import (
    SuiteChoice,
    SuitePreview,
    preview,
    preview_in_process,
    read_tree,
)
from pennyweight.errors import InputError, PennyweightError, UsageError
from pennyweight.store.connection import create_private_folder
from pennyweight.store.store import StoredRun

__all__ = ["SuiteChoice", "SuitePreview"]

MAX_DATA_BYTES = 50_000_000
"""Size of an uploaded data set."""
MAX_SUITE_BYTES = 2_000_000
"""Size of an uploaded suite, which is read into memory."""
DATA_SUFFIXES = (".csv", ".json", ".jsonl", ".parquet")

MAX_DEPTH, MAX_FILES = 3, 200
"""How deep a folder is searched, and how many files are listed."""
MAX_POLICY_BYTES = 500_000
POLICY_KEYS = {
    *("thresholds", "gates", "risk_based_thresholds", "progressive_thresholds", "pass_criteria"),
    "required_scenarios",
}
"""A policy has at least one of these keys."""
OTHER_KEYS = {"suite", "tasks", "subjects", "properties"}
"""Keys of suites and schemas: a file with one of them is not a policy."""
_SUITE = re.compile(rb"(?m)^suite\s*:")
_POLICY = re.compile(rb'(?m)^\s*"?(%s)"?\s*:' % "|".join(sorted(POLICY_KEYS)).encode())


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """How answers are extracted for an uploaded data set, and a prompt that asks for them so."""

    title: str
    prompt: str


ANSWER_RULES = {
    kind: AnswerRequest(title, f"{{{{ input }}}}\n{request}")
    for kind, title, request in (
        (
            "marker",
            "a line FINAL_ANSWER: …",
            'Think step by step and end with a line "FINAL_ANSWER: <answer>".',
        ),
        ("last_number", "the last number", "End with the answer as a number."),
        ("last_line", "the last line", "Write only the answer on the last line."),
        ("boxed", r"\boxed{…}", r"Put the answer into \boxed{}."),
        ("choice", "a letter", "Answer with the letter of the correct choice."),
    )
}
"""The rules that can be chosen for an uploaded data set."""


class SuiteLibrary:
    """The suites of a server: listed, previewed and uploaded."""

    def __init__(self, folders: Iterable[Path], uploads: Path) -> None:
        self.folders, self.uploads = tuple(folders), uploads

    def known(self, runs: Iterable[StoredRun] = ()) -> list[KnownFile]:
        """List the suites: those on disk, of earlier `runs`, then uploads."""
        earlier = (Path(run.path) for run in runs if is_own_file(run.path))
        return suite_files(self.folders, earlier, self.uploads)

    def find(self, name: str, runs: Iterable[StoredRun] = ()) -> KnownFile:
        """Find a suite by its id."""
        found = next((suite for suite in self.known(runs) if suite.id == name), None)
        if found is None:
            raise UsageError(
                "There is no such suite. Choose one from the list, or upload it again."
            )
        return found

    def preview(
        self, choice: SuiteChoice, runs: Iterable[StoredRun] = (), *, plan: bool = False
    ) -> SuitePreview:
        """Read a suite as chosen, with its plan if `plan`."""
        known = self.find(choice.suite, runs)
        if known.uploaded:
            return preview_in_process(known.path, choice, plan=plan, data=_has_data(known.path))
        with _hidden_folder(known.path.resolve().parent):
            return preview(known.path, choice, plan=plan)

    @contextmanager
    def incoming(self) -> Iterator[IO[bytes]]:
        """Open a file for an upload; it is deleted when the block ends."""
        create_private_folder(self.uploads)
        with NamedTemporaryFile(dir=self.uploads, prefix=".coming-") as file:
            yield file

    def add_suite(self, file: IO[bytes]) -> str:
        """Store an uploaded suite, which contains its tasks; return its id."""
        return self._add({"suite.yaml": file})

    def add_data(
        self,
        file: IO[bytes],
        suffix: str,
        *,
        name: str = "",
        subjects: Sequence[str] = (),
        prompt: str = "",
        answer: str = "",
    ) -> str:
        """Store an uploaded data set and a suite for it; return the id of the suite."""
        if suffix not in DATA_SUFFIXES:
            raise UsageError(f"A data set is one of {', '.join(DATA_SUFFIXES)}.")
        models = [model for subject in subjects if (model := subject.strip())]
        if not models:
            raise UsageError("Name the model to call, such as local/smollm2-135m.")
        rule = answer or "marker"
        asking = ANSWER_RULES[rule].prompt if rule in ANSWER_RULES else "{{ input }}"
        tree = {
            "suite": name or "uploaded",
            "tasks": f"tasks{suffix}",
            "prompt": prompt or asking,
            "answer": rule,
            "subjects": models,
        }
        suite = BytesIO(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True).encode())
        return self._add({f"tasks{suffix}": file, "suite.yaml": suite})

    def _add(self, files: Mapping[str, IO[bytes]]) -> str:
        """Store files in a new folder, unless they cannot be read as a suite."""
        name = f"upload-{secrets.token_hex(6)}"
        folder = self.uploads / name
        create_private_folder(folder)
        try:
            for place, content in files.items():
                content.seek(0)
                with (folder / place).open("wb") as file:
                    shutil.copyfileobj(content, file)
            preview_in_process(folder / "suite.yaml", SuiteChoice(name), data=len(files) > 1)
        except BaseException:
            shutil.rmtree(folder)
            raise
        return name


def _has_data(suite: Path) -> bool:
    """Whether a data set lies next to an uploaded suite, which was made for it."""
    return any(suite.parent.glob("tasks.*"))


@contextmanager
def _hidden_folder(folder: Path) -> Iterator[None]:
    """Keep the server's directories out of errors: they name the folder alone."""

    def short(text: str) -> str:
        return text.replace(str(folder), folder.name).replace(f"{Path.cwd()}{os.sep}", "")

    try:
        yield
    except InputError as error:
        raise InputError(
            [short(p) for p in error.problems], error.total, short(error.hint)
        ) from error
    except PennyweightError as error:
        raise UsageError(short(str(error))) from error


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A suite or a policy that can be chosen."""

    id: str
    name: str
    path: Path
    uploaded: bool = False


def policy_files(folders: Iterable[Path]) -> dict[str, KnownFile]:
    """Find the policies in some folders, by their ids."""
    kinds = ("yaml", "yml", "json")
    paths = [p for folder in folders for p in _matching(folder, _POLICY, kinds)]
    files = (
        KnownFile(file_id(p), f"{p.resolve().parent.name}/{p.name}", p)
        for p in paths
        if _is_policy(p)
    )
    return {file.id: file for file in files}


def _is_policy(path: Path) -> bool:
    """Look at the top-level keys; a file that cannot be parsed is listed, and fails when chosen."""
    try:
        if path.stat().st_size > MAX_POLICY_BYTES:
            return False
        text = path.read_bytes().decode("utf-8-sig", "replace")
        keys = read_tree(text, is_json=path.suffix.lower() == ".json").keys()
    except OSError:
        return False
    except UsageError:
        return True
    return bool(keys & POLICY_KEYS) and not keys & OTHER_KEYS


def suite_files(folders: Iterable[Path], others: Iterable[Path], uploads: Path) -> list[KnownFile]:
    """List the suites in some folders, `others` such as those of earlier runs, then uploads."""
    uploads = uploads.resolve()
    paths = dict.fromkeys(p for folder in folders for p in _matching(folder, _SUITE))
    paths |= dict.fromkeys(p for p in others if p.is_file())
    by_place = {p.resolve(): p for p in paths if not p.resolve().is_relative_to(uploads)}
    listed = _distinguished(
        [
            KnownFile(file_id(place), f"{suite_name(path)} ({path.parent.name}/{path.name})", path)
            for place, path in list(by_place.items())[:MAX_FILES]
        ]
    )
    uploaded = sorted(uploads.glob("*/suite.yaml")) if uploads.is_dir() else []
    return listed + [KnownFile(p.parent.name, suite_name(p), p, uploaded=True) for p in uploaded]


def _matching(
    folder: Path, pattern: re.Pattern[bytes], kinds: Iterable[str] = ("yaml", "yml")
) -> list[Path]:
    """Find files whose start matches a pattern, in a folder and a few levels below it."""
    if folder.is_file():
        return [folder] if _matches(folder, pattern) else []
    found: list[Path] = []
    for depth in range(MAX_DEPTH):
        for kind in kinds:
            below = "/".join(["*"] * depth + [f"*.{kind}"])
            for path in sorted(folder.glob(below)):
                hidden = any(p.startswith(".") for p in path.relative_to(folder).parts)
                if not hidden and _matches(path, pattern):
                    found.append(path)
                if len(found) >= MAX_FILES:
                    return found
    return found


def _matches(path: Path, pattern: re.Pattern[bytes]) -> bool:
    try:
        with path.open("rb") as file:
            return pattern.search(file.read(20_000)) is not None
    except OSError:
        return False


def suite_name(path: Path) -> str:
    """Read the name of a suite from its file."""
    found = re.search(r"(?m)^suite\s*:\s*(.+)$", path.read_text("utf-8", "replace")[:20_000])
    return found[1].strip().strip("\"'") if found else path.stem


def _distinguished(listed: Sequence[KnownFile]) -> list[KnownFile]:
    """Show more of the folders of suites whose names would look the same."""
    result = []
    for file in listed:
        same = [other.path.resolve() for other in listed if other.name == file.name]
        if len(same) > 1:
            below = file.path.resolve().relative_to(os.path.commonpath(same))
            file = replace(file, name=f"{suite_name(file.path)} ({below})")  # noqa: PLW2901
        result.append(file)
    return result


def file_id(path: Path) -> str:
    """Return the id by which requests name a file."""
    return sha256(str(path.resolve()).encode()).hexdigest()[:16]


def is_own_file(path: str | Path) -> bool:
    """Whether a file exists that nobody but this user (or root) can have written.

    The path may come from a store, and others may write files on the same machine. What a suite
    names is looked for in its folder, so neither the folder nor a link on the way may be others'.
    """
    try:
        given, real = Path(path).absolute(), Path(path).resolve(strict=True)
        links = [one for one in (given, *given.parents) if one.is_symlink()]
        linked = all(_is_mine(one.lstat()) for one in links)
        places = [one.stat() for one in (real, real.parent, given.parent)]
    except (OSError, ValueError, RuntimeError):
        return False
    mine = all(_is_mine(one) and _only_owner_writes(one) for one in places)
    return linked and mine and stat.S_ISREG(places[0].st_mode)


def _is_mine(found: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or found.st_uid in {os.geteuid(), 0}


def _only_owner_writes(found: os.stat_result) -> bool:
    """Whether neither everyone nor a group of several people can write to a file or folder."""
    if found.st_mode & 0o002 or not found.st_mode & 0o020:
        return not found.st_mode & 0o002
    try:
        import grp  # noqa: PLC0415 - not on Windows, which has no such modes
        import pwd  # noqa: PLC0415

        group, user = grp.getgrgid(found.st_gid), pwd.getpwuid(found.st_uid).pw_name
    except (ImportError, KeyError):
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}
