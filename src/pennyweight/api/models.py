"""Models that can be called: ask one; list local models, and providers with their keys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pennyweight.models.gguf import available as available  # noqa: PLC0414 - skins use it
from pennyweight.models.gguf import pull
from pennyweight.models.model import Message, Model, Request, Settings
from pennyweight.models.providers import PROVIDERS, find

_MODELS: dict[str, Model] = {}
"""The models asked so far. Each opens its connections, or starts its server, once."""


@dataclass(frozen=True, slots=True)
class ProviderKey:
    """A provider, and whether its key is set."""

    name: str
    key_env: str | None
    """The environment variable of its key; None if it needs none."""
    key_is_set: bool


def provider_keys() -> list[ProviderKey]:
    """List the providers, with the variable that holds the key of each."""
    return [
        ProviderKey(p.name, p.key_env or None, bool(p.key_env and os.environ.get(p.key_env)))
        for p in PROVIDERS.values()
    ]


def pull_model(name: str) -> Path:
    """Fetch a local model into the cache, and return its path."""
    return pull(name.removeprefix("local/"))


async def ask(
    model: str, messages: str | Sequence[Mapping[str, str]], **settings: Any
) -> dict[str, Any]:
    """Ask a model, such as `local/smollm2-135m`, once and return its reply as a dict.

    `messages` is a text, or a list of mappings with `role` and `content`. The keyword arguments are
    settings such as `temperature`. The result has `text`, `usage`, `tool_calls` and the other
    fields of a reply; a function that is used as a model can return it as it is.
    """
    turns = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    asked = tuple(Message(turn["role"], turn["content"]) for turn in turns)
    if model not in _MODELS:
        _MODELS[model] = find(model)
    reply = await _MODELS[model].call(Request(asked, Settings.of(settings)))
    return reply.plain()
