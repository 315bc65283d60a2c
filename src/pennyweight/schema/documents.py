"""Documents that people write: YAML or JSON files, read into a tree with line numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pennyweight.schema.problems import DocumentError, Problems
from pennyweight.schema.tree import Node, TreeError, parse


@dataclass(frozen=True, slots=True)
class Document:
    """A file as it was read, and the problems found in it so far."""

    file: str
    text: str
    root: Node
    problems: Problems


def read_document(
    path: str | Path,
    text: str | None = None,
    *,
    problems: Problems | None = None,
    missing_hint: str = "",
) -> Document:
    """Read a YAML or JSON document; raise DocumentError if it cannot be parsed.

    `text` replaces the content of the file. `problems` collects the problems of a document that
    another one names. `missing_hint` tells the user how to create a file that does not exist.
    """
    file = str(path)
    own = Problems(file) if problems is None else problems.within(file)
    source = _read_text(file, missing_hint) if text is None else text
    try:
        root, found = parse(source, is_json=file.lower().endswith(".json"))
    except TreeError as error:
        raise DocumentError([f"{file}, line {error.line}: {error}"]) from None
    for line, message in found:
        own.add(line, message)
    return Document(file, source, root, own)


def _read_text(file: str, missing_hint: str) -> str:
    try:
        return Path(file).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DocumentError([f"{file}, line {line}: bytes that are not UTF-8."]) from None
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise DocumentError([f"{file}: no such file or folder."], hint=missing_hint) from None
        reason = (error.strerror or str(error)).lower()
        raise DocumentError([f"{file}: cannot be read: {reason}."]) from None
