"""Suites that a server can run: files in its folders, those of earlier runs, and uploads."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING

import yaml

from pennyweight.api.known_files import KnownFile, suite_files
from pennyweight.api.suite_preview import SuiteChoice, SuitePreview, preview, preview_in_process
from pennyweight.errors import InputError, PennyweightError, UsageError

if TYPE_CHECKING:
    from pennyweight.store.store import Run

__all__ = ["ANSWER_RULES", "AnswerRequest", "SuiteChoice", "SuiteLibrary", "SuitePreview"]

MAX_DATA_BYTES = 50_000_000
"""Size of an uploaded data set."""
MAX_SUITE_BYTES = 2_000_000
"""Size of an uploaded suite, which is read into memory."""
DATA_SUFFIXES = (".csv", ".json", ".jsonl", ".parquet")


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """How answers are extracted for an uploaded data set, and a prompt that asks for them so."""

    title: str
    prompt: str


ANSWER_RULES = {
    "marker": AnswerRequest(
        "a line FINAL_ANSWER: …",
        '{{ input }}\nThink step by step and end with a line "FINAL_ANSWER: <answer>".',
    ),
    "last_number": AnswerRequest(
        "the last number", "{{ input }}\nEnd with the answer as a number."
    ),
    "last_line": AnswerRequest(
        "the last line", "{{ input }}\nWrite only the answer on the last line."
    ),
    "boxed": AnswerRequest(r"\boxed{…}", "{{ input }}\n" r"Put the answer into \boxed{}."),
    "choice": AnswerRequest(
        "a letter", "{{ input }}\nAnswer with the letter of the correct choice."
    ),
}
"""The rules that can be chosen for an uploaded data set."""


class SuiteLibrary:
    """The suites of a server: listed, previewed and uploaded."""

    def __init__(self, folders: Iterable[Path], uploads: Path) -> None:
        self.folders, self.uploads = tuple(folders), uploads

    def known(self, runs: Iterable[Run] = ()) -> list[KnownFile]:
        """List the suites: those on disk, of earlier `runs`, then uploads."""
        return suite_files(self.folders, (Path(run.path) for run in runs), self.uploads)

    def find(self, name: str, runs: Iterable[Run] = ()) -> KnownFile:
        """Find a suite by its id."""
        found = next((suite for suite in self.known(runs) if suite.id == name), None)
        if found is None:
            raise UsageError(
                "There is no such suite. Choose one from the list, or upload it again."
            )
        return found

    def preview(
        self, choice: SuiteChoice, runs: Iterable[Run] = (), *, plan: bool = False
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
        self.uploads.mkdir(parents=True, exist_ok=True)
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
        """Store files in a folder of their own, unless they cannot be read as a suite."""
        name = f"upload-{secrets.token_hex(6)}"
        folder = self.uploads / name
        folder.mkdir(parents=True)
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
