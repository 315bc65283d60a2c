"""Suites that can be run from the page: files the server was shown, and uploads.

A request names a suite by its id, never by a path.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING, Any

import yaml

from pennyweight.errors import InputError, PennyweightError, UsageError
from pennyweight.web.suite_preview import apart, prepare

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pennyweight.store.store import Run

DEPTH, MOST = 3, 200
LARGEST = 50_000_000
"""Bytes of an uploaded data set."""
LARGEST_SUITE = 2_000_000
"""Bytes of an uploaded suite, all of which is read at once."""
DATA = {".jsonl", ".json", ".csv", ".parquet"}
ANSWERS = {
    kind: (title, f"{{{{ input }}}}\n{ask}")
    for kind, title, ask in (
        (
            "marker",
            "a line FINAL_ANSWER: …",
            'Think, and end with a line "FINAL_ANSWER: <answer>".',
        ),
        ("last_number", "the last number", "End with the answer, a number."),
        ("last_line", "the last line", "Write the answer, and nothing else, on the last line."),
        ("boxed", r"\boxed{…}", r"Put the answer into \boxed{}."),
        ("choice", "a letter", "Answer with the letter of the right choice."),
    )
}
"""How the answer to a task of an uploaded data set is found, and the prompt that asks for it."""
_SUITE = re.compile(rb"(?m)^suite\s*:")


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
        listed = _told_apart(listed)
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

    def read(
        self, choice: Choice, runs: Iterable[Run] = (), *, plan: bool = False
    ) -> tuple[Path, dict[str, Any]]:
        """Read a suite as it was chosen: its path, then its text and, if wanted, its plan."""
        known = self.find(choice.suite, runs)
        order = {"path": str(known.path), "choice": asdict(choice), "plan": plan}
        if not known.uploaded:
            with _without(known.path.resolve().parent):
                return known.path, prepare(order)
        return known.path, apart({**order, **_kind(known.path.parent)})

    @contextmanager
    def incoming(self) -> Iterator[IO[bytes]]:
        """Open a file for what comes in; it is gone when the block ends."""
        self.uploads.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=self.uploads, prefix=".coming-") as file:
            yield file

    def add_suite(self, file: IO[bytes]) -> str:
        """Keep an uploaded suite; its tasks stand in it."""
        return self._added({"suite.yaml": file})

    def add_data(self, file: IO[bytes], kind: str, form: Mapping[str, Any]) -> str:
        """Keep an uploaded data set, with a suite made of what was filled in."""
        if kind not in DATA:
            raise UsageError(f"A data set is one of {', '.join(sorted(DATA))}.")
        subjects = [name for s in form.get("subjects") or () if (name := str(s).strip())]
        if not subjects:
            raise UsageError("Name the model that is to be asked, such as local/smollm2-135m.")
        answer = str(form.get("answer") or "marker")
        asking = ANSWERS[answer][1] if answer in ANSWERS else "{{ input }}"
        tree = {
            "suite": str(form.get("name") or "uploaded"),
            "tasks": f"tasks{kind}",
            "prompt": str(form.get("prompt") or asking),
            "answer": answer,
            "subjects": subjects,
        }
        suite = BytesIO(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True).encode())
        return self._added({f"tasks{kind}": file, "suite.yaml": suite})

    def _added(self, files: Mapping[str, IO[bytes]]) -> str:
        """Keep files in a folder of their own, unless they cannot be read as a suite."""
        name = f"upload-{secrets.token_hex(6)}"
        folder = self.uploads / name
        folder.mkdir(parents=True)
        try:
            for place, held in files.items():
                held.seek(0)
                with (folder / place).open("wb") as file:
                    shutil.copyfileobj(held, file)
            apart({"path": str(folder / "suite.yaml"), "plan": False, **_kind(folder)})
        except BaseException:
            shutil.rmtree(folder)
            raise
        return name


@contextmanager
def _without(folder: Path) -> Iterator[None]:
    """Keep to ourselves where on the server's disk a suite lies: errors name its folder alone."""

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


def _kind(folder: Path) -> dict[str, bool]:
    """Say of an upload whether a data set lies beside the suite that was made for it."""
    return {"uploaded": True, "data": any(folder.glob("tasks.*"))}


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


def _told_apart(listed: Sequence[Known]) -> list[Known]:
    """Show more of the folders of suites that would look the same."""
    found = []
    for one in listed:
        same = [s.path.resolve() for s in listed if s.name == one.name]
        if len(same) > 1:
            common = Path(os.path.commonpath(same))
            below = one.path.resolve().relative_to(common)
            found.append(replace(one, name=f"{_name(one.path)} ({below})"))
        else:
            found.append(one)
    return found


def id_of(path: Path) -> str:
    """Give the id by which requests name a file."""
    return sha256(str(path).encode()).hexdigest()[:16]
