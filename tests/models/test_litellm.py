"""The adapter to litellm, against a stand-in of it: the package itself is an extra."""

import asyncio
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

from models.saved import ask, saved
from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError
from pennyweight.models.providers import find


class RateLimitError(Exception):
    status_code = 429


def stand_in(
    monkeypatch: pytest.MonkeyPatch, wrong: Exception | None = None
) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []

    async def acompletion(**body: Any) -> Any:
        seen.append(body)
        if wrong:
            raise wrong
        return types.SimpleNamespace(model_dump=lambda: saved("openai_plain"))

    module = types.ModuleType("litellm")
    module.__spec__ = ModuleSpec("litellm", None)
    module.acompletion = acompletion  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "litellm", module)
    return seen


def test_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = stand_in(monkeypatch)
    reply = asyncio.run(find("litellm/bedrock/x").call(ask(max_tokens=3)))
    assert reply.text == "4"
    assert (seen[0]["model"], seen[0]["max_tokens"], seen[0]["num_retries"]) == ("bedrock/x", 3, 0)


def test_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "0123456789abcdef")
    stand_in(monkeypatch, RateLimitError("slow down 0123456789abcdef"))
    with pytest.raises(CallError) as caught:
        asyncio.run(find("litellm/bedrock/x").call(ask()))
    assert caught.value.kind == "rate_limit"
    assert "0123456789" not in str(caught.value)


def test_it_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(UsageError, match="pip install"):
        find("litellm/x")
