"""Recorded replies: `replay:FILE` returns them, and a recorder writes such files.

A file is JSONL. Each line has the key of a request, the model that answered, and its reply. The key
is a hash of the model, the messages, the settings, the attempt, the tier and the task. So a
recording never answers for another model, prompt or attempt, and equal prompts have a reply each.
If two replies have the same key, the later one counts: a resumed run repeated the attempt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any

from pennyweight.errors import PennyweightError, UsageError, unknown
from pennyweight.models.failure import CallError
from pennyweight.models.model import Model, Reply, Request, Settings
from pennyweight.models.providers import in_folder

_MAKE = "'pennyweight run --record FILE' writes such files."
_BEGIN = b'{"key": "'
"""The start of each line that a recorder writes."""


def key_of(model: str, request: Request) -> str:
    """Return the key under which a reply is recorded."""
    whole = {"model": model, **request.plain()}
    text = json.dumps(whole, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Recording:
    """A file of recorded replies, read completely."""

    path: Path
    replies: Mapping[str, Reply]
    models: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Read a file. An incomplete last line (the recorder was killed) is ignored."""
        replies: dict[str, Reply] = {}
        models: dict[str, None] = {}
        problems: list[str] = []
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as wrong:
            raise UsageError(f"{path} cannot be read as a recording: {wrong}. {_MAKE}") from wrong
        for number, line in enumerate(lines[:-1], 1):
            try:
                row = json.loads(line)
                replies[row["key"]] = Reply.of(row["reply"])
                models[row["model"]] = None
            except (ValueError, TypeError, KeyError, UsageError) as wrong:
                problems.append(f"{path}, line {number}: not a recorded reply ({wrong})")
        if problems:
            more = f", and {len(problems) - 1:,} more" if problems[1:] else ""
            raise UsageError(f"{problems[0]}{more}. {_MAKE}")
        return cls(path, replies, tuple(models))

    @classmethod
    def named(cls, text: str, folder: Path | None = None) -> ReplayModel:
        """Find the model of `replay:FILE`, or of `replay:FILE#MODEL` if the file has several.

        The file is searched in `folder`, the suite's, and then in the current folder.
        """
        file, _, model = text.partition("#")
        if not file:
            raise UsageError("'replay:' needs a file; write replay:FILE.")
        recording = cls.read(in_folder(folder, file))
        if model:
            return recording.model(model)
        if len(recording.models) == 1:
            return recording.model(recording.models[0])
        models = ", ".join(recording.models) or "none"
        raise UsageError(f"{file} does not have one model but: {models}. Write replay:FILE#MODEL.")

    def model(self, name: str) -> ReplayModel:
        """Return one of the recorded models."""
        if name not in self.models:
            raise UsageError(unknown(f"In {self.path}, model", name, self.models))
        return ReplayModel(name, self)


class ReplayModel(Model):
    """A model that answers as it did when it was recorded, including usage and latency.

    It has the name of the recorded model, so that its records are the same.
    """

    def __init__(self, name: str, recording: Recording) -> None:
        self.name = name
        self.account = f"replay:{recording.path}"
        self.recording = recording

    async def call(self, request: Request) -> Reply:
        """Answer once, from the file."""
        for variant in (request, replace(request, label="")):  # older files have no label
            reply = self.recording.replies.get(key_of(self.name, variant))
            if reply is not None:
                return reply
        prompt = " ".join(request.text.split())[:60]
        raise CallError(
            "replay",
            f"{self.recording.path} has no reply of {self.name} to this prompt with these "
            f"settings, attempt {request.attempt} ({prompt!r}…). Record it with --record.",
        )


class RecordError(PennyweightError):
    """Replies can no longer be recorded: the disk is full, or the file has disappeared."""

    exit_code = 4


class Recorder:
    """Appends replies to a file, each before its caller sees it. Several models may share one.

    If the file can no longer be written, a reply still reaches its caller, but no further call is
    made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._error: RecordError | None = None
        self._lost = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with ExitStack() as opened:
                self._file = opened.enter_context(path.open("ab"))
                _end_last_line(path, self._file)
                opened.pop_all()
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"--record {path}: the file cannot be written: {reason}.") from error

    def wrap(self, model: Model) -> Model:
        """Return the model with its replies recorded."""
        return _Recorded(model, self)

    def add(self, model: str, request: Request, reply: Reply) -> None:
        """Append one reply."""
        row = {"key": key_of(model, request), "model": model, "attempt": request.attempt}
        line = json.dumps({**row, "reply": reply.plain()}, ensure_ascii=False)
        if self._error is None:
            try:
                self._file.write(line.encode("utf-8", "replace") + b"\n")
                self._file.flush()
            except OSError as error:
                self._fail(error)
        if self._error is not None:
            self._lost += 1

    def check(self) -> None:
        """Raise RecordError if a reply could not be written."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Close the file. Raise RecordError if it lacks a reply."""
        try:
            self._file.close()
        except OSError as error:
            self._fail(error)
        if self._error is not None:
            lost = "1 reply is" if self._lost == 1 else f"{self._lost:,} replies are"
            raise RecordError(f"{self._error} {lost} in the store, but not in this file.")

    def _fail(self, error: OSError) -> None:
        if self._error is None:
            self._error = RecordError(
                f"{self._path} can no longer be written: {error.strerror or error}. The replies so "
                "far are safe in the store; free some space, then 'pennyweight run --resume'."
            )


class _Recorded(Model):
    """A model whose replies are recorded."""

    def __init__(self, model: Model, recorder: Recorder) -> None:
        self._model, self._recorder = model, recorder
        self.name, self.account = model.name, model.account
        self.limit, self.ignores = model.limit, model.ignores

    def encode(self, request: Request) -> tuple[str, dict[str, Any]] | None:
        """Return the request as the recorded model sends it."""
        return self._model.encode(request)

    def most_output(self, settings: Settings) -> int | None:
        """Return the limit of the recorded model."""
        return self._model.most_output(settings)

    async def call(self, request: Request) -> Reply:
        """Answer once, and record it."""
        self._recorder.check()
        reply = await self._model.call(request)
        if reply.status != "error":
            self._recorder.add(self.name, request, reply)
        return reply

    async def close(self) -> None:
        """Close the model; the file belongs to the recorder."""
        await self._model.close()


def _is_recorded(line: bytes) -> bool:
    """Whether a line is a recorded reply."""
    try:
        row = json.loads(line)
        return isinstance(row["key"], str) and isinstance(row["model"], str) and "reply" in row
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _is_recording(start: bytes) -> bool:
    """Whether a file that starts with this line, which may be incomplete, is a recording."""
    if start.endswith(b"\n"):
        return _is_recorded(start)
    return start.startswith(_BEGIN) or _BEGIN.startswith(start)


def _end_last_line(path: Path, file: IO[bytes]) -> None:
    """Remove an incomplete last line that a killed recorder left. Refuse a file of another kind."""
    if not path.stat().st_size:
        return
    with path.open("rb") as old, mmap(old.fileno(), 0, access=ACCESS_READ) as data:
        is_json = data[:1] == b"{"
        if not (is_json and _is_recording(data[: data.find(b"\n") + 1] or data[:])):
            raise UsageError(
                f"--record {path}: the file exists and is not a recording; name another file."
            )
        end = data.rfind(b"\n") + 1
        tail = data[end:]
    if _is_recorded(tail):
        file.write(b"\n")
    elif tail:
        file.truncate(end)
