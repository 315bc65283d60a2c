"""Ask a model once: plain values in, plain values out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pennyweight.models.model import Message, Model, Request, Settings
from pennyweight.models.providers import find

_MODELS: dict[str, Model] = {}
"""The models asked so far. Each opens its connections, or starts its server, once."""


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
