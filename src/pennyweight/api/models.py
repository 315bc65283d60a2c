"""Models that can be called: local ones, and providers with their keys."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pennyweight.models.gguf import available, pull
from pennyweight.models.providers import PROVIDERS


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
