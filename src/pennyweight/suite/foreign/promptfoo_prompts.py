"""Prompts of promptfoo: texts, files and chats."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pennyweight.schema.tree import Node, TreeError, parse, plain
from pennyweight.suite.foreign.nunjucks import names_of, to_jinja, without_env
from pennyweight.suite.foreign.suite_format import ForeignSuite, Place, read_text
from pennyweight.suite.templates import TemplateError

_CODE = re.compile(r"\.(?:[cm]?[jt]s|py|rb|sh|exe|bat|cmd|ps1|pl)(?::\w+)?$")
_FILE = re.compile(r"\.(?:txt|json|jsonl|ya?ml|md|j2|csv)$")
_DUMPED = re.compile(r'(?<!")\{\{-?\s*([\w.]+)\s*\|\s*dump\s*-?\}\}(?!")')
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class ForeignPrompt:
    """A prompt: a template, or the messages of a chat."""

    label: str
    text: str
    messages: tuple[dict[str, str], ...]
    place: Place

    @property
    def texts(self) -> tuple[str, ...]:
        """Its templates."""
        return tuple(m["content"] for m in self.messages) or (self.text,)

    def variables(self) -> frozenset[str]:
        """Return the variables that it uses."""
        return frozenset().union(*map(names_of, self.texts))


def read_prompts(source: ForeignSuite, given: Node | None) -> list[ForeignPrompt]:
    """Read the prompts of a configuration."""
    found: list[ForeignPrompt] = []
    for label, raw, place in _given(source, given):
        for text in _texts(source, raw, place):
            prompt = _prompt(source, label, text, place)
            if prompt:
                found.append(prompt)
    return found


def _given(source: ForeignSuite, node: Node | None) -> Iterator[tuple[str, str, Place]]:
    if node is None:
        return
    if node.is_scalar:
        yield "", str(node.value), source.place.at(node.line)
    elif node.is_list:
        for one in node.elements():
            if one.is_mapping:
                yield from _table(source, one)
            elif one.is_scalar:
                yield "", str(one.value), source.place.at(one.line)
    else:
        for raw, label in node.items():
            yield str(label.value), raw, source.place.at(node.key_line(raw))


def _table(source: ForeignSuite, node: Node) -> Iterator[tuple[str, str, Place]]:
    table, place = plain(node), source.place.at(node.line)
    raw = table.get("raw", table.get("id"))
    if not isinstance(raw, str):
        source.miss(place, "a prompt", "it has no text")
        return
    for key in sorted({"config", "function"} & set(table)):
        source.miss(place.at(node.key_line(key)), f"prompt {key}", "there is no such setting")
    label = table.get("label") or table.get("display")
    label = label or (table.get("id") if "raw" in table else None)
    yield str(label or ""), raw, place


def _texts(source: ForeignSuite, raw: str, place: Place) -> Iterator[str]:
    named = raw.removeprefix("file://")
    if raw.startswith("exec:") or ("\n" not in named and _CODE.search(named)):
        source.miss(place, f"prompt {raw[:60]}", "it is code, and code is not run")
        return
    is_file = raw.startswith("file://") or ("\n" not in raw and bool(_FILE.search(raw)))
    if not is_file:
        yield raw
        return
    if not raw.startswith("file://") and not (source.folder / raw).exists() and "*" not in raw:
        yield raw
        return
    for path in source.find_all(named, place, "prompt"):
        yield from _file(path)


def _file(path: Path) -> Iterator[str]:
    text, ending = read_text(path), path.suffix.lower()
    if ending == ".txt":
        parts = re.split(r"(?m)^[ \t]*---[ \t]*\r?$", text)
        yield from (part.strip().replace("\r\n", "\n") for part in parts if part.strip())
    elif ending == ".jsonl":
        lines = [line for line in text.split("\n") if line.strip()]
        yield from lines
    elif ending in {".yaml", ".yml"}:
        try:
            yield json.dumps(plain(parse(text, is_json=False)[0]), ensure_ascii=False, default=str)
        except TreeError:
            yield text
    elif ending == ".csv":
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        named = [row["prompt"] for row in rows if row.get("prompt")]
        lines = [line for line in text.splitlines() if line.strip()]
        yield from named or lines
    else:
        yield text


def _prompt(source: ForeignSuite, label: str, raw: str, place: Place) -> ForeignPrompt | None:
    def tell(name: str) -> None:
        why = "its value is not copied; write what the prompt should say"
        source.miss(place, f"environment variable {name} in a prompt", why)

    text = without_env(raw, tell)
    messages = _chat(text)
    if messages is None:
        source.miss(place, f"prompt {text.strip()[:40]!r}", "its messages are not plain text")
        return None
    made = ForeignPrompt(label, to_jinja(text), messages, place)
    try:
        used = made.variables()
    except TemplateError as error:
        source.miss(place, f"prompt {text.strip()[:40]!r}", str(error).rstrip("."))
        return None
    if "_conversation" in used:
        source.miss(place, f"prompt {text.strip()[:40]!r}", "it repeats an earlier conversation")
        return None
    return made


def _chat(text: str) -> tuple[dict[str, str], ...] | None:
    """Read a chat that is written as JSON or YAML; empty if it is none, None if it has no text."""
    start = text.lstrip()[:1]
    if start not in {"[", "-"}:
        return ()
    try:
        if start == "[":
            given: Any = json.loads(_DUMPED.sub(r'"{{ \1 }}"', text), strict=False)
        else:
            given = plain(parse(text, is_json=False)[0])
    except (ValueError, RecursionError):
        return ()
    if not isinstance(given, list) or not all(isinstance(m, dict) and "role" in m for m in given):
        return ()
    made = []
    for message in given:
        content = message.get("content")
        if isinstance(content, list) and all(isinstance(p, dict) and "text" in p for p in content):
            content = "\n".join(str(part["text"]) for part in content)
        if not isinstance(content, str) or message["role"] not in _ROLES:
            return None
        made.append({"role": _ROLES[message["role"]], "content": to_jinja(content)})
    return tuple(made)
