"""Suites that can be run from the page: files the server was shown, and uploads.

A request names a suite by its id, never by a path. What is uploaded is data: it may name models
of known providers, but no command, no file, no address and no environment variable.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from assay.errors import InputError, UsageError
from assay.run.execute import open_suite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assay.store.store import Run
    from assay.suite.values import Suite

DEPTH, MOST = 3, 200
LARGEST = 50_000_000
"""Bytes of an upload."""
DATA = {".jsonl", ".json", ".csv", ".parquet"}
LOCKED = {
    *("command", "workspace", "verify", "keep", "files", "base_url", "key_env", "env", "network"),
    *("from", "rubric", "copy", "git", "python", "function"),
}
"""Keys that reach beyond the data: they stand only in suites that lie on the server's disk."""

_SUITE = re.compile(rb"(?m)^suite\s*:")
_CALLS = re.compile(r"\s*(python|replay|command)\s*[:=]")


@dataclass(frozen=True, slots=True)
class Known:
    """A suite that can be chosen."""

    id: str
    name: str
    path: Path
    uploaded: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A suite as a person wants it run: fewer subjects or tiers, other runs, a budget."""

    suite: str
    subjects: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    runs: int | None = None
    usd: float | None = None


class Suites:
    """The suites below some folders, those of earlier runs, and uploads."""

    def __init__(self, folders: Iterable[Path], uploads: Path) -> None:
        self.folders, self.uploads = tuple(folders), uploads

    def known(self, runs: Iterable[Run] = ()) -> list[Known]:
        """List the suites, those on disk first."""
        paths: dict[Path, None] = {}
        for folder in self.folders:
            paths |= dict.fromkeys(files_like(folder, _SUITE))
        paths |= dict.fromkeys(p for r in runs if (p := Path(r.path)).is_file())
        found = {p.resolve(): p for p in paths if not p.resolve().is_relative_to(self._uploads)}
        listed = [Known(id_of(p), _shown(p), shown) for p, shown in list(found.items())[:MOST]]
        uploads = sorted(self._uploads.glob("*/suite.yaml")) if self._uploads.is_dir() else []
        return listed + [Known(p.parent.name, _name(p), p, uploaded=True) for p in uploads]

    @property
    def _uploads(self) -> Path:
        return self.uploads.resolve()

    def find(self, name: str, runs: Iterable[Run] = ()) -> Known:
        """Find a suite by its id."""
        found = next((s for s in self.known(runs) if s.id == name), None)
        if found is None:
            raise UsageError("There is no such suite; choose one of the list, or upload it again.")
        return found

    def load(self, choice: Choice, runs: Iterable[Run] = ()) -> tuple[Path, str, Suite]:
        """Read a suite as it was chosen: its path, its text and what it says."""
        known = self.find(choice.suite, runs)
        text = _changed(known.path, choice)
        return known.path, text, open_suite(known.path, text)

    def add_suite(self, content: bytes) -> str:
        """Keep an uploaded suite; its tasks stand in it."""
        tree = _tree(content)
        refuse(tree)
        if isinstance(tree.get("tasks"), str) and not tree["tasks"].startswith("hf:"):
            raise UsageError(
                "An uploaded suite holds its tasks in itself; or upload the data set instead."
            )
        name, folder = self._folder()
        (folder / "suite.yaml").write_bytes(content)
        return self._checked(name, folder)

    def add_data(self, content: bytes, kind: str, form: Mapping[str, Any]) -> str:
        """Keep an uploaded data set, with a suite made of what was filled in."""
        if kind not in DATA:
            raise UsageError(f"A data set is one of {', '.join(sorted(DATA))}.")
        tree = {
            "suite": str(form.get("name") or "uploaded"),
            "tasks": f"tasks{kind}",
            "prompt": str(form.get("prompt") or "{{ input }}"),
            "answer": str(form.get("answer") or "marker"),
            "subjects": [str(s) for s in form.get("subjects") or ()],
        }
        refuse({k: v for k, v in tree.items() if k != "tasks"})
        name, folder = self._folder()
        (folder / f"tasks{kind}").write_bytes(content)
        text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
        (folder / "suite.yaml").write_text(text, encoding="utf-8")
        return self._checked(name, folder)

    def _folder(self) -> tuple[str, Path]:
        name = f"upload-{secrets.token_hex(6)}"
        folder = self.uploads / name
        folder.mkdir(parents=True)
        return name, folder

    def _checked(self, name: str, folder: Path) -> str:
        """Keep an upload only if it can be read as a suite."""
        try:
            suite = open_suite(folder / "suite.yaml")
            for task in suite.tasks:
                refuse([*task.checks, *task.expected_behaviors, *task.must_not], task.id)
                if task.work:
                    raise UsageError(f"{task.id}: an uploaded task may not have a workspace.")
        except (UsageError, InputError) as error:
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
            raise UsageError(str(error).replace(str(folder), "upload")) from None
        return name


def refuse(tree: Any, place: str = "", seen: set[int] | None = None) -> None:
    """Refuse what an upload may not say; what is said once and meant often is looked at once."""
    seen = set() if seen is None else seen
    if isinstance(tree, str) and _CALLS.match(tree):
        raise UsageError(f"{place}: an uploaded suite may not name {tree[:40]!r}.")
    if not isinstance(tree, dict | list | tuple) or id(tree) in seen:
        return
    seen.add(id(tree))
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        where = f"{place}.{key}" if place else str(key)
        if key in LOCKED or (key == "examples" and isinstance(value, str)):
            raise UsageError(
                f"{where}: an uploaded suite may not say this; put the suite on the server's "
                "disk and name its folder: assay serve FOLDER."
            )
        refuse(value, where, seen)


def _tree(content: bytes) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(content)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else "it cannot be read"
        raise UsageError(f"This is no YAML: {first}.") from None
    if not isinstance(tree, dict):
        raise UsageError("This is no suite: it is a mapping with 'suite', 'tasks' and 'subjects'.")
    return tree


def _changed(path: Path, choice: Choice) -> str:
    """Write a suite's text anew where a choice differs from it."""
    text = path.read_bytes().decode("utf-8-sig", "replace")
    if not (choice.subjects or choice.tiers or choice.runs or choice.usd):
        return text
    tree = _tree(text.encode())
    if choice.subjects:
        tree["subjects"] = [s for s in tree["subjects"] if _subject(s) in choice.subjects]
    if choice.tiers:
        tree["tiers"] = _with_bases(tree.get("tiers") or {"T0": {}}, choice.tiers)
    if choice.runs:
        tree["runs"] = choice.runs
    if choice.usd:
        tree["limits"] = {**(tree.get("limits") or {}), "usd": choice.usd}
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)


