"""Models that can be called: ask one; list local models, and providers with their keys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pennyweight.models.gguf import available, pull
from pennyweight.models.model import Message, Model, Request, Settings
from pennyweight.models.providers import PROVIDERS, find

_MODELS: dict[str, Model] = {}
"""The models asked so far. Each opens its connections, or starts its server, once."""


@dataclass(frozen=True, slots=True)
class AvailableModel:
    """A local model: installed, or ready to be fetched."""

    name: str
    about: str
    size: int
    """Bytes to fetch."""
    installed: bool


@dataclass(frozen=True, slots=True)
class ProviderKey:
    """A provider, and whether its key is set."""

    name: str
    key_env: str | None
    """The environment variable of its key; None if it needs none."""
    key_is_set: bool


def local_models() -> list[AvailableModel]:
    """List the local models."""
    return [
        AvailableModel(model.name, model.about, model.size, installed=model.path is not None)
        for model in available()
    ]


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
    found = _MODELS.get(model)
    if found is None:
        found = _MODELS[model] = find(model)
    reply = await found.call(Request(asked, Settings.of(settings)))
    return reply.plain()
