"""The model for a first suite: one that can be called on this machine as it is."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from pennyweight.models.providers import LOOPBACK, PROVIDERS, Provider

LOCAL = "local/smollm2-135m"
SMALL = {
    "openai": "gpt-4.1-mini",
    "anthropic": "claude-haiku-4-5",
    "google": "gemini-2.5-flash-lite",
    "mistral": "mistral-small-latest",
    "deepseek": "deepseek-chat",
    "groq": "llama-3.1-8b-instant",
}
"""A small model of a provider, which answers without long thinking and takes a temperature."""
WAIT = 0.5
"""Seconds that a local server may take to list its models."""


@dataclass(frozen=True, slots=True)
class FirstModel:
    """A model, why it was chosen, and what it still needs."""

    model: str
    why: str
    needs: str = ""


def first_model(model: str | None = None) -> FirstModel:
    """Return the model that is named, or the first of: a key, a local server, the local model."""
    if model is not None:
        return FirstModel(model, "named")
    return _with_key() or _served() or _local()


def _with_key() -> FirstModel | None:
    for name, small in SMALL.items():
        key = PROVIDERS[name].key_env
        if os.environ.get(key):
            return FirstModel(f"{name}/{small}", f"{key} is set; calls are charged")
    return None


def _served() -> FirstModel | None:
    for provider in PROVIDERS.values():
        if urlsplit(provider.base_url).hostname in LOOPBACK and (found := _listed(provider)):
            return FirstModel(f"{provider.name}/{found}", f"served at {provider.base_url}")
    return None


def _listed(provider: Provider) -> str | None:
    """Ask a local server for its models; return the first of them."""
    parts = urlsplit(provider.base_url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=WAIT)
    try:
        connection.request("GET", f"{parts.path}/models")
        answer = connection.getresponse()
        body = json.loads(answer.read(1_000_000)) if answer.status == http.HTTPStatus.OK else {}
        with suppress(LookupError, TypeError):
            names = [str(one["id"]) for one in body["data"] if "embed" not in str(one["id"])]
            return names[0]
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return None


def _local() -> FirstModel:
    missing = importlib.util.find_spec("xllamacpp") is None
    needs = "pip install 'pennyweight[local]'" if missing else ""
    return FirstModel(LOCAL, "it runs on this machine, without any key", needs)
