"""The command line and the prompt of an agent, made from a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pennyweight.models.failure import CallError
from pennyweight.models.model import Request, Settings
from pennyweight.suite.agents import PLACEHOLDER, placeholders
from pennyweight.suite.values import Agent

MAX_ARGUMENT_BYTES = 128 * 1024 - 1
"""The limit of Linux for one argument."""


def text_of(request: Request, *, system: bool = True) -> str:
    """Return the messages as one text: a single question as it is, several with their roles.

    The system prompt comes first, unless the command has a placeholder for it.
    """
    said = [m for m in request.messages if m.role != "system"]
    parts = [request.system] if system and request.system else []
    if len(said) == 1:
        parts.append(said[0].content)
    else:
        parts += [f"{m.role.capitalize()}: {m.content}" for m in said]
    return "\n\n".join(parts)


def settings_of(request: Request) -> dict[str, Any]:
    """Return the settings that differ from their defaults, as plain data."""
    default = Settings()
    own = {f.name: getattr(request.settings, f.name) for f in fields(Settings)}
    set_ = {n: v for n, v in own.items() if n != "extra" and v != getattr(default, n)}
    return {**set_, **request.settings.extra}


def words_of(agent: Agent, request: Request, prompt_file: str) -> tuple[list[str], str]:
    """Return the command with its placeholders filled in, and the text of the prompt."""
    named = placeholders(agent.command)
    prompt = text_of(request, system="system" not in named)
    values: dict[str, str] = {n: _written(v) for n, v in settings_of(request).items()}
    values["system"] = request.system
    if agent.prompt != "stdin":
        values["prompt"] = prompt if agent.prompt == "argument" else prompt_file
    _check(values, named if "prompt" in named or agent.prompt == "stdin" else [*named, "prompt"])
    words = _line(agent, values) if agent.shell else _words(agent, values)
    return words, prompt


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _check(values: Mapping[str, str], used: list[str]) -> None:
    for name in used:
        value = values.get(name, "")
        if len(value.encode("utf-8", "replace")) > MAX_ARGUMENT_BYTES or "\0" in value:
            what = f"The {name} cannot be an argument: it exceeds {MAX_ARGUMENT_BYTES:,} bytes"
            raise CallError("too_large", f"{what} or contains a NUL. Use 'prompt: stdin'.")


def _words(agent: Agent, values: Mapping[str, str]) -> list[str]:
    words = [PLACEHOLDER.sub(lambda m: values.get(m[1], m[0]), word) for word in agent.command]
    if "prompt" in values and "prompt" not in placeholders(agent.command):
        words.append(values["prompt"])
    return words


def _line(agent: Agent, values: Mapping[str, str]) -> list[str]:
    """Pass values to the shell as its arguments, so that nothing in them is run as a command."""
    line = agent.command[0]
    named = [name for name in placeholders(agent.command) if name in values]
    if "prompt" in values and "prompt" not in named:
        line, named = f"{line} {{prompt}}", [*named, "prompt"]
    filled, end = "", 0
    for match in PLACEHOLDER.finditer(line):
        if match[1] in named:
            before = line[end : match.start()]
            argument = f"${{{named.index(match[1]) + 1}}}"
            filled += before + _QUOTED[_quote(line[: match.start()])].format(argument)
            end = match.end()
    return ["sh", "-c", filled + line[end:], "sh", *(values[name] for name in named)]


_QUOTED = {"": '"{}"', '"': "{}", "'": "'\"{}\"'"}


def _quote(line: str) -> str:
    """Return the quote that is open at the end of a line for the shell.

    >>> _quote("a 'b"), _quote('a "b" "c'), _quote("a 'b' ")
    ("'", '"', '')
    """
    quote, escaped = "", False
    for sign in line:
        if escaped:
            escaped = False
        elif sign == "\\" and quote != "'":
            escaped = True
        elif sign == quote:
            quote = ""
        elif not quote and sign in "'\"":
            quote = sign
    return quote
