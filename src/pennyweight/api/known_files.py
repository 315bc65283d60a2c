"""Suites and policies found in the folders of a server. Requests name them by id, never by path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from pennyweight.api.suite_preview import read_tree
from pennyweight.errors import UsageError

MAX_DEPTH, MAX_FILES = 3, 200
"""How deep a folder is searched, and how many files are listed."""
MAX_POLICY_BYTES = 500_000
POLICY_KEYS = {
    *("thresholds", "gates", "risk_based_thresholds", "progressive_thresholds", "pass_criteria"),
    "required_scenarios",
}
"""A policy has at least one of these keys."""
OTHER_KEYS = {"suite", "tasks", "subjects", "properties"}
"""Keys of suites and schemas: a file with one of them is no policy."""
_SUITE = re.compile(rb"(?m)^suite\s*:")
_POLICY = re.compile(rb'(?m)^\s*"?(%s)"?\s*:' % "|".join(sorted(POLICY_KEYS)).encode())


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
            result.append(replace(file, name=f"{suite_name(file.path)} ({below})"))
        else:
            result.append(file)
    return result


def file_id(path: Path) -> str:
    """Return the id by which requests name a file."""
    return sha256(str(path.resolve()).encode()).hexdigest()[:16]