def _with_bases(tiers: Mapping[str, Any], chosen: Iterable[str]) -> dict[str, Any]:
    """Take tiers; one that extends another needs it there."""
    wanted = set(chosen)
    bases = {str(tier["extends"]) for n in wanted if (tier := tiers.get(n)) and "extends" in tier}
    missing = bases - wanted
    if missing:
        raise UsageError(f"Choose {', '.join(sorted(missing))} too: another tier extends it.")
    return {name: tier for name, tier in tiers.items() if name in wanted}


def _subject(given: Any) -> str:
    if isinstance(given, dict):
        return str(given.get("name") or given.get("model"))
    return str(given)


def files_like(
    folder: Path, pattern: re.Pattern[bytes], kinds: Iterable[str] = ("yaml", "yml")
) -> list[Path]:
    """Find files whose beginning fits a pattern, in a folder and not far below it."""
    if folder.is_file():
        return [folder] if _fits(folder, pattern) else []
    found: list[Path] = []
    for depth in range(DEPTH):
        for kind in kinds:
            below = "/".join(["*"] * depth + [f"*.{kind}"])
            for path in sorted(folder.glob(below)):
                hidden = any(p.startswith(".") for p in path.relative_to(folder).parts)
                if not hidden and _fits(path, pattern):
                    found.append(path)
                if len(found) >= MOST:
                    return found
    return found


def _fits(path: Path, pattern: re.Pattern[bytes]) -> bool:
    try:
        with path.open("rb") as file:
            return pattern.search(file.read(20_000)) is not None
    except OSError:
        return False


def _name(path: Path) -> str:
    found = re.search(r"(?m)^suite\s*:\s*(.+)$", path.read_text("utf-8", "replace")[:20_000])
    return found[1].strip().strip("\"'") if found else path.stem


def _shown(path: Path) -> str:
    return f"{_name(path)} ({path.parent.name}/{path.name})"


def id_of(path: Path) -> str:
    """Give the id by which requests name a file."""
    return sha256(str(path).encode()).hexdigest()[:16]
