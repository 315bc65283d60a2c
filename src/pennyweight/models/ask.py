"""Ask a model from one's own code: plain values in, plain values out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pennyweight.models.model import Message, Request, Settings
from pennyweight.models.providers import find

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennyweight.models.model import Model

_MODELS: dict[str, Model] = {}
"""Models that were asked: each has its connections, or its server, once."""


async def ask(
    model: str, messages: str | Sequence[Mapping[str, str]], **settings: Any
) -> dict[str, Any]:
    """Ask a model, such as local/smollm2-135m, once; gives its reply as a dict.

    Messages are a text, or a list of role and content. The dict has `text`, `usage`, `tool_calls`
    and what else a reply has; a function that is a model itself may return it, changed or not.
    """
    turns = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    said = tuple(Message(turn["role"], turn["content"]) for turn in turns)
    found = _MODELS.get(model)
    if found is None:
        found = _MODELS[model] = find(model)
    reply = await found.call(Request(said, Settings.of(settings)))
    return reply.plain()
