"""Texts of a suite that are in files of their own: `system: prompts/careful.md`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pennyweight.errors import UsageError
from pennyweight.schema.audit import note_file
from pennyweight.schema.problems import Problems
from pennyweight.schema.tree import Node
from pennyweight.schema.user_code import are_functions_forbidden
from pennyweight.suite.edits import replaced

KEYS = ("system", "prompt")
ENDINGS = frozenset(
    {".md", ".txt", ".j2", ".jinja", ".jinja2", ".tmpl", ".template", ".prompt", ".mustache"}
)
MAX_BYTES = 16 << 20


def with_text_files(root: Node, folder: Path, problems: Problems) -> Node:
    """Return the tree of a suite in which the names of text files are replaced by their texts."""
    root = _with_texts(root, "", folder, problems)
    tiers = root.get("tiers")
    if tiers is None or not isinstance(tiers.value, dict):
        return root
    for name in tiers.value:
        tier = tiers.get(name)
        if tier is not None and isinstance(tier.value, dict):
            tiers = replaced(tiers, name, _with_texts(tier, f"tiers.{name}.", folder, problems))
    return replaced(root, "tiers", tiers)


def _with_texts(node: Node, prefix: str, folder: Path, problems: Problems) -> Node:
    for key in KEYS:
        text = node.get(key) if isinstance(node.value, dict) else None
        if text is None or not isinstance(text.value, str):
            continue
        try:
            read = _read(text.value, folder)
        except UsageError as error:
            problems.add(text.line, f"{prefix}{key}: {error}")
            continue
        if read is not None:
            file, content = read
            node = replaced(node, key, Node(content, text.line, content, file=file))
    return node


def _read(text: str, folder: Path) -> tuple[str, str] | None:
    """Return the file that a text names, and its content; None if the text names none.

    Whether a text names a file follows from the text alone. Otherwise an uploaded suite, which may
    name no files, could be read as a text first, and as the name of a file when it is run.
    """
    name = text.strip()
    ends = Path(name).suffix.lower() in ENDINGS
    if not (ends or "/" in name) or any(sign in name for sign in ("\n", "{", "\0")):
        return None
    is_name = ends and not any(map(str.isspace, name))
    if are_functions_forbidden():
        if is_name:
            raise UsageError(f"{name}: an uploaded suite holds its texts itself.")
        return None
    path, exists = folder / name, False
    with suppress(OSError, RuntimeError):  # a text too long for a name, ~ and no such user
        path = folder / Path(name).expanduser()
        exists = path.is_file()
    if is_name and exists:
        return (str(path), _content(path)) if note_file(f"read {path}", path) else None
    if is_name:
        raise UsageError(
            f"{path}: no such file. A text that ends in {path.suffix} names a file next to the "
            "suite."
        )
    if exists:
        raise UsageError(
            f"{path} is a file, but only a name without spaces that ends in .md, .txt or .j2 is "
            "read: rename it."
        )
    return None


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UsageError(f"{path}: more than {MAX_BYTES >> 20} MB.")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start + 1} is not UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}.") from None
