"""`python:package.module:function`: any Python function as a model."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError, unknown
from assay.models.failure import CallError, shorten
from assay.models.model import Reply, Settings
from assay.models.secret import redact_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.models.model import Request


class FunctionModel:
    """A function that answers: it gets the text of the last message, or the whole request.

    It gets the request when its first parameter is called `request` or annotated `Request`. It
    may be async; a plain function runs in a thread. It returns a text, a Reply, or a dict with
    the fields of a Reply.
    """

    limit: int | None = None
    ignores: frozenset[str] = frozenset()

    def __init__(self, path: str) -> None:
        self.name = f"python:{path}"
        self.account = self.name
        self._function = _load(path)
        self._is_async = inspect.iscoroutinefunction(self._function)
        self._wants_request = _wants_request(self._function)
        if not self._wants_request:
            self.ignores = frozenset({"system", "examples", *(f.name for f in fields(Settings))})

    def __repr__(self) -> str:
        return f"FunctionModel({self.name})"

    async def call(self, request: Request) -> Reply:
        """Answer once."""
        given = request if self._wants_request else request.text
        started = perf_counter()
        try:
            value = await self._result(given)
            reply = _cleaned(_reply(value))
        except CallError:
            raise
        except Exception as wrong:
            said = shorten(redact_environment(f"{type(wrong).__name__}: {wrong}"))
            failed = CallError("function", f"{self.name} failed with {said}")
        else:
            if reply.latency_ms is not None:
                return reply
            return replace(reply, latency_ms=(perf_counter() - started) * 1000)
        raise failed

    async def _result(self, given: Any) -> Any:
        if self._is_async:
            return await self._function(given)
        value = await asyncio.to_thread(self._function, given)
        return await value if inspect.isawaitable(value) else value

    async def close(self) -> None:
        """There is nothing to give back."""


def _reply(value: Any) -> Reply:
    if isinstance(value, Reply):
        return value
    if isinstance(value, str):
        return Reply(value)
    if isinstance(value, Mapping):
        return Reply.of(value)
    raise UsageError(f"A model's function returns a text, a dict or a Reply, not {value!r:.80}.")


def _cleaned(reply: Reply) -> Reply:
    """Remove the keys of the environment from what a function passed on."""
    text = redact_environment(reply.text)
    reasoning = redact_environment(reply.reasoning) if reply.reasoning else reply.reasoning
    if text == reply.text and reasoning == reply.reasoning:
        return reply
    return replace(reply, text=text, reasoning=reasoning)


def _load(path: str) -> Callable[..., Any]:
    module_name, colon, attribute = path.partition(":")
    if not colon or not module_name or not attribute:
        raise UsageError(f"python:{path} names no function; write python:package.module:function.")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except Exception as wrong:
        said = f"{type(wrong).__name__}: {wrong}"
        raise UsageError(f"Module {module_name!r} cannot be imported ({said}).") from wrong
    function = getattr(module, attribute, None)
    if callable(function):
        return function  # type: ignore[no-any-return]
    known = [n for n, v in vars(module).items() if callable(v)]
    raise UsageError(unknown(f"In module {module_name!r}, function", attribute, known))


def _wants_request(function: Callable[..., Any]) -> bool:
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        raise UsageError(f"Function {function.__name__!r} takes nothing; it must take the prompt.")
    first = parameters[0]
    noted = first.annotation
    return first.name == "request" or str(getattr(noted, "__name__", noted)).endswith("Request")
