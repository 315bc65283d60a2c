"""Models that can be called: ask one; list local models, and providers with their keys."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pennyweight.models.failure import CallError
from pennyweight.models.gguf import available as available  # noqa: PLC0414 - skins use it
from pennyweight.models.gguf import pull
from pennyweight.models.local import LocalModel
from pennyweight.models.model import Message, Model, Request, Settings
from pennyweight.models.providers import PROVIDERS, find

_Key = tuple[str, str | None, str | None, float | None]
_Opened = tuple[dict[_Key, Model], AsyncGenerator[None]]
_OPEN: WeakKeyDictionary[asyncio.AbstractEventLoop, _Opened] = WeakKeyDictionary()
"""The models asked so far in each event loop: a connection works in the loop that opened it."""


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
    model: str,
    messages: str | Sequence[Mapping[str, str]],
    *,
    base_url: str | None = None,
    key_env: str | None = None,
    timeout: float | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Ask a model, such as `local/smollm2-135m`, once and return its reply as a dict.

    `messages` is a text, or a list of mappings with `role` and `content`. `base_url` is the address
    of another server, `key_env` the variable with its key. There is a CallError after `timeout`
    seconds without a reply (default: 120, for local models 600). The other keyword arguments are
    settings such as `temperature`. The result has `text`, `usage`, `tool_calls` and the other
    fields of a reply; a function that is used as a model can return it as it is.
    """
    turns = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    asked = tuple(Message(turn["role"], turn["content"]) for turn in turns)
    request = Request(asked, Settings.of(settings))
    models = await _models_of_this_loop()
    key = (model, base_url, key_env, timeout)
    if key not in models:
        models[key] = find(model, base_url=base_url, key_env=key_env, timeout=timeout)
    try:
        async with asyncio.timeout(timeout):
            reply = await models[key].call(request)
    except TimeoutError:
        raise CallError("timeout", f"{model} did not answer within {timeout:g} s.") from None
    return reply.plain()


async def _models_of_this_loop() -> dict[_Key, Model]:
    """Return the models that were asked in the running loop."""
    loop = asyncio.get_running_loop()
    if loop not in _OPEN:
        models: dict[_Key, Model] = {}
        keeper = _closed_with_the_loop(models)
        _OPEN[loop] = models, keeper
        await anext(keeper)
    return _OPEN[loop][0]


async def _closed_with_the_loop(models: Mapping[_Key, Model]) -> AsyncGenerator[None]:
    """Close the connections of models when their loop ends, as it then closes its generators."""
    try:
        yield
    finally:
        for model in models.values():
            await (model.disconnect() if isinstance(model, LocalModel) else model.close())
