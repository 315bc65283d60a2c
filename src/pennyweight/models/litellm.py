"""`litellm/…`: the long tail of providers, through the optional package litellm."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from time import perf_counter
from typing import Any

from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError, from_status
from pennyweight.models.keys import redact_environment, redact_reply
from pennyweight.models.model import Model, Reply, Request
from pennyweight.models.wires import openai


class LiteLLMModel(Model):
    """A model that litellm calls. litellm reads the key from the environment."""

    ignores = frozenset({"stream"})

    def __init__(self, model: str, timeout: float) -> None:
        if find_spec("litellm") is None:
            raise UsageError(f"litellm/{model} needs the package litellm: pip install litellm.")
        self.name = f"litellm/{model}"
        self.account = f"litellm/{model.partition('/')[0]}"
        self._model = model
        self._timeout = timeout

    def encode(self, request: Request) -> tuple[str, dict[str, Any]]:
        """Return the request as it is sent. Raise UsageError if a setting cannot be expressed."""
        return openai.encode(self._model, request)

    async def call(self, request: Request) -> Reply:
        """Answer once."""
        litellm: Any = importlib.import_module("litellm")
        _, body = self.encode(request)
        started = perf_counter()
        try:
            answer = await litellm.acompletion(
                **body, timeout=self._timeout, num_retries=0, drop_params=True
            )
        except Exception as wrong:
            failed = _failed(wrong)
        else:
            body = redact_reply(answer.model_dump())
            return openai.decode(body, (perf_counter() - started) * 1000)
        raise failed


def _failed(wrong: Exception) -> CallError:
    text, kind = redact_environment(str(wrong)), type(wrong).__name__
    if kind == "Timeout":
        return CallError("timeout", text)
    if kind == "APIConnectionError":
        return CallError("connection", text)
    status = getattr(wrong, "status_code", None)
    headers = getattr(getattr(wrong, "response", None), "headers", None) or {}
    return from_status(status if isinstance(status, int) else 500, headers, text, kind)
